//! How fast code is, in processor time, beside other interpreters. Rounds are interleaved, so that what the machine does
//! meanwhile meets all of them alike; the best round of each counts.

use gimlet::cell::Executor;
use gimlet_python::Warmth;

use super::process::{children, cpu};
use super::rival::Rival;
use super::{executor, run, spec};

/// The programs of `bench/run`, which compares whole processes.
macro_rules! work {
    ($($name:literal),*) => {
        &[$(($name, include_str!(concat!("../../../../bench/programs/", $name, ".py")))),*]
    };
}

const WORK: &[(&str, &str)] =
    work!["loop", "recursion", "comprehension", "dict_churn", "list_churn", "sort", "strings"];

/// Geometric mean of ratios, as they come.
#[derive(Default)]
struct Mean {
    logarithms: f64,
    count: u32,
}

impl Mean {
    fn add(&mut self, ratio: f64) {
        self.logarithms += ratio.ln();
        self.count += 1;
    }

    fn value(&self) -> f64 {
        (self.logarithms / f64::from(self.count)).exp()
    }
}

pub(crate) async fn show() {
    let python = std::env::var("GIMLET_BENCH_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    match Rival::start(&python, &[]) {
        Some(rival) => {
            let ratio = beside(rival, 25).await;
            println!("geometric mean: {ratio:.2} times its time (bound 2.5)");
        }
        None => println!("\nSKIPPED: there is no {python} to compare with"),
    }
    match std::env::var("GIMLET_BENCH_SMOLAGENTS") {
        Ok(python) => match Rival::start(&python, &["smolagents"]) {
            Some(rival) => {
                let ratio = beside(rival, 2).await;
                println!("geometric mean: {:.0} times faster (bound 30)", 1.0 / ratio);
            }
            None => panic!("{python} has no smolagents"),
        },
        Err(_) => println!(
            "\nSKIPPED: smolagents. Name a Python that has it with GIMLET_BENCH_SMOLAGENTS; \
             python3 -m venv V && V/bin/pip install smolagents makes V/bin/python one"
        ),
    }
}

/// Prints our time and the rival's for every program; the geometric mean of ours by theirs.
async fn beside(mut rival: Rival, rounds: usize) -> f64 {
    println!("\nprocessor time beside {}, best of {rounds}", rival.name);
    println!("{:<16}{:>10}{:>10}{:>8}", "", "ours ms", "theirs ms", "ratio");
    let before = children("self");
    let mut session = executor(Warmth::Cold).start(&spec()).await.unwrap();
    let worker = children("self").into_iter().find(|pid| !before.contains(pid)).unwrap();
    let mut mean = Mean::default();
    for (name, code) in WORK {
        let (mut ours, mut theirs) = (f64::MAX, f64::MAX);
        for _ in 0..rounds {
            let begun = cpu(&worker);
            run(&mut *session, code).await;
            ours = ours.min((cpu(&worker) - begun).as_secs_f64());
            theirs = theirs.min(rival.seconds(code));
        }
        mean.add(ours / theirs);
        println!("{name:<16}{:>10.1}{:>10.1}{:>8.2}", ours * 1e3, theirs * 1e3, ours / theirs);
    }
    mean.value()
}
