//! Whether a command failed because of its jail, and which permission it lacked. The kernel tells only the command, so
//! this reads what the command said. A wrong guess costs a question to a person, nothing else.

use std::path::{Component, Path, PathBuf};

use gimlet::command::{End, Finished, GitFolder, Missing, Network, Permission, Profile};

use super::detect::Mechanism;
use super::order::Order;
use super::places::{self, SYSTEM};

/// What programs say when there is no network.
const NO_NETWORK: &[&str] = &[
    "network is unreachable",
    "enetunreach",
    "could not resolve host",
    "couldn't resolve host",
    "name resolution",
    "name or service not known",
    "no such host",
    "nodename nor servname",
    "enotfound",
    "eai_again",
    "failed to establish a new connection",
    "connection refused",
    "econnrefused",
    "failed to connect to",
    "couldn't connect to server",
    "dns error",
];
/// What programs say when a file is out of reach.
const NO_ACCESS: &[&str] = &[
    "permission denied",
    "operation not permitted",
    "read-only file system",
    "eacces",
    "eperm",
    "erofs",
    "os error 13",
    "os error 30",
];
/// What they say when it could be read and not be written.
const READ_ONLY: &[&str] = &["read-only file system", "erofs", "os error 30"];
/// What they say when they would take away what a mount stands on.
const BUSY: &[&str] = &["device or resource busy", "ebusy", "os error 16"];
/// What they say when it is not even seen.
const NOT_SEEN: &[&str] = &["no such file or directory", "enoent", "os error 2", "not found"];
/// How much of each stream is read: the reason is near the end.
const READ: usize = 32 * 1024;

/// Where a command ran.
pub(crate) struct Scene<'a> {
    /// Its jail.
    pub(crate) order: &'a Order,
    /// Whether a path exists outside of the jail.
    pub(crate) exists: &'a dyn Fn(&Path) -> bool,
}

/// The permissions a command seems to have failed for.
pub(crate) fn missing(scene: &Scene<'_>, finished: &Finished) -> Vec<Missing> {
    match finished.end {
        End::Exited(0) | End::Signalled(_) | End::TimedOut | End::Cancelled => return Vec::new(),
        End::Exited(_) => {}
    }
    let text =
        |bytes: &[u8]| String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(READ)..]).into_owned();
    let texts = [text(&finished.stderr.bytes), text(&finished.stdout.bytes)];
    let kept = places::kept(&scene.order.root);
    let mut found: Vec<Missing> = Vec::new();
    for text in &texts {
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in lines.iter().enumerate() {
            // Some programs name the file a line or two before they say what was wrong with it.
            let before = || lines[at.saturating_sub(3)..=at].join(" ");
            let lacked = |text: &str| lacked(scene, &kept, text);
            let Some(permission) = lacked(line).or_else(|| lacked(&before())) else { continue };
            if !found.iter().any(|known| known.permission == permission) {
                let because: String = line.trim().chars().take(200).collect();
                found.push(Missing { permission, because });
            }
        }
    }
    found
}

fn lacked(scene: &Scene<'_>, kept: &[PathBuf], line: &str) -> Option<Permission> {
    let lower = line.to_lowercase();
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| has_words(&lower, phrase));
    if scene.order.permissions.network == Network::Blocked && says(NO_NETWORK) {
        return Some(Permission::Network);
    }
    let mut paths = paths(&scene.order.cwd, line);
    // A secret file is closed on purpose: no permission is to be asked for to read it.
    let writes = says(READ_ONLY)
        || takes_away(&lower)
        || ["create", "creating", "write", "writing"].iter().any(|word| has_words(&lower, word));
    if !paths.is_empty() && says(NO_ACCESS) && !writes {
        let rules = scene.order.rules();
        let is_secret = |path: &PathBuf| {
            path.strip_prefix(&scene.order.root)
                .is_ok_and(|inside| !inside.starts_with(".git") && rules.is_secret(inside))
        };
        paths.retain(|path| !is_secret(path));
    }
    let is_jailed = scene.order.permissions.profile != Profile::Unrestricted;
    let is_kept = |path: &PathBuf| kept.iter().any(|kept| path.starts_with(kept));
    let is_fixed = |path: &PathBuf| says(BUSY) && path.starts_with(&scene.order.root);
    if is_jailed && paths.iter().any(|path| is_fixed(path) || (says(NO_ACCESS) && is_kept(path))) {
        return Some(Permission::Unrestricted);
    }
    if says(NO_ACCESS) {
        return paths.iter().find_map(|path| refused(scene, &lower, path));
    }
    // A file that is there, and yet is not: only a jail does that.
    let hidden = |path: &PathBuf| !is_shown(scene, path) && (scene.exists)(path);
    (says(NOT_SEEN) && paths.iter().any(hidden)).then_some(Permission::Unrestricted)
}

