//! What of a home a command needs: compilers, interpreters and caches of packages. Everything else in it stays hidden,
//! and so do the files in which these tools keep their passwords.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use gimlet::command::{Environment, GitFolder};

use super::modules::submodules;
use super::order::Order;

/// Below the home, each without the tool's credentials.
const HOME: &[&str] = &[
    ".asdf",
    ".bun",
    ".cache/go-build",
    ".cache/pip",
    ".cache/uv",
    ".deno",
    ".gem/ruby",
    ".ghcup",
    ".gradle/caches",
    ".gradle/wrapper",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".m2/repository",
    ".npm/_cacache",
    ".nuget/packages",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".sdkman/candidates",
    ".volta",
    "go/bin",
    "go/pkg",
];
/// Below what `CARGO_HOME` names.
const CARGO: &[&str] = &["bin", "config.toml", "env", "git", "registry"];
/// Below what `GOPATH` names.
const GO: &[&str] = &["bin", "pkg"];
/// Below what `GEM_HOME` and `GEM_PATH` name.
const GEMS: &[&str] = &["bin", "build_info", "extensions", "gems", "plugins", "specifications"];
/// Beside a folder of programs that is called `bin`.
const BESIDE: &[&str] =
    &["bin", "conf/security", "include", "lib", "lib64", "libexec", "pyvenv.cfg", "share"];
/// What Go's own programs need as well.
const BESIDE_GO: &[&str] = &["VERSION", "go.env", "pkg", "src"];
/// Variables that name one folder of a toolchain.
const FOLDERS: &[&str] = &[
    "CONDA_PREFIX",
    "GOMODCACHE",
    "GOROOT",
    "JAVA_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "VIRTUAL_ENV",
];
/// Variables that name many.
const LISTS: &[&str] = &["PATH", "PYTHONPATH", "NODE_PATH"];
/// What the system's own folders are called.
pub(crate) const SYSTEM: &[&str] = &[
    "/bin", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/opt", "/sbin", "/snap", "/usr",
];

/// Where the system keeps programs and what they need, below the above.
const PROGRAMS: &[&str] = &[
    "/etc/alternatives",
    "/etc/ssl",
    "/gnu/store",
    "/nix/store",
    "/snap/bin",
    "/usr/bin",
    "/usr/games",
    "/usr/include",
    "/usr/lib",
    "/usr/lib32",
    "/usr/lib64",
    "/usr/libexec",
    "/usr/local/bin",
    "/usr/local/lib",
    "/usr/local/sbin",
    "/usr/local/share",
    "/usr/sbin",
    "/usr/share",
    "/usr/src",
];
/// Sockets in these folders have somebody else do things, and reach the network.
pub(crate) const DAEMONS: &[&str] = &["/nix/var/nix/daemon-socket"];

/// Files of the system that are for root's eyes, below folders that are not.
const SECRET: &[&str] = &[
    "/etc/NetworkManager/system-connections",
    "/etc/kubernetes",
    "/etc/letsencrypt",
    "/etc/rancher",
    "/etc/ssh",
    "/etc/ssl/private",
];
/// Most files of the system that are looked at.
const ENTRIES: usize = 50_000;
/// Where the addresses of name servers may really be.
pub(crate) const RESOLVERS: &[&str] = &["/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager"];

/// What below `/etc` is not for everybody's eyes, wherever it is; nothing unless this is root, since whoever else runs a
/// command may see it or may not anyway. It is looked for once: that takes milliseconds.
pub fn system_secrets() -> &'static [PathBuf] {
    static FOUND: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let mut found = Vec::new();
        if rustix::process::geteuid().is_root() {
            unshown(Path::new("/etc"), &mut 0, &mut found);
        }
        found
    })
}

/// Finds what others may not read. A folder counts as one find if there is nothing else in it, to keep the mounts few.
fn unshown(folder: &Path, seen: &mut usize, found: &mut Vec<PathBuf>) -> Shown {
    let (before, mut shown) = (found.len(), Shown::Nothing);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        *seen += 1;
        let Ok(known) = entry.metadata() else { continue };
        if known.is_symlink() || *seen > ENTRIES {
            shown = Shown::Something;
        } else if known.is_dir() && known.mode() & 0o001 != 0 {
            shown = shown.max(unshown(&entry.path(), seen, found));
        } else if known.is_dir() || known.mode() & 0o004 == 0 {
            // What is empty tells nothing.
            found.extend((known.len() > 0).then(|| entry.path()));
        } else {
            shown = Shown::Something;
        }
    }
    if shown == Shown::Nothing && found.len() > before + 1 {
        found.truncate(before);
        found.push(folder.to_owned());
    }
    shown
}

