//! All processes a command has started, found by their parents. Orphans are the supervisor's own children, so nothing
//! leaves the tree.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::sys;

/// What a tree of processes uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Used {
    pub(crate) processes: usize,
    pub(crate) threads: usize,
    /// Memory that comes from no file on a disk, in bytes; what they share among them counts once.
    pub(crate) memory: u64,
}

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The processes.
    Processes,
    /// As well what each has open, which takes long where there are many.
    Files,
}

/// Measures everything below this process. How much of the memory is shared is found out only where it matters for the
/// limit, since the kernel has to look at every page for it.
pub(crate) fn measure(limit: u64, depth: Depth) -> Used {
    let below = below(std::process::id());
    let in_files = match depth {
        Depth::Processes => 0,
        Depth::Files => in_files(&below),
    };
    let sizes: Vec<(u32, Size)> = below.iter().filter_map(|pid| Some((*pid, Size::of(*pid)?))).collect();
    let sum = |size: fn(&Size) -> u64| sizes.iter().map(|(_, of)| size(of)).sum::<u64>();
    let (private, shared) = (sum(|of| of.private), sum(|of| of.shared));
    let shared = if private + shared <= limit {
        shared
    } else {
        sizes.iter().map(|(pid, size)| share(*pid, size)).sum()
    };
    let threads = sizes.iter().map(|(_, size)| size.threads).sum();
    Used { processes: below.len(), threads, memory: private + shared.max(in_files) }
}

/// Bytes in files that are nowhere but in memory: those of the jail's own `/dev/shm`, and those that have no name. What is
/// mapped of them is shared memory as well.
fn in_files(pids: &[u32]) -> u64 {
    let device = |place: &Path| Some(std::fs::metadata(place).ok()?.dev());
    let shm = |pid: &u32| PathBuf::from(format!("/proc/{pid}/root/dev/shm"));
    // Outside of bubblewrap it is the machine's, where a jail without bubblewrap writes nothing.
    let machine = device(Path::new("/dev/shm"));
    let own = pids.iter().map(shm).find(|place| device(place).is_some_and(|found| Some(found) != machine));
    let used = own.and_then(|place| rustix::fs::statvfs(&place).ok());
    let used = used.map_or(0, |space| (space.f_blocks - space.f_bfree) * space.f_frsize);
    let open = pids.iter().flat_map(|pid| std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten());
    let unnamed = open.flatten().filter_map(|file| {
        let name = std::fs::read_link(file.path()).ok()?;
        let known = name.to_str()?.starts_with("/memfd:").then(|| std::fs::metadata(file.path()).ok())??;
        Some((known.ino(), known.blocks() * 512))
    });
    used + unnamed.collect::<BTreeMap<_, _>>().into_values().sum::<u64>()
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