/// Whether a text has these words, and not only as parts of others: a `FileNotFoundError` is no `ENOTFOUND`.
fn has_words(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + words.len()..]);
        !before.ends_with(char::is_alphanumeric) && !after.starts_with(char::is_alphanumeric)
    })
}

/// Whether a path is seen in the jail, or is a folder above one that is.
fn is_shown(scene: &Scene<'_>, path: &Path) -> bool {
    let Order { root, read, write, cache, .. } = scene.order;
    let shown = read.iter().chain(write).chain(cache).chain([root]).map(PathBuf::as_path);
    shown.chain(SYSTEM.iter().map(Path::new)).any(|seen| path.starts_with(seen) || seen.starts_with(path))
}

/// What would be needed to change a file.
fn refused(scene: &Scene<'_>, line: &str, path: &Path) -> Option<Permission> {
    let Ok(inside) = path.strip_prefix(&scene.order.root) else {
        // A file that the person may not read either is not the jail's fault, but nobody can tell from here.
        return (scene.exists)(path.parent()?).then_some(Permission::Unrestricted);
    };
    let mut names = inside.components();
    let first = names.next()?;
    let at_top = names.next().is_none();
    let git = first == Component::Normal(".git".as_ref());
    match (scene.order.permissions.profile, scene.order.permissions.git) {
        (Profile::Unrestricted, _) => None,
        (Profile::ReadOnly, GitFolder::ReadOnly) if git => Some(Permission::WriteGit),
        (Profile::ReadOnly, _) => Some(Permission::WriteWorkspace),
        (Profile::WorkspaceWrite, GitFolder::Writable) => None,
        (Profile::WorkspaceWrite, GitFolder::ReadOnly) if git => Some(Permission::WriteGit),
        (Profile::WorkspaceWrite, GitFolder::ReadOnly) => match &scene.order.mechanism {
            // There the top of the project and `.git` can only be opened together.
            Mechanism::Landlock(_) if at_top && (takes_away(line) || !(scene.exists)(path)) => {
                Some(Permission::WriteGit)
            }
            Mechanism::Landlock(_) | Mechanism::Bubblewrap(_) | Mechanism::Seatbelt(_) => None,
        },
    }
}

/// Whether a line speaks of removing or renaming.
fn takes_away(line: &str) -> bool {
    ["remove", "rename", "unlink", "move", "delete", "replace"].iter().any(|word| line.contains(word))
}

/// Everything in a line that could be a path, made absolute: what stands in quotes, and words that look like one.
fn paths(cwd: &Path, line: &str) -> Vec<PathBuf> {
    let quoted = line.split(['\'', '"', '`', '‘', '’']).skip(1).step_by(2);
    let is_mark = |c: char| c.is_whitespace() || "'\"`‘’(),;<>[]{}=".contains(c);
    // `tool:/path:` and `path:12:` name the path between the colons.
    let words = line.split(is_mark).flat_map(|word| word.split(':')).map(|word| word.trim_end_matches('.'));
    let looks_like_one = |word: &&str| word.contains(['/', '.']);
    quoted
        .chain(words.filter(looks_like_one))
        .filter(|word| !word.is_empty())
        .map(|word| tidy(&cwd.join(word)))
        .collect()
}

