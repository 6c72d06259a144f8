//! The rules of one author, in their order, found by the program they are about.

use super::Rule;
use super::index::Index;
use crate::shell::{Certainty, Word};

/// Rules of one author.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleSet {
    rules: Vec<Rule>,
    index: Index,
}

impl RuleSet {
    pub(crate) fn new(rules: Vec<Rule>) -> Self {
        let index = Index::new(rules.iter().map(|rule| rule.program.as_slice()));
        RuleSet { rules, index }
    }

    /// These rules, then others.
    pub(crate) fn with(mut self, more: RuleSet) -> Self {
        self.rules.extend(more.rules);
        RuleSet::new(self.rules)
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Rule> {
        self.rules.iter()
    }

    /// The rules about a program, in their order.
    pub(crate) fn about<'a>(&'a self, program: &'a Word) -> impl Iterator<Item = &'a Rule> {
        let places = match program.certainty {
            Certainty::Glob => self.index.all(),
            Certainty::Literal
            | Certainty::Resolved
            | Certainty::Match
            | Certainty::Variable
            | Certainty::Unknown => self.index.about(&program.text),
        };
        places.iter().filter_map(|place| self.rules.get(*place)).filter(|rule| rule.names(program))
    }
}
