//! Runs code, answering its host calls from the toolbox; and brings a session back by replaying its cells against the
//! results in the log.
//!
//! The interpreter is deterministic and its only contact with the world is host calls, so feeding it the same code and
//! the same results leads to the same place, in the middle of a line if need be.

use serde_json::Value;
use tracing::Instrument;

use super::{Ending, Next, Run, fail};
use crate::cell::{Cell, CellEnd, CellEvent, ExecutorError, Session, SessionSpec};
use crate::digest::digest;
use crate::event::{EventKind, Suspension, ToolFinished};
use crate::guard::{ANSWER_NOW, Outcome, Truncation, Turn, truncate};
use crate::message::ToolCall;
use crate::state::{CallRecord, CallStatus, CellRecord, result_text};
use crate::store::StoreError;
use crate::telemetry;
use crate::tool::{Keep, ToolFailure};

/// Why a cell did not come to an end of its own.
enum Broken {
    /// The run stops here and can go on later.
    Stop(Suspension),
    /// The run is broken.
    Fatal(String),
    Store(StoreError),
    Executor(ExecutorError),
}

impl From<StoreError> for Broken {
    fn from(error: StoreError) -> Self {
        Broken::Store(error)
    }
}

impl From<ExecutorError> for Broken {
    fn from(error: ExecutorError) -> Self {
        Broken::Executor(error)
    }
}

impl Run {
    pub(super) async fn execute(&mut self, cell: u32, code: &str, begin: bool) -> Result<Next, StoreError> {
        let span = telemetry::cell_span(cell, code, &self.services.payload());
        let begun = self.services.clock.elapsed();
        match self.run_cell(cell, code, begin).instrument(span.clone()).await {
            Ok(end) => {
                let (printed, times, named) = self.services.journal.with_state(|state| {
                    let printed = state.cells.last().map(|cell| cell.printed.clone()).unwrap_or_default();
                    let times = times_alike(&state.cells, &end);
                    (printed, times, name_of_value(&state.cells, &end))
                });
                let (mut observation, truncated) = observe(code, &printed, &end, &self.services.truncation);
                for word in [named, again(times)].into_iter().flatten() {
                    observation = format!("{observation}\n{word}");
                }
                telemetry::record_cell(&span, &end, &observation, truncated, &self.services.payload());
                let seconds = self.services.clock.elapsed().saturating_sub(begun).as_secs_f64();
                let variables = self.session.as_ref().map(|session| session.variables()).unwrap_or_default();
                let finished =
                    EventKind::CellFinished { cell, end, observation, truncated, variables, seconds };
                self.services.journal.append(finished).await?;
                Ok(Next::Go)
            }
            Err(Broken::Stop(suspension)) => Ok(Next::End(Ending::Suspended(suspension))),
            Err(Broken::Executor(ExecutorError::Diverged(message))) => {
                Ok(Next::End(Ending::Suspended(Suspension::Diverged { message })))
            }
            Err(Broken::Executor(error)) => {
                Ok(fail("EXECUTOR_FAILED", error.to_string(), Some("see `gimlet doctor`")))
            }
            Err(Broken::Fatal(message)) => Ok(fail("TOOL_FATAL", message, None)),
            Err(Broken::Store(error)) => Err(error),
        }
    }