/// What a folder has for everybody.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shown {
    Nothing,
    Something,
}

/// What of the system root alone may read: a command that runs as root, with all its rights gone, still owns it.
pub(crate) fn secrets() -> Vec<PathBuf> {
    // What is empty tells nothing.
    let is_secret = |known: std::fs::Metadata| known.mode() & 0o004 == 0 && known.len() > 0;
    let mut found: Vec<PathBuf> = SECRET.iter().map(PathBuf::from).filter(|path| path.exists()).collect();
    let etc = std::fs::read_dir("/etc").into_iter().flatten().flatten();
    found.extend(etc.filter(|entry| entry.metadata().is_ok_and(is_secret)).map(|entry| entry.path()));
    found
}

/// Whether a home is a folder like any other, and not one with the system's own programs in it, as users that are no
/// people have. Of people some live below a folder of the system.
pub(crate) fn is_own_place(home: &Path) -> bool {
    let of_system = SYSTEM.iter().chain(PROGRAMS).any(|folder| Path::new(folder).starts_with(home));
    home.is_absolute() && home.is_dir() && !of_system
}

/// What of a git folder has programs run or is read in place of its settings.
const GIT_SETTINGS: &[&str] = &["commondir", "config", "config.worktree", "gitdir", "hooks", "modules"];
/// Most folders of git's that are looked at.
const GIT_FOLDERS: usize = 256;
/// Most links that are followed one after the other.
const LINKS: usize = 8;

/// What stays as it is in a project, whether it is there or not.
pub(crate) fn protected(order: &Order) -> Vec<PathBuf> {
    let git = order.root.join(".git");
    let mut found = kept(&order.root);
    let is_there = std::fs::symlink_metadata(&git).is_ok();
    match order.permissions.git {
        // One that is made is the command's own, as is all that is in it.
        GitFolder::Writable if !is_there => found.retain(|path| !path.starts_with(&git)),
        GitFolder::Writable if is_folder(&git) => {}
        GitFolder::Writable => found.push(git),
        GitFolder::ReadOnly => {
            found.retain(|path| path.starts_with(&order.root) && !path.starts_with(&git));
            let linked = git.canonicalize().ok().filter(|real| *real != git && real.starts_with(&order.root));
            found.extend(linked.into_iter().chain([git]));
        }
    }
    found
}

/// Files at the top of a project that the list of path rules protects. Git's folder is looked at in detail instead.
fn protected_names() -> impl Iterator<Item = &'static str> {
    let names = gimlet::paths::list::PROTECTED.iter().map(|name| name.trim_start_matches("./"));
    names.filter(|name| !name.contains('/'))
}

/// What no permission but that to leave the jail opens: a git command that was agreed to still plants no program and no
/// setting that would run one. Where there is a link, also what is read in its place.
pub(crate) fn kept(root: &Path) -> Vec<PathBuf> {
    let git = root.join(".git");
    let mut folders = match git.canonicalize() {
        // What a link leads to elsewhere is not there for a command.
        Ok(real) if real.is_dir() => Some(real).filter(|real| real.starts_with(root)).into_iter().collect(),
        Ok(_) => git_folders(root),
        Err(_) => vec![git.clone()],
    };
    let modules: Vec<PathBuf> = repositories(root).into_iter().map(|module| module.join(".git")).collect();
    folders.extend(modules.iter().filter(|git| is_folder(git)).cloned());
    let mut found: Vec<PathBuf> = protected_names().map(|name| root.join(name)).chain(modules).collect();
    for folder in folders.iter().flat_map(|folder| with_parts(folder)) {
        found.extend(GIT_SETTINGS.iter().map(|name| folder.join(name)));
    }
    let led: Vec<_> = found.iter().chain([&git]).flat_map(|path| led_to(path, root)).collect();
    found.extend(led);
    found.sort();
    found.dedup();
    found
}

