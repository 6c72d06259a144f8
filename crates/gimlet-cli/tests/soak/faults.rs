//! What goes wrong, exactly how, and when. All chances of a fault are its own and come from the seed; what it hits
//! depends on how far the run has come by then.

use std::future::pending;
use std::path::Path;

use gimlet::event::ActionFormat;

use crate::surroundings::Surroundings;

/// Bytes that a full disk still takes are fewer than these.
const ROOM: u64 = 400;
/// Most replies in a row that fail.
const REPLIES: usize = 3;
/// Most pieces of a reply before it breaks off.
const PIECES: usize = 3;
/// Farthest the clock jumps, in hours.
const HOURS: i64 = 25;

/// What each stands for; [`Fault::exactly`] says what is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// The program dies.
    Crash,
    /// The machine dies.
    PowerCut,
    /// The disk takes nothing more.
    DiskFull,
    /// The model's server fails, at once or in the middle of a reply.
    ModelFails,
    /// Someone sets the clock.
    ClockJumps,
    /// The interpreter dies.
    WorkerKilled,
    /// The process dies that makes interpreters, and they with it.
    NestKilled,
}

impl Fault {
    pub(crate) const ALL: [Fault; 7] = [
        Fault::Crash,
        Fault::PowerCut,
        Fault::DiskFull,
        Fault::ModelFails,
        Fault::ClockJumps,
        Fault::WorkerKilled,
        Fault::NestKilled,
    ];

    pub(crate) fn plural(self) -> &'static str {
        match self {
            Fault::Crash => "crashes",
            Fault::PowerCut => "power cuts",
            Fault::DiskFull => "full disks",
            Fault::ModelFails => "model failures",
            Fault::ClockJumps => "clock jumps",
            Fault::WorkerKilled => "workers killed",
            Fault::NestKilled => "nests killed",
        }
    }

    /// What is done, and when it counts as having struck, for whoever wonders how real it is.
    pub(crate) fn exactly(self) -> String {
        match self {
            Fault::Crash => {
                "the run's future is dropped where it waits, its store and nest with it; the process \
                 that holds them lives on"
                    .to_owned()
            }
            Fault::PowerCut => {
                "a crash, then the log is cut at a random byte behind its last acknowledged barrier; \
                 other files stay whole; counts if bytes were lost"
                    .to_owned()
            }
            Fault::DiskFull => format!(
                "RLIMIT_FSIZE at the log's length and up to {} bytes more, until the run stops: EFBIG, not ENOSPC, \
                 and the log alone is long enough to meet it; counts if an event was refused",
                ROOM - 1
            ),
            Fault::ModelFails => format!(
                "the next 1 to {REPLIES} replies are refused with status 503 or break off after 1 to {PIECES} \
                 pieces; counts if one did"
            ),
            Fault::ClockJumps => format!(
                "the run's wall clock is set up to {HOURS} h forward or back, while elapsed time goes on; counts if \
                 it was read afterwards"
            ),
            Fault::WorkerKilled => "SIGKILL to the workers that the nest has forked".to_owned(),
            Fault::NestKilled => "SIGKILL to the nest, then to the workers that it has forked".to_owned(),
        }
    }

    /// Whether a run that acts like this has what it takes to be hit.
    fn can_meet(self, action: ActionFormat) -> bool {
        match self {
            Fault::WorkerKilled | Fault::NestKilled => action == ActionFormat::Code,
            Fault::Crash | Fault::PowerCut | Fault::DiskFull | Fault::ModelFails | Fault::ClockJumps => true,
        }
    }

    /// Whether the program does not live on.
    pub(crate) fn is_deadly(self) -> bool {
        match self {
            Fault::Crash | Fault::PowerCut => true,
            Fault::DiskFull
            | Fault::ModelFails
            | Fault::ClockJumps
            | Fault::WorkerKilled
            | Fault::NestKilled => false,
        }
    }
}

/// A fault that waits for its moment in one attempt at a run.
#[derive(Debug, Clone)]
pub(crate) struct Blow {
    pub(crate) fault: Fault,
    /// After how many events of the attempt.
    pub(crate) after: u64,
    /// Its own, so that it is dealt in the same way whatever other blows came to.
    chance: fastrand::Rng,
}

impl Blow {
    pub(crate) fn new(action: ActionFormat, chance: &mut fastrand::Rng) -> Blow {
        let possible: Vec<Fault> = Fault::ALL.into_iter().filter(|fault| fault.can_meet(action)).collect();
        let fault = chance.choice(possible).unwrap();
        Blow { fault, after: chance.u64(2..20), chance: chance.fork() }
    }

    /// Whether there was something to strike at.
    fn strike(&mut self, around: &Surroundings<'_>) -> bool {
        let chance = &mut self.chance;
        match self.fault {
            Fault::Crash | Fault::PowerCut => {}
            Fault::DiskFull => {
                let length = std::fs::metadata(&around.log).unwrap().len();
                around.disk.fill(length + chance.u64(0..ROOM));
            }
            Fault::ModelFails => {
                let replies = chance.usize(1..=REPLIES);
                around.model.fail((0..replies).map(|_| chance.usize(0..=PIECES)).collect());
            }
            Fault::ClockJumps => around.clock.jump(chance.i64(-HOURS * 3600..=HOURS * 3600)),
            Fault::WorkerKilled => return around.family.kill_workers() > 0,
            Fault::NestKilled => return around.family.kill_nests() > 0,
        }
        true
    }

    /// Whether the run has met what was struck at.
    pub(crate) fn was_felt(&self, around: &Surroundings<'_>) -> bool {
        match self.fault {
            Fault::DiskFull => around.store.has_refused(),
            Fault::ModelFails => around.model.has_failed(),
            Fault::ClockJumps => around.clock.was_read(),
            Fault::Crash | Fault::PowerCut | Fault::WorkerKilled | Fault::NestKilled => true,
        }
    }

    /// Takes away the end of a log that was never synced, from somewhere in it on; no blow if there is none.
    pub(crate) fn cut(mut self, log: &Path, synced: u64) -> Option<Blow> {
        let bytes = std::fs::read(log).unwrap();
        let lines = bytes.split_inclusive(|byte| *byte == b'\n').take(synced as usize);
        let safe: usize = lines.map(<[u8]>::len).sum();
        if safe == bytes.len() {
            return None;
        }
        let length = self.chance.usize(safe..bytes.len());
        let file = std::fs::OpenOptions::new().write(true).open(log).unwrap();
        file.set_len(length as u64).unwrap();
        Some(self)
    }
}

/// Waits for the blow's moment and strikes; if there is nothing yet that it could hit, again at every event. Without a
/// blow it is waited for ever.
pub(crate) async fn fall(blow: Option<Blow>, around: &Surroundings<'_>) -> Blow {
    let Some(mut blow) = blow else { return pending().await };
    loop {
        around.store.bell.notified().await;
        if blow.strike(around) {
            return blow;
        }
    }
}