    async fn run_cell(&mut self, index: u32, code: &str, begin: bool) -> Result<CellEnd, Broken> {
        let cancel = self.services.cancel.clone();
        let mut session = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Broken::Stop(Suspension::Interrupted)),
            session = self.live_session(index) => session?,
        };
        let record = if begin {
            self.services
                .journal
                .append(EventKind::CellStarted { cell: index, code: code.to_owned() })
                .await?;
            CellRecord::default()
        } else {
            self.services.journal.with_state(|state| state.cells.last().cloned().unwrap_or_default())
        };
        let end = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Broken::Stop(Suspension::Interrupted)),
            end = self.follow(session.as_mut(), index, code, record) => end?,
        };
        if session.is_alive() {
            self.session = Some(session);
        }
        Ok(end)
    }

    /// Runs a cell to its end. What `record` holds of it already is not done again.
    async fn follow(
        &self,
        session: &mut dyn Session,
        index: u32,
        code: &str,
        record: CellRecord,
    ) -> Result<CellEnd, Broken> {
        let mut cell = session.cell(code).await?;
        let mut known_output = record.printed.as_str();
        let mut calls = record.calls.into_iter();
        let mut made = 0;
        loop {
            match cell.next().await? {
                CellEvent::Printed { text, stream } => {
                    if let Some(text) = fresh(text, &mut known_output)? {
                        self.services
                            .journal
                            .append(EventKind::CellOutput { cell: index, text, stream })
                            .await?;
                    }
                }
                CellEvent::HostCall { id, tool, args } => {
                    let result = match calls.next() {
                        Some(recorded) => self.carry_on(index, recorded, &tool, &args).await?,
                        None => {
                            let call = ToolCall { id: call_id(index, made), name: tool, args };
                            self.host_call(index, call, CallStatus::New).await?
                        }
                    };
                    made += 1;
                    cell.resume(id, result).await?;
                }
                CellEvent::Ended(end) => return Ok(end),
            }
        }
    }

    /// A host call that the log knows: its result if it is over, else it is made now.
    async fn carry_on(
        &self,
        index: u32,
        recorded: CallRecord,
        tool: &str,
        args: &Value,
    ) -> Result<Result<Value, ToolFailure>, Broken> {
        same_call(&recorded.call, tool, args)?;
        match recorded.status {
            CallStatus::Finished(finished) => Ok(recorded_result(&finished)),
            open @ (CallStatus::New | CallStatus::Requested | CallStatus::Started) => {
                self.host_call(index, recorded.call, open).await
            }
        }
    }

    async fn host_call(
        &self,
        index: u32,
        call: ToolCall,
        status: CallStatus,
    ) -> Result<Result<Value, ToolFailure>, Broken> {
        let pass = self.services.pass(call, Some(index), status, Turn::default());
        match self.agent.toolbox.call(pass).await {
            Outcome::Done(done) => Ok(Ok(done.value)),
            Outcome::Failed(failure) => Ok(Err(*failure)),
            Outcome::Suspended(suspension) => Err(Broken::Stop(suspension)),
            Outcome::Fatal(message) => Err(Broken::Fatal(message)),
        }
    }

    /// The session, ready for cell `index`: the one at hand, or a new one in which the earlier cells are replayed.
    async fn live_session(&mut self, index: u32) -> Result<Box<dyn Session>, Broken> {
        if let Some(session) = self.session.take() {
            return Ok(session);
        }
        let Some(executor) = &self.agent.executor else {
            return Err(ExecutorError::Start("this agent has none".into()).into());
        };
        let journal = &self.services.journal;
        let spec = SessionSpec {
            tools: self.agent.toolbox.callable().clone(),
            seed: self.seed(),
            epoch_ms: journal.with_state(|state| state.begun.map_or(0, |begun| begun.as_millisecond())),
        };
        let mut session = executor.start(&spec).await?;
        if index == 0 {
            for weakness in session.weaknesses() {
                self.services.warn(weakness).await;
            }
        }
        let earlier: Vec<CellRecord> = journal.with_state(|state| {
            state.cells.iter().take(usize::try_from(index).unwrap_or(usize::MAX)).cloned().collect()
        });
        for record in &earlier {
            replay(session.as_mut(), record).await?;
        }
        Ok(session)
    }

    /// The same for every process that works on this agent's part of this run, or of a fork that shares it.
    fn seed(&self) -> u64 {
        let journal = &self.services.journal;
        let origin = journal.with_state(|state| state.started.as_ref().and_then(|at| at.origin.clone()));
        let run = origin.as_ref().unwrap_or(journal.run());
        let name = format!("{run} {}", journal.path().as_str());
        u64::from_str_radix(&digest(name.as_bytes())[..16], 16).unwrap_or(0)
    }
}

