//! Programs that read more than the files they name: those that walk folders, and git, whose past holds files that
//! are no longer there. Without a path that narrows them they would show every secret of the project.

use super::Judge;
use super::finding::{Finding, Structural};
use super::places::Use;
use crate::glob;
use crate::paths::{self, Secrecy};
use crate::rules::flags::Arguments;
use crate::rules::{Operands, Rule, builtin};
use crate::shell::{Certainty, Word};

impl Judge<'_> {
    /// Operands of git: revisions, `revision:path`, and paths, in which git itself matches patterns.
    pub(super) fn git_operands(&self, kind: Operands, sorted: &Arguments<'_>) -> Vec<Finding> {
        let mut found = Vec::new();
        let skip = match kind {
            Operands::Grep => usize::from(!sorted.known.contains(&"-e")),
            _ => 0,
        };
        let (mut narrowed, mut revisions) = (false, Vec::new());
        for (index, word) in sorted.operands.iter().enumerate().skip(skip) {
            let after_dashes = sorted.before_dashes.is_some_and(|dashes| index >= dashes);
            let text = word.text.as_str();
            // `:(top).env`, `:!x`, `:/x` and `:^x` are patterns with a meaning of their own.
            if text.starts_with(':') {
                found.push(self.found(Structural::MaybeSecret, text));
            }
            let inner = text.trim_start_matches([':', '/', '!', '^']);
            let inner = inner.rsplit_once(')').map_or(inner, |(_, path)| path);
            let parts = text.match_indices(':').map(|(at, _)| &text[at + 1..]);
            for part in [text, inner].into_iter().chain(parts).filter(|part| !part.is_empty()) {
                found.extend(self.place(&as_match(&word.part(part)), Use::Read));
            }
            let path = text.rsplit_once(':').map_or(text, |(_, path)| path);
            let is_path = after_dashes || text.contains(':') || self.looks_like_path(text);
            match is_path {
                true => narrowed |= !path.is_empty() && !self.is_whole(path),
                false => revisions.push(text),
            }
        }
        let shows_all = match kind {
            Operands::Changes => revisions.iter().any(|revision| !matches!(*revision, "HEAD" | "@")),
            Operands::Commit => {
                let several = |text: &&str| text.contains("..") || text.starts_with('^');
                revisions.len() > 1 || revisions.iter().any(several)
            }
            Operands::History | Operands::Grep => true,
            _ => false,
        };
        if shows_all && !narrowed {
            found.push(self.found(Structural::WalksRoot, ""));
        }
        found
    }

    /// Whether a word is a path where git would also take a revision: it ends like a file or names a usual folder.
    fn looks_like_path(&self, text: &str) -> bool {
        let parts: Vec<&str> = text.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        let usual =
            parts.first().is_some_and(|first| builtin().lists.folders.iter().any(|known| known == first));
        let range = text.contains("..");
        !range
            && !parts.is_empty()
            && (usual || text.starts_with("./") || self.policy.paths().is_source(&parts))
    }

    /// Whether a path is the root or above it, or a pattern that finds everything.
    fn is_whole(&self, text: &str) -> bool {
        let pattern = text.trim_matches(['*', '?', '/', '.']).is_empty();
        pattern
            || self.cwds.iter().any(|cwd| {
                let path = paths::components(cwd, text);
                path.len() <= self.root.len() && self.root.iter().zip(&path).all(|(a, b)| a == b)
            })
    }

    /// A program that reads everything below its operands, unless its options narrow that to public names.
    pub(super) fn walks(&self, rule: &Rule, sorted: &Arguments<'_>, paths: &[&Word]) -> Option<Finding> {
        let options = rule.walks.as_deref()?;
        if !options.split('|').any(|option| sorted.known.contains(&option)) {
            return None;
        }
        let public = |word: &Word| {
            let secrecy = |text: &str| {
                self.policy.paths().secrecy_at(
                    paths::Spot { names: &[text], base: paths::Base::Project },
                    paths::Reading::Match,
                )
            };
            alternatives(&word.text).iter().all(|text| secrecy(text) == Secrecy::Public)
        };
        if !sorted.patterns.is_empty() && sorted.patterns.iter().all(public) {
            return None;
        }
        // `.git` and other folders with a dot hold configuration, and that holds secrets.
        let dotted = |text: &str| {
            text.split('/').any(|part| part.starts_with('.') && !matches!(part, "." | ".." | ".github"))
        };
        let whole =
            paths.is_empty() || paths.iter().any(|word| self.is_whole(&word.text) || dotted(&word.text));
        whole.then(|| self.found(Structural::WalksRoot, ""))
    }

    /// What is said about a pattern of names that a search is told to look into.
    pub(super) fn searched(&self, pattern: &Word) -> Vec<Finding> {
        if pattern.text.starts_with('!') {
            return Vec::new();
        }
        let place = |text: String| {
            let name = text.rsplit('/').next().unwrap_or_default();
            let secret = self.place(&Word { certainty: Certainty::Literal, ..pattern.part(name) }, Use::Read);
            let mut found: Vec<Finding> =
                secret.into_iter().filter(|finding| finding.rule == Structural::ReadsSecret.id()).collect();
            if found.is_empty() && self.policy.paths().finds_hidden_secret(name) {
                found.push(self.found(Structural::MaybeSecret, &text));
            }
            found
        };
        alternatives(&pattern.text).into_iter().flat_map(place).collect()
    }
}

/// A word as a pattern of the program, if it is one.
pub(super) fn as_match(word: &Word) -> Word {
    match word.certainty <= Certainty::Glob && glob::is_pattern(&word.text) {
        true => Word { certainty: Certainty::Match, ..word.clone() },
        false => word.clone(),
    }
}

/// `*.{ts,tsx}` as `*.ts` and `*.tsx`; one pair of braces is enough for what people write.
fn alternatives(text: &str) -> Vec<String> {
    let parts = text.split_once('{').and_then(|(head, rest)| {
        let (inner, tail) = rest.split_once('}')?;
        (!inner.contains('{') && !tail.contains('{')).then_some((head, inner, tail))
    });
    match parts {
        Some((head, inner, tail)) => inner.split(',').map(|part| format!("{head}{part}{tail}")).collect(),
        // Braces inside braces could be anything.
        None if text.contains('{') => vec!["*".to_owned()],
        None => vec![text.to_owned()],
    }
}
