//! The MCP servers of a run: which there are and whose file says so, and starting them. What a project's file names
//! stays off until the user trusts the file.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use gimlet::tool::Tool;
use gimlet_mcp::config::{Author, Section, ServerConfig, Surroundings, read_json, read_toml, resolve};
use gimlet_mcp::{Ground, McpError, Reaper, Servers, Voice};

use crate::args::RunOptions;
use crate::config::{Settings, Source, Standing, read_small, shown};
use crate::exit::UsageError;
use crate::style::{DIM, WARNING};
use crate::{isolation, world};

/// Files of a project in the format that other clients read, too.
const PROJECT_FILES: &[&str] = &["mcp.json", ".mcp.json"];

/// The servers that configuration names.
#[derive(Debug, Default)]
pub(crate) struct Named {
    /// Those that may be started.
    pub(crate) servers: Vec<ServerConfig>,
    /// Those that stay off until their file is trusted.
    pub(crate) inert: Vec<Inert>,
    /// What the user should know.
    pub(crate) warnings: Vec<String>,
}

/// A server of a file that the user has not trusted.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Inert {
    pub(crate) name: String,
    pub(crate) file: PathBuf,
}

/// All servers of the files named on the command line, the user's configuration and the project's, in this order; the
/// first of a name counts.
pub(crate) fn named(settings: &Settings, files: &[PathBuf]) -> anyhow::Result<Named> {
    let mut named = Named::default();
    for file in files {
        let bytes = read_small(file)?.ok_or_else(|| {
            UsageError::new(format!("there is no file {}", file.display())).hint("--mcp mcp.json")
        })?;
        let inside = file.canonicalize().is_ok_and(|file| file.starts_with(&settings.root));
        let author = if inside { Author::Project } else { Author::User };
        if inside && settings.trust().standing(file, &bytes) != Standing::Trusted {
            return Err(UsageError::new(format!(
                "{} belongs to the project and is not trusted",
                shown(file)
            ))
            .hint(format!("read it, then run: gimlet trust {}", shown(file)))
            .into());
        }
        named.add(file, &section(file, &bytes)?, author)?;
    }
    for part in settings.section::<Section>("mcp")? {
        let path = part.source.path();
        match &part.source {
            Source::User(_) => named.add(path, &part.value, Author::User)?,
            Source::Project { trusted: true, .. } => named.add(path, &part.value, Author::Project)?,
            Source::Project { trusted: false, .. } => named.leave_off(path, &part.value),
        }
    }
    for file in PROJECT_FILES.iter().map(|name| settings.root.join(name)) {
        let Some(bytes) = read_small(&file)? else { continue };
        match settings.trust().standing(&file, &bytes) {
            Standing::Trusted => named.add(&file, &section(&file, &bytes)?, Author::Project)?,
            // A broken file that nobody trusts is nobody's problem.
            Standing::Changed | Standing::Unknown => {
                if let Ok(section) = section(&file, &bytes) {
                    named.leave_off(&file, &section);
                }
            }
        }
    }
    Ok(named)
}

fn section(file: &Path, bytes: &[u8]) -> anyhow::Result<Section> {
    let text = String::from_utf8_lossy(bytes);
    let toml = file.extension().is_some_and(|extension| extension == "toml");
    let section = if toml { read_toml(&text) } else { read_json(&text) };
    section.map_err(|error| UsageError::new(format!("{}: {error}", shown(file))).into())
}

impl Named {
    fn add(&mut self, file: &Path, section: &Section, author: Author) -> anyhow::Result<()> {
        let around = Surroundings {
            author,
            base: file.parent().unwrap_or(Path::new(".")),
            variable: &|name| std::env::var(name).ok(),
        };
        let (servers, warnings) = resolve(section, &around)
            .map_err(|error| UsageError::new(format!("{}: {error}", shown(file))))?;
        self.warnings.extend(warnings);
        for server in servers {
            if self.servers.iter().any(|known| known.name == server.name) {
                self.warnings.push(format!(
                    "MCP server `{}` of {} is left out: another file has one of that name",
                    server.name,
                    shown(file)
                ));
            } else {
                self.servers.push(server);
            }
        }
        Ok(())
    }

