//! Gimlet's Python: an interpreter without host access, in a worker process that a jail does not trust.
//!
//! [`PythonExecutor`] is the parent's side: it starts workers, carries host calls, keeps limits and rebuilds a
//! session by replay when its worker dies. [`worker::main`] is the child's side, run by a hidden subcommand.

mod eager;
pub mod executor;
pub mod imports;
pub mod limits;
pub mod protocol;
pub mod source;
#[cfg(feature = "interpreter")]
pub mod worker;

pub use executor::{Program, PythonConfig, PythonExecutor, Warmth};
pub use limits::Limits;
