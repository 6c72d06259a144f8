//! Settings: flags, then the environment, then `.env` of the working directory, then the project's `gimlet.toml`, then
//! the user's own `config.toml`, then defaults. Every value knows who said it. A project's files are untrusted: what
//! could send work or keys elsewhere needs `gimlet trust` first, and that is checked here, where the value is taken.

#![forbid(unsafe_code)]

mod agents;
mod dotenv;
mod error;
mod file;
mod inside;
pub mod key;
mod layers;
mod models;
pub mod options;
mod process;
mod python;
pub mod secrets;
mod template;
mod trust;
mod value;
mod wishes;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use gimlet::guard::Truncation;
use gimlet::limits::Limits;
use gimlet::plan::Planning;
use gimlet_models::transport::is_loopback;
use gimlet_models::{Base, Url};
use gimlet_tools::read_file::Page;
use serde::de::DeserializeOwned;

use layers::{DotEnv, Layers};
use options::{ApproveMode, Options, Sandbox};
use value::Temperature;

pub use agents::{AgentEntry, Agents, DEFAULT_AGENT, Placed};
pub use error::{Failure, UsageError, hint_of};
pub use file::{ConfigFile, Source, Sourced, line_at, read_small, shown};
pub use inside::{leads_through_link, read_inside};
pub use layers::{Origin, Row, Setting, Spot};
pub use models::NamedModels;
pub use process::{Home, Process, create};
pub use template::{Whose, template};
pub use trust::{CodeFile, Pin, Standing, TrustList};
pub use value::LogLevel;
pub use wishes::{Wish, ask_for};

/// Tables of a file that are read by whoever owns them, with [`Settings::section`]. Each has its own type, which
/// refuses words it does not know; a table nobody reads is not listed, so that it is an error and not passed over.
pub const SECTIONS: &[&str] =
    &["agents", "mcp", "models", "policy", "providers", "python", "routers", "tools"];

/// The project's file.
pub const PROJECT_FILE: &str = "gimlet.toml";
/// The user's file, in the data directory.
pub const USER_FILE: &str = "config.toml";

/// All settings in force.
#[derive(Debug)]
pub struct Settings {
    /// The folder the agent works in, links resolved.
    pub root: PathBuf,
    /// The model that is named, if one is.
    pub model_id: Option<Setting<String>>,
    model_api_base: Option<Setting<Url>>,
    temperature: Option<Setting<Temperature>>,
    max_tokens: Option<Setting<u32>>,
    context: Option<Setting<NonZeroU32>>,
    requests_per_minute: Option<Setting<NonZeroU32>>,
    /// Maximum steps of a run.
    pub max_steps: Setting<u32>,
    max_depth: Setting<usize>,
    max_agents: Setting<u32>,
    /// When the model plans.
    pub plan: Setting<Planning>,
    /// Whether the model reads the project's instructions.
    pub instructions: Setting<bool>,
    /// What happens when an approval is needed. A project that is not trusted can only make it stricter.
    pub approve: Setting<ApproveMode>,
    /// Whether agents may remember things.
    pub memory_enabled: Setting<bool>,
    /// The model that makes vectors of what is remembered.
    pub memory_embeddings: Option<Setting<String>>,
    /// Whether an answer is held back until a change was made and tried.
    pub gate_enabled: Setting<bool>,
    /// Whether spans are sent.
    pub trace_enabled: Setting<bool>,
    trace_endpoint: Setting<Url>,
    validation_chars: Setting<usize>,
    validation_lines: Setting<usize>,
    validation_line_range: Setting<usize>,
    truncation_chars: Setting<usize>,
    truncation_lines: Setting<usize>,
    truncation_items: Setting<usize>,
    /// How commands, patches and code are confined.
    pub sandbox: Sandbox,
    sandbox_image: Setting<String>,
    sandbox_timeout: Setting<Duration>,
    sandbox_python: Option<Setting<String>>,
    sandbox_python_writes: Setting<bool>,
    sandbox_tests: Option<Setting<String>>,
    /// Which diagnostics are printed.
    pub log_level: Setting<LogLevel>,
    /// Whether warnings of a run are only counted.
    pub suppress_warnings: Setting<bool>,
    /// Whether a person is told by bell and notification that something waits for them.
    pub notify: Setting<bool>,
    /// Whether lines are edited with the keys of vi.
    pub vi: Setting<bool>,
    /// What the user should know: keys in files where they are not used, and the like.
    pub warnings: Vec<String>,
    layers: Layers,
    trust: TrustList,
}

