//! Inputs by chance, without coverage and on any compiler.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::Run;

/// A small generator with a state of one word.
pub struct Chance(u64);

impl Chance {
    /// The same seed makes the same inputs.
    pub fn from_seed(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A mutated seed, or something else altogether.
    pub fn input(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        match seeds.get(self.below(seeds.len() * 2)) {
            Some(seed) => self.mutated(seed),
            None => self.bytes(64),
        }
    }

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

/// The seeds of a target, in the order of their names.
pub fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

/// Gives a target one input; a finding shows it before it panics.
pub fn one(target: &str, run: Run, data: &[u8]) -> &'static str {
    catch_unwind(AssertUnwindSafe(|| run(data))).unwrap_or_else(|finding| {
        eprintln!("FOUND by {target} with {:?}", String::from_utf8_lossy(data));
        resume_unwind(finding)
    })
}
