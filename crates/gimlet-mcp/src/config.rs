//! Servers as configuration names them: `[mcp.NAME]` of a `gimlet.toml`, or `mcpServers` of the `mcp.json` that other
//! clients read, too. Raw entries become [`ServerConfig`] once; nothing behind it looks at keys again.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gimlet::command::{Network, Permissions, Profile};
use serde::Deserialize;
use serde_json::Value;

/// A server, ready to be started.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerConfig {
    /// Its name; the first half of its tools' names.
    pub name: String,
    /// How to reach it.
    pub launch: Launch,
    /// Tools it must offer; without them no run starts.
    pub required: Vec<String>,
    /// Which of its tools are offered.
    pub filter: Filter,
    /// Whether what it says about its own tools is believed.
    pub hints: Hints,
    /// What a lasting yes covers.
    pub remember: Remember,
    /// Which protocol it speaks.
    pub protocol: Protocol,
    /// The jail around its process, and what it may do in there; none for the user's own servers unless they ask for one.
    pub jail: Option<Permissions>,
    /// Longest wait for it to be ready.
    pub connect_timeout: Duration,
    /// Longest wait for an answer or a sign of progress.
    pub call_timeout: Duration,
}

/// How a server is reached.
#[derive(Clone, PartialEq)]
pub enum Launch {
    /// A program that is started and spoken to over its standard input and output.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables beside the allowed ones.
        env: BTreeMap<String, String>,
        /// Where it runs.
        cwd: Option<PathBuf>,
    },
    /// A server somebody else runs.
    Remote {
        /// Its address.
        url: String,
        /// Headers of every request.
        headers: BTreeMap<String, String>,
        /// The way it speaks HTTP.
        wire: HttpWire,
    },
}

// Values of variables and headers may be secret.
impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Launch::Stdio { command, args, env, cwd } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", args)
                .field("env", &env.keys().collect::<Vec<_>>())
                .field("cwd", cwd)
                .finish(),
            Launch::Remote { url, headers, wire } => f
                .debug_struct("Remote")
                .field("url", url)
                .field("headers", &headers.keys().collect::<Vec<_>>())
                .field("wire", wire)
                .finish(),
        }
    }
}

impl fmt::Display for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Launch::Stdio { command, args, .. } => {
                write!(f, "{command}")?;
                args.iter().try_for_each(|arg| write!(f, " {arg}"))
            }
            // A query may hold a key.
            Launch::Remote { url, .. } => f.write_str(url.split(['?', '#']).next().unwrap_or(url)),
        }
    }
}

/// How a server speaks HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpWire {
    /// Streamable HTTP, and the older way where a server does not know it.
    Detect,
    /// Streamable HTTP.
    Streamable,
    /// The older pair of an event stream and a place to post to.
    Sse,
}

/// Which tools of a server are offered: those of the first list, without those of the second. `*` stands for any
/// text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// None means all.
    pub allow: Option<Vec<String>>,
    /// Wins over `allow`.
    pub deny: Vec<String>,
}

impl Filter {
    /// Whether a tool is offered.
    pub fn admits(&self, tool: &str) -> bool {
        let among = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, tool));
        self.allow.as_deref().is_none_or(among) && !among(&self.deny)
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(part) = last.replace(part) {
            let Some(at) = rest.find(part) else { return false };
            rest = &rest[at + part.len()..];
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

/// Whether a server's own word about a tool (`readOnlyHint`) counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hints {
    /// No: every call asks.
    Ignored,
    /// Yes, because the user said so: a tool that says it only reads does not ask.
    Believed,
}

/// What a yes "for the session" or "always" covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Remember {
    /// The tool with these very arguments.
    #[default]
    Call,
    /// The tool with any arguments, as long as its definition stays the same.
    Tool,
}

/// Which revisions of the protocol are spoken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Protocol {
    /// The newest that both sides know.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// With a handshake.
    #[serde(rename = "2025-11-25")]
    Handshake,
    /// Without one: every request says who asks.
    #[serde(rename = "2026-07-28")]
    Discover,
}

/// Who wrote an entry; decides what it may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// The user, in their own configuration or a file of their own.
    User,
    /// Whoever wrote the project.
    Project,
}

