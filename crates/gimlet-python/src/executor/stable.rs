//! Where workers come from: forked by a nest, or launched one by one.

use std::sync::{Arc, Mutex, PoisonError};

use gimlet::cell::ExecutorError;
use gimlet::worker::Launcher;

use super::nest::Nest;
use super::process::Worker;
use super::{Program, Warmth};
use crate::protocol::Start;

/// Gives workers of one program.
pub(crate) struct Stable {
    source: Source,
    /// Started with the first worker; ends when the last session and the stable are dropped.
    nest: Mutex<Option<Nest>>,
}

/// Who makes workers.
pub(crate) enum Source {
    /// This process, from a program.
    Program(Program, Warmth),
    /// Someone else.
    Launcher(Arc<dyn Launcher>),
}

impl Stable {
    pub(crate) fn new(source: Source) -> Self {
        Stable { source, nest: Mutex::new(None) }
    }

    /// Whether the same code with the same results always does the same here. Elsewhere a replay that does not is for a
    /// person to look at.
    pub(crate) fn repeats(&self) -> bool {
        match &self.source {
            Source::Program(..) => true,
            Source::Launcher(_) => false,
        }
    }

    /// What kind of place workers live in that are not ours.
    pub(crate) fn kind(&self) -> Option<&'static str> {
        match &self.source {
            Source::Program(..) => None,
            Source::Launcher(launcher) => Some(launcher.kind()),
        }
    }

    /// What a model must know of that place.
    pub(crate) fn told(&self) -> &'static str {
        match &self.source {
            Source::Program(..) => "",
            Source::Launcher(launcher) => launcher.told(),
        }
    }

    /// A worker whose session stands.
    pub(crate) async fn worker(&self, start: &Start) -> Result<Worker, ExecutorError> {
        if let Some(nest) = self.nest() {
            match Worker::hatch(&nest).await {
                Ok(worker) => return worker.begin(start).await,
                // A nest that fails is replaced; meanwhile a session starts the slower way.
                Err(_) => *self.nest.lock().unwrap_or_else(PoisonError::into_inner) = None,
            }
        }
        match &self.source {
            Source::Program(program, _) => Worker::launch(program)?.begin(start).await,
            Source::Launcher(launcher) => Worker::adopt(launcher.launch().await?).begin(start).await,
        }
    }

    /// The nest, started if there is none yet.
    pub(crate) fn nest(&self) -> Option<Nest> {
        match &self.source {
            Source::Program(_, Warmth::Cold) | Source::Launcher(_) => None,
            Source::Program(program, Warmth::Warm) => {
                let mut nest = self.nest.lock().unwrap_or_else(PoisonError::into_inner);
                if nest.is_none() {
                    *nest = Nest::start(program).ok();
                }
                nest.clone()
            }
        }
    }
}
