//! What this machine can enforce. Nothing is believed that was not tried: bubblewrap may be installed and yet forbidden
//! to make namespaces.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::helper;

/// Where bubblewrap is looked for: not in `PATH`, which a project's tools may have changed.
const BUBBLEWRAP: &[&str] = &["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];
/// What confines programs on macOS.
const SEATBELT: &str = "/usr/bin/sandbox-exec";
/// The only place that asks which system this is: everything else goes by the mechanism that is found.
const ON_MACOS: bool = cfg!(target_os = "macos");
/// The first Landlock that also guards against truncation.
const LEAST_LANDLOCK: i32 = 3;
/// The first Landlock that keeps signals inside.
const SIGNAL_LANDLOCK: i32 = 6;

/// Which jail is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wanted {
    /// The best this machine has.
    #[default]
    Auto,
    /// Bubblewrap or none.
    Bubblewrap,
    /// Landlock and seccomp or none.
    Landlock,
    /// None: every command asks.
    Off,
}

/// What enforces the jail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// Namespaces and a filter for system calls, by this program.
    Bubblewrap(PathBuf),
    /// Landlock of this version, a filter for system calls, no new privileges.
    Landlock(i32),
    /// Seatbelt of macOS, by this program. Untested.
    Seatbelt(PathBuf),
}

impl Mechanism {
    /// The word said about it.
    pub fn name(&self) -> &'static str {
        match self {
            Mechanism::Bubblewrap(_) => "bubblewrap",
            Mechanism::Landlock(_) => "landlock",
            Mechanism::Seatbelt(_) => "seatbelt",
        }
    }
}

/// What keeps the mode, times and attributes of files that are not the project's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outside {
    /// A read-only mount, so nobody changes them.
    Mounted,
    /// Their owner: Landlock governs no such change, and the kernel refuses the mount.
    Owned,
}

/// A jail that works here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// By what.
    pub mechanism: Mechanism,
    /// How much of a file outside it guards.
    pub outside: Outside,
    /// What it does not do that a better one would, in words.
    pub weaknesses: Vec<String>,
}

/// Why there is no jail.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoJail {
    /// It was switched off.
    #[error("the jail is switched off")]
    Off,
    /// The project cannot be told from what must be hidden.
    #[error("{root} holds {inside}, which must stay hidden")]
    RootTooWide {
        /// The project.
        root: PathBuf,
        /// What is inside of it.
        inside: PathBuf,
    },
    /// A jailed process of root could not write there.
    #[error("{root} belongs to another user ({owner})")]
    ForeignRoot {
        /// The project.
        root: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// Nobody could count what a command has started, or end it.
    #[error("this kernel does not say what processes a process has started (CONFIG_PROC_CHILDREN, in /proc)")]
    Uncounted,
    /// Bubblewrap and Landlock are of Linux, and what was asked for or tried does not work here.
    #[error("this system has neither bubblewrap nor Landlock, and its own sandbox does not work")]
    NotOnThisSystem,
    /// Neither mechanism works.
    #[error("this machine can enforce none: bubblewrap: {bubblewrap}; Landlock: {landlock}")]
    Unsupported {
        /// What is wrong with bubblewrap.
        bubblewrap: String,
        /// What is wrong with Landlock.
        landlock: String,
    },
}

impl NoJail {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            NoJail::Off => "unset SANDBOX_JAIL to have one again",
            NoJail::RootTooWide { .. } => "work in a folder of its own, with --root",
            NoJail::ForeignRoot { .. } => "run gimlet as the user the project belongs to",
            NoJail::Uncounted => "use a kernel that does, with /proc mounted",
            NoJail::NotOnThisSystem => "use Linux; on Windows, WSL",
            NoJail::Unsupported { .. } => {
                "install bubblewrap (apt install bubblewrap), or use Linux 6.2 or newer with Landlock"
            }
        }
    }
}

