//! Which of many things may be about a program: a command concerns a handful of rules, not all of them.

use std::collections::HashMap;

use crate::glob;

/// Places of things, by the names of programs they are about. What it gives are candidates in their order: a thing that
/// is about the program is always among them, others may be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    /// By a program's name in small letters: what names it, and what has a pattern.
    by_name: HashMap<String, Vec<usize>>,
    /// What has a pattern, for every other name.
    patterns: Vec<usize>,
    /// Everything, for a program that is itself a pattern.
    all: Vec<usize>,
}

impl Index {
    /// An index of things, each given as the names and patterns it is about.
    pub(crate) fn new<'a>(things: impl Iterator<Item = &'a [String]>) -> Self {
        let things: Vec<&[String]> = things.collect();
        let places = |fits: &dyn Fn(&[String]) -> bool| -> Vec<usize> {
            things.iter().enumerate().filter(|(_, names)| fits(names)).map(|(place, _)| place).collect()
        };
        let has_pattern = |names: &[String]| names.iter().any(|name| glob::is_pattern(name));
        let about = |name: &String| {
            let named = |names: &[String]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
            (name.to_ascii_lowercase(), places(&|names| has_pattern(names) || named(names)))
        };
        Index {
            by_name: things.iter().copied().flatten().map(about).collect(),
            patterns: places(&has_pattern),
            all: (0..things.len()).collect(),
        }
    }

    /// What may be about a program of this name.
    pub(crate) fn about(&self, name: &str) -> &[usize] {
        self.by_name.get(&name.to_ascii_lowercase()).unwrap_or(&self.patterns)
    }

    /// What may be about a program whose name a shell makes from a pattern.
    pub(crate) fn all(&self) -> &[usize] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_fits_is_left_out() {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let things = [texts(&["ls", "RM"]), texts(&["mkfs.*", "dd"]), texts(&["rm"]), texts(&["cat"])];
        let index = Index::new(things.iter().map(Vec::as_slice));
        for name in ["ls", "LS", "rm", "Rm", "dd", "cat", "mkfs.ext4", "other", ""] {
            let fits = |place: &usize| things[*place].iter().any(|known| glob::matches(known, name));
            let expected: Vec<usize> = (0..things.len()).filter(fits).collect();
            let found: Vec<usize> = index.about(name).iter().copied().filter(fits).collect();
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(index.about("rm"), [0, 1, 2]);
        assert_eq!(index.all(), [0, 1, 2, 3]);
    }
}