/// Runs a finished cell again, with the results the log holds. One that a limit or a crash ended goes only as far as
/// its last host call: what came after is what went wrong.
async fn replay(session: &mut dyn Session, record: &CellRecord) -> Result<(), ExecutorError> {
    let broke = matches!(record.end, Some(CellEnd::Limited { .. } | CellEnd::Crashed { .. }));
    if broke && record.calls.is_empty() {
        return Ok(());
    }
    let mut cell = session.cell(&record.code).await?;
    let mut calls = record.calls.iter();
    loop {
        match cell.next().await? {
            CellEvent::Printed { .. } => {}
            CellEvent::HostCall { id, tool, args } => {
                if broke && calls.len() <= 1 {
                    return Ok(());
                }
                answer_from_log(cell.as_mut(), id, calls.next(), &tool, &args).await?;
            }
            CellEvent::Ended(end) => return same_end(record.end.as_ref(), &end, calls.len()),
        }
    }
}

async fn answer_from_log(
    cell: &mut (dyn Cell + '_),
    id: u64,
    recorded: Option<&CallRecord>,
    tool: &str,
    args: &Value,
) -> Result<(), ExecutorError> {
    let Some(CallRecord { call, status: CallStatus::Finished(finished) }) = recorded else {
        return Err(ExecutorError::Diverged(format!("the code calls {tool}, which the log does not know")));
    };
    same_call(call, tool, args)?;
    cell.resume(id, recorded_result(finished)).await
}

fn recorded_result(finished: &ToolFinished) -> Result<Value, ToolFailure> {
    if finished.ok {
        Ok(finished.result.clone())
    } else {
        let failure = serde_json::from_value(finished.result.clone());
        Err(failure.unwrap_or_else(|_| ToolFailure::new("UNKNOWN", finished.result.to_string())))
    }
}

fn same_call(recorded: &ToolCall, tool: &str, args: &Value) -> Result<(), ExecutorError> {
    if recorded.name == tool && recorded.args == *args {
        return Ok(());
    }
    Err(ExecutorError::Diverged(format!(
        "the log has {}({}), the code now calls {tool}({args})",
        recorded.name, recorded.args
    )))
}

fn same_end(recorded: Option<&CellEnd>, end: &CellEnd, unmade: usize) -> Result<(), ExecutorError> {
    if unmade > 0 {
        return Err(ExecutorError::Diverged(format!("the code ended {unmade} calls before the log does")));
    }
    match recorded {
        Some(recorded) if std::mem::discriminant(recorded) != std::mem::discriminant(end) => {
            Err(ExecutorError::Diverged("the code ended differently than the log says".into()))
        }
        _ => Ok(()),
    }
}

/// The part of an output that the log does not hold yet.
fn fresh(text: String, known: &mut &str) -> Result<Option<String>, ExecutorError> {
    if known.is_empty() {
        return Ok(Some(text));
    }
    if let Some(rest) = known.strip_prefix(text.as_str()) {
        *known = rest;
        return Ok(None);
    }
    match text.strip_prefix(*known) {
        Some(rest) => {
            *known = "";
            Ok(Some(rest.to_owned()))
        }
        None => Err(ExecutorError::Diverged("the code printed something else than the log says".into())),
    }
}

fn call_id(cell: u32, call: usize) -> String {
    format!("cell_{cell}_{call}")
}

/// How often the last cell was run without a pause: the same code, which printed the same and now ends the same. Code that
/// calls tools is not counted: the calls are watched, and what they tell may change.
fn times_alike(cells: &[CellRecord], end: &CellEnd) -> usize {
    let Some((last, earlier)) = cells.split_last() else { return 0 };
    let alike = |cell: &&CellRecord| {
        cell.calls.is_empty()
            && cell.code.trim() == last.code.trim()
            && cell.printed == last.printed
            && cell.end.as_ref().is_some_and(|old| ends_alike(old, end))
    };
    if last.calls.is_empty() { 1 + earlier.iter().rev().take_while(alike).count() } else { 1 }
}

/// A traceback names the cell, so two of them are never the same.
fn ends_alike(one: &CellEnd, other: &CellEnd) -> bool {
    match (one, other) {
        (CellEnd::Raised { kind, .. }, CellEnd::Raised { kind: other, .. }) => kind == other,
        (one, other) => one == other,
    }
}

/// What a model is told that looks for the value it was just shown by a name of its own.
fn name_of_value(cells: &[CellRecord], end: &CellEnd) -> Option<&'static str> {
    let before =
        cells.len().checked_sub(2).and_then(|place| cells.get(place)).and_then(|cell| cell.end.as_ref());
    let shown = matches!(before, Some(CellEnd::Done { value: Some(_) }));
    let unknown = matches!(end, CellEnd::Raised { kind, .. } if kind == "NameError");
    (shown && unknown).then_some("The value that was shown before has the name _ here.")
}

