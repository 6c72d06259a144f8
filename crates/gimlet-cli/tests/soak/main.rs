//! Many runs in one process while everything around them breaks: the model, the Python worker, the disk, the clock and
//! the log. Every run must come to its answer with each effect done once, nothing acknowledged may be lost, and the
//! process must not grow.
//!
//! A short soak is part of the tests. `cargo soak-runs` makes the long one: `GIMLET_SOAK_RUNS` runs (2000) from
//! `GIMLET_SOAK_SEED` (1), and prints what it saw.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test reports, and fails loudly"
)]

mod faults;
mod gauge;
mod story;

use std::collections::BTreeMap;

use faults::Fault;
use gauge::Gauge;
use story::Story;
use tokio::signal::unix::{SignalKind, signal};

/// Ends a write beyond the limit with an error instead of ending the process; the kernel's number for SIGXFSZ.
const FILE_TOO_LARGE: i32 = 25;

async fn soak(runs: u64, seed: u64) {
    let _caught = signal(SignalKind::from_raw(FILE_TOO_LARGE)).unwrap();
    let mut chance = fastrand::Rng::with_seed(seed);
    let mut seen: BTreeMap<&'static str, u64> = BTreeMap::new();
    let mut gauges = Vec::new();
    for number in 0..runs {
        let story = Story::new(number, &mut chance);
        let told = story.run(&mut chance).await;
        for fault in &told.faults {
            *seen.entry(fault.word()).or_default() += 1;
        }
        *seen.entry("taken up again").or_default() += told.resumes;
        *seen.entry("outcomes unknown").or_default() += told.unknown;
        if (number + 1) % (runs / 10).max(1) == 0 {
            let gauge = Gauge::read();
            println!("{:>6} runs: {gauge}", number + 1);
            gauges.push(gauge);
        }
    }
    println!("seed {seed}: {runs} runs answered, every effect done once");
    for (what, times) in &seen {
        println!("{times:>6} {what}");
    }
    for fault in Fault::ALL {
        assert!(seen.contains_key(fault.word()), "{} never happened", fault.word());
    }
    gauge::assert_no_growth(&gauges);
}

#[tokio::test]
async fn a_short_soak() {
    soak(60, 7).await;
}

#[tokio::test]
#[ignore = "minutes; `cargo soak-runs` runs it"]
async fn a_long_soak() {
    let number = |name: &str, otherwise| std::env::var(name).map_or(otherwise, |text| text.parse().unwrap());
    soak(number("GIMLET_SOAK_RUNS", 2000), number("GIMLET_SOAK_SEED", 1)).await;
}
