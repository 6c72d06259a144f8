//! What the process was started with: its variables, its working directory, and the folder for Gimlet's own files. It is
//! read once and handed on as a value, so that two runtimes in one process can differ in it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::UsageError;

/// The surroundings that settings are read from.
#[derive(Debug, Clone, Default)]
pub struct Process {
    variables: BTreeMap<OsString, OsString>,
    here: PathBuf,
    home: Option<Home>,
}

impl Process {
    /// Those of this process.
    pub fn current() -> anyhow::Result<Process> {
        let here = std::env::current_dir()
            .and_then(|here| here.canonicalize())
            .context("there is no working directory")?;
        let variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        // Without a data directory there is no user's file and nothing is trusted; commands that need one say so.
        let home = Home::named_by(&|name| variables.get(OsStr::new(name)).cloned())?;
        Ok(Process { variables, here, home })
    }

    /// The same with another data directory.
    #[must_use]
    pub fn with_home(self, home: Home) -> Process {
        Process { home: Some(home), ..self }
    }

    /// The same started in another folder.
    #[must_use]
    pub fn started_in(self, here: PathBuf) -> Process {
        Process { here, ..self }
    }

    /// A variable of the environment.
    pub fn var_os(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// A variable of the environment that is text.
    pub fn var(&self, name: &str) -> Option<&str> {
        self.var_os(name)?.to_str()
    }

    /// A variable that holds a path.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.var_os(name).map(PathBuf::from)
    }

    /// All variables.
    pub fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// The working directory, links resolved.
    pub fn here(&self) -> &Path {
        &self.here
    }

    /// The data directory, if there is a place for one.
    pub fn home(&self) -> Option<&Home> {
        self.home.as_ref()
    }

    /// The data directory, or the error that tells how to name one.
    pub fn need_home(&self) -> anyhow::Result<&Home> {
        Ok(self.home().ok_or_else(no_home)?)
    }
}

fn no_home() -> UsageError {
    UsageError::new("there is no place for runs and approvals").hint("set GIMLET_HOME to a folder")
}

/// The data directory: runs, blobs, approvals, the user's own settings. No tool or command can reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home(PathBuf);

impl Home {
    /// A certain folder. It is made when something is first written to it.
    pub fn at(folder: &Path) -> anyhow::Result<Home> {
        let path =
            std::path::absolute(folder).with_context(|| format!("cannot find {}", folder.display()))?;
        Ok(Home(path))
    }

    /// `GIMLET_HOME`, else the user's own data directory.
    fn named_by(variable: &dyn Fn(&str) -> Option<OsString>) -> anyhow::Result<Option<Home>> {
        let from = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = from("GIMLET_HOME")
            .or_else(|| from("XDG_DATA_HOME").map(|data| data.join("gimlet")))
            .or_else(|| from("HOME").map(|home| home.join(".local/share/gimlet")));
        folder.map(|folder| Home::at(&folder)).transpose()
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Makes a folder for the owner alone. One that exists keeps its mode.
pub fn create(folder: &Path) -> anyhow::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).with_context(|| format!("cannot make {}", folder.display()))
}
