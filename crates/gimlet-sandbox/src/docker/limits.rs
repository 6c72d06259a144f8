//! What a container may use, and whether the engine holds it to that: a rootless one whose control groups are not its
//! own drops limits without a word, and would then run whatever it is given without any.

use bollard::models::HostConfig;

const MEMORY: i64 = 512 << 20;
/// Half of one processor, in microseconds of a tenth of a second.
const CPU_PERIOD: i64 = 100_000;
const CPU_QUOTA: i64 = 50_000;
const PROCESSES: i64 = 100;
/// Of `/dev/shm`, which semaphores and shared memory of Python's own processes are in; an engine may have another default.
const SHARED: i64 = 64 << 20;

/// The limits, and nothing else.
pub(crate) fn limited() -> HostConfig {
    HostConfig {
        memory: Some(MEMORY),
        memory_swap: Some(MEMORY),
        cpu_period: Some(CPU_PERIOD),
        cpu_quota: Some(CPU_QUOTA),
        pids_limit: Some(PROCESSES),
        shm_size: Some(SHARED),
        readonly_rootfs: Some(true),
        network_mode: Some("none".into()),
        ..HostConfig::default()
    }
}

/// What of it a container that was made is not held to, by the engine's own account.
pub(crate) fn dropped(made: &HostConfig) -> Vec<&'static str> {
    let asked = limited();
    // Where the kernel does not count swap, engines say so by another number; the memory itself is still limited.
    let walls = [
        ("memory", made.memory == asked.memory),
        ("processors", (made.cpu_period, made.cpu_quota) == (asked.cpu_period, asked.cpu_quota)),
        ("processes", made.pids_limit == asked.pids_limit),
        ("root file system", made.readonly_rootfs == asked.readonly_rootfs),
        ("network", made.network_mode == asked.network_mode),
    ];
    walls.into_iter().filter(|(_, holds)| !holds).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_engine_drops_is_named() {
        assert!(dropped(&limited()).is_empty());
        let no_swap = HostConfig { memory_swap: Some(-1), ..limited() };
        assert!(dropped(&no_swap).is_empty());
        // As Podman without control groups of its own answers.
        let rootless = HostConfig {
            memory: Some(0),
            memory_swap: Some(0),
            cpu_period: Some(0),
            cpu_quota: Some(0),
            pids_limit: Some(0),
            ..limited()
        };
        assert_eq!(dropped(&rootless), ["memory", "processors", "processes"]);
        assert_eq!(dropped(&HostConfig { pids_limit: None, ..limited() }), ["processes"]);
        assert_eq!(dropped(&HostConfig { network_mode: Some("bridge".into()), ..limited() }), ["network"]);
    }
}