impl Settings {
    /// Reads all of it.
    pub fn load(process: &Arc<Process>, options: &Options) -> anyhow::Result<Settings> {
        let flags = options.clone();
        let named = process.here().join(options.root.as_deref().unwrap_or(Path::new("")));
        let root = named.canonicalize().map_err(|error| {
            let named = options.root.as_deref().unwrap_or(process.here());
            UsageError::new(format!("cannot work in {}: {error}", named.display()))
                .hint("name a folder with --root")
        })?;
        let home = process.home().map(Home::path);
        let mut warnings = Vec::new();
        let trust = TrustList::open(home).unwrap_or_else(|error| {
            warnings.push(format!("{error:#}"));
            TrustList::default()
        });
        let mut layers = Layers {
            process: process.clone(),
            dotenv: read_dotenv(process.here(), &trust, &mut warnings)?,
            project: read_project(&root, &trust, &mut warnings)?,
            user: read_user(home)?,
            given: options.given.as_ref().map(read_given).transpose()?,
            rows: Vec::new(),
        };
        let api_base = match flags.api_base {
            Some(address) => {
                Some(value::Value::read(&value::Raw::Word(address.clone())).ok_or_else(|| {
                    UsageError::new(format!("{address} is not an address"))
                        .hint("--api-base http://localhost:11434")
                })?)
            }
            None => None,
        };
        let limits = Limits::default();
        let cut = Truncation::default();
        let page = Page::default();
        Ok(Settings {
            root,
            model_id: layers.find(&key::MODEL_ID, flags.model)?,
            model_api_base: layers.find(&key::MODEL_API_BASE, api_base)?,
            temperature: layers.find(&key::MODEL_TEMPERATURE, flags.temperature.map(Temperature))?,
            max_tokens: layers.find(&key::MODEL_MAX_TOKENS, flags.max_tokens)?,
            context: layers.find(&key::MODEL_CONTEXT, flags.context)?,
            requests_per_minute: layers.find(&key::MODEL_REQUESTS_PER_MINUTE, None)?,
            max_steps: match flags.max_steps {
                Some(steps) => layers.get(&key::AGENT_MAX_STEPS, Some(steps), limits.max_steps)?,
                None => layers.bound(&key::AGENT_MAX_STEPS, limits.max_steps, &mut warnings)?,
            },
            max_depth: layers.bound(&key::AGENT_MAX_DEPTH, limits.max_depth, &mut warnings)?,
            max_agents: layers.bound(&key::AGENT_MAX_AGENTS, limits.max_agents, &mut warnings)?,
            plan: layers.get(&key::AGENT_PLAN, flags.plan, Planning::Never)?,
            instructions: layers.get(&key::AGENT_INSTRUCTIONS, flags.instructions, true)?,
            approve: match flags.approve {
                Some(mode) => layers.get(&key::AGENT_APPROVE, Some(mode), ApproveMode::default())?,
                None => layers.bound(&key::AGENT_APPROVE, ApproveMode::default(), &mut warnings)?,
            },
            memory_enabled: layers.get(&key::MEMORY_ENABLED, flags.memory, false)?,
            memory_embeddings: layers.find(&key::MEMORY_EMBEDDINGS, None)?,
            gate_enabled: layers.get(&key::GATE_ENABLED, None, true)?,
            trace_enabled: layers.get(&key::PHOENIX_ENABLED, flags.trace.enabled, true)?,
            trace_endpoint: {
                let default =
                    "http://localhost:6006/v1/traces".parse().context("the default endpoint is broken")?;
                layers.get(&key::PHOENIX_ENDPOINT, None, default)?
            },
            validation_chars: layers.bound(&key::VALIDATION_MAX_CHARS, cut.text_chars, &mut warnings)?,
            validation_lines: layers.bound(&key::VALIDATION_MAX_LINES, cut.text_lines, &mut warnings)?,
            validation_line_range: layers.bound(
                &key::VALIDATION_MAX_LINE_RANGE,
                page.range,
                &mut warnings,
            )?,
            truncation_chars: layers.bound(&key::TRUNCATION_MAX_CHARS, cut.field_chars, &mut warnings)?,
            truncation_lines: layers.bound(&key::TRUNCATION_MAX_LINES, cut.field_lines, &mut warnings)?,
            truncation_items: layers.bound(&key::TRUNCATION_MAX_LIST_ITEMS, cut.list_items, &mut warnings)?,
            sandbox_image: layers.get(&key::SANDBOX_IMAGE, None, "gimlet-sandbox:latest".to_owned())?,
            sandbox_timeout: layers.bound(
                &key::SANDBOX_TIMEOUT,
                Bounds::default().computation,
                &mut warnings,
            )?,
            sandbox_python: layers.find(&key::SANDBOX_PYTHON, None)?,
            sandbox_python_writes: layers.get(&key::SANDBOX_PYTHON_WRITES, None, false)?,
            sandbox_tests: layers.find(&key::SANDBOX_TESTS, flags.sandbox.validation_tests.clone())?,
            sandbox: flags.sandbox,
            log_level: layers.get(&key::LOG_LEVEL, None, LogLevel::Info)?,
            suppress_warnings: layers.get(&key::SUPPRESS_WARNINGS, None, true)?,
            notify: layers.get(&key::TERMINAL_NOTIFY, None, false)?,
            vi: layers.get(&key::TERMINAL_VI, None, false)?,
            warnings,
            layers,
            trust,
        })
    }