/// Why a configuration cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file is not what it should be.
    #[error("{0}")]
    Syntax(String),
    /// An entry makes no sense.
    #[error("MCP server `{server}`: {problem}")]
    Entry {
        /// Whose.
        server: String,
        /// What is wrong.
        problem: String,
    },
}

/// An entry as it is written, in either format.
#[derive(Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Entry {
    /// `stdio`, `http` (also `streamable-http`) or `sse`.
    #[serde(rename = "type", alias = "transport")]
    kind: Option<String>,
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    #[serde(alias = "serverUrl", alias = "httpUrl")]
    url: Option<String>,
    headers: BTreeMap<String, String>,
    #[serde(alias = "requiredTools")]
    required: Vec<String>,
    #[serde(alias = "allowedTools", alias = "includeTools")]
    allow: Option<Vec<String>>,
    #[serde(alias = "excludeTools")]
    deny: Vec<String>,
    trusted: bool,
    remember: Remember,
    protocol: Protocol,
    jail: Option<bool>,
    network: bool,
    write: bool,
    #[serde(alias = "connectTimeout")]
    connect_timeout: Option<f64>,
    #[serde(alias = "callTimeout")]
    call_timeout: Option<f64>,
    disabled: bool,
    /// Keys this program does not know: a mistake in its own file, somebody else's business in a shared one.
    #[serde(flatten)]
    unknown: BTreeMap<String, Value>,
}

// Values of variables and headers may be secret.
impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("command", &self.command)
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// The table `[mcp]` of a `gimlet.toml`.
pub type Section = BTreeMap<String, Entry>;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Reads a standard `mcp.json`: `{"mcpServers": {NAME: {…}}}`. Keys of other clients are left alone.
pub fn read_json(text: &str) -> Result<Section, ConfigError> {
    #[derive(Deserialize)]
    struct File {
        #[serde(rename = "mcpServers", alias = "servers")]
        servers: Option<Section>,
    }
    let file: File = serde_json::from_str(text).map_err(|error| ConfigError::Syntax(error.to_string()))?;
    let mut servers = file.servers.ok_or_else(|| ConfigError::Syntax("it has no `mcpServers`".into()))?;
    for entry in servers.values_mut() {
        entry.unknown.clear();
    }
    Ok(servers)
}

/// Reads the table `[mcp]` of a file in TOML.
pub fn read_toml(text: &str) -> Result<Section, ConfigError> {
    #[derive(Deserialize)]
    struct File {
        #[serde(default)]
        mcp: Section,
    }
    let file: File = toml::from_str(text).map_err(|error| ConfigError::Syntax(error.to_string()))?;
    Ok(file.mcp)
}

/// What entries are read against.
pub struct Surroundings<'a> {
    /// Who wrote them.
    pub author: Author,
    /// The folder that relative paths start from.
    pub base: &'a Path,
    /// Variables that `${NAME}` stands for.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

/// The servers of a section that are not switched off, and what was ignored.
pub fn resolve(
    section: &Section,
    around: &Surroundings<'_>,
) -> Result<(Vec<ServerConfig>, Vec<String>), ConfigError> {
    let mut warnings = Vec::new();
    let mut servers = Vec::new();
    for (name, entry) in section {
        let wrong = |problem: String| ConfigError::Entry { server: name.clone(), problem };
        if name.is_empty() || name.len() > 64 || name.chars().any(char::is_control) {
            return Err(wrong("its name must have 1 to 64 characters".into()));
        }
        if let Some(key) = entry.unknown.keys().next() {
            return Err(wrong(format!("there is no key `{key}`")));
        }
        if entry.disabled {
            continue;
        }
        if entry.trusted && around.author == Author::Project {
            warnings.push(format!(
                "`trusted` of MCP server `{name}` is ignored: only the user's own configuration can say it"
            ));
        }
        warnings.extend(entry.without_effect(name, around.author));
        servers.push(entry.resolve(name, around).map_err(wrong)?);
    }
    Ok((servers, warnings))
}

