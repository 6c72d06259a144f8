//! Requests and tokens a minute, spaced evenly, so that a provider never has to say "slow down".
//!
//! Tokens are known only afterwards: a request waits for what it is estimated to cost, and the next one pays the
//! difference.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use gimlet::context::Window;
use gimlet::model::{Model, ModelError, ModelEvent, ModelStream, Request};
use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tokio::time::Instant;

use super::budget::estimate;

/// How much a minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rates {
    /// Requests a minute.
    pub requests: Option<NonZeroU32>,
    /// Tokens a minute, read and written.
    pub tokens: Option<NonZeroU32>,
}

/// Keeps a model's requests below a rate.
pub struct RateLimit {
    inner: Arc<dyn Model>,
    requests: Option<Limiter>,
    tokens: Option<(Limiter, NonZeroU32)>,
    /// Tokens that were spent beyond their estimate; the next request pays them.
    owed: Arc<AtomicU64>,
}

type Limiter = RateLimiter<NotKeyed, InMemoryState, RuntimeClock, NoOpMiddleware<Nanos>>;

/// The runtime's own clock, so that tests can move it.
#[derive(Debug, Clone)]
struct RuntimeClock {
    start: Instant,
}

impl Clock for RuntimeClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.start.elapsed().into()
    }
}

impl RateLimit {
    /// Limits a model.
    pub fn new(inner: Arc<dyn Model>, rates: Rates) -> Self {
        let limiter = |quota| RateLimiter::direct_with_clock(quota, RuntimeClock { start: Instant::now() });
        let spaced = |requests: NonZeroU32| {
            Quota::with_period(Duration::from_secs(60) / requests.get())
                .unwrap_or(Quota::per_minute(requests))
                .allow_burst(NonZeroU32::MIN)
        };
        RateLimit {
            inner,
            requests: rates.requests.map(|requests| limiter(spaced(requests))),
            tokens: rates.tokens.map(|tokens| (limiter(Quota::per_minute(tokens)), tokens)),
            owed: Arc::default(),
        }
    }
}

async fn wait(limiter: &Limiter, cost: NonZeroU32) {
    // More than the bucket holds can never be had at once; the caller never asks for it.
    while let Ok(Err(not_yet)) = limiter.check_n(cost) {
        tokio::time::sleep(not_yet.wait_time_from(limiter.clock().now())).await;
    }
}

impl Model for RateLimit {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn window(&self) -> Option<Window> {
        self.inner.window()
    }

    fn stream(&self, request: Request) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        async move {
            if let Some(limiter) = &self.requests {
                wait(limiter, NonZeroU32::MIN).await;
            }
            let Some((limiter, most)) = &self.tokens else { return self.inner.stream(request).await };
            let estimate = estimate(&request);
            let owed = self.owed.swap(0, Ordering::Relaxed);
            let cost = u32::try_from(estimate.saturating_add(owed)).unwrap_or(u32::MAX).min(most.get());
            wait(limiter, NonZeroU32::new(cost).unwrap_or(NonZeroU32::MIN)).await;
            let owed = Arc::clone(&self.owed);
            let mut paid = estimate;
            let reply = self.inner.stream(request).await?;
            Ok(reply
                .inspect(move |event| {
                    if let Ok(ModelEvent::Usage(usage)) = event {
                        owed.fetch_add(usage.total().saturating_sub(paid), Ordering::Relaxed);
                        paid = paid.max(usage.total());
                    }
                })
                .boxed())
        }
        .boxed()
    }
}
