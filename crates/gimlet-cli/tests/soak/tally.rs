//! What a soak has seen, in numbers for people.

use std::collections::BTreeMap;
use std::fmt;

use crate::faults::Fault;
use crate::story::{Story, Told};

#[derive(Default)]
pub(crate) struct Tally {
    planned: BTreeMap<Fault, u64>,
    struck: BTreeMap<Fault, u64>,
    resumes: u64,
    unknown: u64,
    unmade: u64,
}

impl Tally {
    /// Takes note of what is to happen.
    pub(crate) fn plan(&mut self, story: &Story) {
        for fault in story.planned() {
            *self.planned.entry(fault).or_default() += 1;
        }
    }

    /// Takes note of what has happened.
    pub(crate) fn add(&mut self, told: &Told) {
        for fault in &told.struck {
            *self.struck.entry(*fault).or_default() += 1;
        }
        self.resumes += told.resumes;
        self.unknown += told.marks.unknown;
        self.unmade += told.marks.unmade;
    }

    pub(crate) fn assert_all_struck(&self) {
        for fault in Fault::ALL {
            assert!(self.struck.contains_key(&fault), "none of the {} struck", fault.plural());
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "faults that struck, of those planned; before the others the run had ended:")?;
        for fault in Fault::ALL {
            let count = |counts: &BTreeMap<Fault, u64>| counts.get(&fault).copied().unwrap_or_default();
            let (struck, planned) = (count(&self.struck), count(&self.planned));
            writeln!(f, "{struck:>6} of {planned:>4} {}: {}", fault.plural(), fault.exactly())?;
        }
        let Tally { resumes, unknown, unmade, .. } = self;
        writeln!(f, "what came of it; no mark was made twice:")?;
        writeln!(f, "{resumes:>6} times a run was taken up again")?;
        writeln!(f, "{unknown:>6} calls told to the model as of unknown outcome")?;
        write!(f, "{unmade:>6} marks not made, each of unknown outcome or in a cell whose interpreter died")
    }
}
