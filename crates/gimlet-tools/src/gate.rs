//! Gates: an answer to a task that asks for a change is sent back while something is missing.
//!
//! Small models like to stop after they have found the fault. Three things are asked for: that the code was looked at,
//! that something was changed, and that it was tried afterwards. The model itself says whether a task wants a change; a
//! question is never held up, what a person refused counts as done, and prose needs no trial.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::guided::Aim;
use gimlet::hook::{Check, Facts};
use gimlet::tool::{TypedTool, code};
use gimlet::work::{CommandWork, Verification, Work};

use crate::apply_patch::ApplyPatch;
use crate::edit_file::EditFile;
use crate::run_cmd::RunCmd;
use crate::run_tests::RunTests;

/// The tools without which nothing can be changed, so nothing is asked for.
const CHANGE_TOOLS: [&str; 2] = [ApplyPatch::NAME, EditFile::NAME];
/// The tools that try a change.
const CHECK_TOOLS: [&str; 2] = [RunTests::NAME, RunCmd::NAME];

/// Endings of files that hold prose: nothing tests them.
const PROSE: [&str; 7] = ["md", "markdown", "txt", "rst", "adoc", "org", "tex"];

/// Whether a command only looks or tests. One that may do more can be the change that was asked for.
pub type LooksOnly = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Judges the answer to a task that asks for a change.
#[derive(Clone)]
pub struct Gate {
    /// What is known about commands.
    pub looks_only: LooksOnly,
}

impl Check for Gate {
    fn check<'a>(&'a self, _answer: &'a str, facts: Facts<'a>) -> BoxFuture<'a, Result<(), String>> {
        let is_held = facts.aim == Some(Aim::Change) && has_any(facts.tools, &CHANGE_TOOLS);
        let missing = if is_held { self.missing(&facts) } else { None };
        std::future::ready(missing.map_or(Ok(()), Err)).boxed()
    }

    fn wants_aim(&self, facts: &Facts<'_>) -> bool {
        has_any(facts.tools, &CHANGE_TOOLS) && self.missing(facts).is_some()
    }
}

/// Whether a file holds prose, by its name.
pub(crate) fn is_prose(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((_, ending)) => PROSE.iter().any(|prose| ending.eq_ignore_ascii_case(prose)),
        None => ["LICENSE", "README", "CHANGELOG", "NOTICE", "AUTHORS"].contains(&name),
    }
}

fn has_any(tools: &[String], names: &[&str]) -> bool {
    tools.iter().any(|tool| names.contains(&tool.as_str()))
}

/// How a file is changed, and how a new one is made, with the tools there are.
fn ways(tools: &[String]) -> [&'static str; 2] {
    if has_any(tools, &[EditFile::NAME]) {
        [
            "call edit_file with the lines as they are and as they shall be",
            "call edit_file with an empty old_text",
        ]
    } else {
        [
            "call propose_patch with the lines as they are and as they shall be, then apply_patch",
            "call propose_patch with an empty original_content",
        ]
    }
}

impl Gate {
    /// The first thing that is missing, in words for the model. One at a time: a small model does one thing at a time.
    fn missing(&self, facts: &Facts<'_>) -> Option<String> {
        let work = facts.work;
        let [change, make] = ways(facts.tools);
        if work.files_read.is_empty() && !self.has_changed(work) {
            return Some(format!(
                "you have not looked at any file: read the one the task is about, or, if it is to be a new file, {make}"
            ));
        }
        if !self.has_changed(work) {
            let open = work.patches.proposed.iter().find(|patch| !work.patches.applied.contains(*patch));
            return Some(match open {
                Some(patch) => {
                    format!("{patch} was proposed and not applied: call apply_patch with this patch_id")
                }
                None => {
                    format!(
                        "the task asks for a change and nothing was changed: {change}; or say why no change is needed"
                    )
                }
            });
        }
        let can_check =
            has_any(facts.tools, &CHECK_TOOLS) && !work.files_changed.iter().all(|path| is_prose(path));
        match work.verification {
            Verification::Missing if can_check => Some(
                "files were changed and nothing was run since: call run_tests, or run_cmd with a command that \
                 shows that the change works"
                    .into(),
            ),
            Verification::Missing
            | Verification::NotNeeded
            | Verification::Refused
            | Verification::Done => None,
        }
    }

