//! What of a home a command needs: compilers, interpreters and caches of packages. Everything else in it stays hidden,
//! and so do the files in which these tools keep their passwords.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use gimlet::command::{Environment, GitFolder};

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
/// Files of the system that are for root's eyes.
pub(crate) const SECRET: &[&str] = &[
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
];
/// Where the addresses of name servers may really be.
pub(crate) const RESOLVERS: &[&str] = &["/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager"];

/// What stays as it is in a project. A git command that was agreed to still plants no program and no setting that
/// would run one.
pub(crate) fn protected(root: &Path, git: GitFolder) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = PROTECTED.iter().map(|name| root.join(name)).collect();
    match git {
        GitFolder::ReadOnly => found.push(root.join(".git")),
        GitFolder::Writable => found.extend([root.join(".git/hooks"), root.join(".git/config")]),
    }
    found
}

/// Where git keeps what belongs to a project whose `.git` is a file: a worktree or a submodule.
pub(crate) fn git_folders(root: &Path) -> Vec<PathBuf> {
    let Ok(text) = std::fs::read_to_string(root.join(".git")) else { return Vec::new() };
    let Some(named) = text.strip_prefix("gitdir:") else { return Vec::new() };
    let Ok(folder) = root.join(named.trim()).canonicalize() else { return Vec::new() };
    // Only what git itself would follow back to this project; a file in it can say anything.
    let back = std::fs::read_to_string(folder.join("gitdir")).unwrap_or_default();
    if Path::new(back.trim()) != root.join(".git") {
        return Vec::new();
    }
    let common = std::fs::read_to_string(folder.join("commondir")).unwrap_or_default();
    let common = folder.join(common.trim()).canonicalize().unwrap_or_else(|_| folder.clone());
    if folder.starts_with(&common) { vec![common] } else { vec![common, folder] }
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
    for list in LISTS.iter().filter_map(|name| value(name)) {
        found.extend(std::env::split_paths(&list).map(|path| installation(path, home)));
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

/// What a folder of programs belongs to: programs in `x/bin` come with libraries in `x`, unless `x` is the home.
fn installation(path: PathBuf, home: Option<&Path>) -> PathBuf {
    match path.parent() {
        Some(parent)
            if path.file_name() == Some(OsStr::new("bin"))
                && parent.parent().is_some()
                && !home.is_some_and(|home| home.starts_with(parent)) =>
        {
            // A cargo home has its credentials beside `bin`, and `~/.local` everything.
            let known = [".cargo", ".local", "go"];
            match parent.file_name().and_then(OsStr::to_str) {
                Some(name) if known.contains(&name) => path,
                _ => parent.to_owned(),
            }
        }
        _ => path,
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
        ];
        for name in names {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        let path = ["venv/bin", "bin", ".cargo/bin", ".local/bin", "project/bin", "gimlet/bin", ""];
        let path = std::env::join_paths(path.map(|name| home.join(name))).unwrap();
        let environment = Environment::allowed([("PATH", path)]);
        let seen = toolchain(&environment, Some(&home), &home.join("project"), &[home.join("gimlet")]);
        let seen: Vec<_> = seen.iter().map(|path| path.strip_prefix(&home).unwrap()).collect();
        let expected = [".cargo/bin", ".cargo/registry", ".local/bin", "bin", "venv"];
        assert_eq!(seen, expected.map(Path::new));
    }
}
