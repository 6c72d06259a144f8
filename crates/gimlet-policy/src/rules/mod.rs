//! Rules are data: which program, with which options and operands, gets which verdict, and why.
//!
//! Every rule carries examples of what it decides and what it leaves alone, so a rule that does not do what its
//! author thinks is found before it is used.

pub(crate) mod flags;
mod index;
mod load;
mod scripts;
mod set;
mod shipped;

pub use load::{ExampleFailure, RulesError};
pub(crate) use load::{Expected, Loaded, Shape, load};
pub(crate) use set::RuleSet;
pub(crate) use shipped::{Builtin, Inner, Wrapper, builtin};

use serde::Serialize;

use crate::glob;
use crate::shell::{Certainty, Word};
use flags::{Arguments, Flag, Known, Order, Style};

/// What a rule says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Say {
    /// Go ahead.
    Allow,
    /// Go ahead if a jail is around it, else ask: for what runs code of the repository.
    AllowInJail,
    /// A person must agree.
    Ask,
    /// Never.
    Deny,
}

/// What a program's operands are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operands {
    /// There are none.
    None,
    /// Words that name nothing.
    Text,
    /// Paths that are named but not opened.
    Names,
    /// The same, and places of the system whose names everyone may know are fine too.
    Listed,
    /// Paths whose contents are read.
    Reads,
    /// A pattern, then paths that are read.
    Pattern,
    /// Revisions or paths, as git takes them; no contents are shown.
    Revisions,
    /// The same, and uncommitted changes are shown: everything else needs paths.
    Changes,
    /// The same, and one commit is shown: more needs paths.
    Commit,
    /// The same, and contents of any age are shown: it needs paths.
    History,
    /// A pattern, then the same.
    Grep,
    /// Paths that are changed.
    Writes,
    /// Paths that are read, then one that is written.
    Copies,
    /// Paths that are removed, then one that is written.
    Moves,
    /// A sed script that only prints, then paths that are read.
    Lines,
    /// An awk program that only prints, then paths that are read.
    Program,
}

/// Who wrote a rule, which decides what it may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Author {
    /// Shipped with Gimlet.
    Builtin,
    /// The user: may loosen a question, never a denial.
    User,
    /// The project: may only tighten.
    Project,
}

/// One rule.
#[derive(Debug, Clone, Serialize)]
pub struct Rule {
    /// Its name, unique among rules of one author.
    pub id: String,
    /// Who wrote it.
    pub author: Author,
    /// The file it stands in.
    pub source: String,
    /// Programs it is about; patterns such as `mkfs.*` are fine.
    pub program: Vec<String>,
    /// First operands it is about, such as `status` for git; empty means any.
    pub subcommand: Vec<String>,
    /// Groups of options that must all be present: `-r|-R|--recursive`.
    pub with: Vec<String>,
    /// Patterns of which some argument must fit one.
    pub args: Vec<String>,
    /// The verdict.
    pub verdict: Say,
    /// Why, for people.
    pub reason: String,
    /// What its operands are, if it cares.
    pub operands: Option<Operands>,
    /// Commands it decides.
    #[serde(rename = "match")]
    pub matches: Vec<String>,
    /// Commands it leaves alone.
    pub not_match: Vec<String>,
    /// The only options it accepts; none means any.
    #[serde(skip)]
    pub(crate) flags: Option<Vec<Flag>>,
    /// Options that may stand before the subcommand.
    #[serde(skip)]
    pub(crate) global: Vec<Flag>,
    /// The only options it accepts after `--`, where they are another program's; none means that all are operands.
    #[serde(skip)]
    pub(crate) passed: Option<Vec<Flag>>,
    /// How the program reads options.
    #[serde(skip)]
    pub(crate) style: Style,
    /// Patterns of which every operand must fit one; empty means any.
    #[serde(skip)]
    pub(crate) only: Vec<String>,
    /// Patterns that no argument may fit.
    #[serde(skip)]
    pub(crate) not_args: Vec<String>,
    /// Options with which it reads every file below its operands: `-r|-R`.
    #[serde(skip)]
    pub(crate) walks: Option<String>,
    /// Most operands.
    #[serde(skip)]
    pub(crate) at_most: Option<usize>,
    /// Whether an argument that cannot be known counts as fitting `args`.
    #[serde(skip)]
    pub(crate) unknown_fits: bool,
}

