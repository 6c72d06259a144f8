//! What stands between commands, patch checks and this machine: chosen once from what was asked for and what works here.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use gimlet::cell::Executor;
use gimlet::command::{CommandRunner, Environment, Permissions, Profile};
use gimlet::patch::PatchValidator;
use gimlet_policy::Jail;
use gimlet_python::{Limits, PythonExecutor};
use gimlet_sandbox::docker::{
    self, AutoValidator, DockerConfig, DockerLauncher, DockerRunner, DockerValidator, NotInDocker,
};
use gimlet_sandbox::jail::{self, Found, JailConfig, JailedRunner, NoJail, Program};
use gimlet_tools::Root;
use gimlet_tools::command::HostRunner;
use gimlet_tools::patch::{ScratchValidator, TestedValidator};

use crate::args::{CommandProfile, JailArgs, Validation};
use crate::config::Settings;
use crate::exit::UsageError;
use crate::style::WARNING;
use crate::{home, rules, world};

/// The hidden subcommand that is the jail's helper.
pub(crate) const HELPER: &str = "__jail";
/// The helper as a program of its own.
const SMALL_HELPER: &str = "gimlet-jail";

/// How commands run and patches are checked here.
pub(crate) struct Isolation {
    /// Who runs commands.
    pub(crate) runner: Arc<dyn CommandRunner>,
    /// What they may touch unasked.
    pub(crate) permissions: Permissions,
    /// Who checks patches.
    pub(crate) validator: Arc<dyn PatchValidator>,
    /// Why every command must be asked about; none when they are confined.
    pub(crate) unconfined: Option<String>,
    /// What a run should say about a jail that was wanted and is not there.
    pub(crate) missing: Option<String>,
}

impl Isolation {
    /// Finds out what works for commands in a folder.
    pub(crate) fn new(root: &Path, settings: &Settings) -> anyhow::Result<Isolation> {
        let profile = match settings.sandbox.sandbox {
            CommandProfile::ReadOnly => Profile::ReadOnly,
            CommandProfile::WorkspaceWrite => Profile::WorkspaceWrite,
            CommandProfile::Unrestricted => {
                let why = "commands run without a jail, as was asked for";
                return Ok(Isolation {
                    validator: validator(root, settings, None)?,
                    ..Isolation::none(root, why)
                });
            }
            CommandProfile::Docker => {
                let runner = Arc::new(DockerRunner::new(docker_in(root, settings)?));
                let permissions = Permissions { profile: Profile::ReadOnly, ..Permissions::default() };
                let validator = validator(root, settings, Some(runner.clone()))?;
                return Ok(Isolation { runner, permissions, validator, unconfined: None, missing: None });
            }
        };
        let permissions = Permissions { profile, ..Permissions::default() };
        Ok(match find(root, &settings.sandbox.jail) {
            Ok(found) => {
                let runner = JailedRunner::new(config(root, settings, found)?, Arc::new(HostRunner));
                let runner = Arc::new(runner);
                let validator = validator(root, settings, Some(runner.clone()))?;
                Isolation { runner, permissions, validator, unconfined: None, missing: None }
            }
            Err(why) => {
                let missing =
                    format!("there is no jail, so every command asks: {why} (hint: {})", why.hint());
                let none = Isolation::none(root, &format!("there is no jail around it: {why}"));
                let validator = validator(root, settings, None)?;
                Isolation { permissions, validator, missing: Some(missing), ..none }
            }
        })
    }

    /// Nothing is confined, and therefore every command asks.
    pub(crate) fn none(root: &Path, why: &str) -> Isolation {
        Isolation {
            runner: Arc::new(HostRunner),
            permissions: Permissions { profile: Profile::Unrestricted, ..Permissions::default() },
            validator: Arc::new(scratch_validator(root)),
            unconfined: Some(why.to_owned()),
            missing: None,
        }
    }

    /// What the command policy is told.
    pub(crate) fn jail(&self) -> Jail {
        if self.unconfined.is_some() { Jail::Absent } else { Jail::Active }
    }
}

