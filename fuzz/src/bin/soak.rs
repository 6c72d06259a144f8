//! Drives a target with random and mutated inputs for a while, without coverage and on any compiler.
//!
//! `soak TARGET SECONDS SEED`. The same seed makes the same inputs; a finding panics and shows its input first.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use gimlet_fuzz::TARGETS;

/// A small generator with a state of one word.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most.max(1) as u64) as usize
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most)).map(|_| self.next() as u8).collect()
    }

    /// A seed with a few bytes changed, cut, doubled or put in.
    fn mutated(&mut self, seed: &[u8]) -> Vec<u8> {
        let mut data = seed.to_vec();
        for _ in 0..=self.below(6) {
            let at = self.below(data.len() + 1);
            match self.below(4) {
                0 if at < data.len() => data[at] = self.next() as u8,
                1 => drop(data.drain(at..(at + self.below(8)).min(data.len()))),
                2 => {
                    let some = data[at..(at + self.below(16)).min(data.len())].to_vec();
                    data.splice(at..at, some);
                }
                _ => {
                    let some = self.bytes(6);
                    data.splice(at..at, some);
                }
            }
        }
        data
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, seconds, seed] = args.as_slice() else {
        let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
        eprintln!("usage: soak TARGET SECONDS SEED\ntargets: {}", names.join(", "));
        std::process::exit(2);
    };
    let (_, run) = TARGETS.iter().find(|(known, _)| known == name).expect("a target's name");
    let seconds = Duration::from_secs(seconds.parse().expect("a number of seconds"));
    let mut chance =
        Chance(seed.parse::<u64>().expect("a number as seed").wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut seeds: Vec<_> = std::fs::read_dir(corpus)
        .map(|entries| {
            entries.flatten().filter_map(|entry| Some((entry.path(), std::fs::read(entry.path()).ok()?)))
        })
        .map(Iterator::collect)
        .unwrap_or_default();
    seeds.sort();

    let began = Instant::now();
    let mut met: BTreeMap<&str, u64> = BTreeMap::new();
    while began.elapsed() < seconds {
        let data = match seeds.get(chance.below(seeds.len() * 2)) {
            Some((_, seed)) => chance.mutated(seed),
            None => chance.bytes(64),
        };
        let how = catch_unwind(AssertUnwindSafe(|| run(&data))).unwrap_or_else(|finding| {
            eprintln!("FOUND by {name} with {:?}", String::from_utf8_lossy(&data));
            resume_unwind(finding)
        });
        *met.entry(how).or_default() += 1;
    }
    let total: u64 = met.values().sum();
    println!("{name}: {total} inputs in {} s, nothing found", began.elapsed().as_secs());
    for (how, count) in met {
        println!("{count:>10}  {how}");
    }
}
