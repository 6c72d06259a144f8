//! The one place where events are made. Numbering, logging and folding an event happen here, in that order, so that every
//! reader sees the same sequence. Watchers take events from the [`feed`](crate::feed), outside of the log's lock.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;

use crate::action::spent;
use crate::event::{AgentPath, Event, EventKind, FinishState};
use crate::feed::{After, Events, Feed};
use crate::ids::{Clock, RunId};
use crate::state::State;
use crate::store::{Store, StoreError};

/// Is called with every event soon after it happened. Front ends follow [`Events`] instead; this is for a program that
/// wants no task of its own.
pub trait Observer: Send + Sync {
    /// Called once for each event, in order, outside of the log's lock.
    fn observe(&self, event: &Event);
}

/// An agent's view of its run's log, and the state folded from it.
pub struct Journal {
    log: Arc<Log>,
    path: AgentPath,
    /// The agent that called this one; its usage grows with this one's.
    parent: Option<Arc<Journal>>,
    state: Mutex<State>,
}

/// What all agents of a run share.
struct Log {
    run: RunId,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    observers: Vec<Arc<dyn Observer>>,
    /// Events that observers have not seen. Whoever holds `telling` shows them.
    untold: Mutex<VecDeque<Arc<Event>>>,
    telling: Mutex<()>,
    /// Where watchers take events from; closed with the log.
    feed: Arc<Feed>,
    /// Number of the last event. Held while an event is taken by the store, so that numbers and lines agree.
    seq: Mutex<u64>,
    /// How many sub-agents were started.
    agents: AtomicU32,
}

impl Journal {
    /// The journal of a run's main agent; `history` is what the log holds already.
    pub(crate) fn open(
        run: RunId,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        observers: Vec<Arc<dyn Observer>>,
        history: &[Event],
    ) -> Arc<Self> {
        let path = AgentPath::default();
        let state = State::fold(history, &path);
        let seq = history.last().map_or(0, |event| event.seq);
        let started = history.iter().filter(|event| matches!(event.kind, EventKind::AgentStarted(_))).count();
        let agents = AtomicU32::new(u32::try_from(started).unwrap_or(u32::MAX));
        let log = Arc::new(Log {
            run,
            store,
            clock,
            observers,
            untold: Mutex::default(),
            telling: Mutex::default(),
            feed: Feed::new(seq),
            seq: Mutex::new(seq),
            agents,
        });
        Arc::new(Journal { log, path, parent: None, state: Mutex::new(state) })
    }

    /// The journal of a sub-agent.
    pub(crate) fn child(self: &Arc<Self>, path: AgentPath, state: State) -> Arc<Self> {
        Arc::new(Journal {
            log: self.log.clone(),
            path,
            parent: Some(self.clone()),
            state: Mutex::new(state),
        })
    }

    /// Records that something happened; returns when the record is durable.
    pub(crate) async fn append(&self, kind: EventKind) -> Result<(), StoreError> {
        let durable = self.take(&mut lock(&self.log.seq), kind);
        self.log.tell();
        durable.await
    }

    /// Records that a step begins, unless an agent above has used up a budget: tells which, then, and records nothing.
    /// Looking and drawing are one, so that agents at work side by side cannot take the same step twice.
    pub(crate) async fn begin_step(&self, step: u32) -> Result<Option<FinishState>, StoreError> {
        let durable = {
            let mut seq = lock(&self.log.seq);
            if let Some(spent) = self.callers_spent() {
                return Ok(Some(spent));
            }
            self.take(&mut seq, EventKind::StepStarted { step })
        };
        self.log.tell();
        durable.await.map(|()| None)
    }

    /// Numbers, logs and folds an event; what is returned is done when it is durable.
    fn take(&self, seq: &mut u64, kind: EventKind) -> BoxFuture<'_, Result<(), StoreError>> {
        let event = Event {
            run: self.log.run.clone(),
            seq: *seq + 1,
            time: self.log.clock.now(),
            path: self.path.clone(),
            kind,
        };
        let durable = self.log.store.append(&event);
        *seq = event.seq;
        lock(&self.state).apply(&event);
        self.tell_callers(&event.kind);
        let event = Arc::new(event);
        if !self.log.observers.is_empty() {
            lock(&self.log.untold).push_back(event.clone());
        }
        self.log.feed.push(event);
        durable
    }

    /// What an agent spends counts for everyone above it at once, so that agents at work side by side cannot spend the
    /// same tokens twice; what it did counts when it is done.
    fn tell_callers(&self, kind: &EventKind) {
        self.callers().for_each(|caller| lock(&caller.state).hear_of(kind));
        if let (EventKind::AgentFinished(finished), Some(parent)) = (kind, &self.parent) {
            lock(&parent.state).work.absorb(&finished.work);
        }
    }

    /// The agents above this one, the nearest first.
    fn callers(&self) -> impl Iterator<Item = &Journal> {
        std::iter::successors(self.parent.as_deref(), |journal| journal.parent.as_deref())
    }

    /// The budget that an agent above this one has used up, if one has.
    pub(crate) fn callers_spent(&self) -> Option<FinishState> {
        self.callers().find_map(|caller| caller.with_state(spent))
    }

    /// Counts one more sub-agent of the run, unless there were `most` already.
    pub(crate) fn admit(&self, most: u32) -> bool {
        let admit = |count: u32| (count < most).then_some(count + 1);
        self.log.agents.fetch_update(Ordering::Relaxed, Ordering::Relaxed, admit).is_ok()
    }

    /// Looks at the state. The closure must be short: the state is locked meanwhile.
    pub fn with_state<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&lock(&self.state))
    }

    /// The run's events from some point on.
    pub fn events(&self, after: After) -> Events {
        self.log.feed.watch(self.log.run.clone(), self.log.store.clone(), after)
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.log.run
    }

    /// Which agent of the run this is.
    pub fn path(&self) -> &AgentPath {
        &self.path
    }
}

impl Log {
    /// Shows observers what they have not seen. One thread at a time does, so that all see the same order.
    fn tell(&self) {
        while !lock(&self.untold).is_empty() {
            let Ok(_telling) = self.telling.try_lock() else { return };
            loop {
                let Some(event) = lock(&self.untold).pop_front() else { break };
                for observer in &self.observers {
                    observer.observe(&event);
                }
            }
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.feed.close();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
