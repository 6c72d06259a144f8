//! The kernel's own calls that no library offers. Everything here runs in a process with one thread.

use std::ffi::{CStr, CString, OsString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use seccompiler::BpfProgram;

/// One process becomes two.
pub(crate) enum Fork {
    Child,
    Parent(u32),
}

pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: the process has one thread, so the child finds every lock free.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        child => Ok(Fork::Parent(child.unsigned_abs())),
    }
}

/// Closes every descriptor but the three standard ones.
pub(crate) fn forget_descriptors() -> io::Result<()> {
    // SAFETY: nothing in this process has opened a descriptor yet, so none that is closed here is in use. By number, because
    // not every C library knows the call by name.
    match unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Has the kernel send this signal when the parent ends.
pub(crate) fn die_with_parent(signal: libc::c_int) -> io::Result<()> {
    // SAFETY: takes plain numbers.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal, 0, 0, 0) })
}

pub(crate) fn parent() -> u32 {
    // SAFETY: has no preconditions and cannot fail.
    unsafe { libc::getppid() }.unsigned_abs()
}

pub(crate) fn new_session() -> io::Result<()> {
    // SAFETY: has no preconditions.
    checked(unsafe { libc::setsid() })
}

/// Makes orphans below this process its own children.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    // SAFETY: takes plain numbers.
    checked(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })
}

/// Whose rights this process has.
pub(crate) fn user() -> u32 {
    // SAFETY: has no preconditions and cannot fail.
    unsafe { libc::geteuid() }
}

pub(crate) fn is_root() -> bool {
    user() == 0
}

/// Waits for one child's end.
pub(crate) fn wait_for(child: u32) -> io::Result<i32> {
    loop {
        let mut status = 0;
        // SAFETY: the pointer is to a value that outlives the call.
        if unsafe { libc::waitpid(child.cast_signed(), &mut status, 0) } != -1 {
            return Ok(status);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Collects children that have ended, but for one; its status, if it has ended too. It is left to be collected, so that
/// nobody else gets its number.
pub(crate) fn reap_but(kept: u32) -> Option<i32> {
    loop {
        // SAFETY: a structure of zeroes is a valid value, and says that no child has ended.
        let mut ended: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        // SAFETY: the pointer is to a value that outlives the call.
        if unsafe { libc::waitid(libc::P_ALL, 0, &mut ended, flags) } == -1 {
            return None;
        }
        // SAFETY: the call has filled in the fields of a child's end, or left zeroes.
        let (child, status) = unsafe { (ended.si_pid(), ended.si_status()) };
        if child == 0 {
            return None;
        }
        if child.unsigned_abs() == kept {
            // The two halves of what `wait` would tell.
            return Some(if ended.si_code == libc::CLD_EXITED { status << 8 } else { status });
        }
        // SAFETY: a null pointer says that the status is not wanted; the child has ended, so this does not wait.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }
}

/// Collects children that have ended; whether there are others.
pub(crate) fn reap_ended() -> bool {
    loop {
        // SAFETY: a null pointer says that the status is not wanted.
        match unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } {
            0 => return true,
            -1 if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted => return false,
            _ => {}
        }
    }
}

/// Waits until any child has ended, or there is none.
pub(crate) fn reap_one() {
    // SAFETY: a null pointer says that the status is not wanted.
    while unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) } == -1
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

pub(crate) fn kill(process: u32) {
    // SAFETY: takes plain numbers. A process that is gone is as good as killed; no number but a child's comes here.
    unsafe { libc::kill(process.cast_signed(), libc::SIGKILL) };
}

/// Asks a child to end.
pub(crate) fn ask_to_end(child: u32) {
    // SAFETY: takes plain numbers; no number but that of a child that was not collected yet comes here.
    unsafe { libc::kill(child.cast_signed(), libc::SIGTERM) };
}

/// Has a process, or with 0 this one, lead a group of its own.
pub(crate) fn lead_group(process: u32) -> io::Result<()> {
    // SAFETY: takes plain numbers.
    checked(unsafe { libc::setpgid(process.cast_signed(), 0) })
}

/// Signals all processes of a group at once; a group that is gone needs none.
pub(crate) fn signal_group(leader: u32, signal: libc::c_int) {
    // SAFETY: takes plain numbers; no number but that of a child comes here, ended or not.
    unsafe { libc::killpg(leader.cast_signed(), signal) };
}

/// How many tasks there are on the whole machine; threads count.
pub(crate) fn tasks() -> usize {
    // SAFETY: a structure of zeroes is a valid value.
    let mut known: libc::sysinfo = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a value that outlives the call, which cannot fail then.
    unsafe { libc::sysinfo(&mut known) };
    usize::from(known.procs)
}

/// The signals a supervisor waits for instead of being interrupted by.
pub(crate) struct Signals(libc::sigset_t);

impl Signals {
    pub(crate) fn block() -> io::Result<Self> {
        // SAFETY: a set of zeroes is a valid value, and it is emptied properly before use.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        for signal in [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT] {
            // SAFETY: the pointer is to a value that outlives the call.
            checked(unsafe { libc::sigaddset(&mut set, signal) })?;
        }
        // SAFETY: both pointers are valid; a null one says that the old mask is not wanted.
        checked(unsafe { libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) })?;
        Ok(Signals(set))
    }

    pub(crate) fn unblock(&self) -> io::Result<()> {
        // SAFETY: as above.
        checked(unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, &self.0, std::ptr::null_mut()) })
    }

    /// The next signal, if one comes within this time.
    pub(crate) fn wait(&self, time: Duration) -> io::Result<Option<libc::c_int>> {
        let time = libc::timespec {
            tv_sec: time.as_secs().cast_signed(),
            tv_nsec: libc::c_long::from(time.subsec_nanos().cast_signed()),
        };
        // SAFETY: the pointers are to values that outlive the call; a null one says that details are not wanted.
        let signal = unsafe { libc::sigtimedwait(&self.0, std::ptr::null_mut(), &time) };
        if signal != -1 {
            return Ok(Some(signal));
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
            _ => Err(error),
        }
    }
}

