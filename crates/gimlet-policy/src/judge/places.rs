//! Paths in arguments and redirections: inside the root or not, secret, protected, or a device.

use super::finding::{Finding, Structural};
use super::{Judge, basename};
use crate::glob;
use crate::paths::{self, Reading, Secrecy};
use crate::rules::Operands;
use crate::rules::flags::Arguments;
use crate::shell::{Certainty, Direction, Redirection, Word};

/// What is done with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Name,
    /// The same, and the names in some places of the system are no secret.
    List,
    Read,
    Write,
}

impl Judge<'_> {
    /// Everything there is to say about one path.
    pub(super) fn place(&self, word: &Word, purpose: Use) -> Vec<Finding> {
        let mut found = Vec::new();
        if word.certainty >= Certainty::Variable {
            found.push(self.found(Structural::Expansion, &word.text));
        }
        if self.cwds.is_empty() && !word.text.starts_with('/') {
            found.push(self.found(Structural::OutsideRoot, "its folder is only known when it runs"));
        }
        let reading = match word.certainty {
            Certainty::Literal | Certainty::Resolved | Certainty::Variable | Certainty::Unknown => {
                Reading::Exact
            }
            Certainty::Glob => Reading::Glob,
            Certainty::Match => Reading::Match,
        };
        for cwd in self.cwds.iter().chain(self.cwds.is_empty().then_some(&self.root)) {
            let path = paths::components(cwd, &word.text);
            found.extend(self.path(word, &path, reading, purpose));
        }
        found
    }

    fn path(&self, word: &Word, path: &[&str], reading: Reading, purpose: Use) -> Vec<Finding> {
        let mut found = Vec::new();
        let rules = self.policy.paths();
        if self.gimlet_home.as_deref().is_some_and(|home| paths::is_below(path, home)) {
            found.push(self.found(Structural::GimletHome, &word.text));
        }
        match purpose {
            Use::Name | Use::List => {}
            Use::Read => match rules.secrecy_at(paths::spot(path, &self.root), reading) {
                Secrecy::Public => {}
                Secrecy::Possible => found.push(self.found(Structural::MaybeSecret, &word.text)),
                Secrecy::Secret | Secrecy::Credential => {
                    found.push(self.found(Structural::ReadsSecret, &word.text))
                }
            },
            Use::Write => {
                if rules.is_device(path, reading) {
                    found.push(self.found(Structural::WritesDevice, &word.text));
                }
                if rules.is_protected_at(paths::spot(path, &self.root), reading) {
                    found.push(self.found(Structural::WritesProtected, &word.text));
                }
            }
        }
        // Old shells let `.*` match `..`.
        let climbs = reading != Reading::Exact
            && path.iter().any(|part| part.starts_with('.') && glob::could_match("..", part));
        // Only by its full name: a path that climbs out of the project is not meant for such a place.
        let open = reading == Reading::Exact
            && word.text.starts_with('/')
            && match purpose {
                Use::List => rules.is_listable(path),
                Use::Read => rules.is_readable(path),
                Use::Name | Use::Write => false,
            };
        if climbs || (!open && !paths::is_below(path, &self.root)) {
            found.push(self.found(Structural::OutsideRoot, &word.text));
        }
        found
    }

    /// A redirection opens its target, whatever the program does.
    pub(super) fn redirection(&self, redirection: &Redirection) -> Vec<Finding> {
        let target = &redirection.target;
        match redirection.direction {
            Direction::Text | Direction::Duplicate if target.is_known() => Vec::new(),
            Direction::Text | Direction::Duplicate => vec![self.found(Structural::Expansion, "")],
            Direction::Read => {
                let mut found = self.place(target, Use::Read);
                if paths::components(&self.start, &target.text).starts_with(&["dev", "tcp"]) {
                    found.push(self.found(Structural::WritesDevice, &target.text));
                }
                if self.is_harmless_device(target) { Vec::new() } else { found }
            }
            Direction::Write if self.is_harmless_device(target) => Vec::new(),
            Direction::Write => {
                let mut found = vec![self.found(Structural::WritesFile, &target.text)];
                found.extend(self.place(target, Use::Write));
                found
            }
        }
    }

    fn is_harmless_device(&self, target: &Word) -> bool {
        let path = paths::components(&self.start, &target.text);
        target.is_known()
            && path.len() > 1
            && path[0] == "dev"
            && !self.policy.paths().is_device(&path, Reading::Exact)
    }

    /// Operands by what the program does with them. `all` are all arguments, for values hidden in options.
    pub(super) fn operands(
        &self,
        kind: Operands,
        sorted: &Arguments<'_>,
        all: &[Word],
        loose: bool,
    ) -> Vec<Finding> {
        let mut found = Vec::new();
        let operands = sorted.operands.as_slice();
        for file in &sorted.files {
            let purpose =
                if matches!(kind, Operands::Copies | Operands::Moves) { Use::Write } else { Use::Read };
            found.extend(self.place(file, purpose));
        }
        found.extend(sorted.patterns.iter().flat_map(|pattern| self.searched(pattern)));
        match kind {
            Operands::None | Operands::Text => {}
            Operands::Names => found.extend(operands.iter().flat_map(|word| self.place(word, Use::Name))),
            Operands::Listed => found.extend(operands.iter().flat_map(|word| self.place(word, Use::List))),
            Operands::Reads => {
                found.extend(
                    operands
                        .iter()
                        .filter(|w| !w.text.contains("://"))
                        .flat_map(|word| self.place(word, Use::Read)),
                );
                let local =
                    operands.iter().filter_map(|word| Some(word.part(word.text.strip_prefix("file://")?)));
                found.extend(local.flat_map(|word| self.place(&word, Use::Read)));
            }
            Operands::Pattern | Operands::Lines | Operands::Program => {
                let given = ["-e", "-f", "--regexp", "--file", "--expression", "--files"];
                let skip = usize::from(!sorted.known.iter().any(|flag| given.contains(flag)));
                found.extend(operands.iter().skip(skip).flat_map(|word| self.place(word, Use::Read)));
            }
            Operands::Revisions
            | Operands::Changes
            | Operands::Commit
            | Operands::History
            | Operands::Grep => found.extend(self.git_operands(kind, sorted)),
            Operands::Writes => {
                for word in operands {
                    found.extend(self.place(word, Use::Write));
                    if let Some((_, value)) = word.text.split_once('=') {
                        found.extend(self.place(&word.part(value), Use::Write));
                    }
                }
            }
            Operands::Copies | Operands::Moves => found.extend(self.copies(kind, sorted)),
        }
        if kind == Operands::Reads || (loose && matches!(kind, Operands::Names | Operands::Listed)) {
            found.extend(self.hidden_reads(all));
        }
        if loose {
            // A rule that takes any option still looks at values that lead elsewhere: `--rootdir=/etc`.
            let values = all.iter().filter(|word| word.text.starts_with('-')).filter_map(|word| {
                let (_, value) = word.text.split_once('=')?;
                (value.starts_with(['/', '~']) || value.split('/').any(|part| part == ".."))
                    .then(|| word.part(value))
            });
            found.extend(values.flat_map(|value| self.place(&value, Use::Name)));
        }
        found
    }

    fn copies(&self, kind: Operands, sorted: &Arguments<'_>) -> Vec<Finding> {
        let mut found = Vec::new();
        let (sources, mut targets): (Vec<&Word>, Vec<&Word>) = match sorted.operands.split_last() {
            Some((last, sources)) if sorted.files.is_empty() && !sources.is_empty() => {
                (sources.to_vec(), vec![*last])
            }
            _ => (sorted.operands.clone(), sorted.files.iter().collect()),
        };
        for source in &sources {
            found.extend(self.place(source, Use::Read));
            if kind == Operands::Moves {
                found.extend(self.place(source, Use::Write));
            }
        }
        let here = Word::literal(".");
        if targets.is_empty() {
            targets.push(&here);
        }
        if targets.iter().any(|target| target.text.is_empty()) {
            // The last operand may expand to nothing, which makes the one before it the target.
            targets.extend(&sources);
        }
        for target in targets {
            found.extend(self.place(target, Use::Write));
            // The target may be a folder, so the source's own name counts too.
            for source in &sources {
                let inside = target.part(&format!("{}/{}", target.text, basename(&source.text)));
                found.extend(self.place(&inside, Use::Write));
            }
        }
        found
    }

    /// Files named inside options and values: `-d @file`, `--upload-file=…`, `-T…`, `f=@…`.
    fn hidden_reads(&self, all: &[Word]) -> Vec<Finding> {
        let mut found = Vec::new();
        for word in all {
            let text = word.text.as_str();
            let mut candidates: Vec<&str> = Vec::new();
            candidates.extend(text.split_once('=').map(|(_, value)| value.trim_start_matches('@')));
            candidates.extend(text.split_once('@').map(|(_, value)| value));
            if text.starts_with('-') && !text.starts_with("--") {
                candidates.extend(text.get(2..).map(|value| value.trim_start_matches('@')));
            }
            for candidate in candidates.into_iter().filter(|text| !text.is_empty() && !text.contains("://")) {
                let secret = self.place(&word.part(candidate), Use::Read).into_iter();
                found.extend(secret.filter(|finding| finding.rule == Structural::ReadsSecret.id()));
            }
        }
        found
    }
}
