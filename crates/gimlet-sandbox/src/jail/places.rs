//! What of a home a command needs: compilers, interpreters and caches of packages. Everything else in it stays hidden,
//! and so do the files in which these tools keep their passwords.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use gimlet::command::{Environment, GitFolder};

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
    ".local/share/uv",
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
/// Variables that name one folder of a toolchain.
const FOLDERS: &[&str] = &[
    "CONDA_PREFIX",
    "GEM_HOME",
    "GOMODCACHE",
    "GOROOT",
    "JAVA_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "VIRTUAL_ENV",
];
/// Variables that name many.
const LISTS: &[&str] = &["PATH", "PYTHONPATH", "NODE_PATH", "GEM_PATH"];
/// What the system's own folders are called.
pub(crate) const SYSTEM: &[&str] = &[
    "/bin", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/opt", "/sbin", "/snap", "/usr",
];

/// Files of the project that no command writes.
const PROTECTED: &[&str] = &[".env", "gimlet.toml", "mcp.json", ".mcp.json"];
/// Files of the system that are for root's eyes, below folders that are not.
const SECRET: &[&str] = &[
    "/etc/NetworkManager/system-connections",
    "/etc/kubernetes",
    "/etc/letsencrypt",
    "/etc/rancher",
    "/etc/ssh",
    "/etc/ssl/private",
];
/// Where the addresses of name servers may really be.
pub(crate) const RESOLVERS: &[&str] = &["/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager"];

/// What of the system root alone may read: a command that runs as root, with all its rights gone, still owns it.
pub(crate) fn secrets() -> Vec<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    // What is empty tells nothing.
    let is_secret = |known: std::fs::Metadata| known.mode() & 0o004 == 0 && known.len() > 0;
    let mut found: Vec<PathBuf> = SECRET.iter().map(PathBuf::from).filter(|path| path.exists()).collect();
    let etc = std::fs::read_dir("/etc").into_iter().flatten().flatten();
    found.extend(etc.filter(|entry| entry.metadata().is_ok_and(is_secret)).map(|entry| entry.path()));
    found
}

/// Whether a home is a folder like any other, and not one that the system keeps its programs in.
pub(crate) fn is_own_place(home: &Path) -> bool {
    let of_system = SYSTEM.iter().any(|system| home.starts_with(system));
    let of_people =
        ["/opt", "/usr/home"].iter().any(|above| home.starts_with(above) && home != Path::new(above));
    home.is_absolute() && home.parent().is_some() && home.is_dir() && (!of_system || of_people)
}

/// What of a git folder has programs run or is read in place of its settings.
const GIT_SETTINGS: &[&str] = &["commondir", "config", "config.worktree", "gitdir", "hooks", "modules"];
/// Most submodules that are looked at.
const MODULES: usize = 256;

/// What stays as it is in a project, whether it is there or not. A git command that was agreed to still plants no program
/// and no setting that would run one.
pub(crate) fn protected(order: &Order) -> Vec<PathBuf> {
    let root = &order.root;
    let mut found: Vec<PathBuf> = PROTECTED.iter().map(|name| root.join(name)).collect();
    found.extend(modules(root).into_iter().map(|module| module.join(".git")));
    let git = root.join(".git");
    match order.permissions.git {
        GitFolder::Writable if git.is_dir() => found.extend(GIT_SETTINGS.iter().map(|name| git.join(name))),
        // One that is made is the command's own, as is all that is in it.
        GitFolder::Writable if !git.exists() => {}
        GitFolder::Writable => {
            let folders = git_folders(root);
            found.extend(folders.iter().flat_map(|folder| GIT_SETTINGS.iter().map(|name| folder.join(name))));
            found.push(git);
        }
        GitFolder::ReadOnly => {
            let linked = git.canonicalize().ok().filter(|real| *real != git && real.starts_with(root));
            found.extend(linked.into_iter().chain([git]));
        }
    }
    found
}

