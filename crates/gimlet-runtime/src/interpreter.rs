//! Which CPython `--executor venv` runs: the one a setting names, else that of the active environment, else that of the
//! project's `.venv`, else the first `python3` of `PATH`. Nothing is started to find it.

use std::path::{Path, PathBuf};

use gimlet_config::{Settings, UsageError};

/// Variables that name an active environment.
const ACTIVE: &[&str] = &["VIRTUAL_ENV", "CONDA_PREFIX"];
/// Where an environment has its interpreter.
const PROGRAM: &str = "bin/python";

/// The interpreter, by its absolute path.
pub(crate) fn find(settings: &Settings) -> anyhow::Result<PathBuf> {
    if let Some(named) = settings.sandbox_python()? {
        if is_program(&named) {
            return Ok(named);
        }
        return Err(UsageError::new(format!("there is no interpreter at {}", named.display()))
            .hint("SANDBOX_PYTHON (`sandbox.python`) names one, such as .venv/bin/python")
            .into());
    }
    let process = settings.process();
    let active = ACTIVE.iter().filter_map(|name| process.path(name));
    let environments = active.chain([settings.root.join(".venv")]).map(|folder| folder.join(PROGRAM));
    let path = process.var_os("PATH").map(ToOwned::to_owned).unwrap_or_default();
    let programs: Vec<PathBuf> = std::env::split_paths(&path).map(|folder| folder.join("python3")).collect();
    environments.chain(programs).find(|program| program.is_absolute() && is_program(program)).ok_or_else(|| {
        UsageError::new("`--executor venv` finds no Python: no environment is active, the project has no .venv, and there is no python3")
            .hint("make one with `uv venv` or `python3 -m venv .venv`, or name one with SANDBOX_PYTHON")
            .into()
    })
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|known| known.is_file() && known.permissions().mode() & 0o111 != 0)
}
