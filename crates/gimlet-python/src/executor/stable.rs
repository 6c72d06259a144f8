//! Where workers come from: forked by a nest, or launched one by one.

use std::sync::{Mutex, PoisonError};

use gimlet::cell::ExecutorError;

use super::nest::Nest;
use super::process::Worker;
use super::{Program, Warmth};
use crate::protocol::Start;

/// Gives workers of one program.
pub(crate) struct Stable {
    program: Program,
    warmth: Warmth,
    /// Started with the first worker; ends when the last session and the stable are dropped.
    nest: Mutex<Option<Nest>>,
}

impl Stable {
    pub(crate) fn new(program: Program, warmth: Warmth) -> Self {
        Stable { program, warmth, nest: Mutex::new(None) }
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
        Worker::launch(&self.program)?.begin(start).await
    }

    /// The nest, started if there is none yet.
    pub(crate) fn nest(&self) -> Option<Nest> {
        match self.warmth {
            Warmth::Cold => None,
            Warmth::Warm => {
                let mut nest = self.nest.lock().unwrap_or_else(PoisonError::into_inner);
                if nest.is_none() {
                    *nest = Nest::start(&self.program).ok();
                }
                nest.clone()
            }
        }
    }
}
