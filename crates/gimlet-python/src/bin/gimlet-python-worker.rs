//! The worker alone, for tests, benches and fuzzing of this crate. The `gimlet` binary carries its own.
//!
//! `probe LAYER` builds one layer of the jail as a worker would, then tries what it forbids and prints what came of it:
//! the tests' proof of each layer.
#![expect(clippy::disallowed_methods, reason = "tests read what it prints")]

use std::process::ExitCode;

/// As in the `gimlet` binary, so that what is measured here is what ships.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["probe", stage] => probe::run(stage),
        _ => gimlet_python::worker::main(),
    }
}

#[expect(unsafe_code, reason = "forbidden system calls are tried directly; each block says why it is sound")]
mod probe {
    use std::ffi::CStr;
    use std::io::Write;
    use std::process::ExitCode;

    use gimlet_python::worker::jail;
    use rustix::process::{Resource, getrlimit};

    /// A forbidden act; its system call's result.
    type Attempt = (&'static str, fn() -> libc::c_long);

    const FILES: &[Attempt] = &[
        ("open for reading", || open(c"/etc/passwd", libc::O_RDONLY)),
        ("open a folder", || open(c"/", libc::O_RDONLY | libc::O_DIRECTORY)),
        ("create a file", || open(c"/tmp/gimlet-probe", libc::O_CREAT | libc::O_WRONLY)),
        ("make a folder", || {
            // SAFETY: the path is a constant C string.
            unsafe { libc::mkdir(c"/tmp/gimlet-probe-folder".as_ptr(), 0o700).into() }
        }),
    ];

    /// What Landlock forbids beside files.
    const REACH: &[Attempt] = &[
        ("connect", || {
            // SAFETY: has no preconditions.
            let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
            let port = 9u16.to_be();
            let host = libc::in_addr { s_addr: u32::from_be_bytes([127, 0, 0, 1]).to_be() };
            let family = libc::AF_INET as libc::sa_family_t;
            let address =
                libc::sockaddr_in { sin_family: family, sin_port: port, sin_addr: host, sin_zero: [0; 8] };
            let size = std::mem::size_of_val(&address) as libc::socklen_t;
            // SAFETY: the address outlives the call, and the size is its own.
            unsafe { libc::connect(socket, (&raw const address).cast(), size).into() }
        }),
        ("signal the parent", || {
            // SAFETY: has no preconditions.
            call(libc::SYS_kill, [unsafe { libc::getppid() }.into(), 0, 0, 0, 0])
        }),
    ];

    /// What the kernel's limits forbid.
    const TAKING: &[Attempt] = &[
        ("open a descriptor", || open(c"/dev/null", libc::O_RDONLY)),
        ("take memory", || {
            let prot = i64::from(libc::PROT_READ | libc::PROT_WRITE);
            call(libc::SYS_mmap, [0, 64 << 30, prot, i64::from(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS), -1])
        }),
    ];

    /// A descriptor that the test leaves open for the worker to find.
    const INHERITED: &[Attempt] = &[("use an inherited descriptor", || {
        // SAFETY: takes plain numbers.
        unsafe { libc::fcntl(7, libc::F_GETFD).into() }
    })];

    const CALLS: &[Attempt] = &[
        ("socket", || call(libc::SYS_socket, [libc::AF_INET as i64, libc::SOCK_STREAM as i64, 0, 0, 0])),
        ("unix socket", || call(libc::SYS_socket, [libc::AF_UNIX as i64, libc::SOCK_STREAM as i64, 0, 0, 0])),
        ("execve", || {
            call(libc::SYS_execve, [c"/bin/true".as_ptr() as i64, std::ptr::null::<u8>() as i64, 0, 0, 0])
        }),
        ("clone", || call(libc::SYS_clone, [libc::SIGCHLD.into(), 0, 0, 0, 0])),
        ("clone3", || call(libc::SYS_clone3, [0, 0, 0, 0, 0])),
        ("ptrace", || call(libc::SYS_ptrace, [libc::PTRACE_TRACEME.into(), 0, 0, 0, 0])),
        ("kill the parent", || {
            // SAFETY: has no preconditions.
            call(libc::SYS_kill, [unsafe { libc::getppid() }.into(), 0, 0, 0, 0])
        }),
        ("signal another process", || {
            // SAFETY: has no preconditions.
            let parent = i64::from(unsafe { libc::getppid() });
            call(libc::SYS_tgkill, [parent, parent, 0, 0, 0])
        }),
        ("process_vm_readv", || call(libc::SYS_process_vm_readv, [1, 0, 0, 0, 0])),
        ("mount", || call(libc::SYS_mount, [0, 0, 0, 0, 0])),
        ("unshare", || call(libc::SYS_unshare, [libc::CLONE_NEWUSER.into(), 0, 0, 0, 0])),
        ("bpf", || call(libc::SYS_bpf, [0, 0, 0, 0, 0])),
        ("io_uring", || call(libc::SYS_io_uring_setup, [1, 0, 0, 0, 0])),
        ("memfd", || call(libc::SYS_memfd_create, [c"x".as_ptr() as i64, 0, 0, 0, 0])),
        ("dup", || call(libc::SYS_dup, [0, 0, 0, 0, 0])),
        ("pipe", || call(libc::SYS_pipe2, [0, 0, 0, 0, 0])),
        ("ioctl", || call(libc::SYS_ioctl, [0, 0, 0, 0, 0])),
        ("setrlimit", || call(libc::SYS_prlimit64, [0, 0, 0, 0, 0])),
        ("prctl", || call(libc::SYS_prctl, [libc::PR_GET_DUMPABLE.into(), 0, 0, 0, 0])),
        ("executable memory", || {
            let prot = i64::from(libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC);
            call(libc::SYS_mmap, [0, 4096, prot, i64::from(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS), -1])
        }),
    ];

    fn open(path: &CStr, flags: libc::c_int) -> libc::c_long {
        // SAFETY: the path is a C string that outlives the call.
        unsafe { libc::open(path.as_ptr(), flags, 0o600).into() }
    }

    fn call(number: libc::c_long, args: [i64; 5]) -> libc::c_long {
        // SAFETY: every attempt is one that the filter must refuse, or that fails on its null arguments; none
        // passes a pointer the kernel could write through.
        unsafe { libc::syscall(number, args[0], args[1], args[2], args[3], args[4], 0) }
    }

    /// Builds one stage of the jail, tries what it forbids, and prints a line for each attempt.
    pub(super) fn run(stage: &str) -> ExitCode {
        let (weaknesses, attempts): (_, Vec<&Attempt>) = match stage {
            // Nothing here changes what is outside.
            "none" => (
                Vec::new(),
                FILES[..2].iter().chain(&REACH[1..]).chain(&TAKING[..1]).chain(INHERITED).collect(),
            ),
            "descriptors" => {
                jail::forget_descriptors();
                (Vec::new(), INHERITED.iter().collect())
            }
            "enter" => (jail::enter(), FILES.iter().chain(REACH).collect()),
            "limit" => (
                jail::limit(&gimlet_python::Limits::default(), jail::address_space()),
                TAKING.iter().collect(),
            ),
            "filter" => (jail::filter(), FILES.iter().chain(CALLS).collect()),
            _ => return ExitCode::from(2),
        };
        let mut text = String::new();
        for weakness in weaknesses {
            text.push_str(&format!("weakness: {weakness}\n"));
        }
        for (name, attempt) in attempts {
            let result = attempt();
            let error = std::io::Error::last_os_error();
            text.push_str(&match result {
                -1 => format!("{name}: refused ({})\n", error.raw_os_error().unwrap_or(0)),
                _ => format!("{name}: DONE\n"),
            });
        }
        text.push_str(&format!("privileges: {}\n", no_new_privileges()));
        // Behind the filter not even asking is allowed.
        if stage == "limit" {
            for (name, resource) in
                [("core", Resource::Core), ("processes", Resource::Nproc), ("cpu", Resource::Cpu)]
            {
                let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
                text.push_str(&format!("most {name}: {most}\n"));
            }
        }
        match std::io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        }
    }

    fn no_new_privileges() -> libc::c_int {
        // SAFETY: takes plain numbers.
        unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) }
    }
}
