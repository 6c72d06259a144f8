//! A project as an agent works in it: its folder, the tools bound to it, and what may be done there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimlet::Env;
use gimlet::approval::Approver;
use gimlet::command::Confinement;
use gimlet::effect::{Effect, Policy, PolicyError, Verdict};
use gimlet::guard::{Redactor, names_secret, password_in_url};
use gimlet::guided::Guide;
use gimlet::hook::Check;
use gimlet::ids::RunId;
use gimlet::store::Store;
use gimlet::tool::Tool;
use gimlet_config::{Bounds, Home, Process, Settings, UsageError, secrets};
use gimlet_policy::{CommandPolicy, Jail};
use gimlet_tools::gate::Gate;
use gimlet_tools::patch::{PatchEntry, Patches};
use gimlet_tools::run_cmd::LooksOnly;
use gimlet_tools::{Kit, Root, Rules};
use tokio_util::sync::CancellationToken;

use crate::extras::Extras;
use crate::instructions::{self, Instructions};
use crate::isolation::{self, Containers, Isolation};
use crate::knowledge::Knowledge;
use crate::mode::Bounded;
use crate::patches::StoredPatches;
use crate::project_guide::ProjectGuide;
use crate::{memory, rules, trace};

/// A folder as tools see it: without secrets, those that the policy adds included, and without Gimlet's own home.
pub fn root(process: &Process, path: &Path, policy: &gimlet_policy::Policy) -> anyhow::Result<Root> {
    let hidden: Vec<PathBuf> = process.home().map(|home| home.path().to_owned()).into_iter().collect();
    let rules = Rules {
        sensitive: policy.added_secrets().to_vec(),
        not_sensitive: policy.public_files().to_vec(),
        ..Rules::default()
    };
    Root::with_rules(path, &rules, &hidden).map_err(|error| UsageError::new(error.to_string()).into())
}

/// The folder an agent works in, and the tools bound to it.
pub struct Project {
    process: Arc<Process>,
    path: PathBuf,
    kit: Kit,
    patches: Arc<StoredPatches>,
    isolation: Isolation,
    /// Who owns the containers that are started here.
    containers: Containers,
    bounds: Bounds,
    policy: gimlet_policy::Policy,
    gate_enabled: bool,
    /// What is remembered of the project, if the agent may use it.
    memory: Option<gimlet_memory::Kit>,
    /// Skills and commands.
    knowledge: Arc<Knowledge>,
    /// Tools of MCP servers and of the embedding program.
    foreign: Vec<Arc<dyn Tool>>,
    /// Checks of the embedding program.
    checks: Vec<Arc<dyn Check>>,
}

impl Project {
    /// The folder the settings name, with the limits they set.
    pub fn open(settings: &Settings, containers: &Containers) -> anyhow::Result<Project> {
        let isolation = Isolation::new(&settings.root, settings, containers)?;
        let project = Project::at(settings.process(), &settings.root, settings.bounds(), isolation)?;
        Ok(Project {
            containers: containers.clone(),
            gate_enabled: settings.gate_enabled.value,
            memory: memory::enabled(settings)?,
            knowledge: Arc::new(Knowledge::of(settings)),
            ..project
        })
    }

    /// The same folder for a look at tools and rules: nothing is run, so nobody asks the machine for a jail.
    pub fn to_look_at(settings: &Settings) -> anyhow::Result<Project> {
        let process = settings.process();
        let isolation = Isolation::none(process, &settings.root, "nothing is run here");
        let project = Project::at(process, &settings.root, settings.bounds(), isolation)?;
        let knowledge = Arc::new(Knowledge::of(settings));
        Ok(Project { memory: memory::to_look_at(settings)?, knowledge, ..project })
    }