/// Folders of the project that are repositories of their own.
pub(crate) fn repositories(root: &Path) -> BTreeSet<PathBuf> {
    let git = root.join(".git");
    // A worktree's index is its own.
    let own = if is_folder(&git) { Some(git) } else { git_folders(root).pop() };
    submodules(root, &own.unwrap_or_default().join("index"))
}

/// A git folder, and those of its worktrees and submodules that are in it.
fn with_parts(git: &Path) -> Vec<PathBuf> {
    // Not by a link, which could lead anywhere.
    let folders = |path: &Path| -> Vec<PathBuf> {
        let entries = is_folder(path).then(|| std::fs::read_dir(path).ok()).flatten();
        let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
        paths.filter(|path| is_folder(path)).collect()
    };
    let mut found = vec![git.to_owned()];
    found.extend(folders(&git.join("worktrees")));
    let mut open = folders(&git.join("modules"));
    while let Some(folder) = open.pop().filter(|_| found.len() < GIT_FOLDERS) {
        // Names of submodules may have slashes in them.
        if folder.join("HEAD").exists() {
            open.extend(folders(&folder.join("modules")));
            found.push(folder);
        } else {
            open.extend(folders(&folder));
        }
    }
    found
}

/// Where a link leads inside the project, link by link.
fn led_to(path: &Path, root: &Path) -> Vec<PathBuf> {
    let next = |at: &PathBuf| {
        let to = at.parent()?.join(std::fs::read_link(at).ok()?);
        let to = to.parent()?.canonicalize().ok()?.join(to.file_name()?);
        (to.starts_with(root) && to != root).then_some(to)
    };
    std::iter::successors(Some(path.to_owned()), next).skip(1).take(LINKS).collect()
}

/// Those that are not in another which is there: what holds for that holds for them.
pub(crate) fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    paths.dedup();
    let mut above: Option<PathBuf> = None;
    paths.retain(|path| {
        let is_below = above.as_ref().is_some_and(|above| path.starts_with(above));
        if !is_below && is_real(path) {
            above = Some(path.clone());
        }
        !is_below
    });
    paths
}

/// The folders between what a command may write and these paths, outermost first. Where one can be moved, so can the path.
pub(crate) fn between(order: &Order, paths: &[PathBuf]) -> BTreeSet<PathBuf> {
    let bases: Vec<&PathBuf> = order.write.iter().chain([&order.root]).collect();
    let above = |path: &PathBuf| {
        let base = bases.iter().find(|base| path.starts_with(base))?;
        let between = path.ancestors().skip(1).take_while(|above| above != base).map(Path::to_owned);
        Some(between.collect::<Vec<_>>())
    };
    paths.iter().filter_map(above).flatten().filter(|folder| is_folder(folder)).collect()
}

/// Whether a path leads through no link: what is elsewhere is no part of the project.
pub(crate) fn is_reached(path: &Path) -> bool {
    path.parent().is_some_and(|above| above.canonicalize().is_ok_and(|real| real == above))
}

/// Whether something is a folder, and not a link to one.
pub(crate) fn is_folder(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|known| known.is_dir())
}

/// Whether something is there, and not a link to it.
pub(crate) fn is_real(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|known| !known.is_symlink())
}

/// Where git keeps what belongs to a project that is a worktree, so that its `.git` is a file: what all worktrees share,
/// and what is this one's own. A file in the project can say anything, so only folders that git itself would have made for
/// it count: the own one is in the shared one, outside of the project, and leads back to it.
pub(crate) fn git_folders(root: &Path) -> Vec<PathBuf> {
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let named = read(root.join(".git"));
    let Some(named) = named.strip_prefix("gitdir:") else { return Vec::new() };
    let Ok(own) = root.join(named.trim()).canonicalize() else { return Vec::new() };
    let leads_back = Path::new(read(own.join("gitdir")).trim()) == root.join(".git");
    let Some(worktrees) = own.parent().filter(|above| above.ends_with("worktrees")) else {
        return Vec::new();
    };
    let Some(shared) = worktrees.parent() else { return Vec::new() };
    let said = own.join(read(own.join("commondir")).trim()).canonicalize();
    let is_shared = said.is_ok_and(|said| said == shared) && shared.join("HEAD").is_file();
    if leads_back && is_shared && !own.starts_with(root) {
        vec![shared.to_owned(), own.clone()]
    } else {
        Vec::new()
    }
}