impl Entry {
    fn resolve(&self, name: &str, around: &Surroundings<'_>) -> Result<ServerConfig, String> {
        let hints =
            if self.trusted && around.author == Author::User { Hints::Believed } else { Hints::Ignored };
        Ok(ServerConfig {
            name: name.to_owned(),
            launch: self.launch(around)?,
            required: self.required.clone(),
            filter: Filter { allow: self.allow.clone(), deny: self.deny.clone() },
            hints,
            // A project may not widen what a yes means.
            remember: if around.author == Author::User { self.remember } else { Remember::Call },
            protocol: self.protocol,
            jail: self.jail(around.author),
            connect_timeout: seconds("connect_timeout", self.connect_timeout, CONNECT_TIMEOUT)?,
            call_timeout: seconds("call_timeout", self.call_timeout, CALL_TIMEOUT)?,
        })
    }

    /// A project's server is always confined: a jailed command could have written the code it runs.
    fn jail(&self, author: Author) -> Option<Permissions> {
        let is_jailed = match author {
            Author::Project => true,
            Author::User => self.jail == Some(true),
        };
        (is_jailed && self.command.is_some()).then(|| Permissions {
            profile: if self.write { Profile::WorkspaceWrite } else { Profile::ReadOnly },
            network: if self.network { Network::Allowed } else { Network::Blocked },
            ..Permissions::default()
        })
    }

    /// Keys about the jail that change nothing where they stand.
    fn without_effect(&self, name: &str, author: Author) -> Option<String> {
        match author {
            Author::Project if self.jail == Some(false) => Some(format!(
                "`jail = false` of MCP server `{name}` is ignored: only the user's own configuration can say it"
            )),
            Author::User if (self.network || self.write) && self.jail != Some(true) => Some(format!(
                "`network` and `write` of MCP server `{name}` have no effect without `jail = true`"
            )),
            Author::Project | Author::User => None,
        }
    }

    fn launch(&self, around: &Surroundings<'_>) -> Result<Launch, String> {
        let expand = |text: &str| expand(text, around.variable);
        let expand_all = |map: &BTreeMap<String, String>| {
            map.iter().map(|(key, value)| Ok((key.clone(), expand(value)?))).collect::<Result<_, String>>()
        };
        let wire = match self.kind.as_deref() {
            None => None,
            Some("stdio") if self.url.is_some() => return Err("a `stdio` server has no `url`".into()),
            Some("stdio") => None,
            Some("http" | "streamable-http" | "streamable_http" | "streamableHttp") => {
                Some(HttpWire::Streamable)
            }
            Some("sse") => Some(HttpWire::Sse),
            Some(other) => return Err(format!("`{other}` is no type; use stdio, http or sse")),
        };
        match (&self.command, &self.url) {
            (Some(_), Some(_)) => Err("it has both a `command` and a `url`".into()),
            (None, None) => Err("it needs a `command` or a `url`".into()),
            (Some(_), None) if wire.is_some() => Err("a server with a `command` is of type stdio".into()),
            (Some(command), None) => Ok(Launch::Stdio {
                command: expand(command)?,
                args: self.args.iter().map(|arg| expand(arg)).collect::<Result<_, _>>()?,
                env: expand_all(&self.env)?,
                cwd: match &self.cwd {
                    Some(cwd) => Some(around.base.join(expand(cwd)?)),
                    None => None,
                },
            }),
            (None, Some(url)) => {
                let url = expand(url)?;
                let parsed =
                    reqwest::Url::parse(&url).map_err(|error| format!("its `url` is none: {error}"))?;
                if !matches!(parsed.scheme(), "http" | "https") {
                    return Err("its `url` must begin with http:// or https://".into());
                }
                let headers = expand_all(&self.headers)?;
                Ok(Launch::Remote { url, headers, wire: wire.unwrap_or(HttpWire::Detect) })
            }
        }
    }
}

fn seconds(key: &str, given: Option<f64>, default: Duration) -> Result<Duration, String> {
    match given {
        None => Ok(default),
        Some(value) if value > 0.0 && value <= 86_400.0 => Ok(Duration::from_secs_f64(value)),
        Some(_) => Err(format!("`{key}` must be a number of seconds above 0 and at most a day")),
    }
}

