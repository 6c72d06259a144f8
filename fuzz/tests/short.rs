//! Every target over its seeds and some hundred inputs by chance, so that none rots and none has a cheap finding.

use gimlet_fuzz::TARGETS;
use gimlet_fuzz::chance::{Chance, corpus, one};

#[test]
fn a_short_run_of_every_target_finds_nothing() {
    for (name, run) in TARGETS {
        let seeds = corpus(name);
        assert!(!seeds.is_empty(), "{name} has no seeds");
        if *name == "python_worker" {
            // It needs a worker's program; the Python sandbox's own tests feed one at random.
            continue;
        }
        for seed in &seeds {
            one(name, *run, seed);
        }
        let mut chance = Chance::from_seed(1);
        for _ in 0..400 {
            one(name, *run, &chance.input(&seeds));
        }
    }
}
