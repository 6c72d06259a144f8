//! A CPython of this machine, with its packages, as a worker of the Python executor: in the jail that commands have, with
//! the project as the current folder.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::cell::ExecutorError;
use gimlet::command::{Environment, Permissions, Profile};
use gimlet::worker::{Launched, Launcher, WorkerLife};
use tokio::process::{Child, Command};

use super::order::{self, Errand, Order, Purpose};
use super::places;
use super::runner::JailConfig;
use super::server::start;
use crate::runner;

/// The kind of place such sessions live in, as runs record it.
pub const KIND: &str = "venv";

/// Most links that lead from one name of an interpreter to the next.
const LINKS: usize = 8;

const READS: &str = "The current folder of your code is the repository, and your code cannot change it: use the functions, \
such as apply_patch, for that.";
const WRITES: &str = "The current folder of your code is the repository itself.";

/// Launches Python sessions in the jail.
pub struct VenvLauncher {
    /// The jail. Code has no folder for caches.
    pub jail: JailConfig,
    /// The interpreter, by its absolute path.
    pub python: PathBuf,
    /// The project.
    pub root: PathBuf,
    /// All variables that code sees.
    pub environment: Environment,
    /// What code may do to the project. The network is blocked and `.git` stays as it is in any case.
    pub profile: Profile,
}

impl Launcher for VenvLauncher {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn told(&self) -> &'static str {
        match self.profile {
            Profile::ReadOnly => READS,
            Profile::WorkspaceWrite | Profile::Unrestricted => WRITES,
        }
    }

    fn launch(&self) -> BoxFuture<'_, Result<Launched, ExecutorError>> {
        async move {
            let failed =
                |error: io::Error| ExecutorError::Start(format!("{}: {error}", self.python.display()));
            let words = self.words().map_err(failed)?;
            let mut words = words.into_iter();
            let mut child = Command::new(words.next().unwrap_or_default())
                .args(words)
                .env_clear()
                .envs(self.environment.iter())
                .current_dir("/")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .process_group(0)
                .kill_on_drop(true)
                .spawn()
                .map_err(failed)?;
            let (Some(input), Some(output), Some(errors)) =
                (child.stdin.take(), child.stdout.take(), child.stderr.take())
            else {
                return Err(ExecutorError::Start("the interpreter has no pipes".into()));
            };
            Ok(Launched {
                input: Box::new(input),
                output: Box::new(output),
                errors: Box::new(errors),
                life: Box::new(Life(child)),
            })
        }
        .boxed()
    }
}

impl VenvLauncher {
    /// The words that start the interpreter in its jail.
    fn words(&self) -> io::Result<Vec<OsString>> {
        let config = &self.jail;
        let mut read =
            places::toolchain(&self.environment, config.home.as_deref(), &self.root, &config.hidden);
        read.extend(places::git_folders(&self.root));
        // What lies in a folder that is there anyway need not be named.
        let shown = read.clone();
        let is_shown = |path: &PathBuf| shown.iter().any(|above| path.starts_with(above));
        read.extend(self.installation().into_iter().filter(|path| !is_shown(path)));
        let order = Order {
            version: order::VERSION.to_owned(),
            parent: std::process::id(),
            purpose: Purpose::Worker,
            mechanism: config.found.mechanism.clone(),
            root: self.root.clone(),
            cwd: self.root.clone(),
            home: config.home.clone(),
            hidden: config.hidden.clone(),
            secrets: config.secrets.clone(),
            public: config.public.clone(),
            read,
            write: Vec::new(),
            unset: vec!["XDG_RUNTIME_DIR".to_owned()],
            permissions: Permissions { profile: self.profile, ..Permissions::default() },
            limits: config.limits,
            cache: None,
        };
        let mut words = start(&config.helper);
        words.push(serde_json::to_string(&Errand { outside: config.found.outside, order })?.into());
        words.push("--".into());
        words.push(self.python.clone().into());
        words.extend(runner::arguments("0", "").map(Into::into));
        Ok(words)
    }

