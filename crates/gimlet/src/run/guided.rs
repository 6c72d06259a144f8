//! Performs the steps of guided work: asks the model, reads its replies, looks for files, reads the check's result. What
//! comes of a step is an event; files are written and commands run by calls that the fold of these events sets up.

use std::collections::BTreeMap;
use std::sync::Arc;

use tracing::Instrument;

use super::{Ending, Next, Run, fail};
use crate::event::{ActionFormat, ChangeCause, EventKind, Purpose};
use crate::guided::apply::{Base, Texts};
use crate::guided::ask::{self, EditQuestion};
use crate::guided::record::{
    Aim, Aimed, CheckOutcome, Checked, DecidedBy, EditOutcome, Edited, FileEdit, Found, Located,
};
use crate::guided::show::{self, EditForm};
use crate::guided::{CHECK_TOOL, Guide, Guided, Step, WRITE_TOOL, Way, reply, tell};
use crate::hook::Flow;
use crate::message::Finish;
use crate::model::Request;
use crate::store::StoreError;
use crate::telemetry;

/// The window that is assumed where nobody knows it, and the reply in it.
const UNKNOWN_WINDOW: (u32, u32) = (32_768, 4096);
/// Most characters of a check's output that the model reads.
const CHECK_CHARS: usize = 1500;
/// Most bytes of a check's output that are looked at.
const MOST_OUTPUT: usize = 256 * 1024;

impl Run {
    pub(super) async fn guide(&mut self, step: Step) -> Result<Next, StoreError> {
        let Some(guide) = self.agent.guide.clone() else {
            return Ok(fail("NO_GUIDE", "the run is guided, and this agent has no guide".into(), None));
        };
        match step {
            Step::Ask(purpose) => self.ask_guided(purpose, guide.as_ref()).await,
            Step::Read(Purpose::Aim) => self.read_aim().await,
            Step::Read(Purpose::Pick) => self.read_pick(guide).await,
            Step::Read(Purpose::Edit | Purpose::Plan | Purpose::Summary) => {
                self.read_edit(guide.as_ref()).await
            }
            Step::Locate => self.locate(guide).await,
            Step::Judge => self.judge_check(guide).await,
            Step::HandOver => self.hand_over("the task asks for no change of files").await,
            Step::Tell(limit) => {
                self.close_step().await;
                let (answer, state) =
                    self.services.journal.with_state(|now| tell::result(&now.guided, limit));
                Ok(Next::End(Ending::Finished(self.finished(answer, None, state, Vec::new()))))
            }
        }
    }

    /// Asks the model one of the questions; its reply is read by the step after this one.
    async fn ask_guided(&mut self, purpose: Purpose, guide: &dyn Guide) -> Result<Next, StoreError> {
        if self.agent.form.is_some() {
            return self.hand_over("its answer has a schema").await;
        }
        let journal = self.services.journal.clone();
        let (question, mut request) = match purpose {
            Purpose::Aim => self.aim_request(),
            Purpose::Pick => {
                let (question, schema) = journal.with_state(|state| {
                    let candidates = state.guided.found.as_ref().map(|found| found.candidates.as_slice());
                    ask::pick(&state.task, candidates.unwrap_or_default())
                });
                (question, self.choice(schema))
            }
            Purpose::Edit | Purpose::Plan | Purpose::Summary => self.edit_question(guide),
        };
        self.close_step().await;
        let step = journal.with_state(|state| state.step + 1);
        if let Flow::Refuse(reason) = self.services.before_step(step).await {
            return Ok(fail("HOOK_REFUSED", format!("a hook refused step {step}: {reason}"), None));
        }
        if let Some(spent) = journal.begin_step(step).await? {
            return Ok(Next::End(Ending::Finished(self.partial(spent))));
        }
        self.open_step = Some(step);
        let span = self.step.insert(journal.with_state(telemetry::work_span)).clone();
        journal.append(EventKind::ModelAsked { purpose, text: question.clone() }).await?;
        if request.messages.is_empty() {
            request.messages = journal.with_state(|state| {
                ask::conversation(state.messages.first().map(AsRef::as_ref), &state.guided.partial, &question)
            });
        }
        self.sample_with(step, request).instrument(span).await
    }

    /// Whether the task names a file that is no test and the command that checks it: small models take such a task for
    /// an order to run the command.
    async fn names_file_and_check(&self) -> bool {
        let Some(guide) = self.agent.guide.clone() else { return false };
        let task = self.services.journal.with_state(|state| state.task.clone());
        let found = tokio::task::spawn_blocking(move || guide.locate(&task)).await.unwrap_or_default();
        found.command.is_some() && !(found.named.is_empty() && found.missing.is_empty())
    }