/// The folders and files of the toolchain that exist, shortest first. None of them is above `root`, the home or a
/// hidden folder.
pub(crate) fn toolchain(
    environment: &Environment,
    home: Option<&Path>,
    root: &Path,
    hidden: &[PathBuf],
) -> Vec<PathBuf> {
    let value = |name: &str| {
        environment.iter().find(|(known, _)| *known == OsStr::new(name)).map(|(_, value)| value.to_owned())
    };
    let below = |base: PathBuf, names: &[&str]| names.iter().map(|name| base.join(name)).collect::<Vec<_>>();
    let mut found = Vec::new();
    if let Some(home) = home {
        found.extend(below(home.to_owned(), HOME));
    }
    let in_home = |name: &str| home.map(|home| home.join(name));
    if let Some(cargo) = value("CARGO_HOME").map(PathBuf::from).or_else(|| in_home(".cargo")) {
        found.extend(below(cargo, CARGO));
    }
    found.extend(value("RUSTUP_HOME").map(PathBuf::from).or_else(|| in_home(".rustup")));
    for (list, names) in [("GOPATH", GO), ("GEM_HOME", GEMS), ("GEM_PATH", GEMS)] {
        let list = value(list).unwrap_or_default();
        found.extend(std::env::split_paths(&list).flat_map(|path| below(path, names)));
    }
    found.extend(FOLDERS.iter().filter_map(|name| value(name)).map(PathBuf::from));
    let cargo = value("CARGO_HOME").map(PathBuf::from);
    for list in LISTS.iter().filter_map(|name| value(name)) {
        found
            .extend(std::env::split_paths(&list).flat_map(|path| installation(path, home, cargo.as_deref())));
    }
    let private = || home.into_iter().chain(hidden.iter().map(PathBuf::as_path)).chain([root]);
    let is_fit = |path: &Path| {
        path.is_absolute()
            && path.parent().is_some()
            && !private().any(|place| place.starts_with(path))
            && !hidden.iter().any(|place| path.starts_with(place))
            && !path.starts_with(root)
            && !SYSTEM.iter().any(|system| path.starts_with(system))
    };
    // By what it is called, since that is how it is looked for, and by what it is.
    let mut found: Vec<PathBuf> = found
        .into_iter()
        .filter_map(|path| Some((path.canonicalize().ok()?, path)))
        .filter(|(real, _)| is_fit(real))
        .flat_map(|(real, path)| [Some(path).filter(|path| is_fit(path)), Some(real)])
        .flatten()
        .collect();
    found.sort();
    found.dedup();
    // What lies in a folder that is there anyway need not be named.
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in found {
        if !kept.iter().any(|above| path.starts_with(above)) {
            kept.push(path);
        }
    }
    kept
}

/// What a program in this folder needs beside itself. Nothing but the program where the folder is the home.
pub(crate) fn beside(folder: PathBuf, home: Option<&Path>) -> Vec<PathBuf> {
    let whole = installation(folder.clone(), home, None);
    // A folder that is not called `bin` may hold anything.
    if whole == [folder] { Vec::new() } else { whole }
}