    fn leave_off(&mut self, file: &Path, section: &Section) {
        let inert = section.keys().map(|name| Inert { name: name.clone(), file: file.to_owned() });
        self.inert.extend(inert);
    }

    /// The files to trust before everything is on.
    pub(crate) fn untrusted(&self) -> BTreeSet<&Path> {
        self.inert.iter().map(|inert| inert.file.as_path()).collect()
    }
}

/// What servers are started with. They run outside of the jail, so none is looked for where a jailed command can write; one
/// that is named with its path is taken from there.
pub(crate) fn ground(root: &Path, voice: Voice) -> Ground {
    let environment = isolation::environment().outside(root);
    let environment: BTreeMap<_, _> =
        environment.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Ground { environment, cwd: root.to_owned(), reaper: reaper().clone(), voice }
}

/// Knows every server process of this program, for the moment when it has no time left.
pub(crate) fn reaper() -> &'static Reaper {
    static REAPER: OnceLock<Reaper> = OnceLock::new();
    REAPER.get_or_init(Reaper::default)
}

/// How loudly servers are talked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loudness {
    /// What they say is shown as it comes.
    Shown,
    /// Only what is wrong is shown; what they say goes into the run's events.
    Events,
    /// Only what is wrong is shown.
    Silent,
}

/// How loudly servers of a run are talked about.
pub(crate) fn loudness(options: &RunOptions) -> Loudness {
    if options.json {
        Loudness::Events
    } else if options.quiet {
        Loudness::Silent
    } else {
        Loudness::Shown
    }
}

/// Servers that were started and are closed when the program ends.
static OPEN: Mutex<Vec<Arc<Servers>>> = Mutex::new(Vec::new());

/// Starts the servers of the configuration and returns their tools. They live until [`close_all`].
pub(crate) async fn start(
    settings: &Settings,
    files: &[PathBuf],
    loudness: Loudness,
) -> anyhow::Result<Vec<Arc<dyn Tool>>> {
    let named = named(settings, files)?;
    let mut stderr = crate::out::stderr();
    for warning in &named.warnings {
        writeln!(stderr, "{WARNING}warning:{WARNING:#} {warning}")?;
    }
    if loudness == Loudness::Shown {
        for file in named.untrusted() {
            let file = shown(file);
            writeln!(
                stderr,
                "{DIM}the MCP servers of {file} are off; to use them: gimlet trust {file}{DIM:#}"
            )?;
        }
    }
    if named.servers.is_empty() {
        return Ok(Vec::new());
    }
    let voice = match loudness {
        Loudness::Shown => Voice::Direct(Arc::new(|said: &str| {
            // Nobody is left to tell when this fails.
            let _ = writeln!(crate::out::stderr(), "{DIM}· {said}{DIM:#}");
        })),
        Loudness::Events => Voice::Events,
        Loudness::Silent => Voice::Direct(Arc::new(|_: &str| {})),
    };
    let ground = ground(&settings.root, voice);
    let stop = world::interruptible()?;
    let servers = tokio::select! {
        biased;
        () = stop.cancelled() => {
            reaper().kill_all();
            std::process::exit(130);
        }
        servers = Servers::start(named.servers, &ground) => servers.map_err(usage)?,
    };
    for warning in servers.warnings() {
        writeln!(stderr, "{WARNING}warning:{WARNING:#} {warning}")?;
    }
    let servers = Arc::new(servers);
    OPEN.lock().unwrap_or_else(PoisonError::into_inner).push(servers.clone());
    Ok(servers.tools())
}

/// Closes every server that was started. The last thing the program does.
pub(crate) async fn close_all() {
    let open = std::mem::take(&mut *OPEN.lock().unwrap_or_else(PoisonError::into_inner));
    for servers in open {
        servers.close().await;
    }
}

fn usage(error: McpError) -> anyhow::Error {
    UsageError::new(error.to_string()).hint(error.hint()).into()
}

/// How the servers of the configuration are, side by side.
pub(crate) async fn health(settings: &Settings, servers: Vec<ServerConfig>) -> Vec<gimlet_mcp::HealthRow> {
    let ground = ground(&settings.root, Voice::Direct(Arc::new(|_: &str| {})));
    futures_util::future::join_all(servers.into_iter().map(|server| gimlet_mcp::check(server, &ground))).await
}
