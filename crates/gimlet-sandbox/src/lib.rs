//! Isolation for commands and full CPython.
//!
//! [`jail`] confines commands by the kernel's own means and is what most machines have; [`docker`] runs commands, patch
//! checks and Python in containers. Both stand behind traits of the core crate, and neither starts anything by itself:
//! what is missing on a machine is said, never passed over.

pub mod docker;
pub mod jail;
mod runner;
