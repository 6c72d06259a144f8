//! What it costs to have a session, in wall time and memory.

use std::time::{Duration, Instant};

use gimlet::cell::{CellEnd, CellEvent, Executor};
use gimlet_python::Warmth;

use super::process::{children, memory_kb};
use super::{executor, limited, run, spec};

/// Sessions that live at the same time.
const MANY: usize = 200;

/// How long after its limit a cell really ends: one that computes in Python, and one that hangs in a native operation, whose
/// worker is killed and replaced.
async fn overshoot() {
    const WALL: Duration = Duration::from_millis(300);
    for (what, code, bound) in [
        ("loop, past its limit", "while True: pass", Duration::from_millis(100)),
        ("hang, past its limit", "sum(range(10**13))", Duration::from_millis(500)),
    ] {
        let executor = limited(Warmth::Warm, WALL);
        let mut session = executor.start(&spec()).await.unwrap();
        let mut times = Vec::new();
        for _ in 0..5 {
            let began = Instant::now();
            let mut cell = session.cell(code).await.unwrap();
            let CellEvent::Ended(CellEnd::Limited { .. }) = cell.next().await.unwrap() else {
                panic!("{code}")
            };
            times.push(began.elapsed().saturating_sub(WALL));
        }
        Times(times).show(what, bound);
    }
}

struct Times(Vec<Duration>);

impl Times {
    fn show(mut self, what: &str, bound: Duration) {
        self.0.sort();
        let (best, median) = (self.0[0], self.0[self.0.len() / 2]);
        println!("{what:<24}{best:>12.2?}{median:>12.2?}{bound:>12.2?}");
    }
}

pub(crate) async fn show() {
    println!("{:<24}{:>12}{:>12}{:>12}", "", "best", "median", "bound");
    let cold = executor(Warmth::Cold);
    let mut starts = Vec::new();
    for _ in 0..20 {
        let began = Instant::now();
        drop(cold.start(&spec()).await.unwrap());
        starts.push(began.elapsed());
    }
    Times(starts).show("cold session start", Duration::from_millis(50));

    let warm = executor(Warmth::Warm);
    // The first start waits for the nest; what is measured is a start after it.
    drop(warm.start(&spec()).await.unwrap());
    let mut starts = Vec::new();
    for _ in 0..100 {
        let began = Instant::now();
        drop(warm.start(&spec()).await.unwrap());
        starts.push(began.elapsed());
    }
    Times(starts).show("warm session start", Duration::from_millis(3));

    let mut session = cold.start(&spec()).await.unwrap();
    let mut cells = Vec::new();
    for _ in 0..1000 {
        let began = Instant::now();
        run(&mut *session, "1 + 1").await;
        cells.push(began.elapsed());
    }
    Times(cells).show("trivial cell", Duration::from_micros(300));

    let mut calls = Vec::new();
    for _ in 0..20 {
        let began = Instant::now();
        run(&mut *session, "for _ in range(500):\n    echo(1)").await;
        calls.push(began.elapsed() / 500);
    }
    Times(calls).show("tool call over the pipe", Duration::from_micros(50));
    drop(session);
    overshoot().await;

    let began = Instant::now();
    let mut sessions = Vec::new();
    for number in 0..MANY {
        let mut session = warm.start(&spec()).await.unwrap();
        run(&mut *session, &format!("import json\nmine = {number}")).await;
        sessions.push(session);
    }
    let took = began.elapsed();
    let nest = children("self").into_iter().max_by_key(|pid| children(pid).len()).unwrap();
    let workers = children(&nest);
    let mut private: Vec<u64> = workers.iter().filter_map(|pid| memory_kb(pid, "Private_")).collect();
    private.sort_unstable();
    let together: u64 = workers.iter().chain([&nest]).filter_map(|pid| memory_kb(pid, "Pss:")).sum();
    println!(
        "\n{MANY} sessions started and used one after the other in {took:.2?}; {} live at once, {} MB together with their nest",
        private.len(),
        together >> 10
    );
    println!(
        "private memory of an idle session: median {:.2} MB, most {:.2} MB (bound 4 MB)",
        private[private.len() / 2] as f64 / 1024.0,
        private[private.len() - 1] as f64 / 1024.0
    );
}
