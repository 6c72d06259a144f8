//! Rules are data: which program, with which options and operands, gets which verdict, and why.
//!
//! Every rule carries examples of what it decides and what it leaves alone, so a rule that does not do what its
//! author thinks is found before it is used.

pub(crate) mod flags;
mod index;
mod load;
mod set;
mod shipped;

pub use load::{ExampleFailure, RulesError};
pub(crate) use load::{Expected, Loaded, Shape, load};
pub(crate) use set::RuleSet;
pub(crate) use shipped::{Builtin, Inner, Wrapper, builtin};

use serde::Serialize;

use crate::glob;
use crate::shell::{Certainty, Word};
use flags::{Arguments, Flag, Order};

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
    /// Paths whose contents are read.
    Reads,
    /// A pattern, then paths that are read.
    Pattern,
    /// Revisions or paths, as git takes them.
    Revisions,
    /// Paths that are changed.
    Writes,
    /// Paths that are read, then one that is written.
    Copies,
    /// Paths that are removed, then one that is written.
    Moves,
    /// A line range to print, then paths that are read.
    Lines,
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
        flags::sort(self.flags.as_deref().unwrap_or_default(), words, Order::Mixed)
    }

    /// Whether options and arguments are those it is about.
    pub(crate) fn accepts(&self, words: &[Word]) -> bool {
        if !self.with.iter().all(|group| flags::has_any(group, words)) {
            return false;
        }
        let fits = |word: &Word| {
            (self.unknown_fits && !word.is_known())
                || self.args.iter().any(|pattern| glob::matches(pattern, &word.text))
        };
        if !self.args.is_empty() && !words.iter().any(fits) {
            return false;
        }
        let sorted = self.sort(words);
        let strict = self.flags.is_some();
        (!strict || sorted.unknown.is_empty())
            && self.at_most.is_none_or(|most| sorted.operands.len() <= most)
            && match self.operands {
                Some(Operands::None) => sorted.operands.is_empty(),
                Some(Operands::Lines) => {
                    sorted.operands.first().is_some_and(|word| is_line_range(&word.text))
                }
                Some(
                    Operands::Text
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

/// Whether a sed script only prints lines by number.
fn is_line_range(script: &str) -> bool {
    let number =
        |text: &str| text == "$" || (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    script.split(';').all(|part| {
        part.trim().strip_suffix(['p', 'q']).is_some_and(|range| match range.split_once(',') {
            Some((from, to)) => number(from) && number(to),
            None => range.is_empty() || number(range),
        })
    })
}
