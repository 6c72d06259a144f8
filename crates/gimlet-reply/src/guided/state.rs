//! Where guided work stands, and what follows from it. Folded from events in `state/guided.rs`; no effects.

use std::cmp::Reverse;

use serde_json::{Value, json};

use super::REPAIR_ROUNDS;
use super::record::{Aim, CheckOutcome, Checked, FileEdit, Found, Located};
use gimlet_event::event::ToolFinished;
use gimlet_event::message::Finish;
use gimlet_text::digest::digest;

/// Most replies that are asked for as edits of one task.
const MOST_REPLIES: u32 = 2 * REPAIR_ROUNDS;
/// How often a cut reply is continued.
const MOST_CONTINUATIONS: u32 = 4;
/// So many unusable replies in a row are answered by a fresh question.
const UNUSABLE_IN_A_ROW: u32 = 2;

/// What is to be done next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stage {
    /// The model says what the task wants.
    #[default]
    Aim,
    /// Code looks for the files.
    Locate,
    /// The model picks files from the list.
    Pick,
    /// The model writes the edit.
    Edit,
    /// The edit is being written to the files.
    Write,
    /// The check is being run.
    Check,
    /// The check's result is to be read.
    Judge,
    /// A better earlier edit is being written back.
    Restore,
    /// The result is to be told.
    Tell,
    /// The rest of the task is done in another action format.
    HandOver,
}

/// Where guided work on the present task stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Guided {
    /// What is to be done next.
    pub stage: Stage,
    /// What the task wants, once that is known.
    pub aim: Option<Aim>,
    /// The candidates the model picks from.
    pub found: Option<Found>,
    /// The files to work on.
    pub located: Option<Located>,
    /// Edits that could be written, in order.
    pub attempts: Vec<Attempt>,
    /// The attempt that the files hold now; none if they are as before the task.
    pub current: Option<usize>,
    /// Replies that were asked for as edits and read.
    pub replies: u32,
    /// A reply that was cut, as far as it came.
    pub partial: String,
    /// How often it was continued.
    pub continuations: u32,
    /// A reply that was received and not read yet.
    pub reply: Option<HeardReply>,
    /// What the last reply came to.
    pub last: LastReply,
    /// Unusable replies in a row.
    pub unusable: u32,
    /// Fresh questions so far: each raises the temperature.
    pub fresh: u32,
    /// The result of the last call, until it is read.
    pub result: Option<Box<ToolFinished>>,
    /// What the person said when refusing an edit.
    pub objection: Option<String>,
    /// Why nothing more is tried, in words for the person.
    pub stopped: Option<String>,
    /// The result of the command the task asked for.
    pub ran: Option<Checked>,
}

/// A reply that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeardReply {
    /// Its text, without reasoning.
    pub text: String,
    /// Why it ended.
    pub finish: Finish,
}

/// An edit that could be written, and its check.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// All files in which it differs from the state before the task.
    pub files: Vec<FileEdit>,
    /// What the check says; none before it ran.
    pub checked: Option<Checked>,
}

/// What the last reply to a question for an edit came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LastReply {
    /// There was none.
    #[default]
    None,
    /// An edit, which was written and checked.
    Checked,
    /// The same edit as before.
    Repeated,
    /// Nothing usable, for this reason.
    Unusable(String),
}

/// From where the next edit is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// From the files as they were before the task.
    First,
    /// From an attempt whose check failed.
    Repair(usize),
    /// From the files as before the task, with a higher temperature and without a word about earlier attempts.
    Fresh,
    /// Again as before, with what was wrong about the reply.
    Again(Option<usize>, String),
}

impl Guided {
    /// From where the next edit is asked for.
    pub fn way(&self) -> Way {
        let best = self.best();
        match &self.last {
            LastReply::None => Way::First,
            LastReply::Repeated => Way::Fresh,
            LastReply::Unusable(_) if self.unusable >= UNUSABLE_IN_A_ROW => Way::Fresh,
            LastReply::Unusable(problem) => Way::Again(best, problem.clone()),
            // An attempt that is no better than an earlier one led nowhere.
            LastReply::Checked => match best {
                Some(best) if best + 1 == self.attempts.len() => Way::Repair(best),
                Some(_) | None => Way::Fresh,
            },
        }
    }

    /// The attempt that the next edit starts from.
    pub fn base(&self) -> Option<usize> {
        match self.way() {
            Way::First | Way::Fresh => None,
            Way::Repair(attempt) => Some(attempt),
            Way::Again(attempt, _) => attempt,
        }
    }

    /// The temperature for the next edit; none leaves the model's own.
    pub fn temperature(&self) -> Option<f32> {
        const HEAT: [f32; 3] = [0.6, 0.8, 1.0];
        match self.way() {
            Way::First | Way::Again(..) => None,
            Way::Repair(_) => Some(0.4),
            Way::Fresh => Some(HEAT[(self.fresh.saturating_sub(1) as usize).min(HEAT.len() - 1)]),
        }
    }

