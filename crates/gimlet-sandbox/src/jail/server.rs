//! The words that start a program which lives as long as a session: in a jail, or only under the helper's supervision.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use gimlet::command::{Environment, GitFolder, Permissions};
use gimlet::paths::PathRules;

use super::helper;
use super::order::{self, Errand, Order, Purpose};
use super::places;
use super::runner::{JailConfig, Program, caches};

/// A server that is about to be confined.
#[derive(Debug, Clone)]
pub struct Server {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// The project.
    pub root: PathBuf,
    /// Where it starts, inside of the project.
    pub cwd: PathBuf,
    /// All variables it sees.
    pub environment: Environment,
    /// What it may do. `.git` stays as it is in any case.
    pub permissions: Permissions,
}

/// The words that start a server in a jail, and its variables there.
pub fn jailed_server(config: &JailConfig, server: Server) -> io::Result<(Vec<OsString>, Environment)> {
    let Server { argv, root, cwd, environment, permissions } = server;
    let cache = config.cache.clone().filter(|cache| std::fs::create_dir_all(cache).is_ok());
    let mut read = places::toolchain(&environment, config.home.as_deref(), &root, &config.hidden);
    read.extend(places::git_folders(&root));
    read.extend(named(&argv, config, &root));
    let order = Order {
        version: order::VERSION.to_owned(),
        parent: std::process::id(),
        purpose: Purpose::Server,
        mechanism: config.found.mechanism.clone(),
        root,
        cwd,
        home: config.home.clone(),
        hidden: config.hidden.clone(),
        secrets: config.secrets.clone(),
        public: config.public.clone(),
        read,
        write: Vec::new(),
        unset: vec!["XDG_RUNTIME_DIR".to_owned()],
        permissions: Permissions { git: GitFolder::ReadOnly, ..permissions },
        limits: config.limits,
        cache,
    };
    let environment = match &order.cache {
        Some(cache) => caches(environment, cache),
        None => environment,
    };
    let mut words = start(&config.helper);
    words.push(serde_json::to_string(&Errand { outside: config.found.outside, order })?.into());
    words.push("--".into());
    words.extend(argv);
    Ok((words, environment))
}

/// The words that start a program as it is, under a supervisor that ends whatever it leaves behind.
pub fn supervised(helper: &Program, argv: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words = start(helper);
    words.extend([helper::SUPERVISE.into(), std::process::id().to_string().into(), "--".into()]);
    words.extend(argv);
    words
}

pub(crate) fn start(helper: &Program) -> Vec<OsString> {
    std::iter::once(helper.path.clone().into_os_string()).chain(helper.args.iter().cloned()).collect()
}

/// What a server's words name outside of the project: its program with what that needs, and single files. No folders, which
/// may hold anything, and nothing that is hidden or by its name a secret.
fn named(argv: &[OsString], config: &JailConfig, root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (at, word) in argv.iter().enumerate() {
        let path = Path::new(word);
        let Ok(real) = path.canonicalize() else { continue };
        let is_hidden = config.hidden.iter().any(|hidden| real.starts_with(hidden));
        let is_secret = [path, &real].iter().any(|path| {
            let inside = path.strip_prefix("/").unwrap_or(path);
            PathRules::shipped().is_secret(inside)
        });
        if !path.is_absolute() || !real.is_file() || real.starts_with(root) || is_hidden || is_secret {
            continue;
        }
        if at == 0 {
            for program in [path, &real] {
                let folder = program.parent().map(Path::to_owned);
                found.extend(
                    folder.into_iter().flat_map(|folder| places::beside(folder, config.home.as_deref())),
                );
            }
        }
        found.extend([path.to_owned(), real]);
    }
    let is_fit = |path: &PathBuf| !places::SYSTEM.iter().any(|system| path.starts_with(system));
    found.retain(|path| is_fit(path) && path.exists());
    found.sort();
    found.dedup();
    found
}
