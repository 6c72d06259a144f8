//! What the kernel knows of a process.

use std::time::Duration;

/// Children of a process, by their ids.
pub(crate) fn children(of: &str) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{of}/task")).unwrap();
    tasks
        .flat_map(|task| {
            let text = std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default();
            text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

/// Kilobytes of a process under a heading of its memory's summary, such as `Private_` or `Pss:`; none once it has ended.
pub(crate) fn memory_kb(pid: &str, heading: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let lines = text.lines().filter(|line| line.starts_with(heading));
    Some(lines.map(|line| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()).sum())
}

/// Processor time of a process's main thread, which other work on the machine does not lengthen as it does wall time.
pub(crate) fn cpu(pid: &str) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}