    /// Whether something was changed, or a person did not want it to be. A command that failed, such as a test, changed
    /// nothing.
    fn has_changed(&self, work: &Work) -> bool {
        let worked = |command: &CommandWork| match &command.error {
            Some(error) => error == code::APPROVAL_DENIED,
            None => command.exit == Some(0),
        };
        let commands = &work.commands;
        !work.files_changed.is_empty()
            || !work.patches.rejected.is_empty()
            || commands.iter().any(|command| worked(command) && !(self.looks_only)(&command.command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> Gate {
        Gate { looks_only: Arc::new(|command| command == "pytest") }
    }

    fn judged(aim: Option<Aim>, tools: &[&str], work: &Work) -> Option<String> {
        let tools: Vec<String> = tools.iter().map(|&tool| tool.into()).collect();
        let facts = Facts { task: "", tools: &tools, calls: &[], work, aim };
        gate().check("done", facts).now_or_never().unwrap().err()
    }

    const ALL: [&str; 3] = ["read_file", "apply_patch", "run_tests"];
    const CHANGE: Option<Aim> = Some(Aim::Change);

    fn pytest() -> CommandWork {
        CommandWork { command: "pytest".into(), times: 1, exit: Some(1), error: None }
    }

    #[test]
    fn what_is_missing_is_said_one_by_one() {
        let mut work = Work::default();
        assert!(judged(CHANGE, &ALL, &work).unwrap().contains("not looked at any file"));
        work.files_read.insert("calc.py".into());
        work.commands.push(pytest());
        assert!(judged(CHANGE, &ALL, &work).unwrap().contains("nothing was changed"));
        work.patches.proposed.insert("patch_1".into());
        assert!(judged(CHANGE, &ALL, &work).unwrap().starts_with("patch_1 was proposed"));
        work.files_changed.insert("calc.py".into());
        work.verification = Verification::Missing;
        assert!(judged(CHANGE, &ALL, &work).unwrap().contains("call run_tests"));
        assert_eq!(judged(CHANGE, &["apply_patch"], &work), None, "nothing can be run");
        work.verification = Verification::Done;
        assert_eq!(judged(CHANGE, &ALL, &work), None);
    }

    #[test]
    fn questions_and_agents_that_cannot_change_pass() {
        let work = Work::default();
        for aim in [Some(Aim::Answer), Some(Aim::Run), None] {
            assert_eq!(judged(aim, &ALL, &work), None);
        }
        assert_eq!(judged(CHANGE, &["read_file"], &work), None);
        assert!(judged(CHANGE, &["edit_file"], &work).unwrap().contains("an empty old_text"));
        let mut proposed = Work::default();
        proposed.patches.proposed.insert("patch_1".into());
        assert_eq!(judged(Some(Aim::Answer), &ALL, &proposed), None);
    }

    #[test]
    fn prose_needs_no_trial() {
        let mut work = Work { verification: Verification::Missing, ..Work::default() };
        work.files_changed.insert("docs/guide.md".into());
        work.files_changed.insert("LICENSE".into());
        assert_eq!(judged(CHANGE, &ALL, &work), None);
        work.files_changed.insert("setup.py".into());
        assert!(judged(CHANGE, &ALL, &work).is_some());
    }

    #[test]
    fn the_aim_is_asked_for_only_where_something_is_missing() {
        let tools = ALL.map(str::to_owned);
        let wants = |work: &Work, tools: &[String]| {
            gate().wants_aim(&Facts { task: "", tools, calls: &[], work, aim: None })
        };
        let mut work = Work::default();
        assert!(wants(&work, &tools));
        assert!(!wants(&work, &tools[..1]), "it cannot change anything");
        work.files_changed.insert("calc.py".into());
        assert!(!wants(&work, &tools));
    }

    #[test]
    fn what_a_person_refused_or_a_command_did_is_no_gap() {
        let mut refused = Work::default();
        refused.patches.rejected.insert("patch_1".into());
        assert_eq!(judged(CHANGE, &ALL, &refused), None);
        let mut edited = Work::default();
        let sed = CommandWork { command: "sed -i s/a/b/ x".into(), exit: Some(0), ..pytest() };
        edited.commands.push(sed.clone());
        assert_eq!(judged(CHANGE, &ALL, &edited), None);
        let denied = Some(code::APPROVAL_DENIED.to_owned());
        edited.commands = vec![CommandWork { exit: None, error: denied, ..sed.clone() }];
        assert_eq!(judged(CHANGE, &ALL, &edited), None);
        edited.commands = vec![CommandWork { exit: Some(1), ..sed }];
        assert!(judged(CHANGE, &ALL, &edited).is_some(), "it failed");
        let mut untried = Work { verification: Verification::Refused, ..Work::default() };
        untried.files_changed.insert("a".into());
        assert_eq!(judged(CHANGE, &ALL, &untried), None);
    }
}
