//! What was done, folded from events: files looked at and changed, patches, commands, errors.
//!
//! A person reads it below the answer, checks judge by it, and it is part of the run's last event. It goes by effects
//! and results, never by the names of tools, so that foreign tools count as well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::effect::Effect;
use crate::tool::code;

/// A call that came to an end.
#[derive(Debug, Clone, PartialEq)]
pub struct CallSummary {
    /// Name of the tool.
    pub tool: String,
    /// Its arguments.
    pub args: Arc<Value>,
    /// What it touched; empty when it never started.
    pub effects: Vec<Effect>,
    /// What a person was asked about it; empty when nobody was.
    pub asked: Vec<Effect>,
    /// The error, if it failed.
    pub error: Option<String>,
    /// The patch its result or its arguments name.
    pub patch: Option<String>,
    /// The exit code its result tells.
    pub exit: Option<i64>,
    /// How many things its result says it found.
    pub count: Option<u64>,
    /// Whether its result says that what it changed needs no test: prose, or comments alone.
    pub untested: bool,
}

/// What was done so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    /// Files that were looked at, relative to the root.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub files_read: BTreeSet<String>,
    /// Files that were created, changed or removed, relative to the root.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub files_changed: BTreeSet<String>,
    /// Calls that looked at the project as a whole: searches, listings, its history.
    pub searches: u32,
    /// Patches, by how far they got; an applied one was also proposed.
    #[serde(skip_serializing_if = "PatchWork::is_empty")]
    pub patches: PatchWork,
    /// Commands, in the order they first ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandWork>,
    /// Errors, with how often each came up.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u32>,
    /// How often a model that could not keep to one way of acting was given another.
    #[serde(skip_serializing_if = "is_zero")]
    pub fallbacks: u32,
    /// Whether what was changed was tried afterwards.
    pub verification: Verification,
}

pub(crate) fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// Patches by id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PatchWork {
    /// Proposed.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub proposed: BTreeSet<String>,
    /// Written to the files.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub applied: BTreeSet<String>,
    /// Refused by a person; a change that is no patch by its path.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub rejected: BTreeSet<String>,
}

impl PatchWork {
    /// Whether there was none.
    pub fn is_empty(&self) -> bool {
        self.proposed.is_empty() && self.applied.is_empty() && self.rejected.is_empty()
    }
}

/// A command and how it last went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandWork {
    /// The exact text.
    pub command: String,
    /// How often it was asked for.
    pub times: u32,
    /// Its exit code, if it came to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i64>,
    /// Why it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Whether what was changed was tried afterwards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verification {
    /// Nothing was changed.
    #[default]
    NotNeeded,
    /// No command ran since the last change.
    Missing,
    /// A person refused the command that would have tried it.
    Refused,
    /// A command ran since the last change.
    Done,
}

impl Work {
    /// Whether nothing was done.
    pub fn is_empty(&self) -> bool {
        *self == Work::default()
    }

    /// Takes in a call that came to its end.
    pub fn add(&mut self, call: &CallSummary) {
        if let Some(error) = &call.error {
            *self.errors.entry(error.clone()).or_default() += 1;
        }
        let refused = call.error.as_deref() == Some(code::APPROVAL_DENIED);
        for effect in if refused { &call.asked } else { &call.effects } {
            match effect {
                Effect::Run { command, .. } => self.ran(command, call, refused),
                Effect::Write { path, .. } if call.error.is_none() => {
                    self.files_changed.insert(path.to_string_lossy().into_owned());
                    if !call.untested {
                        self.verification = Verification::Missing;
                    }
                }
                Effect::Write { path, .. } if refused && call.patch.is_none() => {
                    self.patches.rejected.insert(path.to_string_lossy().into_owned());
                }
                Effect::Read { path } if call.error.is_none() && call.patch.is_none() => {
                    if path.as_os_str().is_empty() {
                        self.searches += 1;
                    } else {
                        self.files_read.insert(path.to_string_lossy().into_owned());
                    }
                }
                Effect::Read { .. }
                | Effect::Write { .. }
                | Effect::Network { .. }
                | Effect::Delegate { .. }
                | Effect::Remember { .. }
                | Effect::Opaque { .. } => {}
            }
        }
        let Some(patch) = &call.patch else { return };
        let writes = call.effects.iter().any(|effect| matches!(effect, Effect::Write { .. }));
        if refused {
            self.patches.rejected.insert(patch.clone());
        } else if call.error.is_none() {
            self.patches.proposed.insert(patch.clone());
            if writes {
                self.patches.applied.insert(patch.clone());
            }
        }
    }