/// Who checks patches. Tests that a patch must pass run where git's check does: in a container, or in the jail that
/// commands have.
fn validator(
    root: &Path,
    settings: &Settings,
    jailed: Option<Arc<dyn CommandRunner>>,
) -> anyhow::Result<Arc<dyn PatchValidator>> {
    let tests = match settings.patch_tests()? {
        Some(tests) => Some((tests.to_owned(), world::root(root, &rules::policy(root)?)?)),
        None => None,
    };
    let tested = |inner: Arc<dyn PatchValidator>, runner| -> Arc<dyn PatchValidator> {
        match tests.clone() {
            Some((tests, root)) => Arc::new(TestedValidator::new(root, inner, runner, tests, environment())),
            None => inner,
        }
    };
    let in_docker = |config: DockerConfig| {
        tested(Arc::new(DockerValidator::new(config.clone())), Arc::new(DockerRunner::new(config)))
    };
    let on_host = || -> anyhow::Result<Arc<dyn PatchValidator>> {
        let scratch = Arc::new(scratch_validator(root));
        match (&tests, jailed) {
            (None, _) => Ok(scratch),
            (Some(_), Some(jailed)) => Ok(tested(scratch, jailed)),
            (Some((tests, _)), None) => Err(UsageError::new(format!(
                "nothing here can confine `{tests}`, which every patch must pass"
            ))
            .hint("`--validation docker`, or a jail (see `gimlet sandbox status`)")
            .into()),
        }
    };
    match settings.sandbox.validation {
        Validation::Worktree => on_host(),
        Validation::Docker => Ok(in_docker(docker_in(root, settings)?)),
        Validation::Auto => match docker_in(root, settings) {
            Ok(config) => Ok(match on_host() {
                Ok(other) => Arc::new(AutoValidator::new(config.clone(), in_docker(config), other)),
                Err(_) => in_docker(config),
            }),
            // Neither an image that nobody trusts nor a project that no container may see is a reason to refuse work that
            // can be done without one.
            Err(why) => Ok(Arc::new(NotInDocker::new(on_host()?, why.to_string()))),
        },
    }
}

/// Git's check on the host, where the project's own programs are not to be taken for it.
fn scratch_validator(root: &Path) -> ScratchValidator {
    ScratchValidator { environment: environment().outside(root) }
}

/// Python in containers, each with a copy of the project.
pub(crate) fn executor(
    settings: &Settings,
    root: &Root,
    imports: &[String],
    limits: Limits,
) -> anyhow::Result<Arc<dyn Executor>> {
    if !imports.is_empty() {
        return Err(UsageError::new(
            "`--imports` is for the Python sandbox; a container imports what it has",
        )
        .hint("build an image with the package and name it with SANDBOX_IMAGE")
        .into());
    }
    let config = docker_in(root.path(), settings)?;
    let limits = Limits { wall: limits.wall.min(config.timeout), ..limits };
    let launcher =
        DockerLauncher { config, root: root.path().to_owned(), may_copy: Arc::new(may_copy(root.clone())) };
    Ok(Arc::new(PythonExecutor::launched_by(Arc::new(launcher), limits)))
}

/// Which files of a project a container may get: those that tools may show.
fn may_copy(root: Root) -> impl Fn(&Path) -> bool + Send + Sync {
    move |path: &Path| root.may_show(path)
}

/// Which engine and image, for containers that see a folder: none may see one that holds what must stay hidden.
pub(crate) fn docker_in(root: &Path, settings: &Settings) -> anyhow::Result<DockerConfig> {
    jail::check_root(root, &private()).map_err(|why| UsageError::new(why.to_string()).hint(why.hint()))?;
    docker(settings)
}

/// Which engine and image.
pub(crate) fn docker(settings: &Settings) -> anyhow::Result<DockerConfig> {
    let path = |name: &str| std::env::var_os(name).map(PathBuf::from);
    Ok(DockerConfig {
        host: DockerConfig::host(
            std::env::var("DOCKER_HOST").ok(),
            path("XDG_RUNTIME_DIR").as_deref(),
            user_home().as_deref(),
        ),
        image: settings.sandbox_image()?.to_owned(),
        timeout: settings.bounds().computation,
    })
}

/// Removes what is left of containers. Nothing is started in one afterwards.
pub(crate) async fn end_containers() {
    for error in docker::end_all().await {
        // Nobody is left to tell when this fails.
        let _ =
            writeln!(crate::out::stderr(), "{WARNING}warning:{WARNING:#} a container may be left: {error}");
    }
}

