//! The parts around one attempt at a run through which it can be hit, and which tell whether it noticed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use gimlet::context::Window;
use gimlet::event::{Event, EventKind};
use gimlet::ids::{Clock, RunId, SystemClock};
use gimlet::model::{Model, ModelError, ModelStream, Request};
use gimlet::store::{BlobId, Blobs, Lease, Line, OpenedRun, RunLog, StoreError};
use gimlet_store::FileStore;
use jiff::Timestamp;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use tokio::sync::Notify;

use crate::eventually;
use crate::family::Family;

pub(crate) struct Surroundings<'a> {
    pub(crate) family: &'a Family,
    pub(crate) store: Arc<Watched>,
    pub(crate) model: Arc<Flaky>,
    pub(crate) clock: Arc<Jumpy>,
    pub(crate) disk: Disk,
    /// Where the run's log is.
    pub(crate) log: PathBuf,
}

impl Surroundings<'_> {
    /// Waits until nothing of the attempt goes on, as after the death of its process; what it was promised.
    pub(crate) async fn end(self) -> Acknowledged {
        let Surroundings { family, store, disk, .. } = self;
        drop(disk);
        eventually(|| match Arc::strong_count(&store) {
            1 => Ok(()),
            more => Err(format!("{} parts of a run that was dropped hold its store", more - 1)),
        })
        .await;
        family.gone().await;
        store.acknowledged()
    }
}

/// The durable log, which remembers what it acknowledged and rings when it has grown by a number of events.
pub(crate) struct Watched {
    pub(crate) inner: FileStore,
    pub(crate) bell: Notify,
    /// From how many events on the bell rings at each.
    ring_after: AtomicU64,
    events: AtomicU64,
    refused: AtomicBool,
    acknowledged: Mutex<Acknowledged>,
}

/// Last events of which the run was told that they are safe.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Acknowledged {
    /// From the death of this process.
    pub(crate) event: u64,
    /// From the death of the machine.
    pub(crate) barrier: u64,
}

impl Acknowledged {
    /// What both say.
    pub(crate) fn and(self, other: Acknowledged) -> Acknowledged {
        Acknowledged { event: self.event.max(other.event), barrier: self.barrier.max(other.barrier) }
    }
}

impl Watched {
    /// A log whose bell does not ring.
    pub(crate) fn new(inner: FileStore) -> Self {
        Watched {
            inner,
            bell: Notify::new(),
            ring_after: AtomicU64::new(u64::MAX),
            events: AtomicU64::default(),
            refused: AtomicBool::default(),
            acknowledged: Mutex::default(),
        }
    }

    /// Rings at every event from this one on, counted from the attempt's first.
    pub(crate) fn ring_after(&self, events: u64) {
        self.ring_after.store(events, Ordering::Relaxed);
    }

    /// Whether an event could not be written.
    pub(crate) fn has_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    fn acknowledged(&self) -> Acknowledged {
        *self.acknowledged.lock().unwrap()
    }

    fn count(&self, event: &Event) {
        // In how many pieces a reply is shown depends on the machine's speed, which must not decide what is hit.
        if matches!(event.kind, EventKind::ModelDelta { .. }) {
            return;
        }
        let events = self.events.fetch_add(1, Ordering::Relaxed) + 1;
        if events >= self.ring_after.load(Ordering::Relaxed) {
            self.bell.notify_one();
        }
    }
}

impl RunLog for Watched {
    fn append(&self, event: &Event) -> BoxFuture<'_, Result<(), StoreError>> {
        let (seq, barrier) = (event.seq, event.is_barrier());
        let written = self.inner.append(event);
        self.count(event);
        async move {
            written.await.inspect_err(|_| self.refused.store(true, Ordering::Relaxed))?;
            let mut told = self.acknowledged.lock().unwrap();
            *told = told.and(Acknowledged { event: seq, barrier: if barrier { seq } else { 0 } });
            Ok(())
        }
        .boxed()
    }

    fn open<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<OpenedRun, StoreError>> {
        self.inner.open(run)
    }

    fn close(&self, run: &RunId) {
        self.inner.close(run);
    }

    fn lease<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<Lease, StoreError>> {
        self.inner.lease(run)
    }

    fn load(&self, run: &RunId) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        self.inner.load(run)
    }

    fn lines<'a>(
        &'a self,
        run: &'a RunId,
        after: u64,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Line>, StoreError>> {
        self.inner.lines(run, after, most)
    }

    fn follow(&self, run: &RunId, after: u64) -> BoxStream<'static, Result<Vec<Line>, StoreError>> {
        self.inner.follow(run, after)
    }

    fn add_entry<'a>(
        &'a self,
        run: &'a RunId,
        list: &'a str,
        entry: Value,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.add_entry(run, list, entry)
    }

    fn entries<'a>(&'a self, run: &'a RunId, list: &'a str) -> BoxFuture<'a, Result<Vec<Value>, StoreError>> {
        self.inner.entries(run, list)
    }
}

