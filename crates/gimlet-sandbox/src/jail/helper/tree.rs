//! All processes a command has started, found by their parents. Orphans are the supervisor's own children, so nothing
//! leaves the tree.

use std::path::Path;

use super::sys;

/// What a tree of processes uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Used {
    pub(crate) processes: usize,
    pub(crate) threads: usize,
    /// Memory that comes from no file, in bytes; what they share among them counts once.
    pub(crate) memory: u64,
}

/// Measures everything below this process. How much of the memory is shared is found out only where it matters for the
/// limit, since the kernel has to look at every page for it.
pub(crate) fn measure(limit: u64) -> Used {
    let below = below(std::process::id());
    let sizes: Vec<(u32, Size)> = below.iter().filter_map(|pid| Some((*pid, Size::of(*pid)?))).collect();
    let sum = |size: fn(&Size) -> u64| sizes.iter().map(|(_, of)| size(of)).sum::<u64>();
    let (private, shared) = (sum(|of| of.private), sum(|of| of.shared));
    let shared = if private + shared <= limit {
        shared
    } else {
        sizes.iter().map(|(pid, size)| share(*pid, size)).sum()
    };
    let threads = sizes.iter().map(|(_, size)| size.threads).sum();
    Used { processes: below.len(), threads, memory: private + shared }
}

/// Whether the kernel tells what [`children`] asks for.
pub(crate) fn lists_children(proc: &Path) -> bool {
    let own = std::process::id().to_string();
    proc.join("self/task").join(own).join("children").exists()
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
        if let Ok(list) = std::fs::read_to_string(task.path().join("children")) {
            found.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
    }
    found
}

/// What a process has in memory that comes from no file, in bytes.
struct Size {
    private: u64,
    /// Others may have the same.
    shared: u64,
    threads: usize,
}

impl Size {
    /// None if the process is gone.
    fn of(pid: u32) -> Option<Self> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let kilobytes = |name| field(&text, name).unwrap_or_default() << 10;
        Some(Size {
            private: kilobytes("RssAnon:"),
            shared: kilobytes("RssShmem:"),
            threads: field(&text, "Threads:").and_then(|count| count.try_into().ok()).unwrap_or_default(),
        })
    }
}

/// A process's share, in bytes, of the memory that it has in common with others.
fn share(pid: u32, size: &Size) -> u64 {
    match std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) {
        Ok(text) => field(&text, "Pss_Shmem:").map_or(size.shared, |kilobytes| kilobytes << 10),
        // Whoever lets nobody look has all of it.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => size.shared,
        // It has ended meanwhile.
        Err(_) => 0,
    }
}

/// A number in one of the kernel's tables.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_lists_no_children_is_known() {
        assert!(lists_children(Path::new("/proc")));
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(temp.path().join("self/task").join(std::process::id().to_string())).unwrap();
        assert!(!lists_children(temp.path()));
    }
}