/// Folders of the project that are repositories of their own, as it says itself.
fn modules(root: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(root.join(".gitmodules")).unwrap_or_default();
    let named =
        text.lines().filter_map(|line| line.trim().strip_prefix("path")?.trim_start().strip_prefix('='));
    let is_inside = |path: &PathBuf| path.canonicalize().is_ok_and(|real| real == *path);
    named
        .map(|path| Path::new(path.trim().trim_matches('"')))
        .filter(|path| path.components().all(|part| matches!(part, Component::Normal(_))))
        .map(|path| root.join(path))
        .filter(is_inside)
        .take(MODULES)
        .collect()
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
    if let Some(go) = value("GOPATH") {
        found.extend(std::env::split_paths(&go).flat_map(|path| below(path, GO)));
    }
    found.extend(FOLDERS.iter().filter_map(|name| value(name)).map(PathBuf::from));
    let cargo = value("CARGO_HOME").map(PathBuf::from);
    for list in LISTS.iter().filter_map(|name| value(name)) {
        found
            .extend(std::env::split_paths(&list).flat_map(|path| installation(path, home, cargo.as_deref())));
    }
    let private = || home.into_iter().chain(hidden.iter().map(PathBuf::as_path)).chain([root]);
    let is_fit = |path: &PathBuf| {
        path.is_absolute()
            && path.parent().is_some()
            && !private().any(|place| place.starts_with(path))
            && !hidden.iter().any(|place| path.starts_with(place))
            && !path.starts_with(root)
            && !SYSTEM.iter().any(|system| path.starts_with(system))
            && path.exists()
    };
    found.retain(is_fit);
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

/// What a folder of programs belongs to: programs in `x/bin` come with libraries in `x`, unless `x` is the home. In a folder
/// with a dot there may be a tool's passwords too, so of that only what programs need.
fn installation(path: PathBuf, home: Option<&Path>, cargo: Option<&Path>) -> Vec<PathBuf> {
    let Some(above) = path.parent() else { return vec![path] };
    let is_bin = path.file_name() == Some(OsStr::new("bin"));
    let is_home = home.is_some_and(|home| home.starts_with(above));
    let name = above.file_name().and_then(OsStr::to_str).unwrap_or_default();
    // A cargo home has its credentials beside `bin`, and `~/.local` everything.
    let is_mixed = [".cargo", ".local", "go"].contains(&name) || cargo == Some(above);
    if !is_bin || above.parent().is_none() || is_home || is_mixed {
        vec![path]
    } else if name.starts_with('.') && home.is_some_and(|home| above.starts_with(home)) {
        ["bin", "include", "lib", "lib64", "libexec", "pyvenv.cfg", "share"]
            .map(|name| above.join(name))
            .to_vec()
    } else {
        vec![above.to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_toolchain_is_seen_and_its_secrets_are_not() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join("home/me");
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
            "",
        ];
        let path = std::env::join_paths(path.map(|name| home.join(name))).unwrap();
        let cargo = home.join("cargo").into_os_string();
        let environment = Environment::allowed([("PATH", path), ("CARGO_HOME", cargo)]);
        let seen = toolchain(&environment, Some(&home), &home.join("project"), &[home.join("gimlet")]);
        let seen: Vec<_> = seen.iter().map(|path| path.strip_prefix(&home).unwrap()).collect();
        let expected = [".cargo/bin", ".local/bin", ".pulumi/bin", "bin", "cargo/bin", "venv"];
        assert_eq!(seen, expected.map(Path::new));
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

    #[test]
    fn submodules_are_found_inside_the_project_only() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap().join("project");
        fs::create_dir_all(root.join("vendor/a b")).unwrap();
        fs::create_dir_all(temp.path().join("home")).unwrap();
        std::os::unix::fs::symlink("../home", root.join("link")).unwrap();
        let text = "[submodule \"x\"]\n\tpath = vendor/a b\n\turl = u\n[submodule \"y\"]\n  path=../home\n\tpath = link\n\tpath = gone\n";
        fs::write(root.join(".gitmodules"), text).unwrap();
        assert_eq!(modules(&root), [root.join("vendor/a b")]);
    }
}
