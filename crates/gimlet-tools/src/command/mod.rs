//! Starting programs on this machine, and deciding whether a command needs a shell for it.

mod host;
mod simple;

pub use host::HostRunner;
pub(crate) use host::{Capture, Process, execute};
pub use simple::invocation;