/// A traceback without a suggestion that only resembles a name by chance: small models follow it. Who writes `true` is
/// told rightly.
fn without_constants(traceback: &str) -> String {
    let Some((before, rest)) = traceback.split_once(". Did you mean: '") else { return traceback.to_owned() };
    let Some((meant, rest)) = rest.split_once("'?") else { return traceback.to_owned() };
    let missing = before.rsplit('\'').nth(1).unwrap_or_default();
    if ["False", "True", "None"].contains(&meant) && !missing.eq_ignore_ascii_case(meant) {
        format!("{before}{rest}")
    } else {
        traceback.to_owned()
    }
}

/// What a model that writes the same code again is told.
fn again(times: usize) -> Option<&'static str> {
    match times {
        0 | 1 => None,
        2 => Some("This is the same code as before, with the same result. Do something else."),
        _ => Some(ANSWER_NOW),
    }
}

/// A function that a piece of code defines and then does not mention any more: small models take writing one for doing
/// it.
fn idle_function(code: &str) -> Option<&str> {
    let name = code
        .lines()
        .find_map(|line| line.strip_prefix("def ")?.split_once('('))
        .map(|(name, _)| name.trim())?;
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    (words.filter(|word| *word == name).count() == 1).then_some(name)
}

/// What code says that does nothing but speak: small models write their answer as a comment.
fn only_comment(code: &str) -> Option<String> {
    let lines = code.lines().map(str::trim).filter(|line| !line.is_empty());
    let said: Option<Vec<&str>> =
        lines.map(|line| Some(line.strip_prefix('#')?.trim_start_matches('#').trim())).collect();
    said.map(|said| said.join(" ")).filter(|said| !said.is_empty())
}

/// What is said about code that came to nothing. A small model takes it to the letter: told to give its answer it gives
/// back what it was told, so the answer is put into its mouth.
fn nothing_printed(code: &str) -> String {
    match (idle_function(code), only_comment(code)) {
        (Some(name), _) => {
            format!(
                "The code ran and printed nothing: {name} is only defined. Call it, and print what it returns."
            )
        }
        (None, Some(said)) => format!(
            "Nothing was done: this is only a comment. If it is your answer, reply with final_answer({})",
            Value::from(said)
        ),
        (None, None) => "The code ran and printed nothing. Use print() to see a value.".to_owned(),
    }
}