/// Sets a limit for this process and all it starts, or a lower one that is there already.
pub(crate) fn limit(resource: Resource, most: u64) -> io::Result<()> {
    soft_limit(resource, most, most)
}

/// The same with a limit that warns before the one that ends.
pub(crate) fn soft_limit(resource: Resource, warn: u64, most: u64) -> io::Result<()> {
    let most = getrlimit(resource).maximum.map_or(most, |there| most.min(there));
    Ok(setrlimit(resource, Rlimit { current: Some(warn.min(most)), maximum: Some(most) })?)
}

/// No program that is started from here on gains rights, whatever its file says.
pub(crate) fn no_new_privileges() -> io::Result<()> {
    // SAFETY: takes plain numbers; the unused ones must be zero and are.
    checked(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })
}

/// Gives up every capability for good. Without privileges there is nothing to give up.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        process: libc::c_int,
    }
    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    /// Sets of 64 capabilities, in two halves.
    const VERSION_3: u32 = 0x2008_0522;
    for capability in 0..64 {
        // SAFETY: takes plain numbers. It fails for numbers the kernel does not know and for users who have none.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
    // SAFETY: takes plain numbers. Kernels that have no ambient set have nothing to clear.
    unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
    let header = Header { version: VERSION_3, process: 0 };
    let none = [Data::default(); 2];
    // SAFETY: the structures have the layout that version 3 of the call asks for, and outlive it.
    match unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The version of Landlock that the kernel speaks; 0 or less if none.
pub(crate) fn landlock_version() -> i32 {
    const ASK_FOR_VERSION: u32 = 1;
    // SAFETY: with this flag the call takes no structure and only answers a number.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, ASK_FOR_VERSION)
    };
    i32::try_from(version).unwrap_or(0)
}

/// A new folder that only this user can enter, where temporary files go.
pub(crate) fn temporary_folder() -> io::Result<PathBuf> {
    let pattern = std::env::temp_dir().join(format!("{}XXXXXX", super::scratch::PREFIX));
    let pattern = CString::new(pattern.into_os_string().into_vec()).map_err(io::Error::other)?;
    let name = pattern.into_raw();
    // SAFETY: the text ends with a zero, is ours alone, and is only changed in place.
    let made = !unsafe { libc::mkdtemp(name) }.is_null();
    let error = io::Error::last_os_error();
    // SAFETY: it came from `into_raw` and has kept its length.
    let name = unsafe { CString::from_raw(name) };
    if made { Ok(OsString::from_vec(name.into_bytes()).into()) } else { Err(error) }
}

/// A descriptor from which a program that is started next can read a filter.
pub(crate) fn readable(filter: &BpfProgram) -> io::Result<libc::c_int> {
    // SAFETY: the name ends with a zero; without flags the descriptor stays open across `exec`.
    let file = unsafe { libc::memfd_create(c"filter".as_ptr(), 0) };
    checked(file)?;
    let mut bytes = Vec::with_capacity(filter.len() * 8);
    for line in filter {
        bytes.extend_from_slice(&line.code.to_ne_bytes());
        bytes.extend_from_slice(&[line.jt, line.jf]);
        bytes.extend_from_slice(&line.k.to_ne_bytes());
    }
    // SAFETY: the pointer and the length are those of one buffer.
    let written = unsafe { libc::pwrite(file, bytes.as_ptr().cast(), bytes.len(), 0) };
    if written == bytes.len().cast_signed() { Ok(file) } else { Err(io::Error::last_os_error()) }
}

