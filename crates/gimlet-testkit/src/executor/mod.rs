//! An executor that needs no interpreter: cells are lines of a tiny language, so the loop's code mode can be tested
//! down to suspension and replay. It behaves like the real one where it matters: variables live on, calls wait,
//! nothing is random, and a dead session stays dead.
//!
//! ```text
//! # a comment                    print Hello, or: print $x        warn Text on standard error
//! set x {"a": [1, 2]}            x = call tool {"path": "$x"}     x = try call tool {}   (the failure as a value)
//! $x                             raise ValueError no such thing   answer {"n": 1}, or: answer $x
//! limit too slow                 crash out of memory              hang
//! ```

mod line;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::cell::{Cell, CellEnd, CellEvent, Executor, ExecutorError, Session, SessionSpec, Stream};
use gimlet::tool::ToolFailure;
use serde_json::{Value, json};

use line::{Line, OnFailure, Raise};

/// Starts sessions of the line language. Clones share their record.
#[derive(Debug, Clone, Default)]
pub struct ScriptedExecutor {
    record: Arc<Mutex<Record>>,
}

#[derive(Debug, Default)]
struct Record {
    sessions: usize,
    cells: Vec<String>,
}

impl ScriptedExecutor {
    /// An executor with an empty record.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sessions started so far; a replay starts another one.
    pub fn sessions(&self) -> usize {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).sessions
    }

    /// The code of every cell so far, in all sessions.
    pub fn cells(&self) -> Vec<String> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).cells.clone()
    }
}

impl Executor for ScriptedExecutor {
    fn start<'a>(&'a self, spec: &'a SessionSpec) -> BoxFuture<'a, Result<Box<dyn Session>, ExecutorError>> {
        async move {
            self.record.lock().unwrap_or_else(PoisonError::into_inner).sessions += 1;
            let tools = spec.tools.iter().map(|tool| tool.name.clone()).collect();
            let session = LineSession {
                tools,
                variables: BTreeMap::new(),
                health: Health::Alive,
                record: self.record.clone(),
            };
            Ok(Box::new(session) as Box<dyn Session>)
        }
        .boxed()
    }
}

/// Variables by name.
type Variables = BTreeMap<String, Value>;

struct LineSession {
    tools: Vec<String>,
    variables: Variables,
    health: Health,
    record: Arc<Mutex<Record>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    /// It can run a cell; one that was left in the middle keeps what it assigned.
    Alive,
    /// A cell crashed it.
    Dead,
}

impl Session for LineSession {
    fn cell<'a>(&'a mut self, code: &'a str) -> BoxFuture<'a, Result<Box<dyn Cell + 'a>, ExecutorError>> {
        async move {
            if self.health == Health::Dead {
                return Err(ExecutorError::Died("it crashed".into()));
            }
            self.record.lock().unwrap_or_else(PoisonError::into_inner).cells.push(code.to_owned());
            let lines = code.lines().map(str::to_owned).collect();
            let cell = LineCell {
                session: self,
                lines,
                at: 0,
                calls: 0,
                waiting: None,
                value: None,
                failed: None,
                ended: false,
            };
            Ok(Box::new(cell) as Box<dyn Cell + 'a>)
        }
        .boxed()
    }

    fn is_alive(&self) -> bool {
        self.health == Health::Alive
    }
}

struct LineCell<'a> {
    session: &'a mut LineSession,
    lines: Vec<String>,
    /// The line that comes next.
    at: usize,
    calls: u64,
    /// The call that has no answer yet.
    waiting: Option<Waiting>,
    /// Value of the last line, if it was an expression.
    value: Option<String>,
    /// How a failed call ended the cell.
    failed: Option<Raise>,
    /// It has come to its end.
    ended: bool,
}

struct Waiting {
    id: u64,
    variable: Option<String>,
    on_failure: OnFailure,
}