    /// What of the interpreter lies neither in the project nor in a folder of the system: the environment it belongs to, and
    /// the installation that its links lead to. A link can name anything, so only what is an installation of Python counts.
    fn installation(&self) -> Vec<PathBuf> {
        let next = |at: &PathBuf| Some(at.parent()?.join(std::fs::read_link(at).ok()?));
        let links = std::iter::successors(Some(self.python.clone()), next).take(LINKS);
        let mut found = Vec::new();
        for program in links.chain(self.python.canonicalize().ok()) {
            let Some(folder) = program.parent().filter(|folder| is_python(folder)) else { continue };
            found.extend(places::beside(folder.to_owned(), self.jail.home.as_deref()));
        }
        let is_fit = |path: &PathBuf| {
            let real = path.canonicalize();
            let is_hidden = |path: &Path| self.jail.hidden.iter().any(|hidden| path.starts_with(hidden));
            real.is_ok_and(|real| !is_hidden(&real) && !is_hidden(path))
                && !path.starts_with(&self.root)
                && !places::SYSTEM.iter().any(|system| path.starts_with(system))
        };
        found.retain(is_fit);
        found.sort();
        found.dedup();
        found
    }
}

/// Whether programs in this folder are those of a virtual environment or of an installation of Python.
fn is_python(folder: &Path) -> bool {
    let Some(above) = folder.parent() else { return false };
    let has_library = || {
        let lib = std::fs::read_dir(above.join("lib")).into_iter().flatten().flatten();
        lib.filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"))
            .any(|entry| entry.path().join("os.py").is_file())
    };
    above.join("pyvenv.cfg").is_file() || has_library()
}

/// The helper around the interpreter, which ends everything in the jail when it is ended.
struct Life(Child);

impl WorkerLife for Life {
    fn kill(&mut self) {
        // It fails only when the process has already ended.
        drop(self.0.start_kill());
    }
}

#[cfg(test)]
mod tests {
    use super::super::detect::{Found, Mechanism, Outside};
    use super::super::{Limits, Program};
    use super::*;

    fn launcher(python: PathBuf, hidden: Vec<PathBuf>) -> VenvLauncher {
        let found =
            Found { mechanism: Mechanism::Landlock(6), outside: Outside::Mounted, weaknesses: Vec::new() };
        let jail = JailConfig {
            helper: Program { path: "/helper".into(), args: Vec::new() },
            found,
            home: None,
            hidden,
            secrets: Vec::new(),
            public: Vec::new(),
            cache: None,
            limits: Limits::default(),
        };
        let (root, environment) = ("/project".into(), Environment::default());
        VenvLauncher { jail, python, root, environment, profile: Profile::ReadOnly }
    }

    #[test]
    fn of_an_interpreter_what_it_needs_is_shown_and_nothing_a_link_names_beside() {
        use std::os::unix::fs::symlink;
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        for folder in ["venv/bin", "real/bin", "real/lib/python3.12", "private/bin", "private/lib"] {
            std::fs::create_dir_all(base.join(folder)).unwrap();
        }
        for file in
            ["venv/pyvenv.cfg", "real/lib/python3.12/os.py", "real/bin/python3.12", "private/bin/tool"]
        {
            std::fs::write(base.join(file), "").unwrap();
        }
        symlink("../../real/bin/python3.12", base.join("venv/bin/python")).unwrap();
        let shown = launcher(base.join("venv/bin/python"), Vec::new()).installation();
        for needed in ["venv/bin", "venv/pyvenv.cfg", "real/bin", "real/lib"] {
            assert!(shown.contains(&base.join(needed)), "{needed}: {shown:?}");
        }

        let hidden = launcher(base.join("venv/bin/python"), vec![base.join("real")]).installation();
        assert!(!hidden.iter().any(|path| path.starts_with(base.join("real"))), "{hidden:?}");

        std::fs::remove_file(base.join("venv/bin/python")).unwrap();
        symlink("../../private/bin/tool", base.join("venv/bin/python")).unwrap();
        let shown = launcher(base.join("venv/bin/python"), Vec::new()).installation();
        assert!(!shown.iter().any(|path| path.starts_with(base.join("private"))), "{shown:?}");
    }
}
