//! System calls that no command needs and every escape does. Everything else passes: a command is any program.

use std::collections::BTreeMap;
use std::io;

use gimlet::command::Network;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    sock_filter,
};

use super::landlock;
use crate::jail::detect::Mechanism;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Refused outright: other processes' memory, the kernel's settings, new file systems and namespaces.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_init_module,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_userfaultfd,
];
/// Refused with Landlock, which has no namespace for it: memory, locks and queues that programs share by a number or a
/// name that is no file's.
const SHARED: &[libc::c_long] = &[
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmget,
];
/// Refused with Landlock, which shows other processes, unless it is about the process itself, which is number 0: their
/// limits (one of 0 seconds would end the supervisor) and their turn. Where the number is among the arguments.
const ON_PROCESSES: &[(libc::c_long, u8)] = &[
    (libc::SYS_ioprio_set, 1),
    (libc::SYS_prlimit64, 0),
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_setpriority, 1),
];
/// Those of them that with this first argument are about everything the user runs, for which 0 stands too.
const ON_USERS: &[(libc::c_long, u64)] =
    &[(libc::SYS_ioprio_set, 3), (libc::SYS_setpriority, libc::PRIO_USER as u64)];
/// What gives a file its mode, and where that is among the arguments. A folder is never made with the bits in question.
const MODES: &[(libc::c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
];
/// The same of calls that have a mode only where they make a file, with the place of the flags that say so before it.
const OPENS: &[(libc::c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];
/// The same number everywhere, though not every C library knows it.
const FCHMODAT2: libc::c_long = 452;
/// A program with one of these runs as its owner or group, for whoever starts it outside of the jail.
const GIVES_RIGHTS: [u64; 2] = [libc::S_ISUID as u64, libc::S_ISGID as u64];
/// Either makes a file; of the second only the bit that is not shared with other flags.
const MAKES_FILE: [u64; 2] = [libc::O_CREAT as u64, (libc::O_TMPFILE & !libc::O_DIRECTORY) as u64];
/// Said not to exist, so that programs fall back: the first two hide their flags from a filter, the others would do what
/// the filter refuses on the side.
const ABSENT: &[libc::c_long] = &[
    libc::SYS_clone3,
    libc::SYS_openat2,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];
/// Pushes characters into a terminal as if someone had typed them.
const TIOCSTI: u64 = 0x5412;
/// The part of a socket's type that is not flags.
const SOCKET_TYPE: u64 = 0xf;
/// From here on a call's number is that of another set of calls, which no filter here knows.
#[cfg(target_arch = "x86_64")]
const FOREIGN_CALLS: u32 = 0x4000_0000;

/// The filters, each with its own answer to what it stops.
pub(crate) fn filters(mechanism: &Mechanism, network: Network) -> io::Result<Vec<BpfProgram>> {
    let build = || -> Result<Vec<BpfProgram>, seccompiler::Error> {
        let mut refused: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
        let new_user = libc::CLONE_NEWUSER as u64;
        for call in [libc::SYS_clone, libc::SYS_unshare] {
            refused.insert(call, vec![rule([(0, SeccompCmpOp::MaskedEq(new_user), new_user)])?]);
        }
        refused.insert(libc::SYS_ioctl, vec![rule([(1, SeccompCmpOp::Eq, TIOCSTI)])?]);
        modes(&mut refused)?;
        if let Mechanism::Landlock(_) = mechanism {
            others(&mut refused)?;
        }
        let mut unreachable = Rules::new();
        sockets(mechanism, network, &mut refused, &mut unreachable)?;
        let absent: Rules = ABSENT.iter().map(|call| (*call, Vec::new())).collect();
        let mut absent = filter(absent, libc::ENOSYS)?;
        absent.splice(0..0, foreign_calls());
        let mut filters = vec![filter(refused, libc::EPERM)?, absent];
        if !unreachable.is_empty() {
            filters.push(filter(unreachable, libc::ENETUNREACH)?);
        }
        Ok(filters)
    };
    build().map_err(io::Error::other)
}

/// No file is given a mode that would give rights to who runs it.
fn modes(refused: &mut Rules) -> Result<(), seccompiler::Error> {
    let has = |place, bits| (place, SeccompCmpOp::MaskedEq(bits), bits);
    for (call, mode) in MODES {
        let rules = GIVES_RIGHTS.map(|bit| rule([has(*mode, bit)]));
        refused.insert(*call, rules.into_iter().collect::<Result<_, _>>()?);
    }
    for (call, flags) in OPENS {
        let rules = GIVES_RIGHTS
            .iter()
            .flat_map(|bit| MAKES_FILE.map(|makes| rule([has(*flags, makes), has(flags + 1, *bit)])));
        refused.insert(*call, rules.collect::<Result<_, _>>()?);
    }
    Ok(())
}

/// What reaches programs outside where no namespace hides them.
fn others(refused: &mut Rules) -> Result<(), seccompiler::Error> {
    refused.extend(SHARED.iter().map(|call| (*call, Vec::new())));
    for (call, process) in ON_PROCESSES {
        refused.insert(*call, vec![rule([(*process, SeccompCmpOp::Ne, 0)])?]);
    }
    for (call, kind) in ON_USERS {
        refused.entry(*call).or_default().push(rule([(0, SeccompCmpOp::Eq, *kind)])?);
    }
    Ok(())
}

/// Which sockets there are. Bubblewrap has a network namespace and shows no other program's socket files; Landlock has
/// neither, so there it is either a socket file or the network, and a socket file that leads nowhere. With the network of
/// the machine come the sockets that have a name and no file, so then bubblewrap is as Landlock, unless the kernel keeps
/// those apart.
fn sockets(
    mechanism: &Mechanism,
    network: Network,
    refused: &mut Rules,
    unreachable: &mut Rules,
) -> Result<(), seccompiler::Error> {
    let (local, v4, v6) = (libc::AF_UNIX as u64, libc::AF_INET as u64, libc::AF_INET6 as u64);
    let netlink = libc::AF_NETLINK as u64;
    let other = |families: &[u64]| {
        let conditions: Vec<_> = families.iter().map(|family| (0, SeccompCmpOp::Ne, *family)).collect();
        rule(conditions)
    };
    match (mechanism, network) {
        (Mechanism::Bubblewrap(program), network) => {
            // A virtual machine's host is on no network.
            let mut families = vec![libc::AF_VSOCK as u64];
            if network == Network::Allowed && !landlock::keeps_names(program) {
                families.push(local);
                refused.insert(libc::SYS_socketpair, unconnected(local)?);
            }
            let sockets = families.into_iter().map(|family| rule([(0, SeccompCmpOp::Eq, family)]));
            refused.insert(libc::SYS_socket, sockets.collect::<Result<_, _>>()?);
        }
        (Mechanism::Landlock(_), Network::Allowed) => {
            refused.insert(libc::SYS_socket, vec![other(&[v4, v6, netlink])?]);
            refused.insert(libc::SYS_socketpair, unconnected(local)?);
        }
        (Mechanism::Landlock(_), Network::Blocked) => {
            let mut sockets = unconnected(local)?;
            sockets.push(other(&[local, v4, v6])?);
            refused.insert(libc::SYS_socket, sockets);
            refused.insert(libc::SYS_socketpair, unconnected(local)?);
            refused.insert(libc::SYS_connect, Vec::new());
            let family = |family| rule([(0, SeccompCmpOp::Eq, family)]);
            unreachable.insert(libc::SYS_socket, vec![family(v4)?, family(v6)?]);
        }
        // Its profile says it.
        (Mechanism::Seatbelt(_), _) => {}
    }
    Ok(())
}

/// Sockets that can send to a file without a connection: of datagrams, and those that the kernel makes such.
fn unconnected(family: u64) -> Result<Vec<SeccompRule>, seccompiler::Error> {
    let kind = |kind: libc::c_int| {
        let is_kind = (1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), kind as u64);
        rule([(0, SeccompCmpOp::Eq, family), is_kind])
    };
    Ok(vec![kind(libc::SOCK_DGRAM)?, kind(libc::SOCK_RAW)?])
}

/// All of these together.
fn rule(
    conditions: impl IntoIterator<Item = (u8, SeccompCmpOp, u64)>,
) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = conditions
        .into_iter()
        .map(|(place, operator, value)| {
            SeccompCondition::new(place, SeccompCmpArgLen::Dword, operator, value)
        })
        .collect::<Result<Vec<_>, _>>()?;
    SeccompRule::new(conditions)
}

fn filter(rules: Rules, answer: i32) -> Result<BpfProgram, seccompiler::Error> {
    let answer = SeccompAction::Errno(answer.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, answer, std::env::consts::ARCH.try_into()?)?;
    Ok(filter.try_into()?)
}

/// Refuses the other set of calls, in three instructions: load the number, compare, answer.
#[cfg(target_arch = "x86_64")]
fn foreign_calls() -> Vec<sock_filter> {
    const LOAD: u16 = 0x20;
    const AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const ERRNO: u32 = 0x0005_0000;
    vec![
        sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: AT_LEAST, jt: 0, jf: 1, k: FOREIGN_CALLS },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: ERRNO | libc::ENOSYS.unsigned_abs() },
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn foreign_calls() -> Vec<sock_filter> {
    Vec::new()
}