impl Cell for LineCell<'_> {
    fn next(&mut self) -> BoxFuture<'_, Result<CellEvent, ExecutorError>> {
        async move {
            if self.ended {
                return Err(ExecutorError::Protocol("the cell has ended".into()));
            }
            if let Some(waiting) = &self.waiting {
                return Err(ExecutorError::Protocol(format!("host call {} has no answer yet", waiting.id)));
            }
            if let Some(raise) = self.failed.take() {
                return Ok(self.end(raise.end(self.at)));
            }
            loop {
                let Some(text) = self.lines.get(self.at) else {
                    let value = self.value.take();
                    return Ok(self.end(CellEnd::Done { value }));
                };
                let parsed = line::parse(text, &self.session.variables);
                self.at += 1;
                match parsed {
                    Err(raise) => return Ok(self.end(raise.end(self.at))),
                    // An empty line does not take the value of the expression before it away.
                    Ok(Line::Nothing) => {}
                    Ok(line) => {
                        self.value = None;
                        if let Some(event) = self.run(line).await {
                            return Ok(event);
                        }
                    }
                }
            }
        }
        .boxed()
    }

    fn resume<'a>(
        &'a mut self,
        id: u64,
        result: Result<Value, ToolFailure>,
    ) -> BoxFuture<'a, Result<(), ExecutorError>> {
        async move {
            let Some(waiting) = self.waiting.take_if(|waiting| waiting.id == id) else {
                return Err(ExecutorError::Protocol(format!("no host call {id} waits for an answer")));
            };
            let value = match (result, waiting.on_failure) {
                (Ok(value), _) => value,
                (Err(failure), OnFailure::Keep) => json!(failure),
                (Err(failure), OnFailure::Raise) => {
                    self.failed = Some(Raise { kind: "ToolError".into(), message: failure.to_string() });
                    return Ok(());
                }
            };
            if let Some(variable) = waiting.variable {
                self.session.variables.insert(variable, value);
            }
            Ok(())
        }
        .boxed()
    }
}

impl LineCell<'_> {
    /// Does a line; what comes back is told, nothing means go on.
    async fn run(&mut self, line: Line) -> Option<CellEvent> {
        match line {
            Line::Nothing => None,
            Line::Print { text, stream } => Some(CellEvent::Printed { text: format!("{text}\n"), stream }),
            Line::Set { variable, value } => {
                self.session.variables.insert(variable, value);
                None
            }
            Line::Show { value } => {
                self.value = (!value.is_null()).then(|| value.to_string());
                None
            }
            Line::Call { variable, tool, args, on_failure } => {
                if !self.session.tools.contains(&tool) {
                    let raise =
                        Raise { kind: "NameError".into(), message: format!("name '{tool}' is not defined") };
                    return Some(self.end(raise.end(self.at)));
                }
                let id = self.calls;
                self.calls += 1;
                self.waiting = Some(Waiting { id, variable, on_failure });
                Some(CellEvent::HostCall { id, tool, args })
            }
            Line::End(end) => Some(self.end(end)),
            Line::Hang => std::future::pending().await,
        }
    }

    fn end(&mut self, end: CellEnd) -> CellEvent {
        self.ended = true;
        self.session.health = match end {
            CellEnd::Crashed { .. } => Health::Dead,
            CellEnd::Done { .. }
            | CellEnd::Answer { .. }
            | CellEnd::Raised { .. }
            | CellEnd::Limited { .. } => Health::Alive,
        };
        CellEvent::Ended(end)
    }
}

impl Raise {
    /// The end of a cell that raised this at a line, counted from 1.
    fn end(self, line: usize) -> CellEnd {
        let Raise { kind, message } = self;
        let traceback =
            format!("Traceback (most recent call last):\n  File \"<cell>\", line {line}\n{kind}: {message}");
        CellEnd::Raised { kind, traceback }
    }
}

/// Where a line prints to.
fn stream(word: &str) -> Stream {
    if word == "warn" { Stream::Stderr } else { Stream::Stdout }
}