/// Puts values in the place of `${NAME}` and `${NAME:-default}`.
fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        let Some(end) = after.find('}') else { break };
        expanded.push_str(before);
        let inner = after[..end].trim_start_matches("env:");
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        match (variable(name).filter(|value| !value.is_empty()), default) {
            (Some(value), _) => expanded.push_str(&value),
            (None, Some(default)) => expanded.push_str(default),
            (None, None) => return Err(format!("it uses ${{{name}}}, which is not set")),
        }
        rest = &after[end + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str) -> Option<String> {
        (name == "TOKEN").then(|| "s3cret".into())
    }

    fn around(author: Author) -> Surroundings<'static> {
        Surroundings { author, base: Path::new("/p"), variable: &variable }
    }

    fn one(toml: &str, author: Author) -> Result<ServerConfig, String> {
        let section = read_toml(toml).map_err(|error| error.to_string())?;
        let (servers, _) = resolve(&section, &around(author)).map_err(|error| error.to_string())?;
        servers.into_iter().next().ok_or_else(|| "none".into())
    }

    #[test]
    fn both_formats_say_the_same() {
        let toml = "[mcp.memory]\ncommand = \"python\"\nargs = [\"-m\", \"server\"]\nenv = { KEY = \"${TOKEN}\" }\n\
                    required = [\"recall\"]\n";
        let json = r#"{"mcpServers": {"memory": {"command": "python", "args": ["-m", "server"], "alwaysAllow": [],
                       "env": {"KEY": "${TOKEN}"}, "requiredTools": ["recall"]}}}"#;
        let from_toml = one(toml, Author::User).unwrap();
        let (from_json, _) = resolve(&read_json(json).unwrap(), &around(Author::User)).unwrap();
        assert_eq!(std::slice::from_ref(&from_toml), &from_json[..]);
        let Launch::Stdio { env, .. } = &from_toml.launch else { panic!() };
        assert_eq!(env["KEY"], "s3cret");
        assert!(!format!("{from_toml:?}").contains("s3cret"), "no secret is shown");
    }

    #[test]
    fn a_project_cannot_trust_itself() {
        let toml = "[mcp.x]\ncommand = \"x\"\ntrusted = true\nremember = \"tool\"\n";
        let section = read_toml(toml).unwrap();
        let (servers, warnings) = resolve(&section, &around(Author::Project)).unwrap();
        assert_eq!((servers[0].hints, servers[0].remember), (Hints::Ignored, Remember::Call));
        assert!(warnings[0].contains("`trusted` of MCP server `x` is ignored"), "{warnings:?}");
        assert_eq!(one(toml, Author::User).unwrap().hints, Hints::Believed);
    }

    #[test]
    fn mistakes_are_named() {
        for (toml, problem) in [
            ("[mcp.x]\n", "MCP server `x`: it needs a `command` or a `url`"),
            ("[mcp.x]\ncomand = \"x\"\n", "there is no key `comand`"),
            ("[mcp.x]\ncommand = \"x\"\nurl = \"http://a\"\n", "both a `command` and a `url`"),
            ("[mcp.x]\nurl = \"ftp://a\"\n", "must begin with http"),
            ("[mcp.x]\nurl = \"http://a\"\ntype = \"ws\"\n", "`ws` is no type"),
            ("[mcp.x]\ncommand = \"${NOPE}\"\n", "it uses ${NOPE}, which is not set"),
            ("[mcp.x]\ncommand = \"x\"\ncall_timeout = -1\n", "`call_timeout` must be a number of seconds"),
            ("[mcp.x]\ncommand = \"x\"\nprotocol = \"1999\"\n", "unknown variant `1999`"),
        ] {
            let error = one(toml, Author::User).unwrap_err();
            assert!(error.contains(problem), "{toml}: {error}");
        }
        assert!(read_json("{}").unwrap_err().to_string().contains("no `mcpServers`"));
    }

    #[test]
    fn variables_have_defaults() {
        assert_eq!(expand("a${TOKEN}b${X:-y}${env:TOKEN}", &variable).unwrap(), "as3cretbys3cret");
        assert_eq!(expand("$HOME ${", &variable).unwrap(), "$HOME ${");
    }

    #[test]
    fn filters_know_stars() {
        let filter =
            Filter { allow: Some(vec!["get_*".into(), "*list*".into()]), deny: vec!["get_secret".into()] };
        for (tool, admitted) in
            [("get_x", true), ("get_secret", false), ("a_list_b", true), ("set_x", false), ("get_", true)]
        {
            assert_eq!(filter.admits(tool), admitted, "{tool}");
        }
        assert!(
            matches("a*b*c", "aXbYc") && !matches("a*b*c", "aXc") && matches("*", "") && !matches("a", "ab")
        );
    }
}