/// What the model reads about a cell.
fn observe(code: &str, printed: &str, end: &CellEnd, limits: &Truncation) -> (String, bool) {
    let cut = |text: &str, keep| {
        let (text, cut) = truncate(text, limits.text_chars, limits.text_lines, keep);
        (text.into_owned(), cut)
    };
    let (output, mut truncated) = cut(printed, Keep::Head);
    let mut parts = Vec::new();
    if !output.is_empty() {
        parts.push(format!("Output:\n{}", output.trim_end_matches('\n')));
    }
    let (tail, keep) = match end {
        CellEnd::Done { value: Some(value) } => (format!("Value: {value}"), Keep::Head),
        CellEnd::Done { value: None } if printed.is_empty() => (nothing_printed(code), Keep::Head),
        CellEnd::Done { value: None } => (String::new(), Keep::Head),
        CellEnd::Answer { value } => (format!("Answer: {}", result_text(value)), Keep::Head),
        CellEnd::Raised { traceback, .. } => (without_constants(traceback), Keep::Tail),
        CellEnd::Limited { message } | CellEnd::Crashed { message } => (message.clone(), Keep::Head),
    };
    if !tail.is_empty() {
        let (tail, tail_cut) = cut(&tail, keep);
        truncated |= tail_cut;
        parts.push(tail.trim_end().to_owned());
    }
    (parts.join("\n"), truncated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_that_the_log_holds_is_not_recorded_twice() {
        let mut known = "abc";
        assert_eq!(fresh("ab".into(), &mut known).unwrap(), None);
        assert_eq!(fresh("cd".into(), &mut known).unwrap(), Some("d".into()));
        assert_eq!(fresh("e".into(), &mut known).unwrap(), Some("e".into()));
        let mut known = "abc";
        assert!(fresh("x".into(), &mut known).is_err());
    }

    #[test]
    fn code_that_is_only_repeated_is_noticed() {
        let done = CellEnd::Done { value: None };
        let ran = |code: &str, printed: &str, end| CellRecord {
            code: code.into(),
            printed: printed.into(),
            end,
            ..CellRecord::default()
        };
        let old = |code: &str, printed: &str| ran(code, printed, Some(done.clone()));
        let times = |earlier: &[CellRecord]| {
            let cells = [earlier, &[ran("print(x)\n", "1\n", None)]].concat();
            times_alike(&cells, &done)
        };
        assert_eq!(times(&[]), 1);
        assert_eq!(times(&[old("print(x)", "1\n"), old("print(x)", "1\n")]), 3);
        assert_eq!(times(&[old("print(x)", "1\n"), old("x = 1", "")]), 1, "something was done in between");
        assert_eq!(times(&[old("print(x)", "2\n")]), 1, "it is not the same any more");
    }

    #[test]
    fn an_observation_says_what_happened_in_few_words() {
        let limits = Truncation::default();
        let done = |value: Option<&str>| CellEnd::Done { value: value.map(str::to_owned) };
        let observe = |printed: &str, end: &CellEnd, limits| super::observe("x = 1", printed, end, limits);
        assert_eq!(observe("hi\n", &done(Some("35")), &limits), ("Output:\nhi\nValue: 35".into(), false));
        assert!(observe("", &done(None), &limits).0.contains("print()"));
        let idle = super::observe("def total(x):\n    return x\n", "", &done(None), &limits).0;
        assert!(idle.contains("total is only defined"), "{idle}");
        let used = super::observe("def total(x):\n    return x\ny = total(1)", "", &done(None), &limits).0;
        assert!(!used.contains("only defined"), "{used}");
        let comment = super::observe("# a.py is missing.\n\n  # So it is.", "", &done(None), &limits).0;
        assert!(comment.ends_with(r#"final_answer("a.py is missing. So it is.")"#), "{comment}");
        let raised = CellEnd::Raised { kind: "E".into(), traceback: "Traceback\nE: x\n".into() };
        assert_eq!(observe("", &raised, &limits).0, "Traceback\nE: x");
        let misled = CellEnd::Raised {
            kind: "NameError".into(),
            traceback: "NameError: name 'value' is not defined. Did you mean: 'False'?\n".into(),
        };
        assert_eq!(observe("", &misled, &limits).0, "NameError: name 'value' is not defined");
        let right = "NameError: name 'true' is not defined. Did you mean: 'True'?";
        assert_eq!(without_constants(right), right);
        let (text, truncated) = observe(&"x\n".repeat(500), &done(None), &limits);
        assert!(truncated && text.contains("300 lines cut"), "{text}");
    }
}
