//! The MCP servers of a run: which there are and whose file says so, and starting them. What a project's file names
//! stays off until the user trusts the file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use gimlet::digest::digest;
use gimlet_mcp::config::{Author, Section, ServerConfig, Surroundings, read_json, read_toml, resolve};
use gimlet_mcp::{Ground, McpError, Reaper, Servers, Voice};

use gimlet_config::{
    CodeFile, Process, Settings, Source, Standing, UsageError, leads_through_link, read_inside, read_small,
    shown,
};

use crate::isolation;
use crate::notice::{Notice, Notify};
use crate::script_tools;
use crate::server_code::{TrustedCode, code_of};
use crate::server_start::ServerStarter;

/// Files of a project in the format that other clients read, too.
const PROJECT_FILES: &[&str] = &["mcp.json", ".mcp.json"];

/// The servers that configuration names.
#[derive(Debug, Default)]
pub struct Named {
    /// Those that may be started.
    pub servers: Vec<ServerConfig>,
    /// What each server of the project may run of the project's files.
    pub code: BTreeMap<String, TrustedCode>,
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
    /// The file of the project that it would run and that is not as it was trusted; none if `file` itself is not trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<PathBuf>,
}

impl Inert {
    /// Why it is off, in words.
    pub fn why(&self) -> String {
        let file = shown(&self.file);
        match &self.changed {
            Some(code) => format!("{} is not as it was when {file} was trusted", code.display()),
            None => format!("{file} is not trusted"),
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        format!("read it, then run: gimlet trust {}", shown(&self.file))
    }
}

/// All servers of the files named on the command line, those that the starting program brings itself, the user's
/// configuration and the project's, in this order; the first of a name counts.
pub fn named(settings: &Settings, files: &[PathBuf]) -> anyhow::Result<Named> {
    let mut named = Named::default();
    for file in &expanded(settings, files)? {
        // By its name as well: a link in the project that leads out of it is still the project's word.
        let is_below =
            |file: std::io::Result<PathBuf>| file.is_ok_and(|file| file.starts_with(&settings.root));
        let inside = is_below(file.canonicalize())
            || is_below(std::path::absolute(file).map(|file| without_dots(&file)));
        let read = if inside { read_inside(&settings.root, file)? } else { read_small(file)? };
        let bytes = read.ok_or_else(|| {
            let hint = if script_tools::is_script(file) { "--tools tools.py" } else { "--mcp mcp.json" };
            UsageError::new(format!("there is no file {}", file.display())).hint(hint)
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
        if script_tools::is_script(file) {
            let file = without_dots(&std::path::absolute(file)?);
            let path = file.strip_prefix(&settings.root).unwrap_or(&file).to_owned();
            let pinned = inside.then(|| vec![CodeFile { path, sha256: digest(&bytes) }]);
            named.add_script(settings, &file, &file, &bytes, pinned)?;
            continue;
        }
        named.add(settings, file, &section(file, &bytes)?, author)?;
    }
    if let Some(section) = settings.given::<Section>("mcp")? {
        named.add(settings, &settings.root.join("the starting program"), &section, Author::User)?;
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
    for part in settings.section::<script_tools::Table>("tools")? {
        named.add_scripts(settings, &part.source, &part.value)?;
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

/// The files that are named, with those that a `*` in the name of a Python file stands for.
fn expanded(settings: &Settings, files: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for file in files {
        match file.to_str() {
            Some(word) if script_tools::is_script(file) && word.contains('*') => {
                all.extend(script_tools::files(settings.process().here(), word)?);
            }
            Some(_) | None => all.push(file.clone()),
        }
    }
    Ok(all)
}

/// A path with its `..` taken out by its text alone: the name as somebody wrote it, links not followed.
pub(crate) fn without_dots(path: &Path) -> PathBuf {
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
            let trusted = (author == Author::Project).then(|| TrustedCode {
                file: file.to_owned(),
                files: settings.trust().code(&settings.root, file).to_vec(),
            });
            self.put(settings, file, server, trusted);
        }
        Ok(())
    }

    /// Adds the Python files of a table.
    fn add_scripts(
        &mut self,
        settings: &Settings,
        source: &Source,
        table: &script_tools::Table,
    ) -> anyhow::Result<()> {
        let (naming, root) = (source.path(), &settings.root);
        let base = naming.parent().unwrap_or(Path::new("."));
        for word in &table.files {
            for file in script_tools::files(base, word)? {
                let file = without_dots(&file);
                if !source.is_trusted() {
                    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                    self.inert.push(Inert { name, file: naming.to_owned(), changed: None });
                    continue;
                }
                let (read, pinned) = match source {
                    Source::User(_) => (read_small(&file)?, None),
                    Source::Project { .. } => {
                        (read_inside(root, &file)?, Some(settings.trust().code(root, naming).to_vec()))
                    }
                };
                let missing = || UsageError::new(format!("{}: there is no file {word}", shown(naming)));
                self.add_script(settings, naming, &file, &read.ok_or_else(missing)?, pinned)?;
            }
        }
        Ok(())
    }

    /// Adds a Python file. `pinned` is what was trusted of a project's files; none for the user's own.
    fn add_script(
        &mut self,
        settings: &Settings,
        naming: &Path,
        file: &Path,
        bytes: &[u8],
        pinned: Option<Vec<CodeFile>>,
    ) -> anyhow::Result<()> {
        let author = if pinned.is_some() { Author::Project } else { Author::User };
        let server = script_tools::server(file, &String::from_utf8_lossy(bytes), author)?;
        let trusted = pinned.map(|files| TrustedCode { file: naming.to_owned(), files });
        self.put(settings, naming, server, trusted);
        Ok(())
    }

    /// Adds a server, unless there is one of its name or its code is not as it was trusted.
    fn put(&mut self, settings: &Settings, file: &Path, server: ServerConfig, trusted: Option<TrustedCode>) {
        if self.servers.iter().any(|known| known.name == server.name) {
            self.warnings.push(format!(
                "MCP server `{}` of {} is left out: another file has one of that name",
                server.name,
                shown(file)
            ));
        } else if let Some(changed) =
            trusted.as_ref().and_then(|trusted| trusted.changed(&server.launch, &settings.root))
        {
            self.inert.push(Inert { name: server.name, file: file.to_owned(), changed: Some(changed) });
        } else {
            self.code.extend(trusted.map(|trusted| (server.name.clone(), trusted)));
            self.servers.push(server);
        }
    }

    fn leave_off(&mut self, file: &Path, section: &Section) {
        let inert =
            section.keys().map(|name| Inert { name: name.clone(), file: file.to_owned(), changed: None });
        self.inert.extend(inert);
    }

    /// The files to trust before everything is on.
    pub fn untrusted(&self) -> BTreeSet<&Path> {
        let unknown = self.inert.iter().filter(|inert| inert.changed.is_none());
        unknown.map(|inert| inert.file.as_path()).collect()
    }
}

/// The files of a project that the servers of one of its files run, as they are now.
pub fn code_behind(
    process: &Process,
    root: &Path,
    file: &Path,
    bytes: &[u8],
) -> anyhow::Result<Vec<CodeFile>> {
    // What has no servers has no code behind it either; what is broken is told by whoever uses it.
    let Ok(section) = section(file, bytes) else { return Ok(Vec::new()) };
    let around = Surroundings {
        author: Author::Project,
        base: file.parent().unwrap_or(Path::new(".")),
        variable: &|name| process.var(name).map(str::to_owned),
    };
    let mut found = BTreeSet::new();
    for (name, entry) in section {
        // One whose variables are not set is not started, and asks again once they are.
        if let Ok((servers, _)) = resolve(&Section::from([(name, entry)]), &around) {
            for server in &servers {
                found.extend(code_of(&server.launch, root)?);
            }
        }
    }
    found.extend(scripts_behind(root, file, bytes)?);
    Ok(found.into_iter().collect())
}

/// The Python files that the table `[tools]` of one of a project's files names, as they are now.
fn scripts_behind(root: &Path, file: &Path, bytes: &[u8]) -> anyhow::Result<Vec<CodeFile>> {
    #[derive(serde::Deserialize)]
    struct File {
        #[serde(default)]
        tools: script_tools::Table,
    }
    let Ok(File { tools }) = toml::from_str(&String::from_utf8_lossy(bytes)) else { return Ok(Vec::new()) };
    let base = file.parent().unwrap_or(Path::new("."));
    let mut found = Vec::new();
    for word in &tools.files {
        for script in script_tools::files(base, word)? {
            let script = without_dots(&script);
            let path = script.strip_prefix(root).unwrap_or(&script).to_owned();
            if let Some(bytes) = read_inside(root, &script)? {
                found.push(CodeFile { path, sha256: digest(&bytes) });
            }
        }
    }
    Ok(found)
}

/// What servers are started with. None is looked for where a jailed command can write; one that is named with its path is
/// taken from there.
fn ground(
    settings: &Settings,
    code: BTreeMap<String, TrustedCode>,
    reaper: &Reaper,
    voice: Voice,
) -> anyhow::Result<Ground> {
    let starter = Arc::new(ServerStarter::new(settings, code)?);
    let root = &settings.root;
    let environment = isolation::environment(settings.process()).outside(root);
    let environment: BTreeMap<_, _> =
        environment.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Ok(Ground { environment, cwd: root.clone(), reaper: reaper.clone(), starter: Some(starter), voice })
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
    for inert in named.inert.iter().filter(|inert| inert.changed.is_some()) {
        notify(Notice::Warning(format!(
            "MCP server `{}` is off: {} (hint: {})",
            inert.name,
            inert.why(),
            inert.hint()
        )));
    }
    let ground = ground(settings, named.code, reaper, voice)?;
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
    named: &Named,
    reaper: &Reaper,
) -> anyhow::Result<Vec<gimlet_mcp::HealthRow>> {
    let ground = ground(settings, named.code.clone(), reaper, Voice::Direct(Arc::new(|_: &str| {})))?;
    let checks = named.servers.iter().map(|server| gimlet_mcp::check(server.clone(), &ground));
    Ok(futures_util::future::join_all(checks).await)
}