/// Takes `.` and `..` out, as text.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(tidy.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => tidy.push(part),
        }
    }
    tidy
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use gimlet::command::{Captured, Permissions};

    use super::super::order::{Limits, Purpose};
    use super::*;

    fn blamed(mechanism: &Mechanism, permissions: Permissions, exit: i32, said: &str) -> Vec<Permission> {
        let finished = Finished {
            end: End::Exited(exit),
            stdout: Captured::default(),
            stderr: Captured { bytes: said.into(), dropped: 0 },
            duration: Duration::ZERO,
            isolation: String::new(),
            missing: Vec::new(),
        };
        let exists = |path: &Path| {
            [
                "/",
                "/home/me/.ssh/config",
                "/etc",
                "/usr/lib/python3/os.py",
                "/home/me",
                "/home/me/.cargo/bin/tool",
                "/srv/project/README.md",
            ]
            .iter()
            .any(|known| path == Path::new(known))
        };
        let order = Order {
            version: String::new(),
            parent: 1,
            purpose: Purpose::Command,
            mechanism: mechanism.clone(),
            root: "/srv/project".into(),
            cwd: "/srv/project".into(),
            home: Some("/home/me".into()),
            hidden: Vec::new(),
            secrets: Vec::new(),
            public: Vec::new(),
            read: vec!["/home/me/.cargo/bin".into()],
            write: Vec::new(),
            cache: None,
            unset: Vec::new(),
            permissions,
            limits: Limits::default(),
        };
        missing(&Scene { order: &order, exists: &exists }, &finished)
            .into_iter()
            .map(|missing| missing.permission)
            .collect()
    }

    #[test]
    fn what_a_command_said_shows_what_it_lacked() {
        let (bubblewrap, landlock) = (Mechanism::Bubblewrap("/usr/bin/bwrap".into()), Mechanism::Landlock(6));
        let usual = Permissions::default();
        let with_network = Permissions { network: Network::Allowed, ..usual };
        let read_only = Permissions { profile: Profile::ReadOnly, ..usual };
        let with_git = Permissions { git: GitFolder::Writable, ..usual };
        let table: &[(&Mechanism, Permissions, i32, &str, &[Permission])] = &[
            (&bubblewrap, usual, 6, "curl: (6) Could not resolve host: example.org", &[Permission::Network]),
            (&bubblewrap, usual, 0, "curl: (6) Could not resolve host: example.org", &[]),
            (&bubblewrap, with_network, 6, "curl: (6) Could not resolve host: example.org", &[]),
            (&landlock, usual, 1, "OSError: [Errno 101] Network is unreachable", &[Permission::Network]),
            (
                &bubblewrap,
                usual,
                128,
                "fatal: Unable to create '/srv/project/.git/index.lock': Read-only file system",
                &[Permission::WriteGit],
            ),
            (&landlock, usual, 1, "touch: cannot touch '.git/x': Permission denied", &[Permission::WriteGit]),
            (&landlock, with_git, 1, "touch: cannot touch '.git/x': Permission denied", &[]),
            (
                &bubblewrap,
                read_only,
                1,
                "touch: cannot touch '.git/x': Read-only file system",
                &[Permission::WriteGit],
            ),
            (
                &landlock,
                usual,
                101,
                "error: failed to create directory `/srv/project/target`\nCaused by:\n  Permission denied (os error 13)",
                &[Permission::WriteGit],
            ),
            (
                &landlock,
                usual,
                1,
                "mkdir: cannot create directory ‘target’: Permission denied",
                &[Permission::WriteGit],
            ),
            (&bubblewrap, usual, 1, "mkdir: cannot create directory ‘target’: Permission denied", &[]),
            (&bubblewrap, usual, 1, "sh: 1: ./src/tool.sh: Permission denied", &[]),
            (&landlock, usual, 1, "sh: 1: ./src/tool.sh: Permission denied", &[]),
            (
                &landlock,
                usual,
                1,
                "rm: cannot remove 'README.md': Permission denied",
                &[Permission::WriteGit],
            ),
            (
                &bubblewrap,
                read_only,
                1,
                "touch: cannot touch 'src/x': Read-only file system",
                &[Permission::WriteWorkspace],
            ),
            (
                &bubblewrap,
                usual,
                1,
                "touch: cannot touch '/etc/x': Read-only file system",
                &[Permission::Unrestricted],
            ),
            (
                &bubblewrap,
                usual,
                1,
                "cat: /home/me/.ssh/config: No such file or directory",
                &[Permission::Unrestricted],
            ),
            (&bubblewrap, usual, 1, "cat: /home/me/.ssh/none: No such file or directory", &[]),
            (
                &bubblewrap,
                usual,
                1,
                "  File \"/usr/lib/python3/os.py\", line 9\nFileNotFoundError: No such file or directory: 'none.txt'",
                &[],
            ),
            (
                &bubblewrap,
                usual,
                1,
                "Error: getaddrinfo ENOTFOUND registry.example.org",
                &[Permission::Network],
            ),
            (&bubblewrap, usual, 1, "/home/me/.ssh/config: No space left on device (os error 28)", &[]),
            (&bubblewrap, usual, 1, "/home/me/.cargo/bin/tool: error: 'none' not found below /", &[]),
            (&bubblewrap, usual, 1, "assertion failed: left == right", &[]),
        ];
        // What is kept whatever was agreed to.
        let unrestricted = &[Permission::Unrestricted];
        for (mechanism, said) in [
            (&bubblewrap, "touch: cannot touch '.git/hooks/x': Read-only file system"),
            (&bubblewrap, "src/script.sh: 1: cannot create .env: Read-only file system"),
            (&bubblewrap, "rm: cannot remove '.env': Device or resource busy"),
            (&bubblewrap, "sed: cannot rename ./sedXWo9lh: Device or resource busy"),
            (&bubblewrap, "mv: cannot move '.git' to 'x': Device or resource busy"),
            (&bubblewrap, "error: could not write config file .git/config: Device or resource busy"),
            (&landlock, "src/script.sh: 1: cannot create .env: Permission denied"),
            (&landlock, "rm: cannot remove '.env': Permission denied"),
        ] {
            for permissions in [usual, with_git] {
                assert_eq!(blamed(mechanism, permissions, 1, said), unrestricted, "{said}");
            }
        }
        for (mechanism, permissions, exit, said, expected) in table {
            assert_eq!(blamed(mechanism, *permissions, *exit, said), *expected, "{said}");
        }
    }
}