    /// A folder, what holds for tools and code there, and what stands around them.
    pub fn at(
        process: &Arc<Process>,
        path: &Path,
        bounds: Bounds,
        isolation: Isolation,
    ) -> anyhow::Result<Project> {
        let policy = rules::policy(process, path)?;
        let root = root(process, path, &policy)?;
        let patches = Arc::new(StoredPatches::default());
        let kit = Kit {
            root,
            environment: isolation::environment(process),
            page: bounds.page,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            patches: Patches::with_log(patches.clone()),
            validator: isolation.validator.clone(),
            runner: isolation.runner.clone(),
            permissions: isolation.permissions,
            looks_only: looks_only(process, path),
        };
        let foreign = Vec::new();
        Ok(Project {
            process: process.clone(),
            path: path.to_owned(),
            kit,
            patches,
            isolation,
            containers: Containers::default(),
            policy,
            gate_enabled: true,
            memory: None,
            knowledge: Arc::default(),
            bounds,
            foreign,
            checks: Vec::new(),
        })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the folder is still the one that was opened: a folder that was removed or replaced meanwhile is no place
    /// to work in.
    pub fn check_folder(&self) -> Result<(), UsageError> {
        if self.kit.root.is_there() {
            return Ok(());
        }
        Err(UsageError::new(format!("the project's folder {} is gone", self.path.display()))
            .hint("begin a new session in a folder that exists"))
    }

    /// Who owns the containers that are started here.
    pub(crate) fn containers(&self) -> &Containers {
        &self.containers
    }

    /// What the tools work with.
    pub fn kit(&self) -> &Kit {
        &self.kit
    }

    /// With the tools of servers that run already.
    pub fn with_foreign(self, foreign: Vec<Arc<dyn Tool>>) -> Project {
        Project { foreign, ..self }
    }

    /// With what an embedding program brings.
    pub(crate) fn with_extras(mut self, extras: &Extras) -> Project {
        self.foreign.extend(extras.tools.iter().cloned());
        self.checks.clone_from(&extras.checks);
        if let Some(buffers) = &extras.buffers {
            self.kit.root = self.kit.root.with_buffers(buffers.clone());
        }
        self
    }

    /// Checks of the embedding program.
    pub(crate) fn checks(&self) -> &[Arc<dyn Check>] {
        &self.checks
    }

    /// Names of the tools that are not built in.
    pub(crate) fn foreign_names(&self) -> Vec<String> {
        self.foreign.iter().map(|tool| tool.spec().name.clone()).collect()
    }

    /// All tools: the built-in ones, that for skills, those of the memory, then those of MCP servers and of the embedding program. A tool
    /// that the program brings takes the place of a built-in one of its name.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.kit.reading();
        tools.extend(self.kit.changing());
        tools.extend(self.knowledge.tool(self.kit.page));
        tools.extend(self.memory.iter().flat_map(gimlet_memory::Kit::tools));
        let brought = self.foreign_names();
        tools.retain(|tool| !brought.contains(&tool.spec().name));
        tools.extend(self.foreign.iter().cloned());
        tools
    }

    /// Names of the built-in tools that are in force.
    pub(crate) fn own_names(&self) -> Vec<String> {
        let brought = self.foreign_names();
        let own = self.kit.reading().into_iter().chain(self.kit.changing());
        own.map(|tool| tool.spec().name.clone()).filter(|name| !brought.contains(name)).collect()
    }

    /// The built-in tools that only look, that for skills, and those of the memory.
    pub fn reading(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.kit.reading();
        tools.extend(self.knowledge.tool(self.kit.page));
        tools.extend(self.memory.iter().flat_map(gimlet_memory::Kit::reading));
        tools
    }

    /// What is remembered of the project, if the agent may use it.
    pub fn memory(&self) -> Option<&gimlet_memory::Kit> {
        self.memory.as_ref()
    }

    /// Skills and commands.
    pub fn knowledge(&self) -> &Knowledge {
        &self.knowledge
    }

    /// The rules for commands in force here.
    pub fn policy(&self) -> &gimlet_policy::Policy {
        &self.policy
    }

    /// The patches of the run.
    pub fn patches(&self) -> &Patches {
        &self.kit.patches
    }

    /// Where files are read and written.
    pub fn root(&self) -> &Root {
        &self.kit.root
    }

    /// The gate before the answer to a task that asks for a change, unless it is switched off. A command that would be
    /// allowed in a jail looks or tests; any other may be the change.
    pub fn gate(&self) -> Option<Gate> {
        let (policy, context) = (self.policy.clone(), self.command_context(Jail::Active));
        self.gate_enabled.then(|| Gate {
            looks_only: Arc::new(move |command| policy.check(command, &context).verdict == Verdict::Allow),
        })
    }

    /// What may be done here: every change asks, and commands are judged by what they would do.
    fn policies(&self) -> Vec<Arc<dyn Policy>> {
        vec![
            Arc::new(AskBeforeEdit { unconfined: self.isolation.unconfined.clone() }),
            Arc::new(CommandPolicy {
                policy: self.policy.clone(),
                context: self.command_context(self.isolation.jail()),
            }),
        ]
    }

    /// What commands are judged against here.
    pub fn command_context(&self, jail: Jail) -> gimlet_policy::Context {
        command_context(&self.process, &self.path, jail)
    }

    /// What stays inside this project, for modes that agree to that.
    pub fn bounded(&self) -> Bounded {
        Bounded::new(&self.path, self.policy.clone(), self.command_context(self.isolation.jail()))
    }