    /// The attempt of which the most tests pass; the earlier one among equals.
    pub fn best(&self) -> Option<usize> {
        let score = |attempt: &Attempt| {
            let checked = attempt.checked.as_ref()?;
            let all = checked.result == CheckOutcome::Passed;
            Some((all, checked.passed.unwrap_or(0), Reverse(checked.failed.unwrap_or(u32::MAX))))
        };
        let scored =
            self.attempts.iter().enumerate().filter_map(|(at, attempt)| Some((score(attempt)?, Reverse(at))));
        scored.max().map(|(_, Reverse(at))| at)
    }

    /// Whether no further edit is asked for.
    pub fn is_out_of_tries(&self) -> bool {
        let checked = self.attempts.iter().filter(|attempt| attempt.checked.is_some()).count();
        self.replies >= MOST_REPLIES || checked > REPAIR_ROUNDS as usize
    }

    /// Whether a cut reply is continued once more.
    pub fn may_continue(&self) -> bool {
        self.continuations < MOST_CONTINUATIONS
    }

    /// The text of a file before the task, if an attempt changed it.
    pub fn original(&self, path: &str) -> Option<Option<String>> {
        let edits = self.attempts.iter().flat_map(|attempt| &attempt.files);
        edits.filter(|edit| edit.path == path).map(|edit| edit.before.clone()).next()
    }

    /// The text an attempt gives to a file; none if it leaves it as before the task.
    pub fn text_in(&self, attempt: Option<usize>, path: &str) -> Option<Option<String>> {
        let edits = attempt.and_then(|at| self.attempts.get(at)).map(|attempt| attempt.files.as_slice());
        let edit = edits.unwrap_or_default().iter().find(|edit| edit.path == path);
        edit.map(|edit| edit.after.clone()).or_else(|| self.original(path))
    }

    /// The arguments of the call that takes the files from the present attempt to another; none if they are the same.
    pub fn write_args(&self, target: usize, task: &str) -> Option<Value> {
        let paths = [self.current, Some(target)].into_iter().flatten().filter_map(|at| self.attempts.get(at));
        let mut paths: Vec<&str> =
            paths.flat_map(|attempt| attempt.files.iter().map(|edit| edit.path.as_str())).collect();
        paths.sort_unstable();
        paths.dedup();
        let mut files = Vec::new();
        for path in paths {
            let (now, wanted) = (self.text_in(self.current, path)?, self.text_in(Some(target), path)?);
            if now != wanted {
                let expected = now.as_ref().map(|text| digest(text.as_bytes())).unwrap_or_default();
                files.push(json!({"path": path, "text": wanted, "expected": expected}));
            }
        }
        // A heading says nothing of what is to be done.
        let mut lines = task.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let intent: String = lines.next().unwrap_or_default().chars().take(100).collect();
        (!files.is_empty()).then(|| json!({"intent": intent, "files": files}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(after: &str, passed: u32, failed: u32) -> Attempt {
        let result = if failed == 0 { CheckOutcome::Passed } else { CheckOutcome::Failed };
        let checked = Checked {
            command: "t".into(),
            result,
            exit: Some(1),
            passed: Some(passed),
            failed: Some(failed),
            text: String::new(),
        };
        let edit = FileEdit { path: "a.py".into(), before: Some("old\n".into()), after: Some(after.into()) };
        Attempt { files: vec![edit], checked: Some(checked) }
    }

    #[test]
    fn the_best_attempt_is_repaired_and_a_worse_one_is_followed_by_a_fresh_question() {
        let mut guided =
            Guided { attempts: vec![attempt("1\n", 2, 3)], last: LastReply::Checked, ..Guided::default() };
        assert_eq!((guided.way(), guided.temperature()), (Way::Repair(0), Some(0.4)));
        guided.attempts.push(attempt("2\n", 4, 1));
        assert_eq!((guided.best(), guided.way()), (Some(1), Way::Repair(1)));
        guided.attempts.push(attempt("3\n", 1, 4));
        guided.fresh = 1;
        assert_eq!((guided.best(), guided.way(), guided.temperature()), (Some(1), Way::Fresh, Some(0.6)));
        guided.attempts.push(attempt("4\n", 4, 1));
        assert_eq!(
            (guided.best(), guided.is_out_of_tries()),
            (Some(1), true),
            "the earlier one among equals"
        );
    }

    #[test]
    fn a_write_leads_from_what_is_there_to_what_is_wanted() {
        let mut guided =
            Guided { attempts: vec![attempt("1\n", 2, 3), attempt("2\n", 1, 3)], ..Guided::default() };
        guided.attempts[1].files.push(FileEdit {
            path: "b.py".into(),
            before: None,
            after: Some("new\n".into()),
        });
        let first = guided.write_args(0, "Do it\nnow").unwrap();
        assert_eq!(first["intent"], "Do it");
        assert_eq!(first["files"][0]["expected"], digest(b"old\n"));
        guided.current = Some(1);
        let back = guided.write_args(0, "Do it").unwrap();
        assert_eq!(back["files"][0]["text"], "1\n");
        assert_eq!(back["files"][1], json!({"path": "b.py", "text": null, "expected": digest(b"new\n")}));
        guided.current = Some(0);
        assert_eq!(guided.write_args(0, "Do it"), None);
    }
}
