//! Asking again when a server is unreachable, slow, overloaded or says "not now".
//!
//! The server's own delay wins over ours; a delay longer than anyone would wait is an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::context::Window;
use gimlet::model::{Model, ModelError, ModelStream, Request};

use super::attempts::{self, Next, Plan, Shown};

/// How often and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts after the first.
    pub again: usize,
    /// First wait; later ones double.
    pub first: Duration,
    /// Longest wait of our own.
    pub longest: Duration,
    /// Longest wait a server may ask for.
    pub patience: Duration,
    /// Seed of the jitter, so that many clients do not come back at once.
    pub seed: u64,
}

impl RetryPolicy {
    /// Three more attempts within about ten seconds.
    pub fn new(seed: u64) -> Self {
        RetryPolicy {
            again: 3,
            first: Duration::from_millis(500),
            longest: Duration::from_secs(8),
            patience: Duration::from_secs(90),
            seed,
        }
    }
}

/// Asks again.
pub struct Retry {
    inner: Arc<dyn Model>,
    policy: RetryPolicy,
    /// Requests so far: each has its own jitter.
    requests: AtomicU64,
}

impl Retry {
    /// Retries a model.
    pub fn new(inner: Arc<dyn Model>, policy: RetryPolicy) -> Self {
        Retry { inner, policy, requests: AtomicU64::new(0) }
    }
}

impl Model for Retry {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn window(&self) -> Option<Window> {
        self.inner.window()
    }

    fn stream(&self, request: Request) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        let seed = self.policy.seed.wrapping_add(self.requests.fetch_add(1, Ordering::Relaxed));
        let delays = ExponentialBuilder::new()
            .with_min_delay(self.policy.first)
            .with_max_delay(self.policy.longest)
            .with_max_times(self.policy.again)
            .with_jitter()
            .with_jitter_seed(seed)
            .build();
        let plan = Again { model: Arc::clone(&self.inner), policy: self.policy, delays, tried: 0 };
        attempts::run(plan, request).boxed()
    }
}

struct Again {
    model: Arc<dyn Model>,
    policy: RetryPolicy,
    delays: ExponentialBackoff,
    tried: usize,
}

impl Plan for Again {
    fn model(&self) -> Arc<dyn Model> {
        Arc::clone(&self.model)
    }

    fn failed(&mut self, error: &ModelError, shown: Shown) -> Next {
        if !error.is_retryable() || shown == Shown::Something {
            return Next::Stop;
        }
        let Some(own) = self.delays.next() else { return Next::Stop };
        let wait = error.retry_after().unwrap_or(own);
        if wait > self.policy.patience {
            return Next::Stop;
        }
        self.tried += 1;
        let notice = format!(
            "{error}; trying again in {:.1} s ({} of {})",
            wait.as_secs_f32(),
            self.tried,
            self.policy.again
        );
        Next::Again { wait, notice }
    }

    fn succeeded(&mut self) {}
}