    /// Names of the tools that only look.
    pub(crate) fn looking(&self) -> BTreeSet<String> {
        self.reading().iter().map(|tool| tool.spec().name.clone()).collect()
    }

    /// What the user and the project tell agents, as far as a model with such a window has room for it.
    pub fn instructions(&self, window: Option<u32>) -> Instructions {
        let home = self.process.home().map(Home::path);
        instructions::of_project(&self.kit.root, home, &self.redactor(), instructions::budget(window))
    }

    /// What guided work knows of this folder, for a model with such a window.
    pub fn guide(&self, settings: &Settings, window: Option<u32>) -> Arc<dyn Guide> {
        let notes = match settings.instructions.value {
            true => self.instructions(window).text(),
            false => String::new(),
        };
        Arc::new(ProjectGuide { root: self.kit.root.clone(), notes, cache: self.index_cache() })
    }

    /// Where the index of the project's files is kept between runs.
    pub(crate) fn index_cache(&self) -> Option<PathBuf> {
        self.process.home().map(|home| home.path().join("cache/repo"))
    }

    /// What code may use here.
    pub fn python_limits(&self) -> gimlet_python::Limits {
        gimlet_python::Limits { wall: self.bounds.computation, ..gimlet_python::Limits::default() }
    }

    /// Knows the secrets of this process.
    pub fn redactor(&self) -> Redactor {
        redactor(&self.process)
    }

    /// The environment of a run here.
    pub fn env(&self, store: Arc<dyn Store>, approver: Arc<dyn Approver>, cancel: CancellationToken) -> Env {
        Env {
            store,
            approver,
            policies: self.policies(),
            redactor: Arc::new(self.redactor()),
            truncation: self.bounds.truncation.clone(),
            warnings: self.isolation.missing.clone().into_iter().collect(),
            root: self.path.display().to_string(),
            confinement: match self.isolation.jail() {
                Jail::Active => Confinement::Jailed,
                Jail::Absent => Confinement::None,
            },
            version: env!("CARGO_PKG_VERSION").into(),
            cancel,
            ..Env::default()
        }
    }

    /// Keeps patches with a run from here on.
    pub fn keep_patches_for(&self, store: &Arc<dyn Store>, run: &RunId) {
        self.patches.keep_for(store, run);
    }

    /// Takes up the patches of an earlier process.
    pub fn take_up_patches(&self, entries: impl IntoIterator<Item = PatchEntry>) {
        self.kit.patches.rebuild(entries);
    }
}

fn command_context(process: &Process, root: &Path, jail: Jail) -> gimlet_policy::Context {
    gimlet_policy::Context {
        home: process.path("HOME"),
        gimlet_home: process.home().map(Home::path).map(Path::to_owned),
        ..gimlet_policy::Context::new(root, jail)
    }
}

/// Which commands need no permission beyond those that every command has. By the shipped rules alone: a user who allows `git
/// commit` has not said that it writes nothing.
fn looks_only(process: &Process, root: &Path) -> LooksOnly {
    let (policy, context) = (gimlet_policy::Policy::builtin(), command_context(process, root, Jail::Active));
    Arc::new(move |command: &str| policy.check(command, &context).verdict == Verdict::Allow)
}

/// Asks before files change, other machines are talked to, or something opaque happens. Commands have a policy of their
/// own, which knows what they do; here every one of them is asked about when nothing confines them.
struct AskBeforeEdit {
    unconfined: Option<String>,
}

impl Policy for AskBeforeEdit {
    fn judge(&self, effect: &Effect) -> Result<Verdict, PolicyError> {
        match effect {
            Effect::Run { .. } => Ok(self.unconfined.clone().map_or(Verdict::Allow, Verdict::Ask)),
            Effect::Read { .. }
            | Effect::Write { .. }
            | Effect::Network { .. }
            | Effect::Delegate { .. }
            | Effect::Remember { .. }
            | Effect::Opaque { .. } => gimlet::effect::AskBeforeChange.judge(effect),
        }
    }
}

/// Knows the secrets of a process: the user's keys, and variables whose name says that they are secret.
pub fn redactor(process: &Process) -> Redactor {
    let variables = process.variables().flat_map(|(name, value)| {
        let value = value.to_string_lossy().into_owned();
        let password = password_in_url(&value).map(str::to_owned);
        let whole = names_secret(&name.to_string_lossy()).then_some(value);
        whole.into_iter().chain(password)
    });
    Redactor::new(variables.chain(secrets::of_file(process)).chain(trace::secrets(process)))
}
