//! Drives a target with random and mutated inputs for a while, without coverage and on any compiler.
//!
//! `soak TARGET SECONDS SEED`. The same seed makes the same inputs; a finding panics and shows its input first.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use gimlet_fuzz::TARGETS;
use gimlet_fuzz::chance::{Chance, corpus, one};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, seconds, seed] = args.as_slice() else {
        let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
        eprintln!("usage: soak TARGET SECONDS SEED\ntargets: {}", names.join(", "));
        std::process::exit(2);
    };
    let (_, run) = TARGETS.iter().find(|(known, _)| known == name).expect("a target's name");
    let seconds = Duration::from_secs(seconds.parse().expect("a number of seconds"));
    let mut chance = Chance::from_seed(seed.parse().expect("a number as seed"));
    let seeds = corpus(name);

    let began = Instant::now();
    let mut met: BTreeMap<&str, u64> = BTreeMap::new();
    while began.elapsed() < seconds {
        let how = one(name, *run, &chance.input(&seeds));
        *met.entry(how).or_default() += 1;
    }
    let total: u64 = met.values().sum();
    println!("{name}: {total} inputs in {} s, nothing found", began.elapsed().as_secs());
    for (how, count) in met {
        println!("{count:>10}  {how}");
    }
}