    /// Every setting, for people.
    pub fn rows(&self) -> &[Row] {
        &self.layers.rows
    }

    /// The files that were read: the project's two and the user's.
    pub fn files(&self) -> Vec<Source> {
        let dotenv = self.layers.dotenv.as_ref();
        let dotenv = dotenv.map(|file| Source::Project { path: file.path.clone(), trusted: file.trusted });
        let files = [&self.layers.project, &self.layers.user].into_iter().flatten();
        dotenv.into_iter().chain(files.map(|file| file.source.clone())).collect()
    }

    /// What the process was started with.
    pub fn process(&self) -> &Arc<Process> {
        &self.layers.process
    }

    /// What the user trusts.
    pub fn trust(&self) -> &TrustList {
        &self.trust
    }

    /// A table of the user's and of the project's file, in that order: the later word counts. Whoever reads a
    /// project's table leaves it inert unless [`Source::is_trusted`].
    pub fn section<T: DeserializeOwned>(&self, name: &str) -> anyhow::Result<Vec<Sourced<T>>> {
        debug_assert!(SECTIONS.contains(&name), "a section must be listed");
        let files = [&self.layers.user, &self.layers.project].into_iter().flatten();
        files.filter_map(|file| file.section(name).transpose()).collect()
    }

    /// A table that the starting program brings itself.
    pub fn given<T: DeserializeOwned>(&self, name: &str) -> anyhow::Result<Option<T>> {
        let Some(file) = &self.layers.given else { return Ok(None) };
        Ok(file.section(name)?.map(|part| part.value))
    }

    /// The address of the model server, if anyone names one, and who gets to see keys there.
    pub fn api_base(&self) -> anyhow::Result<Option<Base>> {
        let Some(setting) = &self.model_api_base else { return Ok(None) };
        let url = trusted_address(setting, "--api-base")?;
        Ok(Some(if setting.origin.is_project() { Base::Project(url) } else { Base::User(url) }))
    }

