//! The programs that a runtime starts beside itself: the worker of the Python sandbox and the helper of the jail. Both are
//! the embedding program itself, started with a hidden first argument, so that nothing else has to be installed.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use gimlet_config::UsageError;
use gimlet_python::{Program, PythonConfig, PythonExecutor, Warmth};

/// The hidden argument that makes a process the sandbox's worker.
const WORKER: &str = "__python-worker";
/// The hidden argument that makes a process the jail's helper.
pub(crate) const JAIL: &str = "__jail";

/// The first line of an embedding program's `main`: where the program was started as a helper, it does that job and
/// returns the exit code to end with. It must come before threads are started or files are read, because the helpers
/// close themselves in first.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     if let Some(done) = gimlet_runtime::run_as_helper() {
///         return done;
///     }
///     // The program itself.
///     std::process::ExitCode::SUCCESS
/// }
/// ```
pub fn run_as_helper() -> Option<ExitCode> {
    match std::env::args_os().nth(1) {
        Some(word) if word == WORKER => Some(gimlet_python::worker::main()),
        Some(word) if word == JAIL => Some(gimlet_sandbox::jail::helper::main(std::env::args_os().skip(2))),
        Some(_) | None => None,
    }
}

/// The Python sandbox: this same program as a jailed worker.
pub fn python(
    limits: gimlet_python::Limits,
    imports: &[String],
    warmth: Warmth,
) -> anyhow::Result<Arc<PythonExecutor>> {
    let path = std::env::current_exe().context("cannot find this program's own file")?;
    let config = PythonConfig {
        limits,
        imports: gimlet_python::imports::changed(imports).map_err(|error| {
            UsageError::new(error.to_string()).hint("gimlet python --help shows --imports")
        })?,
        warmth,
        ..PythonConfig::new(Program { path, args: vec![WORKER.into()] })
    };
    Ok(Arc::new(PythonExecutor::new(config)))
}
