//! A finding is one thing said about a command; the worst one decides.

use gimlet::effect::Verdict;

use crate::context::Jail;
use crate::rules::{Builtin, Rule, Say};

/// Severity alone, so that findings combine by `max` and the first of the worst gives the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Allow,
    Ask,
    Deny,
}

#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    pub(crate) rule: String,
    pub(crate) reason: String,
}

impl Finding {
    pub(crate) fn verdict(&self) -> Verdict {
        match self.level {
            Level::Allow => Verdict::Allow,
            Level::Ask => Verdict::Ask(self.reason.clone()),
            Level::Deny => Verdict::Deny(self.reason.clone()),
        }
    }

    /// What a rule says here and now.
    pub(crate) fn of_rule(rule: &Rule, jail: Jail) -> Finding {
        let (level, reason) = match (rule.verdict, jail) {
            (Say::Allow, _) | (Say::AllowInJail, Jail::Active) => (Level::Allow, rule.reason.clone()),
            (Say::AllowInJail, Jail::Absent) => {
                (Level::Ask, format!("{}, and no jail is around it", rule.reason))
            }
            (Say::Ask, _) => (Level::Ask, rule.reason.clone()),
            (Say::Deny, _) => (Level::Deny, rule.reason.clone()),
        };
        Finding { level, rule: rule.id.clone(), reason }
    }
}

/// Rules whose condition is code. Their words and examples are data, under the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Structural {
    Unknown,
    UnlistedOption,
    Opaque,
    Computed,
    Expansion,
    OutsideRoot,
    WritesFile,
    WritesDevice,
    WritesProtected,
    ReadsSecret,
    MaybeSecret,
    WalksRoot,
    GimletHome,
    SetsVariable,
    FetchToShell,
    ForkBomb,
    FindRemoves,
    FindActs,
    OpenToEveryone,
    RunsScript,
    RunsCode,
    LocalProgram,
    UnusualCharacters,
    Unreadable,
}

impl Structural {
    #[cfg(test)]
    pub(crate) const ALL: [Structural; 24] = [
        Structural::Unknown,
        Structural::UnlistedOption,
        Structural::Opaque,
        Structural::Computed,
        Structural::Expansion,
        Structural::OutsideRoot,
        Structural::WritesFile,
        Structural::WritesDevice,
        Structural::WritesProtected,
        Structural::ReadsSecret,
        Structural::MaybeSecret,
        Structural::WalksRoot,
        Structural::GimletHome,
        Structural::SetsVariable,
        Structural::FetchToShell,
        Structural::ForkBomb,
        Structural::FindRemoves,
        Structural::FindActs,
        Structural::OpenToEveryone,
        Structural::RunsScript,
        Structural::RunsCode,
        Structural::LocalProgram,
        Structural::UnusualCharacters,
        Structural::Unreadable,
    ];

    pub(crate) fn id(self) -> &'static str {
        match self {
            Structural::Unknown => "unknown",
            Structural::UnlistedOption => "unlisted-option",
            Structural::Opaque => "opaque",
            Structural::Computed => "computed",
            Structural::Expansion => "expansion",
            Structural::OutsideRoot => "outside-root",
            Structural::WritesFile => "writes-file",
            Structural::WritesDevice => "writes-device",
            Structural::WritesProtected => "writes-protected",
            Structural::ReadsSecret => "reads-secret",
            Structural::MaybeSecret => "maybe-secret",
            Structural::WalksRoot => "walks-root",
            Structural::GimletHome => "gimlet-home",
            Structural::SetsVariable => "sets-variable",
            Structural::FetchToShell => "fetch-to-shell",
            Structural::ForkBomb => "fork-bomb",
            Structural::FindRemoves => "find-removes",
            Structural::FindActs => "find-acts",
            Structural::OpenToEveryone => "open-to-everyone",
            Structural::RunsScript => "runs-script",
            Structural::RunsCode => "runs-code",
            Structural::LocalProgram => "local-program",
            Structural::UnusualCharacters => "unusual-characters",
            Structural::Unreadable => "unreadable",
        }
    }

    /// The finding, with what it is about. A rule without data denies: a gap in the file must not open a hole.
    pub(crate) fn found(self, builtin: &Builtin, detail: &str) -> Finding {
        let id = self.id();
        let data = builtin.structures.iter().map(|structure| &structure.rule).find(|rule| rule.id == id);
        let mut finding = match data {
            Some(rule) => Finding::of_rule(rule, Jail::Absent),
            None => Finding { level: Level::Deny, rule: id.to_owned(), reason: id.to_owned() },
        };
        if !detail.is_empty() {
            finding.reason = format!("{}: {detail}", finding.reason);
        }
        finding
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::builtin;

    #[test]
    fn every_condition_has_its_words_and_the_other_way_round() {
        let known: Vec<&str> = Structural::ALL.iter().map(|structural| structural.id()).collect();
        let data: Vec<&str> =
            builtin().structures.iter().map(|structure| structure.rule.id.as_str()).collect();
        assert_eq!(known, data);
    }
}
