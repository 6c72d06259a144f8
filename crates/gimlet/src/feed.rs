//! Watching a run: its events from any point on, stored and live ones as one stream.
//!
//! The journal keeps the newest events in memory. A watcher that falls further behind reads the log instead, so a slow
//! watcher costs no memory and holds nobody up.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::event::Event;
use crate::ids::RunId;
use crate::store::{Store, StoreError};

/// How many events are kept in memory.
const RECENT: usize = 1024;

/// Where watching begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// With the first event of the run.
    Start,
    /// With the event after this number.
    Seq(u64),
    /// With the next event that happens.
    Now,
}

/// How far the journal is.
#[derive(Debug, Clone, Copy)]
struct Newest {
    seq: u64,
    over: bool,
}

/// The journal's side.
pub(crate) struct Feed {
    recent: Mutex<VecDeque<Arc<Event>>>,
    newest: watch::Sender<Newest>,
}

impl Feed {
    /// A feed of a log that holds this many events already.
    pub(crate) fn new(seq: u64) -> Arc<Feed> {
        let newest = watch::Sender::new(Newest { seq, over: false });
        Arc::new(Feed { recent: Mutex::default(), newest })
    }

    pub(crate) fn push(&self, event: Arc<Event>) {
        let seq = event.seq;
        {
            let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            if recent.len() == RECENT {
                recent.pop_front();
            }
            recent.push_back(event);
        }
        self.newest.send_modify(|newest| newest.seq = seq);
    }

    /// No more events come.
    pub(crate) fn close(&self) {
        self.newest.send_modify(|newest| newest.over = true);
    }

    pub(crate) fn watch(self: &Arc<Self>, run: RunId, store: Arc<dyn Store>, after: After) -> Events {
        let newest = self.newest.subscribe();
        let last = match after {
            After::Start => 0,
            After::Seq(seq) => seq,
            After::Now => newest.borrow().seq,
        };
        Events { run, store, feed: self.clone(), newest, last, ready: VecDeque::new() }
    }
}

/// Events of a run, in order, from some point on.
pub struct Events {
    run: RunId,
    store: Arc<dyn Store>,
    feed: Arc<Feed>,
    newest: watch::Receiver<Newest>,
    /// Number of the last event that is in `ready` or was handed out.
    last: u64,
    ready: VecDeque<Arc<Event>>,
}

impl Events {
    /// The events of a run that nobody works on.
    pub fn stored(run: RunId, store: Arc<dyn Store>, after: After) -> Events {
        let feed = Feed::new(u64::MAX);
        let events = feed.watch(run, store, after);
        feed.close();
        events
    }

    /// The next event, when there is one. None once the run is at rest for good and everything was handed out.
    pub async fn next(&mut self) -> Option<Result<Arc<Event>, StoreError>> {
        loop {
            if let Some(event) = self.next_now() {
                return Some(Ok(event));
            }
            let newest = *self.newest.borrow_and_update();
            if newest.seq > self.last {
                let last = self.last;
                if let Err(error) = self.read_log().await {
                    return Some(Err(error));
                }
                if self.last == last && newest.over {
                    return None;
                }
            } else if newest.over || self.newest.changed().await.is_err() {
                return None;
            }
        }
    }

    /// The next event if it is at hand: it has happened, and is still kept in memory.
    pub fn next_now(&mut self) -> Option<Arc<Event>> {
        if self.ready.is_empty() {
            let recent = self.feed.recent.lock().unwrap_or_else(PoisonError::into_inner);
            let first = recent.front().map_or(u64::MAX, |event| event.seq);
            if first <= self.last + 1 {
                let skip = usize::try_from(self.last + 1 - first).unwrap_or(usize::MAX);
                self.ready.extend(recent.iter().skip(skip).cloned());
            }
            self.last = self.ready.back().map_or(self.last, |event| event.seq);
        }
        self.ready.pop_front()
    }

    async fn read_log(&mut self) -> Result<(), StoreError> {
        let events = self.store.load(&self.run).await?;
        self.ready.extend(events.into_iter().filter(|event| event.seq > self.last).map(Arc::new));
        self.last = self.ready.back().map_or(self.last, |event| event.seq);
        Ok(())
    }
}
