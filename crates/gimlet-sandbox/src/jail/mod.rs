//! The jail around commands: bubblewrap where it works, otherwise Landlock and seccomp in a helper of our own.
//!
//! [`detect`] finds out what this machine can enforce, [`JailedRunner`] rewrites a command so that it starts inside the
//! jail, and [`helper`] is the program it starts in: it supervises the whole tree of processes and ends it.

mod blame;
mod detect;
pub mod helper;
mod masks;
mod modules;
mod order;
mod places;
mod runner;
mod server;
mod urls;
mod worker;

pub use detect::{Found, Mechanism, NoJail, Outside, Wanted, check_root, detect};
pub use order::Limits;
pub use places::system_secrets;
pub use runner::{JailConfig, JailedRunner, Program};
pub use server::{Server, jailed_server, supervised};
pub use worker::{KIND, VenvLauncher};
