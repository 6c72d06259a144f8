//! All processes that come from this one, however far down and whoever took them in: nests, the workers they fork, and
//! workers whose nest has died, which are nobody's descendants any more. Those are known by the program's name, which is
//! a link of this soak's own.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use gimlet_python::Program;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::eventually;

pub(crate) struct Family {
    /// The link to the program; no other process is called so.
    link: PathBuf,
    /// Holds the link; goes with the family.
    _place: TempDir,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    id: i32,
    parent: i32,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The program, as a nest or a worker, and alive: a dead one has no name.
    Program,
    Other,
}

impl Family {
    pub(crate) fn new() -> Family {
        let place = tempfile::tempdir().unwrap();
        let link = place.path().join("gimlet");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_gimlet"), &link).unwrap();
        Family { link, _place: place }
    }

    /// How its nests and workers are started.
    pub(crate) fn program(&self) -> Program {
        Program { path: self.link.clone(), args: vec!["__python-worker".into()] }
    }

    /// Everyone who has not been buried yet.
    pub(crate) fn members(&self) -> Vec<Process> {
        let everyone = self.everyone();
        let mut ancestors = HashSet::from([this()]);
        // Ids say nothing about age, so it is looked until nobody is added.
        loop {
            let known = ancestors.len();
            let children = everyone.iter().filter(|process| ancestors.contains(&process.parent));
            let children: Vec<i32> = children.map(|process| process.id).collect();
            ancestors.extend(children);
            if ancestors.len() == known {
                break;
            }
        }
        let is_member = |process: &Process| {
            process.kind == Kind::Program || (process.id != this() && ancestors.contains(&process.id))
        };
        everyone.into_iter().filter(is_member).collect()
    }

    /// Waits for the end of all of them, as a person would find the machine after the program's end.
    pub(crate) async fn gone(&self) {
        eventually(|| match self.members() {
            nobody if nobody.is_empty() => Ok(()),
            left => Err(format!("processes are left behind: {left:?}")),
        })
        .await;
    }

    /// Kills the workers that a nest has forked; how many there were.
    pub(crate) fn kill_workers(&self) -> usize {
        let (nests, workers) = self.nests_and_workers();
        let of_nest = |worker: &&Process| nests.iter().any(|nest| nest.id == worker.parent);
        workers.iter().filter(of_nest).filter(|worker| kill(worker)).count()
    }

    /// Kills a nest, before it can fork another, and its workers; how many nests there were.
    pub(crate) fn kill_nests(&self) -> usize {
        let (nests, workers) = self.nests_and_workers();
        let killed = nests.iter().filter(|nest| kill(nest)).count();
        for worker in &workers {
            kill(worker);
        }
        killed
    }

    /// A nest is our own child. So would be a worker without one, which there is only after a nest was killed.
    fn nests_and_workers(&self) -> (Vec<Process>, Vec<Process>) {
        let alive = self.everyone().into_iter().filter(|process| process.kind == Kind::Program);
        alive.partition(|process| process.parent == this())
    }

    fn everyone(&self) -> Vec<Process> {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        entries.filter_map(|entry| self.look(entry.file_name().to_str()?.parse().ok()?)).collect()
    }

    /// The process with this id, unless it has gone meanwhile.
    fn look(&self, id: i32) -> Option<Process> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name stands in brackets and may hold anything; the state and the parent follow.
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        let command = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let kind = match command.split(|byte| *byte == 0).next() {
            Some(name) if name == self.link.as_os_str().as_bytes() => Kind::Program,
            Some(_) | None => Kind::Other,
        };
        Some(Process { id, parent, kind })
    }
}

/// Whether there still was someone to kill.
fn kill(process: &Process) -> bool {
    kill_process(Pid::from_raw(process.id).unwrap(), Signal::KILL).is_ok()
}

fn this() -> i32 {
    i32::try_from(std::process::id()).unwrap()
}