/// Whether this works in a process of its own. It may only make calls to the kernel.
pub(crate) fn succeeds_elsewhere(tried: fn() -> io::Result<()>) -> bool {
    // SAFETY: other threads may hold locks that the child finds taken forever, but what it does takes none, and it ends
    // without running anything of this process.
    match unsafe { libc::fork() } {
        -1 => false,
        // SAFETY: as above.
        0 => unsafe { libc::_exit(libc::c_int::from(tried().is_err())) },
        child => wait_for(child.unsigned_abs()).is_ok_and(|status| status == 0),
    }
}

/// What a process has of its own now.
#[derive(PartialEq, Eq)]
pub(crate) enum Unshared {
    Mounts,
    /// Also a namespace for its user, in which it is nobody until it says who.
    WithUser,
}

/// Gives this process mounts of its own, from which nothing spreads.
pub(crate) fn unshare_mounts() -> io::Result<Unshared> {
    // SAFETY: takes plain numbers; the process has one thread.
    let unshare = |what| checked(unsafe { libc::unshare(what) });
    let unshared = match unshare(libc::CLONE_NEWNS) {
        Ok(()) => Unshared::Mounts,
        Err(_) => {
            unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
            Unshared::WithUser
        }
    };
    let private = libc::mount_attr { propagation: libc::MS_PRIVATE, ..NO_CHANGE };
    set_mounts(libc::AT_FDCWD, c"/", &private)?;
    Ok(unshared)
}

/// Who a process is.
pub(crate) struct User {
    user: u32,
    group: u32,
}

impl User {
    pub(crate) fn of_this_process() -> Self {
        // SAFETY: has no preconditions and cannot fail.
        User { user: user(), group: unsafe { libc::getegid() } }
    }

    /// Has the process be the same in its new namespace.
    pub(crate) fn keep(&self) -> io::Result<()> {
        std::fs::write("/proc/self/setgroups", "deny")?;
        std::fs::write("/proc/self/uid_map", format!("{0} {0} 1", self.user))?;
        std::fs::write("/proc/self/gid_map", format!("{0} {0} 1", self.group))
    }
}

const NO_CHANGE: libc::mount_attr =
    libc::mount_attr { attr_set: 0, attr_clr: 0, propagation: 0, userns_fd: 0 };
const READ_ONLY: libc::mount_attr = libc::mount_attr { attr_set: libc::MOUNT_ATTR_RDONLY, ..NO_CHANGE };

/// Changes a mount and all below it.
fn set_mounts(folder: libc::c_int, path: &CStr, change: &libc::mount_attr) -> io::Result<()> {
    let flags = libc::AT_RECURSIVE | libc::AT_EMPTY_PATH;
    let size = size_of::<libc::mount_attr>();
    // SAFETY: the text ends with a zero, and the structure is of the size that is told; both outlive the call.
    match unsafe {
        libc::syscall(libc::SYS_mount_setattr, folder, path.as_ptr(), flags, &raw const *change, size)
    } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Nothing at or below this mount can be changed from here on.
pub(crate) fn set_read_only(path: &CStr) -> io::Result<()> {
    set_mounts(libc::AT_FDCWD, path, &READ_ONLY)
}

/// What is at a path, with all that is mounted below, and not mounted itself yet.
pub(crate) struct Tree(OwnedFd);

impl Tree {
    pub(crate) fn copy(path: &CStr) -> io::Result<Self> {
        let flags = libc::OPEN_TREE_CLONE
            | libc::OPEN_TREE_CLOEXEC
            | (libc::AT_RECURSIVE | libc::AT_SYMLINK_NOFOLLOW).cast_unsigned();
        // SAFETY: the text ends with a zero and outlives the call.
        let tree = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) };
        let tree = libc::c_int::try_from(tree).map_err(io::Error::other)?;
        checked(tree)?;
        // SAFETY: the call has just made it, and nobody else knows it.
        Ok(Tree(unsafe { OwnedFd::from_raw_fd(tree) }))
    }

    pub(crate) fn set_read_only(&self) -> io::Result<()> {
        set_mounts(self.0.as_raw_fd(), c"", &READ_ONLY)
    }

    /// Mounts it; a link is not followed.
    pub(crate) fn put(self, path: &CStr) -> io::Result<()> {
        let (tree, empty) = (self.0.as_raw_fd(), c"".as_ptr());
        let flags = libc::MOVE_MOUNT_F_EMPTY_PATH;
        // SAFETY: the texts end with a zero and outlive the call, as does the descriptor.
        match unsafe {
            libc::syscall(libc::SYS_move_mount, tree, empty, libc::AT_FDCWD, path.as_ptr(), flags)
        } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

/// A path as the kernel wants it.
pub(crate) fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_encoded_bytes()).map_err(io::Error::other)
}
