//! Many runs in one process while everything around them breaks. Every run must come to its answer with no effect done
//! twice, nothing acknowledged may be lost, no process may be left behind, and this one must not grow.
//!
//! Workers and their nest are really killed; the rest is made: a crash is a dropped future, a power cut a log cut off
//! behind its last barrier, a full disk a limit on the size of files. [`faults::Fault::exactly`] has it all, and is printed.
//! A short soak is a test; `cargo soak-runs` makes `GIMLET_SOAK_RUNS` runs (2000) from `GIMLET_SOAK_SEED` (1).
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test reports, and fails loudly"
)]

mod check;
mod family;
mod faults;
mod gauge;
mod story;
mod surroundings;
mod tally;

use std::time::{Duration, Instant};

use family::Family;
use gauge::Gauge;
use story::Story;
use tally::Tally;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;

/// Ends a write beyond the limit with an error instead of ending the process; the kernel's number for SIGXFSZ.
const FILE_TOO_LARGE: i32 = 25;
/// How many runs a short soak needs to meet every fault.
const SHORT: u64 = 60;
/// Longer than anything here takes on the slowest machine: a bound to fail by, not to measure with.
const PATIENCE: Duration = Duration::from_secs(120);

/// The limit on files and what the gauges read belong to the whole process: one soak at a time.
static ALONE: Mutex<()> = Mutex::const_new(());

async fn soak(runs: u64, seed: u64) {
    let _alone = ALONE.lock().await;
    let _caught = signal(SignalKind::from_raw(FILE_TOO_LARGE)).unwrap();
    let family = Family::new();
    let mut chance = fastrand::Rng::with_seed(seed);
    let mut tally = Tally::default();
    let mut gauges = Vec::new();
    for number in 0..runs {
        // Chances of its own, so that what comes of one story does not change the next.
        let story = Story::new(number, chance.fork());
        let _failing = Failing(&story);
        tally.plan(&story);
        tally.add(&story.run(&family).await);
        if (number + 1) % (runs / 10).max(1) == 0 {
            let gauge = Gauge::read(&family);
            println!("{:>6} runs: {gauge}", number + 1);
            gauges.push(gauge);
        }
    }
    println!("seed {seed}: {runs} runs answered\n{tally}");
    if runs >= SHORT {
        tally.assert_all_struck();
        gauge::assert_no_growth(&gauges);
    }
}

/// Tells the plan of a story that fails, for whoever wants to see it again.
struct Failing<'a>(&'a Story);

impl Drop for Failing<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{:?}", self.0);
        }
    }
}

/// Waits until it is so; what it says instead is why it never was.
async fn eventually(so: impl Fn() -> Result<(), String>) {
    let begun = Instant::now();
    while let Err(why) = so() {
        assert!(begun.elapsed() < PATIENCE, "{why}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_short_soak() {
    soak(SHORT, 7).await;
}

#[tokio::test]
#[ignore = "minutes; `cargo soak-runs` runs it"]
async fn a_long_soak() {
    let number = |name: &str, otherwise| std::env::var(name).map_or(otherwise, |text| text.parse().unwrap());
    soak(number("GIMLET_SOAK_RUNS", 2000), number("GIMLET_SOAK_SEED", 1)).await;
}
