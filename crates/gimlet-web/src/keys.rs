//! `Idempotency-Key`: a request that is sent again starts nothing twice.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use gimlet::ids::RunId;

use crate::problem::Problem;

/// Most keys that are remembered; the oldest is forgotten for a newer one.
const MOST_KEYS: usize = 1000;

/// What became of the request with a key.
#[derive(Clone)]
struct Seen {
    /// Digest of what was asked for.
    asked: String,
    /// None while the run is being started.
    run: Option<RunId>,
}

/// Requests by their keys.
#[derive(Default)]
pub(crate) struct Keys {
    known: Mutex<(HashMap<String, Seen>, VecDeque<String>)>,
}

/// What to do with a request.
pub(crate) enum Turn<'a> {
    /// It is the first of its key. The key is free again when this is dropped without [`Claim::done`].
    First(Claim<'a>),
    /// It became this run.
    Again(RunId),
}

pub(crate) struct Claim<'a> {
    keys: &'a Keys,
    key: String,
    is_done: bool,
}

impl Keys {
    pub(crate) fn turn(&self, key: &str, asked: String) -> Result<Turn<'_>, Problem> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.0.get(key) {
            Some(seen) if seen.asked != asked => {
                Err(Problem::unusable("the Idempotency-Key was used for another request"))
            }
            Some(Seen { run: Some(run), .. }) => Ok(Turn::Again(run.clone())),
            Some(Seen { run: None, .. }) => {
                Err(Problem::conflict("the first request with this Idempotency-Key is still being worked on"))
            }
            None => {
                if known.1.len() >= MOST_KEYS
                    && let Some(oldest) = known.1.pop_front()
                {
                    known.0.remove(&oldest);
                }
                known.1.push_back(key.to_owned());
                known.0.insert(key.to_owned(), Seen { asked, run: None });
                Ok(Turn::First(Claim { keys: self, key: key.to_owned(), is_done: false }))
            }
        }
    }
}

impl Claim<'_> {
    pub(crate) fn done(mut self, run: RunId) {
        self.is_done = true;
        let mut known = self.keys.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = known.0.get_mut(&self.key) {
            seen.run = Some(run);
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            let mut known = self.keys.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.0.remove(&self.key);
            known.1.retain(|key| *key != self.key);
        }
    }
}
