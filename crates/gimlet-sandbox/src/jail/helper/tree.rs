//! All processes a command has started, found by their parents. Orphans are the supervisor's own children, so nothing
//! leaves the tree.

use std::path::PathBuf;

use super::sys;

/// What a tree of processes uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Used {
    pub(crate) processes: usize,
    /// Memory that only these processes have, in bytes.
    pub(crate) memory: u64,
}

/// Measures everything below this process.
pub(crate) fn measure() -> Used {
    let page = sys::page_size();
    let below = below(std::process::id());
    let memory = below.iter().filter_map(|pid| private_pages(*pid)).sum::<u64>() * page;
    Used { processes: below.len(), memory }
}

/// Kills everything below this process, and comes back when nothing is left. First, at one stroke, what is still in the
/// command's own group, so that a fork bomb is not looked for one by one.
pub(crate) fn end(command: u32) {
    sys::signal_group(command, libc::SIGKILL);
    // All that have ended are collected first: looking for what is left takes longer the more there are.
    while sys::reap_ended() {
        // From the top: with bubblewrap's first process everything in its namespace is gone.
        for pid in children(std::process::id()) {
            sys::kill(pid);
        }
        for pid in below(std::process::id()) {
            sys::kill(pid);
        }
        sys::reap_one();
    }
}

/// The processes below one, nearest first.
fn below(pid: u32) -> Vec<u32> {
    let mut found = children(pid);
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        found.extend(children(pid));
        next += 1;
    }
    found
}

/// The children of all threads of a process; none if it is gone.
fn children(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let list: PathBuf = task.path().join("children");
        if let Ok(list) = std::fs::read_to_string(list) {
            found.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    found
}

/// Pages in memory that come from no file and are shared with nobody.
fn private_pages(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let mut fields = text.split_ascii_whitespace().skip(1).filter_map(|field| field.parse::<u64>().ok());
    let (resident, shared) = (fields.next()?, fields.next()?);
    Some(resident.saturating_sub(shared))
}
