//! What stands between commands, patch checks and this machine: chosen once from what was asked for and what works here.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use gimlet::cell::Executor;
use gimlet::command::{CommandRunner, Environment, Permissions, Profile};
use gimlet::patch::PatchValidator;
use gimlet_policy::Jail;
use gimlet_python::{Limits, PythonExecutor};
pub use gimlet_sandbox::docker::Containers;
use gimlet_sandbox::docker::{
    AutoValidator, DockerConfig, DockerLauncher, DockerRunner, DockerValidator, NotInDocker,
};
use gimlet_sandbox::jail::{self, Found, JailConfig, JailedRunner, NoJail, Program, VenvLauncher, Wanted};
use gimlet_tools::Root;
use gimlet_tools::command::HostRunner;
use gimlet_tools::patch::{ScratchValidator, TestedValidator};

use gimlet_config::options::{CommandProfile, JailChoice, JailOptions, Validation};
use gimlet_config::{Home, Process, Settings, UsageError};

use crate::{helper, interpreter, project, rules};

/// The helper as a program of its own.
const SMALL_HELPER: &str = "gimlet-jail";

/// How commands run and patches are checked here.
pub struct Isolation {
    /// Who runs commands.
    pub runner: Arc<dyn CommandRunner>,
    /// What they may touch unasked.
    pub permissions: Permissions,
    /// Who checks patches.
    pub validator: Arc<dyn PatchValidator>,
    /// Why every command must be asked about; none when they are confined.
    pub unconfined: Option<String>,
    /// What a run should say about a jail that was wanted and is not there.
    pub missing: Option<String>,
}

impl Isolation {
    /// Finds out what works for commands in a folder.
    pub fn new(root: &Path, settings: &Settings, containers: &Containers) -> anyhow::Result<Isolation> {
        let profile = match settings.sandbox.profile {
            CommandProfile::ReadOnly => Profile::ReadOnly,
            CommandProfile::WorkspaceWrite => Profile::WorkspaceWrite,
            CommandProfile::Unrestricted => {
                let why = "commands run without a jail, as was asked for";
                return Ok(Isolation {
                    validator: validator(root, settings, containers, None)?,
                    ..Isolation::none(settings.process(), root, why)
                });
            }
            CommandProfile::Docker => {
                let runner = Arc::new(DockerRunner::new(docker_in(root, settings, containers)?));
                let permissions = Permissions { profile: Profile::ReadOnly, ..Permissions::default() };
                let validator = validator(root, settings, containers, Some(runner.clone()))?;
                return Ok(Isolation { runner, permissions, validator, unconfined: None, missing: None });
            }
        };
        let permissions = Permissions { profile, ..Permissions::default() };
        Ok(match find(settings.process(), root, &settings.sandbox.jail) {
            Ok(found) => {
                let runner = JailedRunner::new(
                    config(settings.process(), root, &settings.sandbox.jail, found)?,
                    Arc::new(HostRunner),
                );
                let runner = Arc::new(runner);
                let validator = validator(root, settings, containers, Some(runner.clone()))?;
                Isolation { runner, permissions, validator, unconfined: None, missing: None }
            }
            Err(why) => {
                let missing =
                    format!("there is no jail, so every command asks: {why} (hint: {})", why.hint());
                let none =
                    Isolation::none(settings.process(), root, &format!("there is no jail around it: {why}"));
                let validator = validator(root, settings, containers, None)?;
                Isolation { permissions, validator, missing: Some(missing), ..none }
            }
        })
    }

    /// Nothing is confined, and therefore every command asks.
    pub fn none(process: &Process, root: &Path, why: &str) -> Isolation {
        Isolation {
            runner: Arc::new(HostRunner),
            permissions: Permissions { profile: Profile::Unrestricted, ..Permissions::default() },
            validator: Arc::new(scratch_validator(process, root)),
            unconfined: Some(why.to_owned()),
            missing: None,
        }
    }

    /// What the command policy is told.
    pub fn jail(&self) -> Jail {
        if self.unconfined.is_some() { Jail::Absent } else { Jail::Active }
    }
}