    async fn read_aim(&self) -> Result<Next, StoreError> {
        let heard = self
            .services
            .journal
            .with_state(|state| state.guided.reply.as_ref().and_then(|heard| ask::read_aim(&heard.text)));
        let (aim, by) = match heard {
            Some(Aim::Run) if self.names_file_and_check().await => (Aim::Change, DecidedBy::Task),
            Some(aim) => (aim, DecidedBy::Model),
            // Who runs a coding agent without saying what for mostly wants a change.
            None => (Aim::Change, DecidedBy::Default),
        };
        self.record(EventKind::GuidedAimed(Aimed { aim, by, asked: None })).await
    }

    async fn locate(&mut self, guide: Arc<dyn Guide>) -> Result<Next, StoreError> {
        let (task, aim) = self.services.journal.with_state(|state| (state.task.clone(), state.guided.aim));
        self.close_step().await;
        let span = self.step_span();
        let looked = {
            let (guide, task) = (guide.clone(), task.clone());
            tokio::task::spawn_blocking(move || guide.locate(&task)).instrument(span).await
        };
        let found = looked.unwrap_or_default();
        let can_check = self.agent.toolbox.has(CHECK_TOOL);
        if aim == Some(Aim::Run) {
            return match found.command.filter(|_| can_check) {
                Some(command) => {
                    let (files, tests, by) = (Vec::new(), Vec::new(), DecidedBy::Task);
                    let located = Located { files, tests, command: Some(command), by };
                    self.record(EventKind::GuidedLocated(Box::new(located))).await
                }
                None => self.hand_over("the task names no command").await,
            };
        }
        if !self.agent.toolbox.has(WRITE_TOOL) {
            return self.hand_over("this agent has no tool that writes files").await;
        }
        let files: Vec<String> = found.named.iter().chain(&found.missing).cloned().collect();
        let by = match (files.is_empty(), found.candidates.is_empty()) {
            (false, _) => DecidedBy::Task,
            (true, true) => DecidedBy::Default,
            (true, false) => return self.record(EventKind::GuidedFound(Box::new(found))).await,
        };
        self.located(guide, files, &found, by).await
    }

    async fn read_pick(&self, guide: Arc<dyn Guide>) -> Result<Next, StoreError> {
        let (found, mut files) = self.services.journal.with_state(|state| {
            let found = state.guided.found.clone().unwrap_or_default();
            let heard = state.guided.reply.as_ref().map(|heard| heard.text.as_str()).unwrap_or_default();
            let files = ask::read_pick(heard, &found.candidates);
            (found, files)
        });
        let mut by = DecidedBy::Model;
        if files.is_empty() {
            by = DecidedBy::Default;
            files.extend(found.candidates.first().map(|candidate| candidate.path.clone()));
        }
        self.located(guide, files, &found, by).await
    }

    /// Records the files to work on, with the tests that judge them and the check.
    async fn located(
        &self,
        guide: Arc<dyn Guide>,
        files: Vec<String>,
        found: &Found,
        by: DecidedBy,
    ) -> Result<Next, StoreError> {
        let (mut tests, mut command) = (found.tests.clone(), found.command.clone());
        if tests.is_empty() || command.is_none() {
            let (task, changed) =
                (self.services.journal.with_state(|state| state.task.clone()), files.clone());
            let known = tokio::task::spawn_blocking(move || guide.tests_for(&task, &changed)).await;
            let (known_tests, known_command) = known.unwrap_or_default();
            if tests.is_empty() {
                tests = known_tests;
            }
            command = command.or(known_command);
        }
        tests.retain(|test| !files.contains(test));
        let command = command.filter(|_| self.agent.toolbox.has(CHECK_TOOL));
        self.record(EventKind::GuidedLocated(Box::new(Located { files, tests, command, by }))).await
    }

