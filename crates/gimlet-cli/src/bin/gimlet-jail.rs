//! The jail's helper as a program of its own. `gimlet` is its own helper where this one is missing, but takes longer to
//! start: it is large, and a command waits for its helper.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    gimlet_runtime::parts::sandbox::jail::helper::main(std::env::args_os().skip(1))
}
