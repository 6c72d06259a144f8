//! What a session costs, and how its speed compares with CPython's on this machine in the same run.
//!
//! `cargo bench -p gimlet-python` prints two tables. CPython is the `python3` on the path; without one only our
//! times are shown.
#![expect(clippy::print_stdout, reason = "a bench prints its results")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a bench has nobody to report to")]

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gimlet::cell::{CellEnd, CellEvent, Executor, Session, SessionSpec};
use gimlet::tool::{Manner, ToolSpec};
use gimlet_python::{Program, PythonConfig, PythonExecutor, Warmth};
use serde_json::json;

const WORK: &[(&str, &str)] = &[
    ("loop", "t = 0\nfor i in range(400000):\n    t += i * 2"),
    ("recursion", "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\nfib(24)"),
    ("comprehension", "for _ in range(5):\n    x = [i * i for i in range(60000) if i % 3]"),
    ("dict churn", "d = {}\nfor i in range(150000):\n    d[i % 1000] = d.get(i % 1000, 0) + i"),
    ("list churn", "x = []\nfor i in range(200000):\n    x.append(i)\n    if len(x) > 100:\n        x.pop()"),
    ("sort", "x = [(i * 7919) % 100003 for i in range(100000)]\nx.sort()\nsorted(x, key=lambda v: -v)"),
    (
        "strings",
        "p = []\nfor i in range(80000):\n    p.append(f'{i}:{i * 2}')\ns = ','.join(p)\nlen(s.split(','))",
    ),
];

fn config(warmth: Warmth) -> PythonConfig {
    let path = env!("CARGO_BIN_EXE_gimlet-python-worker").into();
    let mut config = PythonConfig::new(Program { path, args: Vec::new() });
    config.limits.calls = 1_000_000;
    config.warmth = warmth;
    config
}

fn spec() -> SessionSpec {
    let echo = ToolSpec {
        name: "echo".into(),
        description: "Gives its argument back.".into(),
        input: json!({"type": "object", "properties": {"value": {}}, "required": ["value"]}),
        output: None,
        manner: Manner::default(),
    };
    SessionSpec { tools: vec![Arc::new(echo)].into(), seed: 1, epoch_ms: 0 }
}

async fn run(session: &mut dyn Session, code: &str) {
    let mut cell = session.cell(code).await.unwrap();
    loop {
        match cell.next().await.unwrap() {
            CellEvent::Printed { .. } => {}
            CellEvent::HostCall { id, args, .. } => cell.resume(id, Ok(args["value"].clone())).await.unwrap(),
            CellEvent::Ended(CellEnd::Done { .. }) => return,
            CellEvent::Ended(end) => panic!("{code}: {end:?}"),
        }
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Seconds that CPython takes for the code, best of three, measured inside it.
fn cpython(code: &str) -> Option<f64> {
    let program = format!(
        "import time\ncode = compile({code:?}, 'x', 'exec')\nbest = 9e9\nfor _ in range(3):\n    t = time.perf_counter()\n    exec(code, {{}})\n    best = min(best, time.perf_counter() - t)\nprint(best)"
    );
    let output = Command::new("python3").args(["-c", &program]).stderr(Stdio::null()).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut times = Vec::new();
    let cold = PythonExecutor::new(config(Warmth::Cold));
    for _ in 0..10 {
        let began = Instant::now();
        let session = cold.start(&spec()).await.unwrap();
        times.push(began.elapsed());
        drop(session);
    }
    println!("cold session start      {:>9.2?}", median(std::mem::take(&mut times)));

    let warm = PythonExecutor::new(config(Warmth::Warm));
    warm.warm_up();
    for _ in 0..6 {
        // The spare needs a moment to load its modules; what is measured is a start after it.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let began = Instant::now();
        let session = warm.start(&spec()).await.unwrap();
        times.push(began.elapsed());
        drop(session);
    }
    println!("warm session start      {:>9.2?}", median(std::mem::take(&mut times)));

    let mut session = cold.start(&spec()).await.unwrap();
    for _ in 0..500 {
        let began = Instant::now();
        run(&mut *session, "1 + 1").await;
        times.push(began.elapsed());
    }
    println!("trivial cell            {:>9.2?}", median(std::mem::take(&mut times)));
    let began = Instant::now();
    run(&mut *session, "for _ in range(5000):\n    echo(1)").await;
    println!("host call               {:>9.2?}", began.elapsed() / 5000);

    println!("\n{:<16}{:>10}{:>10}{:>8}", "", "ours ms", "cpython", "ratio");
    let (mut product, mut count) = (1.0, 0);
    for (name, code) in WORK {
        let mut best = f64::MAX;
        for _ in 0..3 {
            let began = Instant::now();
            run(&mut *session, code).await;
            best = best.min(began.elapsed().as_secs_f64());
        }
        match cpython(code) {
            Some(theirs) => {
                product *= best / theirs;
                count += 1;
                println!("{name:<16}{:>10.1}{:>10.1}{:>8.2}", best * 1e3, theirs * 1e3, best / theirs);
            }
            None => println!("{name:<16}{:>10.1}", best * 1e3),
        }
    }
    if count > 0 {
        println!("geometric mean of the ratio: {:.2}", f64::powf(product, 1.0 / f64::from(count)));
    }
}
