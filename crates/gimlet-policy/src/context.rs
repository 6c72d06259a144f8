//! What a command is judged against. All of it comes in as values, so the same question always has the same answer.

use std::path::PathBuf;

/// Whether commands run inside an OS jail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jail {
    /// A jail confines what is run, so code of the repository may run unasked.
    Active,
    /// Nothing confines what is run.
    Absent,
}

/// Where a command would run. Paths are compared as text, component by component: nothing is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The folder the work is about, absolute.
    pub root: PathBuf,
    /// Where the command starts, absolute.
    pub cwd: PathBuf,
    /// What `~` and `$HOME` stand for, if known.
    pub home: Option<PathBuf>,
    /// Where grants and logs live; nothing a command names may be below it.
    pub gimlet_home: Option<PathBuf>,
    /// Whether a jail is around the command.
    pub jail: Jail,
}

impl Context {
    /// A context whose commands start in the root.
    pub fn new(root: impl Into<PathBuf>, jail: Jail) -> Self {
        let root = root.into();
        Context { cwd: root.clone(), root, home: None, gimlet_home: None, jail }
    }
}
