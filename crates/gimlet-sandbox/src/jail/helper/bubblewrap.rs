//! The jail in bubblewrap's words: a file system made of what may be seen, in namespaces of its own.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use gimlet::command::{Network, Profile};

use super::scratch::Scratch;
use super::sys;
use crate::jail::masks::Masks;
use crate::jail::order::{Order, Purpose};
use crate::jail::places::{
    DAEMONS, RESOLVERS, SYSTEM, between, is_own_place, is_reached, is_real, outermost, protected, secrets,
};

/// The arguments up to the command.
pub(crate) fn arguments(order: &Order, scratch: &mut Scratch, masks: &Masks) -> io::Result<Vec<OsString>> {
    let mut line = Line::default();
    for flag in ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    {
        line.add(flag, []);
    }
    if order.permissions.network == Network::Blocked {
        line.add("--unshare-net", []);
    }
    line.add("--die-with-parent", []);
    line.add("--cap-drop", ["ALL".as_ref()]);
    for folder in SYSTEM {
        line.system(Path::new(folder));
    }
    let is_system = |path: &&PathBuf| path.starts_with("/etc");
    let mut hidden: Vec<PathBuf> = order.hidden.iter().filter(is_system).cloned().collect();
    if sys::is_root() {
        hidden.extend(secrets());
    }
    for path in outermost(hidden) {
        line.hide(&path);
    }
    match order.permissions.network {
        Network::Allowed => {
            for folder in RESOLVERS.iter().map(Path::new) {
                line.same("--ro-bind-try", folder);
            }
        }
        Network::Blocked => {
            for folder in DAEMONS.iter().map(Path::new) {
                line.hide(folder);
            }
        }
    }
    line.add("--proc", ["/proc".as_ref()]);
    if sys::is_root() {
        // Some of the kernel's settings ask only who owns them, not for capabilities; bubblewrap covers those alone that it
        // takes to be writable, and a folder of writable files is none.
        line.add("--remount-ro", ["/proc".as_ref()]);
    }
    line.add("--dev", ["/dev".as_ref()]);
    // What is written there is memory, and counted as such, which it can be where it is a mount of its own.
    line.add("--perms", ["1777".as_ref()]);
    line.add("--tmpfs", ["/dev/shm".as_ref()]);
    line.add("--remount-ro", ["/dev".as_ref()]);
    line.bind("--ro-bind", Path::new("/sys"), Path::new("/sys"));
    line.bind("--bind", scratch.temporary(), Path::new("/tmp"));
    line.add("--symlink", ["/tmp".as_ref(), "/var/tmp".as_ref()]);
    line.add("--setenv", ["TMPDIR".as_ref(), "/tmp".as_ref()]);
    if let Some(home) = order.home.as_deref().filter(|home| is_own_place(home)) {
        line.bind("--bind", scratch.home()?, home);
    }
    for path in &order.read {
        line.same("--ro-bind-try", path);
    }
    if let Some(cache) = &order.cache {
        line.same(if order.keeps_cache() { "--bind-try" } else { "--ro-bind-try" }, cache);
    }
    project(&mut line, order);
    if !masks.is_empty() {
        for (cover, path) in scratch.cover(masks)? {
            line.bind("--ro-bind", cover, path);
        }
    }
    for hidden in order.hidden.iter().filter(|path| !is_system(path) && visible(order, path)) {
        line.hide(hidden);
    }
    line.add("--remount-ro", ["/".as_ref()]);
    for name in &order.unset {
        line.add("--unsetenv", [name.as_ref()]);
    }
    line.add("--chdir", [order.cwd.as_os_str()]);
    Ok(line.0)
}

/// The project as the profile shows it.
fn project(line: &mut Line, order: &Order) {
    match order.permissions.profile {
        Profile::ReadOnly => line.same("--ro-bind", &order.root),
        Profile::WorkspaceWrite | Profile::Unrestricted => {
            let kept = outermost(protected(order));
            match order.purpose {
                Purpose::Command => line.same("--bind", &order.root),
                Purpose::Server | Purpose::Worker => {
                    line.same("--ro-bind", &order.root);
                    for entry in changeable(order, &kept) {
                        line.same("--bind", &entry);
                    }
                }
            }
            for path in &order.write {
                line.same("--bind-try", path);
            }
            // What is mounted cannot be moved away to make another in its place.
            for folder in between(order, &kept) {
                line.same("--bind", &folder);
            }
            // A link cannot be mounted on; what it leads to is, and the link is put back if it has changed.
            for path in kept.iter().filter(|path| is_real(path) && is_reached(path)) {
                line.same("--ro-bind", path);
            }
        }
    }
}

/// What is at the top of the project and can be changed without making a protected file: that is everything but protected
/// files, links, and folders in which one could be made that is not there.
fn changeable(order: &Order, kept: &[PathBuf]) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(&order.root).into_iter().flatten().flatten().map(|entry| entry.path());
    let could_be_made = |entry: &Path| kept.iter().any(|path| path.starts_with(entry) && !is_real(path));
    entries.filter(|entry| is_real(entry) && !kept.contains(entry) && !could_be_made(entry)).collect()
}

/// Whether a folder would be seen because something above it is.
fn visible(order: &Order, hidden: &Path) -> bool {
    let shown = order.read.iter().chain(&order.cache).chain([&order.root]);
    hidden.exists()
        && (shown.into_iter().any(|above| hidden.starts_with(above))
            || SYSTEM.iter().any(|system| hidden.starts_with(system)))
}

#[derive(Default)]
struct Line(Vec<OsString>);

impl Line {
    fn add<const N: usize>(&mut self, flag: &str, words: [&OsStr; N]) {
        self.0.push(flag.into());
        self.0.extend(words.iter().map(OsString::from));
    }

    fn bind(&mut self, flag: &str, from: &Path, to: &Path) {
        self.add(flag, [from.as_os_str(), to.as_os_str()]);
    }

    fn same(&mut self, flag: &str, path: &Path) {
        self.bind(flag, path, path);
    }

    /// Has nothing be seen of a file or folder.
    fn hide(&mut self, path: &Path) {
        match std::fs::metadata(path) {
            Ok(known) if known.is_dir() => self.add("--tmpfs", [path.as_os_str()]),
            Ok(_) => self.bind("--ro-bind", Path::new("/dev/null"), path),
            Err(_) => {}
        }
    }

    /// A folder of the system, which may be a link into another.
    fn system(&mut self, path: &Path) {
        match std::fs::read_link(path) {
            Ok(target) => self.add("--symlink", [target.as_os_str(), path.as_os_str()]),
            Err(_) if path.is_dir() => self.same("--ro-bind", path),
            Err(_) => {}
        }
    }
}