    /// The question for an edit, and how long its reply may be.
    fn edit_question(&self, guide: &dyn Guide) -> (String, Request) {
        let (guided, task) =
            self.services.journal.with_state(|state| (state.guided.clone(), state.task.clone()));
        let located = guided.located.clone();
        let (paths, tests) = located.map(|located| (located.files, located.tests)).unwrap_or_default();
        let window = self.agent.model.window().map_or(UNKNOWN_WINDOW, |window| (window.tokens, window.reply));
        let texts: Vec<(String, Option<String>)> = paths
            .into_iter()
            .map(|path| {
                let text = text_of(&guided, guide, guided.base(), &path).ok().flatten();
                (path, text)
            })
            .collect();
        let reply_tokens = reply_cap(&texts, window);
        let notes = guide.notes();
        let problem = problem(&guided);
        let fixed = task.len() + notes.len() + problem.as_ref().map_or(0, String::len) + 1200;
        let whole = (window.0 - reply_tokens - window.0 / 32) as usize * 33 / 10;
        let mut left = whole.saturating_sub(fixed).max(1000);
        let files = texts
            .into_iter()
            .map(|(path, text)| {
                let Some(text) = text else { return (path, None, EditForm::Whole) };
                let clean = self.services.redactor.clean_text(&text).into_owned();
                let shown = show::within(&clean, &task, left);
                left = left.saturating_sub(shown.len() + 40);
                // What is not shown as it is cannot be asked for as a whole.
                let form = if shown == text { show::form(&text) } else { EditForm::Blocks };
                (path, Some(shown), form)
            })
            .collect();
        let tests = tests
            .into_iter()
            .filter_map(|path| {
                let text = guide.read(&path).ok().flatten()?;
                let shown = show::within(&self.services.redactor.clean_text(&text), &task, left);
                left = left.saturating_sub(shown.len() + 40);
                (shown.trim() != show::GAP).then_some((path, shown))
            })
            .collect();
        let question = EditQuestion { task: &task, notes: &notes, tests, files, problem };
        let mut sampling = self.agent.sampling.clone();
        sampling.max_tokens = Some(reply_tokens);
        sampling.temperature = guided.temperature().or(sampling.temperature);
        (question.text(), Request { sampling, ..Request::default() })
    }

    async fn read_edit(&self, guide: &dyn Guide) -> Result<Next, StoreError> {
        let (guided, task) =
            self.services.journal.with_state(|state| (state.guided.clone(), state.task.clone()));
        let Some(heard) = &guided.reply else { return Ok(Next::Go) };
        let attempt = guided.replies + 1;
        let outcome = if heard.finish == Finish::Length && guided.may_continue() {
            EditOutcome::Cut
        } else {
            let whole = if guided.partial.is_empty() {
                heard.text.clone()
            } else {
                reply::join(&guided.partial, &heard.text)
            };
            understood(&guided, &task, guide, &whole, heard.finish)
        };
        self.record(EventKind::GuidedEdited(Box::new(Edited { attempt, outcome }))).await
    }

    async fn judge_check(&self, guide: Arc<dyn Guide>) -> Result<Next, StoreError> {
        let (finished, command) = self.services.journal.with_state(|state| {
            let located = state.guided.located.as_ref();
            (state.guided.result.clone(), located.and_then(|located| located.command.clone()))
        });
        let command = command.unwrap_or_default();
        let Some(finished) = finished else {
            return Ok(fail("GUIDED", "the check has no result".into(), None));
        };
        let text = |key: &str| finished.result[key].as_str().unwrap_or_default().to_owned();
        let checked = match finished.result["exit"].as_i64().filter(|_| finished.ok) {
            Some(exit) => {
                let mut output = String::new();
                for blob in &finished.stored {
                    let bytes = self.services.store.get(blob).await?;
                    let from = bytes.len().saturating_sub(MOST_OUTPUT);
                    output.push_str(&String::from_utf8_lossy(&bytes[from..]));
                }
                if output.is_empty() {
                    output = format!("{}\n{}", text("stdout_tail"), text("stderr_tail"));
                }
                let output = self.services.redactor.clean_text(&output).into_owned();
                let reduced = {
                    let command = command.clone();
                    tokio::task::spawn_blocking(move || guide.reduce(&command, &output, CHECK_CHARS)).await
                };
                let reduced = reduced.unwrap_or_default();
                let result = if exit == 0 { CheckOutcome::Passed } else { CheckOutcome::Failed };
                let (passed, failed) = (reduced.passed, reduced.failed);
                Checked { command, result, exit: Some(exit), passed, failed, text: reduced.text }
            }
            None if text("error").ends_with("TIMEOUT") => {
                let text = format!("{} Look for an endless loop.", text("message"));
                let (result, exit, passed, failed) = (CheckOutcome::Failed, None, None, None);
                Checked { command, result, exit, passed, failed, text }
            }
            None => {
                let text = format!("{}: {}", text("error"), text("message"));
                let (result, exit, passed, failed) = (CheckOutcome::NotRun, None, None, None);
                Checked { command, result, exit, passed, failed, text }
            }
        };
        self.record(EventKind::GuidedChecked(Box::new(checked))).await
    }