    /// Who names that address.
    pub fn api_base_origin(&self) -> Option<&Origin> {
        self.model_api_base.as_ref().map(|setting| &setting.origin)
    }

    /// Where spans go.
    pub fn trace_endpoint(&self) -> anyhow::Result<Url> {
        trusted_address(&self.trace_endpoint, "--no-trace")
    }

    /// Who says so.
    pub fn trace_origin(&self) -> &Origin {
        &self.trace_endpoint.origin
    }

    /// The image of the Docker sandbox.
    pub fn sandbox_image(&self) -> anyhow::Result<&str> {
        if let Some(spot) = self.sandbox_image.origin.untrusted() {
            return Err(
                needs_trust(spot, &format!("names the sandbox image {}", self.sandbox_image.value)).into()
            );
        }
        Ok(&self.sandbox_image.value)
    }

    /// The interpreter of `--executor venv`, if anyone names one.
    pub fn sandbox_python(&self) -> anyhow::Result<Option<PathBuf>> {
        let Some(setting) = &self.sandbox_python else { return Ok(None) };
        if let Some(spot) = setting.origin.untrusted() {
            return Err(needs_trust(spot, &format!("names the interpreter {}", setting.value)).into());
        }
        Ok(Some(self.root.join(&setting.value)))
    }

    /// Whether code of `--executor venv` may change the project.
    pub fn sandbox_python_writes(&self) -> anyhow::Result<bool> {
        let setting = &self.sandbox_python_writes;
        if let Some(spot) = setting.origin.untrusted().filter(|_| setting.value) {
            return Err(needs_trust(spot, "lets code change the project").into());
        }
        Ok(setting.value)
    }

    /// What a patch must pass beside git's check.
    pub fn patch_tests(&self) -> anyhow::Result<Option<&str>> {
        let Some(setting) = &self.sandbox_tests else { return Ok(None) };
        if let Some(spot) = setting.origin.untrusted() {
            return Err(needs_trust(spot, &format!("runs `{}` with every patch", setting.value)).into());
        }
        Ok(Some(&setting.value))
    }

    /// What holds for any model that says nothing else. Says nothing of addresses.
    pub fn sampling(&self) -> gimlet_models::Settings {
        gimlet_models::Settings {
            temperature: self.temperature.as_ref().map(|setting| setting.value.0),
            max_tokens: self.max_tokens.as_ref().map(|setting| setting.value),
            context: self.context.as_ref().map(|setting| setting.value.get()),
            requests_per_minute: self.requests_per_minute.as_ref().map(|setting| setting.value),
            ..gimlet_models::Settings::default()
        }
    }

    /// The window that the command line names: it holds for every model, whatever its table says.
    pub fn context_flag(&self) -> Option<u32> {
        let named = self.context.as_ref().filter(|setting| matches!(setting.origin, Origin::Flag(_)));
        named.map(|setting| setting.value.get())
    }

    /// What holds for any agent that says nothing else.
    pub fn limits(&self) -> Limits {
        Limits { max_depth: self.max_depth.value, max_agents: self.max_agents.value, ..Limits::default() }
    }

    /// How much tools may return, and how long code may compute.
    pub fn bounds(&self) -> Bounds {
        Bounds {
            page: Page {
                lines: self.truncation_lines.value,
                chars: self.truncation_chars.value,
                range: self.validation_line_range.value,
            },
            truncation: Truncation {
                field_chars: self.truncation_chars.value,
                field_lines: self.truncation_lines.value,
                text_chars: self.validation_chars.value,
                text_lines: self.validation_lines.value,
                list_items: self.truncation_items.value,
                ..Truncation::default()
            },
            computation: self.sandbox_timeout.value,
        }
    }
}

/// What holds for tools and code.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// How much of a file fits one result.
    pub page: Page,
    /// How much of a result a model sees.
    pub truncation: Truncation,
    /// Longest computation in a sandbox.
    pub computation: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            page: Page::default(),
            truncation: Truncation::default(),
            computation: gimlet_python::Limits::default().wall,
        }
    }
}