/// Finds a jail for commands in `root`. `private` is what must never be inside of the project: the person's home and
/// Gimlet's own folder.
pub fn detect(wanted: Wanted, root: &Path, private: &[PathBuf]) -> Result<Found, NoJail> {
    if wanted == Wanted::Off {
        return Err(NoJail::Off);
    }
    check_root(root, private)?;
    if let Some(owner) = helper::foreign_owner(root) {
        return Err(NoJail::ForeignRoot { root: root.to_owned(), owner });
    }
    if ON_MACOS {
        return seatbelt(wanted);
    }
    if !helper::lists_children() {
        return Err(NoJail::Uncounted);
    }
    let not_asked = || "not asked for".to_owned();
    let bubblewrap = match wanted {
        Wanted::Landlock | Wanted::Off => Err(not_asked()),
        Wanted::Auto | Wanted::Bubblewrap => bubblewrap(),
    };
    let bubblewrap = match bubblewrap {
        Ok(program) => {
            let mechanism = Mechanism::Bubblewrap(program);
            return Ok(Found { mechanism, outside: Outside::Mounted, weaknesses: Vec::new() });
        }
        Err(why) => why,
    };
    let landlock = match wanted {
        Wanted::Bubblewrap | Wanted::Off => Err(not_asked()),
        Wanted::Auto | Wanted::Landlock => landlock(),
    };
    landlock.map_err(|landlock| NoJail::Unsupported { bubblewrap, landlock })
}

/// Fails if a project holds what must never be inside of one. A container must not see it either.
pub fn check_root(root: &Path, private: &[PathBuf]) -> Result<(), NoJail> {
    match private.iter().find(|place| place.starts_with(root)) {
        Some(inside) => Err(NoJail::RootTooWide { root: root.to_owned(), inside: inside.clone() }),
        None => Ok(()),
    }
}

/// Seatbelt, if it can confine a program. Memory and processes are not counted there.
fn seatbelt(wanted: Wanted) -> Result<Found, NoJail> {
    match wanted {
        Wanted::Auto => {}
        Wanted::Bubblewrap | Wanted::Landlock | Wanted::Off => return Err(NoJail::NotOnThisSystem),
    }
    let tried = Command::new(SEATBELT).args(["-p", "(version 1)(allow default)", "/usr/bin/true"]).output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        return Err(NoJail::NotOnThisSystem);
    }
    let weaknesses = vec![
        "Seatbelt is untested, and on macOS nobody counts the memory and the processes of a command"
            .to_owned(),
    ];
    Ok(Found { mechanism: Mechanism::Seatbelt(SEATBELT.into()), outside: Outside::Mounted, weaknesses })
}

/// Bubblewrap, if it can make the namespaces a jail is made of.
fn bubblewrap() -> Result<PathBuf, String> {
    let program = BUBBLEWRAP
        .iter()
        .map(PathBuf::from)
        .find(|path| path.is_file())
        .ok_or_else(|| "not installed".to_owned())?;
    let tried = Command::new(&program)
        .args(["--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--cap-drop", "ALL"])
        .args(["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"])
        .args(["--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev", "true"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if tried.status.success() {
        return Ok(program);
    }
    let said = String::from_utf8_lossy(&tried.stderr);
    Err(said.lines().next().unwrap_or("it does not work here").trim().to_owned())
}

/// Landlock, if its version is enough, and what it lacks here.
fn landlock() -> Result<Found, String> {
    let version = helper::landlock_version();
    if version < LEAST_LANDLOCK {
        return Err(match version {
            ..1 => "not supported by this kernel".to_owned(),
            1.. => format!("version {version} of the kernel is too old, {LEAST_LANDLOCK} is needed"),
        });
    }
    let mut weaknesses = vec![
        "without bubblewrap a command can change what is in the project, but create or remove nothing at its top"
            .to_owned(),
    ];
    if version < SIGNAL_LANDLOCK {
        weaknesses
            .push("this kernel does not keep a command from signalling your other processes".to_owned());
    }
    let outside = if helper::mounts_are_allowed() { Outside::Mounted } else { Outside::Owned };
    if outside == Outside::Owned {
        weaknesses.push(helper::on_owned_files().to_owned());
    }
    Ok(Found { mechanism: Mechanism::Landlock(version), outside, weaknesses })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_that_holds_the_home_has_no_jail() {
        let found = detect(Wanted::Auto, Path::new("/home"), &["/home/me".into()]);
        assert!(matches!(found, Err(NoJail::RootTooWide { .. })), "{found:?}");
        assert_eq!(detect(Wanted::Off, Path::new("/srv"), &[]), Err(NoJail::Off));
    }
}
