//! The MCP servers of a run: which there are and whose file says so, and starting them. What a project's file names
//! stays off until the user trusts the file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use gimlet_mcp::config::{Author, Section, ServerConfig, Surroundings, read_json, read_toml, resolve};
use gimlet_mcp::{Ground, McpError, Reaper, Servers, Voice};

use gimlet_config::{
    Settings, Source, Standing, UsageError, leads_through_link, read_inside, read_small, shown,
};

use crate::isolation;
use crate::notice::{Notice, Notify};

/// Files of a project in the format that other clients read, too.
const PROJECT_FILES: &[&str] = &["mcp.json", ".mcp.json"];

/// The servers that configuration names.
#[derive(Debug, Default)]
pub struct Named {
    /// Those that may be started.
    pub servers: Vec<ServerConfig>,
    /// Those that stay off until their file is trusted.
    pub inert: Vec<Inert>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// A server of a file that the user has not trusted.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Inert {
    /// The server's name.
    pub name: String,
    /// The file that names it.
    pub file: PathBuf,
}

/// All servers of the files named on the command line, the user's configuration and the project's, in this order; the
/// first of a name counts.
pub fn named(settings: &Settings, files: &[PathBuf]) -> anyhow::Result<Named> {
    let mut named = Named::default();
    for file in files {
        // By its name as well: a link in the project that leads out of it is still the project's word.
        let is_below =
            |file: std::io::Result<PathBuf>| file.is_ok_and(|file| file.starts_with(&settings.root));
        let inside = is_below(file.canonicalize())
            || is_below(std::path::absolute(file).map(|file| without_dots(&file)));
        let read = if inside { read_inside(&settings.root, file)? } else { read_small(file)? };
        let bytes = read.ok_or_else(|| {
            UsageError::new(format!("there is no file {}", file.display())).hint("--mcp mcp.json")
        })?;
        let author = if inside { Author::Project } else { Author::User };
        if inside && settings.trust().standing(&settings.root, file, &bytes) != Standing::Trusted {
            return Err(UsageError::new(format!(
                "{} belongs to the project and is not trusted",
                shown(file)
            ))
            .hint(format!("read it, then run: gimlet trust {}", shown(file)))
            .into());
        }
        named.add(settings, file, &section(file, &bytes)?, author)?;
    }
    for part in settings.section::<Section>("mcp")? {
        let path = part.source.path();
        match &part.source {
            Source::User(_) => named.add(settings, path, &part.value, Author::User)?,
            Source::Project { trusted: true, .. } => {
                named.add(settings, path, &part.value, Author::Project)?
            }
            Source::Project { trusted: false, .. } => named.leave_off(path, &part.value),
        }
    }
    for file in PROJECT_FILES.iter().map(|name| settings.root.join(name)) {
        if leads_through_link(&settings.root, &file) {
            let name = shown(&file);
            named.warnings.push(format!("{name} is a symbolic link, so its MCP servers are not used"));
            continue;
        }
        let Some(bytes) = read_inside(&settings.root, &file)? else { continue };
        match settings.trust().standing(&settings.root, &file, &bytes) {
            Standing::Trusted => named.add(settings, &file, &section(&file, &bytes)?, Author::Project)?,
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

/// A path with its `..` taken out by its text alone: the name as somebody wrote it, links not followed.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

fn section(file: &Path, bytes: &[u8]) -> anyhow::Result<Section> {
    let text = String::from_utf8_lossy(bytes);
    let toml = file.extension().is_some_and(|extension| extension == "toml");
    let section = if toml { read_toml(&text) } else { read_json(&text) };
    section.map_err(|error| UsageError::new(format!("{}: {error}", shown(file))).into())
}

impl Named {
    fn add(
        &mut self,
        settings: &Settings,
        file: &Path,
        section: &Section,
        author: Author,
    ) -> anyhow::Result<()> {
        let around = Surroundings {
            author,
            base: file.parent().unwrap_or(Path::new(".")),
            variable: &|name| settings.process().var(name).map(str::to_owned),
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
    pub fn untrusted(&self) -> BTreeSet<&Path> {
        self.inert.iter().map(|inert| inert.file.as_path()).collect()
    }
}

/// What servers are started with. They run outside of the jail, so none is looked for where a jailed command can write; one
/// that is named with its path is taken from there.
fn ground(settings: &Settings, reaper: &Reaper, voice: Voice) -> Ground {
    let root = &settings.root;
    let environment = isolation::environment(settings.process()).outside(root);
    let environment: BTreeMap<_, _> =
        environment.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Ground { environment, cwd: root.clone(), reaper: reaper.clone(), voice }
}

/// Where what servers say goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ServerSpeech {
    /// To whoever opened the runtime, as notices.
    #[default]
    Notices,
    /// Into the events of the run that uses them.
    Events,
}

/// Starts the servers of the configuration.
pub(crate) async fn start(
    settings: &Settings,
    files: &[PathBuf],
    reaper: &Reaper,
    notify: &Notify,
    speech: ServerSpeech,
) -> anyhow::Result<Servers> {
    let named = named(settings, files)?;
    for warning in &named.warnings {
        notify(Notice::Warning(warning.clone()));
    }
    for file in named.untrusted() {
        let file = shown(file);
        notify(Notice::Detail(format!(
            "the MCP servers of {file} are off; to use them: gimlet trust {file}"
        )));
    }
    let voice = match speech {
        ServerSpeech::Events => Voice::Events,
        ServerSpeech::Notices => {
            let notify = notify.clone();
            Voice::Direct(Arc::new(move |said: &str| notify(Notice::Server(said.to_owned()))))
        }
    };
    let ground = ground(settings, reaper, voice);
    let servers = Servers::start(named.servers, &ground).await.map_err(usage)?;
    for warning in servers.warnings() {
        notify(Notice::Warning(warning.clone()));
    }
    Ok(servers)
}

fn usage(error: McpError) -> anyhow::Error {
    UsageError::new(error.to_string()).hint(error.hint()).into()
}

/// How the servers of the configuration are, side by side.
pub async fn health(
    settings: &Settings,
    servers: Vec<ServerConfig>,
    reaper: &Reaper,
) -> Vec<gimlet_mcp::HealthRow> {
    let ground = ground(settings, reaper, Voice::Direct(Arc::new(|_: &str| {})));
    futures_util::future::join_all(servers.into_iter().map(|server| gimlet_mcp::check(server, &ground))).await
}
