//! What a process holds: memory, descriptors, children.

use std::fmt;

pub(crate) struct Gauge {
    resident_kib: u64,
    descriptors: usize,
    children: usize,
}

impl Gauge {
    pub(crate) fn read() -> Gauge {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        Gauge {
            resident_kib: resident.trim().trim_end_matches(" kB").parse().unwrap(),
            descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
            children: children().len(),
        }
    }
}

impl fmt::Display for Gauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gauge { resident_kib, descriptors, children } = self;
        write!(f, "{:.1} MiB, {descriptors} descriptors, {children} children", *resident_kib as f64 / 1024.0)
    }
}

/// Processes this one has started and not yet buried.
pub(crate) fn children() -> Vec<i32> {
    std::fs::read_dir("/proc/self/task")
        .unwrap()
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// The last reading beside that of the first half's end, when everything that is made once has been made.
pub(crate) fn assert_no_growth(gauges: &[Gauge]) {
    let (half, last) = (&gauges[gauges.len() / 2 - 1], &gauges[gauges.len() - 1]);
    // A worker that was just told to end, and the sockets of a server that was just stopped, may still be there.
    assert!(last.children <= half.children + 2, "children: {half} became {last}");
    assert!(last.descriptors <= half.descriptors + 8, "descriptors: {half} became {last}");
    assert!(last.resident_kib <= half.resident_kib * 11 / 10 + 4096, "memory: {half} became {last}");
}
