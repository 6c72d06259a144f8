//! The parent's side: sessions as [`gimlet::cell`] knows them, each a worker process that may die.

mod allowance;
mod death;
mod nest;
mod process;
mod record;
mod session;
mod stable;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::cell::{Executor, ExecutorError, Session, SessionSpec};
use gimlet::worker::Launcher;
use serde_json::{Value, json};

use self::session::PythonSession;
use self::stable::{Source, Stable};
use crate::imports;
use crate::limits::Limits;
use crate::protocol::{Start, ToolShape};

/// How to start a worker.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program, by its absolute path.
    pub path: PathBuf,
    /// Its arguments, such as the hidden subcommand.
    pub args: Vec<OsString>,
}

/// What every session of an executor has in common.
#[derive(Debug, Clone)]
pub struct PythonConfig {
    /// How to start a worker.
    pub program: Program,
    /// What a session may spend.
    pub limits: Limits,
    /// Modules the code may import; a name covers its submodules.
    pub imports: Vec<String>,
    /// Where workers come from.
    pub warmth: Warmth,
}

/// Where workers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warmth {
    /// Each is launched when it is needed: nothing runs before the first session.
    Cold,
    /// A process that has loaded what most code imports forks them: sessions start at once and share its memory.
    Warm,
}

impl PythonConfig {
    /// The defaults with this worker.
    pub fn new(program: Program) -> Self {
        let imports = imports::DEFAULT.iter().map(|name| (*name).to_owned()).collect();
        PythonConfig { program, limits: Limits::default(), imports, warmth: Warmth::Cold }
    }
}

/// Runs Python in jailed worker processes.
pub struct PythonExecutor {
    config: PythonConfig,
    stable: Arc<Stable>,
}

impl PythonExecutor {
    /// An executor; nothing is started yet.
    pub fn new(config: PythonConfig) -> Self {
        let source = Source::Program(config.program.clone(), config.warmth);
        PythonExecutor { config, stable: Arc::new(Stable::new(source)) }
    }

    /// An executor whose workers someone else launches. What they can import is theirs to say.
    pub fn launched_by(launcher: Arc<dyn Launcher>, limits: Limits) -> Self {
        let program = Program { path: PathBuf::new(), args: Vec::new() };
        let config = PythonConfig { limits, ..PythonConfig::new(program) };
        PythonExecutor { config, stable: Arc::new(Stable::new(Source::Launcher(launcher))) }
    }

    /// Starts what a warm executor needs now rather than with the first session. Needs a runtime.
    pub fn warm_up(&self) {
        self.stable.nest();
    }
}

impl Executor for PythonExecutor {
    fn settings(&self) -> Value {
        if let Some(kind) = self.stable.kind() {
            return json!({ "kind": kind });
        }
        match imports::changes(&self.config.imports) {
            changes if changes.is_empty() => Value::Null,
            changes => json!({ "imports": changes }),
        }
    }

    fn told(&self) -> &'static str {
        self.stable.told()
    }

    fn start<'a>(&'a self, spec: &'a SessionSpec) -> BoxFuture<'a, Result<Box<dyn Session>, ExecutorError>> {
        async move {
            let tools = spec
                .tools
                .iter()
                .map(|tool| ToolShape {
                    name: tool.name.clone(),
                    description: tool.description.clone(),
                    input: tool.input.clone(),
                })
                .collect();
            let start = Start {
                tools,
                seed: spec.seed,
                epoch_ms: spec.epoch_ms,
                imports: self.config.imports.clone(),
                limits: self.config.limits.clone(),
            };
            let session = PythonSession::start(Arc::clone(&self.stable), start).await?;
            Ok(Box::new(session) as Box<dyn Session>)
        }
        .boxed()
    }
}
