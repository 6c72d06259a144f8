//! What goes wrong, and the parts of a run's surroundings through which it does.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use gimlet::context::Window;
use gimlet::event::Event;
use gimlet::ids::{Clock, RunId, SystemClock};
use gimlet::model::{Model, ModelError, ModelStream, Request};
use gimlet::store::{BlobId, Store, StoreError};
use gimlet_store::FileStore;
use jiff::Timestamp;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::Notify;

/// What happens once a run's log has grown by so many events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The program dies.
    Crash,
    /// The machine dies: what was not synced may be gone, to the byte.
    PowerCut,
    /// The disk takes nothing more.
    DiskFull,
    /// The Python worker is killed.
    WorkerKilled,
    /// The model's server fails, at once or in the middle of a reply.
    ModelFails,
    /// The clock of the wall jumps, either way.
    ClockJumps,
}

impl Fault {
    pub(crate) const ALL: [Fault; 6] = [
        Fault::Crash,
        Fault::PowerCut,
        Fault::DiskFull,
        Fault::WorkerKilled,
        Fault::ModelFails,
        Fault::ClockJumps,
    ];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Fault::Crash => "crashes",
            Fault::PowerCut => "power cuts",
            Fault::DiskFull => "full disks",
            Fault::WorkerKilled => "workers killed",
            Fault::ModelFails => "model failures",
            Fault::ClockJumps => "clock jumps",
        }
    }
}

/// The durable log, which remembers what it acknowledged and rings when it has grown to a number of events.
pub(crate) struct Watched {
    pub(crate) inner: FileStore,
    ring_at: AtomicU64,
    pub(crate) bell: Notify,
    acknowledged: Arc<Mutex<Acknowledged>>,
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
    pub(crate) fn new(inner: FileStore, ring_at: u64) -> Self {
        Watched { inner, ring_at: AtomicU64::new(ring_at), bell: Notify::new(), acknowledged: Arc::default() }
    }

    pub(crate) fn acknowledged(&self) -> Acknowledged {
        *self.acknowledged.lock().unwrap()
    }
}

impl Store for Watched {
    fn append(&self, event: &Event) -> BoxFuture<'_, Result<(), StoreError>> {
        let (seq, barrier) = (event.seq, event.is_barrier());
        let written = self.inner.append(event);
        if seq == self.ring_at.load(Ordering::Relaxed) {
            self.bell.notify_one();
        }
        async move {
            written.await?;
            let mut told = self.acknowledged.lock().unwrap();
            *told = told.and(Acknowledged { event: seq, barrier: if barrier { seq } else { 0 } });
            Ok(())
        }
        .boxed()
    }

    fn load(&self, run: &RunId) -> BoxFuture<'_, Result<Vec<Event>, StoreError>> {
        self.inner.load(run)
    }

    fn put<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, Result<BlobId, StoreError>> {
        self.inner.put(bytes)
    }

    fn get<'a>(&'a self, blob: &'a BlobId) -> BoxFuture<'a, Result<Vec<u8>, StoreError>> {
        self.inner.get(blob)
    }
}

/// A model whose next replies break off after so many pieces.
pub(crate) struct Flaky {
    pub(crate) inner: Arc<dyn Model>,
    pub(crate) breaks: Mutex<Vec<usize>>,
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
            let stream = self.inner.stream(request).await?;
            match pieces {
                None => Ok(stream),
                Some(0) => Err(ModelError::Server { status: 503, message: "busy".into(), retry_after: None }),
                Some(pieces) => Ok(stream.take(pieces).boxed()),
            }
        }
        .boxed()
    }
}

/// A clock that someone sets while the run goes on.
#[derive(Default)]
pub(crate) struct Jumpy {
    inner: SystemClock,
    offset_s: AtomicI64,
}

impl Jumpy {
    pub(crate) fn jump(&self, seconds: i64) {
        self.offset_s.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Clock for Jumpy {
    fn now(&self) -> Timestamp {
        let offset = jiff::SignedDuration::from_secs(self.offset_s.load(Ordering::Relaxed));
        self.inner.now().checked_add(offset).unwrap()
    }

    fn elapsed(&self) -> Duration {
        self.inner.elapsed()
    }
}

/// While it lives, this process can make no file longer than so many bytes: the write that would is cut short and the
/// next one refused, as on a full disk.
pub(crate) struct FullDisk {
    before: Rlimit,
}

impl FullDisk {
    pub(crate) fn beyond(bytes: u64) -> FullDisk {
        let before = getrlimit(Resource::Fsize);
        setrlimit(Resource::Fsize, Rlimit { current: Some(bytes), maximum: before.maximum }).unwrap();
        FullDisk { before }
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        setrlimit(Resource::Fsize, self.before).unwrap();
    }
}
