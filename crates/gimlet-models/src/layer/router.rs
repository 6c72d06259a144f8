//! Several models under one name: when one cannot, the next one does.
//!
//! A switch happens before anything of a reply was shown, or between two steps; never in the middle of a reply. A
//! model that failed rests for a while, so that the step after a switch does not run into it again.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::context::Window;
use gimlet::message::Message;
use gimlet::model::{Model, ModelError, ModelStream, Request};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::attempts::{self, Next, Plan, Shown};

/// Who is asked first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The first that is well, in the order given.
    #[default]
    Ordered,
    /// Conversations are spread; each stays with its model as long as that is well.
    #[serde(alias = "simple-shuffle")]
    Shuffle,
}

/// Several models under one name.
pub struct Router {
    id: String,
    state: Arc<State>,
    strategy: Strategy,
    seed: u64,
}

struct State {
    models: Vec<Arc<dyn Model>>,
    /// Until when each model rests; as long as the router.
    resting: Mutex<Vec<Option<Instant>>>,
    rest: Duration,
}

impl Router {
    /// Routes between models; one that fails rests for `rest`. `None` without any model.
    pub fn new(
        id: impl Into<String>,
        models: Vec<Arc<dyn Model>>,
        strategy: Strategy,
        rest: Duration,
        seed: u64,
    ) -> Option<Self> {
        if models.is_empty() {
            return None;
        }
        let resting = Mutex::new(vec![None; models.len()]);
        Some(Router { id: id.into(), state: Arc::new(State { models, resting, rest }), strategy, seed })
    }

    /// The models in the order this request would try them.
    fn order(&self, request: &Request) -> Vec<usize> {
        let count = self.state.models.len();
        let mut order: Vec<usize> = (0..count).collect();
        match self.strategy {
            Strategy::Ordered => {}
            Strategy::Shuffle => order.sort_by_key(|index| lot(self.seed, *index, request)),
        }
        // Those that rest come last, the one that is well soonest first.
        let now = Instant::now();
        let resting = self.state.resting();
        order.sort_by_key(|index| resting[*index].filter(|until| *until > now));
        order
    }
}

/// The place a model draws for a conversation; the same at every step of it.
fn lot(seed: u64, index: usize, request: &Request) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, index).hash(&mut hasher);
    let task = request.messages.iter().find_map(|message| match message.as_ref() {
        Message::User { text } => Some(text),
        Message::System { .. } | Message::Assistant { .. } | Message::Tool { .. } => None,
    });
    task.hash(&mut hasher);
    hasher.finish()
}

impl State {
    fn resting(&self) -> std::sync::MutexGuard<'_, Vec<Option<Instant>>> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Model for Router {
    fn id(&self) -> &str {
        &self.id
    }

    /// The smallest, since any of them may be asked.
    fn window(&self) -> Option<Window> {
        self.state.models.iter().filter_map(|model| model.window()).min_by_key(Window::room)
    }

    fn stream(&self, request: Request) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        let plan = Route { state: Arc::clone(&self.state), order: self.order(&request), at: 0 };
        attempts::run(plan, request).boxed()
    }
}

struct Route {
    state: Arc<State>,
    order: Vec<usize>,
    at: usize,
}

/// What a failure says about the model that failed.
enum Blame {
    /// Another model would fail as well: the request or the budget is at fault.
    Request,
    /// This model cannot do this request, but is well.
    Unfit,
    /// This model is not well now.
    Sick,
}

fn blame(error: &ModelError) -> Blame {
    match error {
        ModelError::Connect { .. }
        | ModelError::Timeout { .. }
        | ModelError::Cut
        | ModelError::Auth { .. }
        | ModelError::RateLimited { .. }
        | ModelError::Server { .. }
        | ModelError::NoSuchModel { .. }
        | ModelError::Protocol(_) => Blame::Sick,
        ModelError::ContextLength { .. } | ModelError::UnreadableCall { .. } => Blame::Unfit,
        ModelError::Refused { .. } | ModelError::Budget(_) | ModelError::Script(_) => Blame::Request,
    }
}

impl Plan for Route {
    fn model(&self) -> Arc<dyn Model> {
        Arc::clone(&self.state.models[self.order[self.at]])
    }

    fn failed(&mut self, error: &ModelError, shown: Shown) -> Next {
        let failed = self.order[self.at];
        match blame(error) {
            Blame::Request => return Next::Stop,
            Blame::Unfit => {}
            Blame::Sick => {
                let rest = error.retry_after().unwrap_or_default().max(self.state.rest);
                self.state.resting()[failed] = Some(Instant::now() + rest);
            }
        }
        if shown == Shown::Something || self.at + 1 == self.order.len() {
            return Next::Stop;
        }
        self.at += 1;
        let (from, to) = (&self.state.models[failed], self.model());
        Next::Again {
            wait: Duration::ZERO,
            notice: format!("{error}; switching from {} to {}", from.id(), to.id()),
        }
    }

    fn succeeded(&mut self) {
        self.state.resting()[self.order[self.at]] = None;
    }
}