/// What a folder of programs belongs to: programs in `x/bin` come with libraries in `x`, unless `x` is the home. There may
/// be anything else too, so of that only what programs need.
fn installation(path: PathBuf, home: Option<&Path>, cargo: Option<&Path>) -> Vec<PathBuf> {
    let Some(above) = path.parent() else { return vec![path] };
    let is_bin = path.file_name() == Some(OsStr::new("bin"));
    let is_home = || {
        let real = above.canonicalize();
        home.is_some_and(|home| real.is_ok_and(|real| home.starts_with(real)))
    };
    let name = above.file_name().and_then(OsStr::to_str).unwrap_or_default();
    // `~/.local` has everything beside `bin`.
    let is_mixed = [".cargo", ".local"].contains(&name) || cargo == Some(above);
    if !is_bin || above.parent().is_none() || is_mixed || is_home() {
        return vec![path];
    }
    let go = if above.join("pkg/tool").is_dir() { BESIDE_GO } else { &[] };
    BESIDE.iter().chain(go).map(|name| above.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_toolchain_is_seen_and_its_secrets_are_not() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().canonicalize().unwrap().join("home/me");
        let names = [
            ".cargo/bin",
            ".cargo/registry",
            ".cargo/credentials.toml",
            ".ssh",
            "venv/bin",
            "bin",
            ".local/bin",
            "project/bin",
            "gimlet/bin",
            ".pulumi/bin",
            ".pulumi/credentials.json",
            "cargo/bin",
            "cargo/credentials.toml",
            "work/bin",
            "work/lib",
            "work/notes",
            "sdk/go1/bin",
            "sdk/go1/pkg/tool",
            "sdk/go1/src",
            ".local/share/uv/python",
            ".local/share/uv/credentials",
            ".gem/credentials",
            ".gem/gems",
        ];
        for name in names {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        let path = [
            "venv/bin",
            "bin",
            ".cargo/bin",
            ".local/bin",
            "project/bin",
            "gimlet/bin",
            ".pulumi/bin",
            "cargo/bin",
            "work/bin",
            "sdk/go1/bin",
            "alias/bin",
            "",
        ];
        std::os::unix::fs::symlink(".", home.join("alias")).unwrap();
        let path = std::env::join_paths(path.map(|name| home.join(name))).unwrap();
        let cargo = home.join("cargo").into_os_string();
        let gems = home.join(".gem").into_os_string();
        let environment = Environment::allowed([("PATH", path), ("CARGO_HOME", cargo), ("GEM_HOME", gems)]);
        let seen = toolchain(&environment, Some(&home), &home.join("project"), &[home.join("gimlet")]);
        let seen: Vec<_> = seen.iter().map(|path| path.strip_prefix(&home).unwrap()).collect();
        let expected = [
            ".cargo/bin",
            ".gem/gems",
            ".local/bin",
            ".local/share/uv/python",
            ".pulumi/bin",
            "alias/bin",
            "bin",
            "cargo/bin",
            "sdk/go1/bin",
            "sdk/go1/pkg",
            "sdk/go1/src",
            "venv/bin",
            "work/bin",
            "work/lib",
        ];
        assert_eq!(seen, expected.map(Path::new));
    }

    #[test]
    fn what_others_may_not_read_is_found_in_every_folder() {
        use std::os::unix::fs::PermissionsExt;
        let temp = tempfile::tempdir().unwrap();
        let files = [
            ("open/a", 0o644),
            ("open/key", 0o600),
            ("open/empty", 0o600),
            ("keys/deep/a", 0o600),
            ("keys/b", 0o640),
            ("shut/a", 0o644),
            ("one/key", 0o600),
        ];
        for (name, mode) in files {
            let path = temp.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, if name.ends_with("empty") { "" } else { "x" }).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(temp.path().join("shut"), fs::Permissions::from_mode(0o750)).unwrap();
        let mut found = Vec::new();
        unshown(temp.path(), &mut 0, &mut found);
        found.sort();
        assert_eq!(found, ["keys", "one/key", "open/key", "shut"].map(|name| temp.path().join(name)));
    }

    #[test]
    fn a_worktree_s_folders_are_those_that_git_made() {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        let (root, own) = (base.join("tree"), base.join("main/.git/worktrees/tree"));
        let write = |path: &Path, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(&base.join("main/.git/HEAD"), "ref: refs/heads/main\n");
        write(&base.join("secrets/key"), "");
        write(&own.join("gitdir"), &format!("{}\n", root.join(".git").display()));
        write(&own.join("commondir"), "../..\n");
        write(&root.join(".git"), &format!("gitdir: {}\n", own.display()));
        assert_eq!(git_folders(&root), [base.join("main/.git"), own.clone()]);
        // Whoever can write the project cannot have anything else shown.
        write(&own.join("commondir"), "../../../../secrets\n");
        assert_eq!(git_folders(&root), <[PathBuf; 0]>::default());
        let forged = root.join("forged/worktrees/tree");
        write(&root.join("forged/HEAD"), "");
        write(&forged.join("gitdir"), &format!("{}\n", root.join(".git").display()));
        for common in ["../..", "../../../../secrets"] {
            write(&forged.join("commondir"), common);
            write(&root.join(".git"), "gitdir: forged/worktrees/tree");
            assert_eq!(git_folders(&root), <[PathBuf; 0]>::default(), "{common}");
        }
    }
}