/// The jail that works for commands in a folder.
pub(crate) fn find(root: &Path, args: &JailArgs) -> Result<Found, NoJail> {
    jail::detect(args.jail.into(), root, &private())
}

/// What no project may hold: the person's home and Gimlet's own folder.
fn private() -> Vec<PathBuf> {
    user_home().into_iter().chain(own_files()).collect()
}

fn config(root: &Path, settings: &Settings, found: Found) -> anyhow::Result<JailConfig> {
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    Ok(JailConfig {
        helper: helper(&own, root),
        found,
        home: user_home(),
        hidden: own_files().into_iter().chain(jail::system_secrets().iter().cloned()).collect(),
        cache: cache(root),
        limits: limits(&settings.sandbox.jail),
    })
}

/// Who builds the jail: the small program beside this one, which starts faster, or else this one. A helper that the
/// project's own commands could have written is none.
fn helper(own: &Path, root: &Path) -> Program {
    let small = own.with_file_name(SMALL_HELPER);
    if small.is_file() && !small.starts_with(root) {
        return Program { path: small, args: Vec::new() };
    }
    // Not by its name: the file of that name may be another one by now.
    Program { path: "/proc/self/exe".into(), args: vec![HELPER.into()] }
}

/// What a jailed command may use.
pub(crate) fn limits(args: &JailArgs) -> jail::Limits {
    let usual = jail::Limits::default();
    jail::Limits {
        memory: u64::from(args.command_memory) << 20,
        cpu: args.command_cpu.unwrap_or(usual.cpu),
        ..usual
    }
}

/// Gimlet's own files, by the path that leads there without links: that is how projects are named too.
fn own_files() -> Option<PathBuf> {
    let path = home::path().ok()?;
    // What is not made yet has no link in it.
    path.ancestors().find_map(|above| {
        let real = above.canonicalize().ok()?;
        Some(real.components().chain(path.strip_prefix(above).ok()?.components()).collect())
    })
}

/// The person's home, if it is a folder that exists: what `HOME` says, or else the list of users.
fn user_home() -> Option<PathBuf> {
    let real = |home: PathBuf| home.canonicalize().ok().filter(|home| home.parent().is_some());
    std::env::var_os("HOME").map(PathBuf::from).and_then(real).or_else(|| real(listed_home()?))
}

/// The home of this process's user in the list of users.
fn listed_home() -> Option<PathBuf> {
    let (users, own) = (std::fs::read_to_string("/etc/passwd").ok()?, rustix::process::geteuid().as_raw());
    let of_own = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2)?.parse() == Ok(own)).then(|| fields.get(5).map(PathBuf::from))?
    };
    users.lines().find_map(of_own)
}

/// A folder of the project's own among the person's caches.
fn cache(root: &Path) -> Option<PathBuf> {
    let caches = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = caches.or_else(|| user_home().map(|home| home.join(".cache")))?;
    let name = gimlet::digest::digest(root.as_os_str().as_encoded_bytes());
    Some(caches.join("gimlet").join("commands").join(name.get(..16)?))
}

/// What child processes see of this process's environment.
pub(crate) fn environment() -> Environment {
    Environment::allowed(std::env::vars_os())
}

#[cfg(test)]
mod tests {
    use gimlet_tools::Rules;

    use super::*;

    #[test]
    fn a_container_gets_what_tools_may_show() {
        let project = tempfile::tempdir().unwrap();
        let home = project.path().join("own");
        std::fs::create_dir(&home).unwrap();
        let rules = Rules { sensitive: vec!["*.vault".into()], ..Rules::default() };
        let may_copy = may_copy(Root::with_rules(project.path(), &rules, &[home]).unwrap());
        for secret in [
            ".env",
            "deploy/.env.production",
            ".aws/credentials",
            ".ssh/config",
            "keys/id_ed25519",
            "secrets.yaml",
            "config/credentials.json",
            "credentials",
            "infra/terraform.tfstate",
            ".pgpass",
            ".netrc",
            "server.pem",
            "team.vault",
            "own/runs/1/log.jsonl",
        ] {
            assert!(!may_copy(Path::new(secret)), "{secret}");
        }
        for ordinary in ["calc.py", "src/id_card.py", ".env.example", "secrets/mod.rs", ".github/ci.yml"] {
            assert!(may_copy(Path::new(ordinary)), "{ordinary}");
        }
    }
}
