//! Waiting awake for a message: a core that has fallen asleep takes longer to wake than most answers take to come.

use std::time::{Duration, Instant};

/// How long one wait stays awake.
const AWAKE: Duration = Duration::from_micros(200);
/// How many waits sleep at once after one that stayed awake for nothing: the other side computes, or has no core to
/// itself and would only be kept from this one.
const RESTS: u32 = 31;

/// Decides, wait by wait, whether to stay awake.
#[derive(Default)]
pub(crate) struct Eager {
    rests: u32,
}

impl Eager {
    /// When to give up and sleep; `None` to sleep at once.
    pub(crate) fn until(&mut self) -> Option<Instant> {
        if self.rests > 0 {
            self.rests -= 1;
            return None;
        }
        Some(Instant::now() + AWAKE)
    }

    /// Nothing came in that time.
    pub(crate) fn in_vain(&mut self) {
        self.rests = RESTS;
    }
}