fn trusted_address(setting: &Setting<Url>, instead: &str) -> anyhow::Result<Url> {
    if let Some(spot) = setting.origin.untrusted()
        && !is_loopback(&setting.value)
    {
        let host = setting.value.host_str().unwrap_or("?");
        return Err(UsageError::new(format!(
            "{spot} names {host}, which is not this machine, and is not trusted"
        ))
        .hint(format!("read it, then `gimlet trust {}`; or say otherwise with {instead}", shown(&spot.path)))
        .into());
    }
    Ok(setting.value.clone())
}

/// The error of a project's file that asks for more than it may.
pub fn needs_trust(spot: &Spot, what: &str) -> UsageError {
    UsageError::new(format!("{spot} {what}, and is not trusted"))
        .hint(format!("read it, then `gimlet trust {}`", shown(&spot.path)))
}

fn read_dotenv(here: &Path, trust: &TrustList, warnings: &mut Vec<String>) -> anyhow::Result<Option<DotEnv>> {
    let path = &here.join(".env");
    if leads_through_link(here, path) {
        warnings.push(format!("{} is a symbolic link, so its settings are not used", shown(path)));
        return Ok(None);
    }
    let Some(bytes) = read_inside(here, path)? else { return Ok(None) };
    let trusted = trust.standing(here, path, &bytes) == Standing::Trusted;
    let lines = dotenv::read(&String::from_utf8_lossy(&bytes));
    let keys = secrets::variables()?;
    for line in lines.iter().filter(|line| !line.value.is_empty()) {
        let spot = Spot { path: path.to_owned(), line: line.number };
        if keys.contains(&line.name) {
            warnings.push(format!(
                "{spot} holds {}, which is not used: keys come from the environment or from keys.toml in the data \
                 directory",
                line.name
            ));
        } else if line.name == "GIMLET_HOME" {
            warnings.push(format!("{spot} sets GIMLET_HOME, which only the environment can"));
        } else if let Some(key) = key::nearest(&line.name, key::ALL.iter().map(|key| key.variable))
            && key != line.name
            && strsim::damerau_levenshtein(key, &line.name) <= 2
            && !key::ALL.iter().any(|key| key.variable == line.name)
        {
            warnings.push(format!("{spot} sets {}, which is no setting; did you mean {key}?", line.name));
        }
    }
    Ok(Some(DotEnv { path: path.to_owned(), trusted, lines }))
}

fn read_project(
    root: &Path,
    trust: &TrustList,
    warnings: &mut Vec<String>,
) -> anyhow::Result<Option<ConfigFile>> {
    let path = root.join(PROJECT_FILE);
    // Its rules for commands hold all the same: they can only tighten.
    if leads_through_link(root, &path) {
        warnings.push(format!("{} is a symbolic link, so its settings are not used", shown(&path)));
        return Ok(None);
    }
    let Some(bytes) = read_inside(root, &path)? else { return Ok(None) };
    let trusted = trust.standing(root, &path, &bytes) == Standing::Trusted;
    ConfigFile::new(Source::Project { path, trusted }, bytes).map(Some)
}

fn read_user(home: Option<&Path>) -> anyhow::Result<Option<ConfigFile>> {
    let Some(path) = home.map(|home| home.join(USER_FILE)) else { return Ok(None) };
    let Some(bytes) = read_small(&path)? else { return Ok(None) };
    ConfigFile::new(Source::User(path), bytes).map(Some)
}

/// The tables of the starting program, as if a file of the user held them.
fn read_given(given: &serde_json::Value) -> anyhow::Result<ConfigFile> {
    let text = toml::to_string(given)
        .map_err(|error| UsageError::new(format!("the given tables cannot be read: {error}")))?;
    ConfigFile::new(Source::User("the starting program".into()), text.into_bytes())
}
