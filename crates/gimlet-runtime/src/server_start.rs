//! How MCP servers are started: a project's in a jail and with no other code than was trusted, the user's own as they are.
//! Each has a supervisor, which ends whatever the server leaves behind.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use gimlet::command::{Environment, Permissions};
use gimlet_config::options::JailOptions;
use gimlet_config::{Process, Settings, hint_of, shown};
use gimlet_mcp::config::ServerConfig;
use gimlet_mcp::{NotStarted, Program, Starter};
use gimlet_sandbox::jail::{self, JailConfig, Server};

use crate::isolation;
use crate::server_code::TrustedCode;

/// How to have a server without a jail.
const OWN: &str = "copy its entry to your own configuration to run it without a jail";

/// Starts the servers of one project.
pub(crate) struct ServerStarter {
    process: Arc<Process>,
    options: JailOptions,
    /// The project, links resolved.
    root: PathBuf,
    supervisor: jail::Program,
    /// What the project's servers may run of its files.
    code: BTreeMap<String, TrustedCode>,
    /// Looked for when the first server needs one, since that takes a while.
    jail: OnceLock<Result<JailConfig, NotStarted>>,
}

impl ServerStarter {
    pub(crate) fn new(settings: &Settings, code: BTreeMap<String, TrustedCode>) -> anyhow::Result<Self> {
        Ok(ServerStarter {
            process: settings.process().clone(),
            options: settings.sandbox.jail.clone(),
            root: settings.root.canonicalize().unwrap_or_else(|_| settings.root.clone()),
            supervisor: isolation::supervisor(&settings.root)?,
            code,
            jail: OnceLock::new(),
        })
    }

    fn jail(&self) -> Result<&JailConfig, NotStarted> {
        let found = self.jail.get_or_init(|| {
            isolation::server_jail(&self.process, &self.root, &self.options).map_err(|error| NotStarted {
                reason: format!("a project's server runs in a jail, and there is none here: {error}"),
                hint: match hint_of(&error) {
                    Some(hint) => format!("{hint}, or {OWN}"),
                    None => OWN.into(),
                },
            })
        });
        found.as_ref().map_err(Clone::clone)
    }

    fn jailed(&self, program: Program, permissions: Permissions) -> Result<Program, NotStarted> {
        let config = self.jail()?;
        let cwd = program.cwd.canonicalize().unwrap_or_else(|_| program.cwd.clone());
        if !cwd.starts_with(&self.root) {
            return Err(NotStarted {
                reason: format!("its `cwd` {} is outside of the project, where its jail ends", cwd.display()),
                hint: "name a folder of the project".into(),
            });
        }
        let environment = program.environment.iter();
        let server = Server {
            argv: words(&program),
            root: self.root.clone(),
            cwd: cwd.clone(),
            environment: environment.fold(Environment::default(), |all, (name, value)| all.with(name, value)),
            permissions,
        };
        let (argv, environment) = jail::jailed_server(config, server).map_err(|error| NotStarted {
            reason: format!("its jail cannot be built: {error}"),
            hint: "see `gimlet sandbox`".into(),
        })?;
        let environment =
            environment.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Ok(from_words(argv, Program { cwd, environment, ..program }))
    }
}

impl Starter for ServerStarter {
    fn prepare(&self, server: &ServerConfig, program: Program) -> Result<Program, NotStarted> {
        if let Some(trusted) = self.code.get(&server.name)
            && let Some(changed) = trusted.changed(&server.launch, &self.root)
        {
            let file = shown(&trusted.file);
            return Err(NotStarted {
                reason: format!("{} is not as it was when {file} was trusted", changed.display()),
                hint: format!("read it, then run: gimlet trust {file}"),
            });
        }
        match server.jail {
            Some(permissions) => self.jailed(program, permissions),
            None => Ok(from_words(jail::supervised(&self.supervisor, words(&program)), program)),
        }
    }
}

fn words(program: &Program) -> Vec<OsString> {
    std::iter::once(&program.command).chain(&program.args).cloned().collect()
}

/// The same surroundings for other words.
fn from_words(words: Vec<OsString>, program: Program) -> Program {
    let mut words = words.into_iter();
    Program { command: words.next().unwrap_or_default(), args: words.collect(), ..program }
}