/// Who checks patches. Tests that a patch must pass run where git's check does: in a container, or in the jail that
/// commands have.
fn validator(
    root: &Path,
    settings: &Settings,
    containers: &Containers,
    jailed: Option<Arc<dyn CommandRunner>>,
) -> anyhow::Result<Arc<dyn PatchValidator>> {
    let tests = match settings.patch_tests()? {
        Some(tests) => {
            let process = settings.process();
            Some((tests.to_owned(), project::root(process, root, &rules::policy(process, root)?)?))
        }
        None => None,
    };
    let tested = |inner: Arc<dyn PatchValidator>, runner| -> Arc<dyn PatchValidator> {
        match tests.clone() {
            Some((tests, root)) => {
                Arc::new(TestedValidator::new(root, inner, runner, tests, environment(settings.process())))
            }
            None => inner,
        }
    };
    let in_docker = |config: DockerConfig| {
        tested(Arc::new(DockerValidator::new(config.clone())), Arc::new(DockerRunner::new(config)))
    };
    let on_host = || -> anyhow::Result<Arc<dyn PatchValidator>> {
        let scratch = Arc::new(scratch_validator(settings.process(), root));
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
        Validation::Docker => Ok(in_docker(docker_in(root, settings, containers)?)),
        Validation::Auto => match docker_in(root, settings, containers) {
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
fn scratch_validator(process: &Process, root: &Path) -> ScratchValidator {
    ScratchValidator { environment: environment(process).outside(root) }
}

/// Python in containers, each with a copy of the project.
pub fn docker_executor(
    settings: &Settings,
    root: &Root,
    imports: &[String],
    limits: Limits,
    containers: &Containers,
) -> anyhow::Result<Arc<dyn Executor>> {
    if !imports.is_empty() {
        return Err(UsageError::new(
            "`--imports` is for the Python sandbox; a container imports what it has",
        )
        .hint("build an image with the package and name it with SANDBOX_IMAGE")
        .into());
    }
    let config = docker_in(root.path(), settings, containers)?;
    let limits = Limits { wall: limits.wall.min(config.timeout), ..limits };
    let launcher =
        DockerLauncher { config, root: root.path().to_owned(), may_copy: Arc::new(may_copy(root.clone())) };
    Ok(Arc::new(PythonExecutor::launched_by(Arc::new(launcher), limits)))
}

/// The user's own Python, in the jail of commands. There is none without a jail.
pub fn venv_executor(
    settings: &Settings,
    imports: &[String],
    limits: Limits,
) -> anyhow::Result<Arc<dyn Executor>> {
    if !imports.is_empty() {
        return Err(UsageError::new(
            "`--imports` is for the Python sandbox; your Python imports what is installed in its environment",
        )
        .hint("install the package there, as with `uv pip install NAME`")
        .into());
    }
    let (process, root) = (settings.process(), &settings.root);
    let python = interpreter::find(settings)?;
    let options = &settings.sandbox.jail;
    let found = find(process, root, options).map_err(|why| {
        UsageError::new(format!("`--executor venv` runs code in a jail, and there is none: {why}"))
            .hint(why.hint())
    })?;
    let config = config(process, root, options, found)?;
    let jail =
        JailConfig { cache: None, limits: jail::Limits { memory: limits.memory, ..config.limits }, ..config };
    let profile = if settings.sandbox_python_writes()? { Profile::WorkspaceWrite } else { Profile::ReadOnly };
    // The order of sets is part of what a replay repeats.
    let environment = environment(process).with("PYTHONHASHSEED", "0").with("PYTHONUTF8", "1");
    let launcher = VenvLauncher { jail, python, root: root.clone(), environment, profile };
    Ok(Arc::new(PythonExecutor::launched_by(Arc::new(launcher), limits)))
}

/// Which files of a project a container may get: those that tools may show.
fn may_copy(root: Root) -> impl Fn(&Path) -> bool + Send + Sync {
    move |path: &Path| root.may_show(path)
}

/// Which engine and image, for containers that see a folder: none may see one that holds what must stay hidden.
pub fn docker_in(root: &Path, settings: &Settings, containers: &Containers) -> anyhow::Result<DockerConfig> {
    jail::check_root(root, &private(settings.process()))
        .map_err(|why| UsageError::new(why.to_string()).hint(why.hint()))?;
    docker(settings, containers)
}

/// Which engine and image.
pub fn docker(settings: &Settings, containers: &Containers) -> anyhow::Result<DockerConfig> {
    let process = settings.process();
    Ok(DockerConfig {
        host: DockerConfig::host(
            process.var("DOCKER_HOST").map(str::to_owned),
            process.path("XDG_RUNTIME_DIR").as_deref(),
            user_home(process).as_deref(),
        ),
        image: settings.sandbox_image()?.to_owned(),
        timeout: settings.bounds().computation,
        containers: containers.clone(),
    })
}

/// Removes what is left of containers.
pub async fn end_containers(containers: &Containers) -> Vec<String> {
    let left = containers.end_all().await;
    left.into_iter().map(|error| format!("a container may be left: {error}")).collect()
}

/// The jail that works for commands in a folder.
pub fn find(process: &Process, root: &Path, options: &JailOptions) -> Result<Found, NoJail> {
    let wanted = match options.jail {
        JailChoice::Auto => Wanted::Auto,
        JailChoice::Bubblewrap => Wanted::Bubblewrap,
        JailChoice::Landlock => Wanted::Landlock,
        JailChoice::Off => Wanted::Off,
    };
    jail::detect(wanted, root, &private(process))
}

/// What no project may hold: the person's home and Gimlet's own folder.
fn private(process: &Process) -> Vec<PathBuf> {
    user_home(process).into_iter().chain(own_files(process)).collect()
}

/// What starts MCP servers, and ends what they leave behind.
pub(crate) fn supervisor(root: &Path) -> anyhow::Result<Program> {
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    Ok(jail_helper(&own, root))
}

/// The jail of a project's MCP servers. Their caches are their own: what a command has left in its own must not be run with a
/// server's rights.
pub(crate) fn server_jail(
    process: &Process,
    root: &Path,
    options: &JailOptions,
) -> anyhow::Result<JailConfig> {
    let found =
        find(process, root, options).map_err(|why| UsageError::new(why.to_string()).hint(why.hint()))?;
    let cache = cache(process, root, "servers");
    Ok(JailConfig { cache, ..config(process, root, options, found)? })
}

fn config(process: &Process, root: &Path, options: &JailOptions, found: Found) -> anyhow::Result<JailConfig> {
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    let policy = rules::policy(process, root)?;
    Ok(JailConfig {
        helper: jail_helper(&own, root),
        found,
        home: user_home(process),
        hidden: own_files(process).into_iter().chain(jail::system_secrets().iter().cloned()).collect(),
        secrets: policy.added_secrets().to_vec(),
        public: policy.public_files().to_vec(),
        cache: cache(process, root, "commands"),
        limits: limits(options),
    })
}

/// Who builds the jail: the small program beside this one, which starts faster, or else this one. A helper that the
/// project's own commands could have written is none.
fn jail_helper(own: &Path, root: &Path) -> Program {
    let small = own.with_file_name(SMALL_HELPER);
    if small.is_file() && !small.starts_with(root) {
        return Program { path: small, args: Vec::new() };
    }
    // Not by its name: the file of that name may be another one by now.
    Program { path: "/proc/self/exe".into(), args: vec![helper::JAIL.into()] }
}

/// What a jailed command may use.
pub fn limits(options: &JailOptions) -> jail::Limits {
    let usual = jail::Limits::default();
    jail::Limits { memory: u64::from(options.memory) << 20, cpu: options.cpu.unwrap_or(usual.cpu), ..usual }
}

/// Gimlet's own files, by the path that leads there without links: that is how projects are named too.
fn own_files(process: &Process) -> Option<PathBuf> {
    let path = process.home().map(Home::path)?;
    // What is not made yet has no link in it.
    path.ancestors().find_map(|above| {
        let real = above.canonicalize().ok()?;
        Some(real.components().chain(path.strip_prefix(above).ok()?.components()).collect())
    })
}

/// The person's home, if it is a folder that exists: what `HOME` says, or else the list of users.
fn user_home(process: &Process) -> Option<PathBuf> {
    let real = |home: PathBuf| home.canonicalize().ok().filter(|home| home.parent().is_some());
    process.path("HOME").and_then(real).or_else(|| real(listed_home()?))
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
fn cache(process: &Process, root: &Path, of: &str) -> Option<PathBuf> {
    let caches = process.path("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let caches = caches.or_else(|| user_home(process).map(|home| home.join(".cache")))?;
    let name = gimlet::digest::digest(root.as_os_str().as_encoded_bytes());
    Some(caches.join("gimlet").join(of).join(name.get(..16)?))
}

/// What child processes see of this process's environment.
pub fn environment(process: &Process) -> Environment {
    // A rewritten file of the same length and second would otherwise be taken for the one that was compiled before.
    Environment::allowed(process.variables().map(|(name, value)| (name.to_owned(), value.to_owned())))
        .with("PYTHONDONTWRITEBYTECODE", "1")
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
