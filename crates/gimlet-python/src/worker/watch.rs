//! The watchdog: it ends a cell that takes too long or too much, and it never gives up.
//!
//! The interpreter looks for a raised signal before every instruction. A stop is such a signal that raises itself
//! again until the cell has ended, so no `except:` can live through it. Code that hangs inside the interpreter's own
//! functions never looks; the parent kills the process then.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use rustpython_vm::signal::UserSignalSender;
use rustpython_vm::{PyResult, VirtualMachine};

use super::output::Output;
use super::{host, jail};

/// How often the watchdog looks while a cell runs.
const TICK: Duration = Duration::from_millis(10);
/// How often once a cell uses much memory: one operation of the interpreter may take hundreds of megabytes in a moment.
const CLOSE_TICK: Duration = Duration::from_millis(1);
/// How long after its time a cell may hang in this process before the watchdog ends them both.
const LAST: Duration = Duration::from_secs(2);
/// How many looks without a cell before it sleeps.
const LINGER: u32 = 20;

/// Why a cell is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// `final_answer` was called.
    Answer,
    /// Wall time.
    Time,
    /// Memory.
    Memory,
    /// Too many host calls.
    Calls,
    /// The parent asked for it.
    Asked,
}

const STOPS: [Stop; 5] = [Stop::Answer, Stop::Time, Stop::Memory, Stop::Calls, Stop::Asked];

/// Shared by the interpreter's thread, which runs cells, and the main thread, which watches them.
pub(crate) struct Watch {
    /// 0, or one more than the place of the reason in [`STOPS`].
    stop: AtomicU8,
    /// Nanoseconds after `born` at which the cell must have ended; 0 while none runs or a host call is waited for.
    deadline: AtomicU64,
    asleep: AtomicBool,
    born: Instant,
    /// The thread that runs [`Watch::keep`], once it does.
    keeper: OnceLock<Thread>,
    signals: UserSignalSender,
    /// Opened when the session begins.
    memory: OnceLock<MemoryGauge>,
}

impl Watch {
    pub(crate) fn new(signals: UserSignalSender) -> Self {
        Watch {
            stop: AtomicU8::new(0),
            deadline: AtomicU64::new(0),
            asleep: AtomicBool::new(false),
            born: Instant::now(),
            keeper: OnceLock::new(),
            signals,
            memory: OnceLock::new(),
        }
    }

    /// Sets the memory a session may use; must run before the jail closes. Without `/proc` only the hard limit is left.
    pub(crate) fn limit_memory(&self, bytes: u64) -> io::Result<()> {
        let statm = File::open("/proc/self/statm")?;
        let _ = self.memory.set(MemoryGauge { statm, page: jail::page_size(), limit: bytes });
        Ok(())
    }

    fn is_above(&self, tenths: u64) -> bool {
        self.memory.get().is_some_and(|memory| memory.is_above(tenths))
    }

    fn now(&self) -> u64 {
        self.born.elapsed().as_nanos() as u64
    }

    /// Starts or goes on with a cell that has this much time left.
    pub(crate) fn run(&self, left: Duration) {
        self.deadline.store((self.now() + left.as_nanos() as u64).max(1), Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst)
            && let Some(keeper) = self.keeper.get()
        {
            keeper.unpark();
        }
    }

    /// Stops the clock; returns the time left.
    pub(crate) fn pause(&self) -> Duration {
        let deadline = self.deadline.swap(0, Ordering::SeqCst);
        Duration::from_nanos(deadline.saturating_sub(self.now()))
    }

    /// Why the cell is being ended, if it is.
    pub(crate) fn stopped(&self) -> Option<Stop> {
        let code = self.stop.load(Ordering::SeqCst);
        usize::from(code).checked_sub(1).and_then(|place| STOPS.get(place).copied())
    }

    /// Forgets a stop once its cell has ended.
    pub(crate) fn clear(&self) {
        self.stop.store(0, Ordering::SeqCst);
    }

    /// Ends the running cell. The first reason stands.
    pub(crate) fn stop(self: &Arc<Self>, reason: Stop) {
        let code = STOPS.iter().position(|stop| *stop == reason).map_or(0, |place| place as u8 + 1);
        if self.stop.compare_exchange(0, code, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            self.raise_at_next_instruction();
        }
    }

    fn raise_at_next_instruction(self: &Arc<Self>) {
        let watch = Arc::clone(self);
        let _ = self.signals.send(Box::new(move |vm| watch.raise(vm)));
    }

    fn raise(self: &Arc<Self>, vm: &VirtualMachine) -> PyResult<()> {
        if self.stopped().is_none() {
            return Ok(());
        }
        self.raise_at_next_instruction();
        Err(host::stop_exception(vm))
    }

    /// Whether the process is close to its memory limit.
    pub(crate) fn is_short_of_memory(&self) -> bool {
        self.is_above(8)
    }

    /// The watchdog's life, on a thread of its own; ends with the process.
    pub(crate) fn keep(self: &Arc<Self>, output: &Output) -> ! {
        let _ = self.keeper.set(std::thread::current());
        let mut idle = 0;
        loop {
            match self.deadline.load(Ordering::SeqCst) {
                0 if idle >= LINGER => {
                    self.asleep.store(true, Ordering::SeqCst);
                    // A cell that began between the look and the sleep is seen here.
                    if self.deadline.load(Ordering::SeqCst) == 0 {
                        std::thread::park();
                    }
                    idle = 0;
                }
                0 => {
                    idle += 1;
                    std::thread::park_timeout(TICK);
                }
                deadline => {
                    idle = 0;
                    self.look(deadline, output);
                }
            }
        }
    }

    fn look(self: &Arc<Self>, deadline: u64, output: &Output) {
        let now = self.now();
        if now >= deadline + LAST.as_nanos() as u64 {
            // The parent should have killed this process long ago: it is gone.
            std::process::exit(72);
        }
        if now >= deadline {
            self.stop(Stop::Time);
        } else if self.is_above(10) {
            self.stop(Stop::Memory);
        }
        if self.is_above(11) {
            // One operation goes on taking memory, and looks for no signal before it has ended.
            super::fail("memory allocation of more than the session may have");
        }
        output.flush();
        let left = Duration::from_nanos(deadline.saturating_sub(now));
        let tick = if self.is_above(4) { CLOSE_TICK } else { TICK };
        std::thread::park_timeout(if left.is_zero() { tick } else { left.min(tick) });
    }
}

/// Reads how much memory the process uses.
struct MemoryGauge {
    /// The kernel refreshes it at every read.
    statm: File,
    page: u64,
    limit: u64,
}

impl MemoryGauge {
    fn is_above(&self, tenths: u64) -> bool {
        self.used().is_some_and(|used| used > self.limit / 10 * tenths)
    }

    fn used(&self) -> Option<u64> {
        let mut text = [0; 128];
        let length = self.statm.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..length]).ok()?;
        let resident: u64 = text.split_ascii_whitespace().nth(1)?.parse().ok()?;
        Some(resident * self.page)
    }
}