    /// Goes on in the format of tool calls, with the task as it is.
    async fn hand_over(&mut self, reason: &str) -> Result<Next, StoreError> {
        let reason = format!("{reason}: the model works with tools");
        self.change_action(ActionFormat::Tools, reason, ChangeCause::Aim).await
    }

    async fn record(&self, kind: EventKind) -> Result<Next, StoreError> {
        self.services.journal.append(kind).await?;
        Ok(Next::Go)
    }
}

/// The text of a file in an attempt: as the attempt has it, as it was before the task, or as it is.
fn text_of(
    guided: &Guided,
    guide: &dyn Guide,
    attempt: Option<usize>,
    path: &str,
) -> Result<Option<String>, String> {
    match guided.text_in(attempt, path) {
        Some(text) => Ok(text),
        None => guide.read(path),
    }
}

/// What the question says is wrong.
fn problem(guided: &Guided) -> Option<String> {
    let failed = |attempt: usize| {
        let checked = guided.attempts.get(attempt)?.checked.as_ref()?;
        Some(ask::failed_check(&checked.command, &checked.text))
    };
    match guided.way() {
        Way::First | Way::Fresh => None,
        Way::Repair(attempt) => failed(attempt),
        Way::Again(attempt, problem) => {
            let parts = [attempt.and_then(failed), Some(ask::unusable(&problem))];
            Some(parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n"))
        }
    }
}

/// How long the reply may be, in tokens: the usual length, or what the files need and half as much again.
fn reply_cap(texts: &[(String, Option<String>)], (window, usual): (u32, u32)) -> u32 {
    let whole =
        texts.iter().filter_map(|(_, text)| text.as_ref()).filter(|text| show::form(text) == EditForm::Whole);
    let bytes: usize = whole.map(String::len).sum();
    let needed = u32::try_from(bytes * 10 / 33 * 3 / 2 + 256).unwrap_or(u32::MAX);
    usual.max(needed).min(window / 2)
}

/// What a whole reply comes to.
fn understood(guided: &Guided, task: &str, guide: &dyn Guide, text: &str, finish: Finish) -> EditOutcome {
    let unusable = |problem: String| EditOutcome::Unusable { problem };
    if text.trim().is_empty() {
        return unusable("it was empty".into());
    }
    // A file that may end in the middle is never written.
    if finish == Finish::Length && reply::is_inside_fence(text) {
        return unusable("it was cut off at the token limit; write less".into());
    }
    let Some(located) = &guided.located else { return unusable("no files were located".into()) };
    let known: Vec<&str> = located.files.iter().chain(&located.tests).map(String::as_str).collect();
    let read = |path: &str| text_of(guided, guide, guided.base(), path);
    let base = Base { files: &located.files, protected: &located.tests, task, read: &read };
    let texts = match base.texts(reply::parse(text, &known)) {
        Ok(texts) => texts,
        Err(problem) => return unusable(problem),
    };
    match merged(guided, guide, texts) {
        Err(problem) => unusable(problem),
        Ok(files) if files.is_empty() => unusable("it changes nothing".into()),
        Ok(files) if guided.attempts.iter().any(|attempt| attempt.files == files) => EditOutcome::Repeated,
        Ok(files) => match new_syntax_problem(guide, &files) {
            Some(problem) => unusable(problem),
            None => EditOutcome::Usable { files },
        },
    }
}

/// The whole attempt: what the one it starts from changed, and the new texts over it. Sorted by path.
fn merged(guided: &Guided, guide: &dyn Guide, texts: Texts) -> Result<Vec<FileEdit>, String> {
    let mut after: BTreeMap<String, Option<String>> = BTreeMap::new();
    if let Some(base) = guided.base().and_then(|at| guided.attempts.get(at)) {
        after.extend(base.files.iter().map(|edit| (edit.path.clone(), edit.after.clone())));
    }
    after.extend(texts);
    let mut files = Vec::new();
    for (path, after) in after {
        let before = text_of(guided, guide, None, &path)?;
        if before != after {
            files.push(FileEdit { path, before, after });
        }
    }
    Ok(files)
}

/// A syntax error that an edit brings into a file that had none.
fn new_syntax_problem(guide: &dyn Guide, files: &[FileEdit]) -> Option<String> {
    files.iter().find_map(|edit| {
        let problem = guide.syntax_problem(&edit.path, edit.after.as_ref()?)?;
        let had_one =
            edit.before.as_ref().is_some_and(|text| guide.syntax_problem(&edit.path, text).is_some());
        (!had_one).then(|| format!("{} has a syntax error: {problem}", edit.path))
    })
}