impl Rule {
    /// Whether it is about this program.
    pub(crate) fn names(&self, program: &Word) -> bool {
        self.program.iter().any(|pattern| match (self.verdict, program.certainty) {
            (Say::Deny, Certainty::Glob) => glob::could_match(pattern, &program.text),
            (Say::Deny, _) => glob::matches(pattern, &program.text),
            // `LS` may be something else than `ls`, so only denials ignore case.
            (Say::Allow | Say::AllowInJail | Say::Ask, _) => {
                pattern == &program.text || (pattern.contains('*') && glob::matches(pattern, &program.text))
            }
        })
    }

    /// The words after the subcommand, if the rule is about this one.
    pub(crate) fn after_subcommand<'a>(&self, words: &'a [Word]) -> Option<&'a [Word]> {
        if self.subcommand.is_empty() {
            return Some(words);
        }
        // Most rules are about another subcommand; then there is nothing to sort.
        let starts = |subcommand: &String| {
            let first = subcommand.split(' ').next().unwrap_or_default();
            words.iter().any(|word| word.text == first)
        };
        if !self.subcommand.iter().any(starts) {
            return None;
        }
        // For a denial any option may come first; to allow, only those that are listed, and none before `-m pytest`.
        let start = match self.verdict {
            _ if self.subcommand.iter().any(|subcommand| subcommand.starts_with('-')) => 0,
            Say::Deny => words.iter().position(|word| !word.text.starts_with('-'))?,
            Say::Allow | Say::AllowInJail | Say::Ask => {
                let sorted = flags::sort(&self.global, words, Order::OptionsFirst);
                if !sorted.unknown.is_empty() && self.verdict != Say::Ask {
                    return None;
                }
                sorted.leading
            }
        };
        let rest = words.get(start..)?;
        self.subcommand.iter().find_map(|subcommand| {
            let mut after = rest;
            for part in subcommand.split(' ') {
                let (word, further) = after.split_first()?;
                if part != word.text {
                    return None;
                }
                after = further;
            }
            Some(after)
        })
    }

    /// The operands, as far as the options are understood.
    pub(crate) fn sort<'a>(&'a self, words: &'a [Word]) -> Arguments<'a> {
        let flags = self.flags.as_deref().unwrap_or_default();
        let known = Known { flags, passed: self.passed.as_deref(), style: self.style };
        flags::sort_by(known, words, Order::Mixed)
    }

    /// Whether options and arguments are those it is about.
    pub(crate) fn accepts(&self, words: &[Word]) -> bool {
        let strict = self.flags.is_some();
        let must_be_understood = strict && matches!(self.verdict, Say::Allow | Say::AllowInJail);
        if !must_be_understood && !self.with.iter().all(|group| flags::has_any(group, words)) {
            return false;
        }
        let fits = |word: &Word| {
            (self.unknown_fits && !word.is_known())
                || self.args.iter().any(|pattern| glob::matches(pattern, &word.text))
        };
        if !self.args.is_empty() && !words.iter().any(fits) {
            return false;
        }
        if words.iter().any(|word| self.not_args.iter().any(|pattern| glob::matches(pattern, &word.text))) {
            return false;
        }
        let sorted = self.sort(words);
        // To allow, an option that must be there has to be one that was understood, not the value of another.
        let understood = |group: &String| group.split('|').any(|name| sorted.known.contains(&name));
        if must_be_understood && !self.with.iter().all(understood) {
            return false;
        }
        let listed = |word: &&Word| {
            self.only.is_empty()
                || (word.is_known() && self.only.iter().any(|pattern| glob::matches(pattern, &word.text)))
        };
        (!strict || sorted.unknown.is_empty())
            && sorted.operands.iter().all(listed)
            && self.at_most.is_none_or(|most| sorted.operands.len() <= most)
            && match self.operands {
                Some(Operands::None) => sorted.operands.is_empty(),
                Some(Operands::Lines) => all_scripts(&sorted, scripts::sed_only_prints),
                Some(Operands::Program) => all_scripts(&sorted, scripts::awk_only_prints),
                Some(
                    Operands::Text
                    | Operands::Listed
                    | Operands::Changes
                    | Operands::Commit
                    | Operands::History
                    | Operands::Grep
                    | Operands::Names
                    | Operands::Reads
                    | Operands::Pattern
                    | Operands::Revisions
                    | Operands::Writes
                    | Operands::Copies
                    | Operands::Moves,
                )
                | None => true,
            }
    }
}

/// Whether every script is harmless: those given by options, or else the first operand.
fn all_scripts(sorted: &Arguments<'_>, harmless: fn(&str) -> bool) -> bool {
    match sorted.scripts.is_empty() {
        true => sorted.operands.first().is_some_and(|word| harmless(&word.text)),
        false => sorted.scripts.iter().all(|word| harmless(&word.text)),
    }
}
