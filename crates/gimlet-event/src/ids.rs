//! Time and names come into the library as values, so that a test or a replay can supply its own.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Names a run: sortable by time, short enough to type, safe as a file name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

/// The text is not a run id.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a run id: lowercase letters, digits and dashes, at most 64")]
pub struct BadRunId(String);

impl RunId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RunId {
    type Err = BadRunId;

    fn from_str(text: &str) -> Result<Self, BadRunId> {
        let fits = (1..=64).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !text.starts_with('-');
        if fits { Ok(RunId(text.into())) } else { Err(BadRunId(text.into())) }
    }
}

impl TryFrom<String> for RunId {
    type Error = BadRunId;

    fn try_from(text: String) -> Result<Self, BadRunId> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> String {
        id.0
    }
}

/// Tells the time.
pub trait Clock: Send + Sync {
    /// The time of day, for people and logs.
    fn now(&self) -> Timestamp;
    /// Time since some fixed moment; never goes backwards, for durations and deadlines.
    fn elapsed(&self) -> Duration;
}

/// Makes new run ids.
pub trait Ids: Send + Sync {
    /// A run id never given before.
    fn run(&self, now: Timestamp) -> RunId;
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock { start: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

/// Ids of the form `20261115-203412-3fa91c`: when it began, and three random bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl Ids for RandomIds {
    fn run(&self, now: Timestamp) -> RunId {
        let mut random = [0u8; 3];
        if getrandom::fill(&mut random).is_err() {
            // No entropy source: the sub-second part still tells runs apart.
            random.copy_from_slice(&now.subsec_nanosecond().to_le_bytes()[..3]);
        }
        let when = now.strftime("%Y%m%d-%H%M%S");
        RunId(format!("{when}-{:02x}{:02x}{:02x}", random[0], random[1], random[2]))
    }
}
