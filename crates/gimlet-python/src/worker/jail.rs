//! The walls around the worker. It is assumed that model code may one day run as machine code in this process: what
//! it can then do is read and write the pipe, use memory up to a limit, and exit.
//!
//! [`enter`] runs before the watchdog's thread exists and is inherited by it; [`limit`] and [`filter`] run after and reach
//! all threads. What the kernel cannot give is returned in words, never passed over.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus, Scope,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use crate::limits::Limits;

/// Address space beyond the memory limit, for stacks and for what an allocator cannot reuse.
const HEADROOM: u64 = 128 << 20;
/// Seconds of processor time a session may use in its whole life.
const CPU_SECONDS: u64 = 4 * 3600;

/// Closes every descriptor but the three standard ones.
pub fn forget_descriptors() {
    // SAFETY: nothing in this process has opened a descriptor yet, so none that is closed here is in use.
    // By number, because not every C library knows it by name.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
}

/// Makes standard input and output the parent's diagnostic pipe, once the real ones are held elsewhere: a stray
/// print from inside the interpreter must not be taken for a message.
pub fn divert_standard_streams() {
    // SAFETY: takes plain numbers; all three descriptors exist, and nothing else uses the two that are replaced.
    unsafe {
        libc::dup2(2, 0);
        libc::dup2(2, 1);
    }
}

/// Lets the main thread's stack grow this far; deep recursion is Python's to refuse, not the kernel's.
pub fn allow_deep_stack(bytes: u64) {
    let mut bound = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a value that outlives the call.
    if unsafe { libc::getrlimit(libc::RLIMIT_STACK, &mut bound) } == 0 {
        bound.rlim_cur = bytes.min(bound.rlim_max);
        // SAFETY: as above. Where it is refused, recursion ends a little earlier.
        unsafe { libc::setrlimit(libc::RLIMIT_STACK, &bound) };
    }
}

/// Whether something waits to be read.
pub fn has_input(file: &std::fs::File) -> bool {
    let mut waiting: libc::c_int = 0;
    // SAFETY: the request writes one int, and the pointer is to one that outlives the call.
    unsafe { libc::ioctl(file.as_raw_fd(), libc::FIONREAD, &mut waiting) == 0 && waiting > 0 }
}

/// Size of a memory page.
pub fn page_size() -> u64 {
    // SAFETY: takes a plain number and has no preconditions.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Gives up privileges, files and the network. Threads started later inherit it.
pub fn enter() -> Vec<String> {
    let mut weaknesses = Vec::new();
    // SAFETY: takes plain numbers; the other arguments must be zero and are.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        weaknesses.push(format!("no_new_privs could not be set: {}", std::io::Error::last_os_error()));
    }
    match landlock_everything() {
        Ok(RulesetStatus::FullyEnforced) => {}
        Ok(RulesetStatus::PartiallyEnforced) => {
            weaknesses.push("Landlock is only partly supported by this kernel".into());
        }
        Ok(RulesetStatus::NotEnforced) => weaknesses.push("Landlock is not supported by this kernel".into()),
        Err(error) => weaknesses.push(format!("Landlock could not be set: {error}")),
    }
    weaknesses
}

/// A Landlock domain that allows no path, no port and no signal or socket out of it.
fn landlock_everything() -> Result<RulesetStatus, landlock::RulesetError> {
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(ABI::V5))?
        .handle_access(AccessNet::from_all(ABI::V4))?
        .scope(Scope::from_all(ABI::V6))?
        .create()?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// How much address space the process has taken, most of it reserved and untouched; must be asked before [`enter`].
/// Without `/proc` it is taken for a little more than the allocator reserves.
pub fn address_space() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_ascii_whitespace().next().and_then(|pages| pages.parse::<u64>().ok());
    pages.map_or(3 << 29, |pages| pages * page_size())
}

/// Sets the kernel's limits on what the process may take, beyond the address space it has.
pub fn limit(limits: &Limits, address_space: u64) -> Vec<String> {
    let mut weaknesses = Vec::new();
    let most = address_space.saturating_add(limits.memory).saturating_add(HEADROOM);
    let bounds = [
        (libc::RLIMIT_AS, most, "address space"),
        (libc::RLIMIT_CPU, CPU_SECONDS, "processor time"),
        (libc::RLIMIT_CORE, 0, "core dumps"),
        (libc::RLIMIT_FSIZE, 0, "file size"),
        (libc::RLIMIT_NOFILE, 0, "open files"),
        (libc::RLIMIT_NPROC, 0, "processes"),
    ];
    for (resource, most, name) in bounds {
        let bound = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: the pointer is to a value that outlives the call.
        if unsafe { libc::setrlimit(resource, &bound) } != 0 {
            weaknesses
                .push(format!("the limit on {name} could not be set: {}", std::io::Error::last_os_error()));
        }
    }
    weaknesses
}

/// Sets the system call filter for all threads. Nothing can be opened, started or reached after it.
pub fn filter() -> Vec<String> {
    match program().and_then(|program| seccompiler::apply_filter_all_threads(&program)) {
        Ok(()) => Vec::new(),
        Err(error) => vec![format!("the system call filter could not be set: {error}")],
    }
}

/// What an interpreter that only computes and talks over open pipes needs.
const ALLOWED: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_close,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigaction,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// The filter: everything not allowed fails with EPERM, so that a library which probes for a file falls back.
fn program() -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    let only_if = |place, operator, value| -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
        let condition = SeccompCondition::new(place, SeccompCmpArgLen::Dword, operator, value)?;
        Ok(vec![SeccompRule::new(vec![condition])?])
    };
    // Memory never becomes executable.
    let executable = SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64);
    rules.insert(libc::SYS_mmap, only_if(2, executable.clone(), 0)?);
    rules.insert(libc::SYS_mprotect, only_if(2, executable, 0)?);
    // Looking whether a message has come; no other request to a device.
    rules.insert(libc::SYS_ioctl, only_if(1, SeccompCmpOp::Eq, libc::FIONREAD as _)?);
    // An abort signals its own process and no other.
    rules.insert(libc::SYS_tgkill, only_if(0, SeccompCmpOp::Eq, u64::from(std::process::id()))?);
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Errno(libc::EPERM as u32),
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into()?,
    )?;
    Ok(filter.try_into()?)
}