    /// Takes in what a sub-agent did.
    pub fn absorb(&mut self, other: &Work) {
        self.files_read.extend(other.files_read.iter().cloned());
        self.files_changed.extend(other.files_changed.iter().cloned());
        self.searches += other.searches;
        self.fallbacks += other.fallbacks;
        self.patches.proposed.extend(other.patches.proposed.iter().cloned());
        self.patches.applied.extend(other.patches.applied.iter().cloned());
        self.patches.rejected.extend(other.patches.rejected.iter().cloned());
        for command in &other.commands {
            let known = self.command(&command.command);
            known.times += command.times;
            known.exit = command.exit;
            known.error.clone_from(&command.error);
        }
        for (error, times) in &other.errors {
            *self.errors.entry(error.clone()).or_default() += times;
        }
        if other.verification != Verification::NotNeeded {
            self.verification = other.verification;
        }
    }

    fn ran(&mut self, text: &str, call: &CallSummary, refused: bool) {
        let command = self.command(text);
        command.times += 1;
        command.exit = call.exit;
        command.error.clone_from(&call.error);
        self.verification = match self.verification {
            Verification::NotNeeded => Verification::NotNeeded,
            Verification::Missing if refused => Verification::Refused,
            Verification::Missing | Verification::Refused if call.exit.is_some() => Verification::Done,
            before @ (Verification::Missing | Verification::Refused | Verification::Done) => before,
        };
    }

    fn command(&mut self, text: &str) -> &mut CommandWork {
        let at = self.commands.iter().position(|known| known.command == text).unwrap_or_else(|| {
            self.commands.push(CommandWork { command: text.to_owned(), times: 0, exit: None, error: None });
            self.commands.len() - 1
        });
        &mut self.commands[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(effects: Vec<Effect>) -> CallSummary {
        CallSummary {
            tool: "t".into(),
            args: Arc::new(Value::Null),
            effects,
            asked: Vec::new(),
            error: None,
            patch: None,
            exit: None,
            count: None,
            untested: false,
        }
    }

    fn read(path: &str) -> CallSummary {
        call(vec![Effect::Read { path: path.into() }])
    }

    fn run(command: &str, exit: i64) -> CallSummary {
        CallSummary { exit: Some(exit), ..call(vec![command_effect(command)]) }
    }

    fn command_effect(command: &str) -> Effect {
        Effect::Run { command: command.into(), cwd: "".into() }
    }

    fn write(path: &str) -> Effect {
        Effect::Write { path: path.into(), digest: None }
    }

    fn work(calls: &[CallSummary]) -> Work {
        let mut work = Work::default();
        calls.iter().for_each(|call| work.add(call));
        work
    }

    #[test]
    fn what_was_done_is_told_by_effects_and_results() {
        let proposed = CallSummary { patch: Some("p1".into()), ..read("a.py") };
        let applied = CallSummary { patch: Some("p1".into()), ..call(vec![write("a.py")]) };
        let missing = CallSummary { error: Some("FILE_NOT_FOUND".into()), ..read("b.py") };
        let done = work(&[
            read(""),
            read("a.py"),
            read("a.py"),
            missing,
            run("pytest", 1),
            proposed,
            applied,
            run("pytest", 0),
        ]);
        assert_eq!(done.files_read, BTreeSet::from(["a.py".to_owned()]));
        assert_eq!((done.searches, &done.files_changed), (1, &BTreeSet::from(["a.py".to_owned()])));
        assert_eq!((done.patches.proposed.len(), done.patches.applied.len()), (1, 1));
        assert_eq!(done.errors, BTreeMap::from([("FILE_NOT_FOUND".to_owned(), 1)]));
        let pytest = CommandWork { command: "pytest".into(), times: 2, exit: Some(0), error: None };
        assert_eq!((done.commands.as_slice(), done.verification), (&[pytest][..], Verification::Done));
    }

    #[test]
    fn only_a_command_after_the_last_change_tries_it() {
        let applied = call(vec![write("a.py")]);
        assert_eq!(work(&[run("pytest", 0), applied.clone()]).verification, Verification::Missing);
        assert_eq!(
            work(&[applied.clone(), run("pytest", 0), applied.clone()]).verification,
            Verification::Missing
        );
        let refused = CallSummary {
            error: Some(code::APPROVAL_DENIED.into()),
            asked: vec![command_effect("pytest")],
            ..call(Vec::new())
        };
        assert_eq!(work(&[applied, refused.clone()]).verification, Verification::Refused);
        assert_eq!(work(&[refused]).verification, Verification::NotNeeded);
    }

    #[test]
    fn a_refused_patch_is_rejected_and_changes_nothing() {
        let refused = CallSummary {
            error: Some(code::APPROVAL_DENIED.into()),
            asked: vec![write("a.py")],
            patch: Some("p1".into()),
            ..call(Vec::new())
        };
        let done = work(std::slice::from_ref(&refused));
        assert_eq!(done.patches.rejected, BTreeSet::from(["p1".to_owned()]));
        let nameless = work(&[CallSummary { patch: None, ..refused }]);
        assert_eq!(nameless.patches.rejected, BTreeSet::from(["a.py".to_owned()]));
        assert!(done.files_changed.is_empty() && done.patches.proposed.is_empty());
    }
}
