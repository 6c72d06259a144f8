//! What this process holds: memory, descriptors, and every process that it or one of them has started.

use std::fmt;

use crate::family::Family;

pub(crate) struct Gauge {
    resident_kib: u64,
    descriptors: usize,
    processes: usize,
}

impl Gauge {
    pub(crate) fn read(family: &Family) -> Gauge {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        Gauge {
            resident_kib: resident.trim().trim_end_matches(" kB").parse().unwrap(),
            descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
            processes: family.members().len(),
        }
    }
}

impl fmt::Display for Gauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gauge { resident_kib, descriptors, processes } = self;
        let mib = *resident_kib as f64 / 1024.0;
        write!(f, "{mib:.1} MiB, {descriptors} descriptors, {processes} processes in the tree below")
    }
}

/// The last reading beside that of the first half's end, when everything that is made once has been made.
pub(crate) fn assert_no_growth(gauges: &[Gauge]) {
    let (half, last) = (&gauges[gauges.len() / 2 - 1], &gauges[gauges.len() - 1]);
    // Every attempt has waited for the end of all that it started.
    assert!(gauges.iter().all(|gauge| gauge.processes == 0), "processes: {last}");
    // The sockets of a server that was just stopped may still be there.
    assert!(last.descriptors <= half.descriptors + 8, "descriptors: {half} became {last}");
    assert!(last.resident_kib <= half.resident_kib * 11 / 10 + 4096, "memory: {half} became {last}");
}