impl Blobs for Watched {
    fn put<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<BlobId, StoreError>> {
        self.inner.put(bytes)
    }

    fn get<'a>(&'a self, blob: &'a BlobId) -> BoxFuture<'a, Result<Vec<u8>, StoreError>> {
        self.inner.get(blob)
    }
}

/// A model that can be made to fail.
pub(crate) struct Flaky {
    inner: Arc<dyn Model>,
    /// After how many pieces each of the next replies breaks off, the last one first.
    breaks: Mutex<Vec<usize>>,
    failed: Arc<AtomicBool>,
}

impl Flaky {
    pub(crate) fn new(inner: Arc<dyn Model>) -> Self {
        Flaky { inner, breaks: Mutex::default(), failed: Arc::default() }
    }

    /// Breaks off the next replies after so many pieces; one of none is refused.
    pub(crate) fn fail(&self, breaks: Vec<usize>) {
        *self.breaks.lock().unwrap() = breaks;
    }

    /// Whether a reply was refused or lost a piece.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// The first pieces; a reply that has no more was not broken.
    fn cut(&self, reply: ModelStream, pieces: usize) -> ModelStream {
        let failed = self.failed.clone();
        let kept = reply.enumerate().take_while(move |(place, _)| {
            let keep = *place < pieces;
            failed.fetch_or(!keep, Ordering::Relaxed);
            ready(keep)
        });
        kept.map(|(_, piece)| piece).boxed()
    }
}

impl Model for Flaky {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn window(&self) -> Option<Window> {
        self.inner.window()
    }

    fn stream(&self, request: Request) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        async move {
            let pieces = self.breaks.lock().unwrap().pop();
            let reply = self.inner.stream(request).await?;
            match pieces {
                None => Ok(reply),
                Some(0) => {
                    self.failed.store(true, Ordering::Relaxed);
                    Err(ModelError::Server { status: 503, message: "busy".into(), retry_after: None })
                }
                Some(pieces) => Ok(self.cut(reply, pieces)),
            }
        }
        .boxed()
    }
}

/// A clock that someone sets while the run goes on. It stays so in later attempts.
#[derive(Default)]
pub(crate) struct Jumpy {
    inner: SystemClock,
    offset_s: AtomicI64,
    read: AtomicBool,
}

impl Jumpy {
    pub(crate) fn jump(&self, seconds: i64) {
        self.offset_s.fetch_add(seconds, Ordering::Relaxed);
        self.read.store(false, Ordering::Relaxed);
    }

    /// Whether anyone has looked since the last jump.
    pub(crate) fn was_read(&self) -> bool {
        self.read.load(Ordering::Relaxed)
    }
}

impl Clock for Jumpy {
    fn now(&self) -> Timestamp {
        self.read.store(true, Ordering::Relaxed);
        let offset = jiff::SignedDuration::from_secs(self.offset_s.load(Ordering::Relaxed));
        self.inner.now().checked_add(offset).unwrap()
    }

    fn elapsed(&self) -> Duration {
        self.inner.elapsed()
    }
}

/// The limit on the size of this process's files. The write that would cross it is cut short and the next one refused, as
/// on a full disk. As it was when dropped.
pub(crate) struct Disk {
    before: Rlimit,
}

impl Disk {
    pub(crate) fn new() -> Disk {
        Disk { before: getrlimit(Resource::Fsize) }
    }

    /// Lets no file grow beyond so many bytes.
    pub(crate) fn fill(&self, bytes: u64) {
        setrlimit(Resource::Fsize, Rlimit { current: Some(bytes), maximum: self.before.maximum }).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        setrlimit(Resource::Fsize, self.before).unwrap();
    }
}
