//! Containers: for commands, for checking patches, and for code in full CPython.
//!
//! Every container is as small as the sandbox allows (`engine.rs`), belongs to this process and ends with it: its owner
//! removes all before it ends ([`Containers::end_all`]); should the process be killed, their first process waits for its input to close and the
//! engine removes them; and what is left behind even so is found by its labels at the next start.

mod build;
mod commands;
mod container;
mod engine;
mod limits;
mod owner;
mod pack;
mod trial;
mod validate;
mod worker;

pub use build::{DOCKERFILE, build};
pub use commands::DockerRunner;
pub use container::Containers;
pub use engine::{DockerConfig, DockerError, Engine};
pub use trial::{try_image, try_project};
pub use validate::{AutoValidator, DockerValidator, NotInDocker};
pub use worker::{DockerLauncher, KIND};
