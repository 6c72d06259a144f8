//! A session that outlives its worker: it keeps what was run and what every host call gave, and runs it again in a
//! fresh worker when the old one has died.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::cell::{Cell, CellEnd, CellEvent, ExecutorError, Session};
use gimlet::context::Variable;
use gimlet::tool::ToolFailure;
use serde_json::Value;

use super::allowance::{Spent, bounded};
use super::process::{Silence, Worker};
use super::record::{Called, Loss, Ran};
use super::stable::Stable;
use crate::limits::{GRACE, VARIABLES};
use crate::protocol::{CallResult, Fate, FromWorker, Health, Start, ToWorker};
use crate::source;

pub(crate) struct PythonSession {
    /// Where workers come from.
    stable: Arc<Stable>,
    start: Start,
    /// The living worker; none after a death that could not be mended yet.
    worker: Option<Worker>,
    ran: Vec<Ran>,
    /// The cell that is running, or was when its handle was dropped.
    open: Option<Ran>,
    weaknesses: Vec<String>,
    /// What the worker told of them after the last cell.
    variables: Vec<Variable>,
    cells: u32,
}

impl PythonSession {
    pub(crate) async fn start(stable: Arc<Stable>, start: Start) -> Result<Self, ExecutorError> {
        let worker = stable.worker(&start).await?;
        let weaknesses = worker.weaknesses.clone();
        Ok(PythonSession {
            stable,
            start,
            worker: Some(worker),
            ran: Vec::new(),
            open: None,
            weaknesses,
            variables: Vec::new(),
            cells: 0,
        })
    }

    /// Ends a cell whose handle was dropped, and brings a dead worker back.
    async fn settle(&mut self) -> Result<(), ExecutorError> {
        if let Some(mut left) = self.open.take() {
            left.fate = Fate::Cut;
            let waits = left.calls.last().is_some_and(|call| call.result.is_none());
            self.ran.push(left);
            if !(waits && self.stop_at_call().await) {
                self.worker = None;
            }
        }
        if self.worker.is_none() {
            self.rebuild().await?;
        }
        Ok(())
    }

    /// Ends the cell at the call it waits for; false if the worker does not.
    async fn stop_at_call(&mut self) -> bool {
        let Some(worker) = self.worker.as_mut() else { return false };
        if worker.queue(&ToWorker::Stop).is_err() {
            return false;
        }
        let end = Instant::now() + GRACE;
        loop {
            match worker.next(end.saturating_duration_since(Instant::now())).await {
                Ok(FromWorker::Printed { .. }) => {}
                Ok(FromWorker::Stopped { .. }) => return true,
                Ok(_) | Err(_) => return false,
            }
        }
    }

    /// Runs the past again in a fresh worker. Returns the names whose values did not come back and that the model
    /// has not been told of.
    async fn rebuild(&mut self) -> Result<BTreeSet<String>, ExecutorError> {
        // Each round either ends or cuts a cell that a limit met this time, so there are at most as many as cells.
        loop {
            self.worker = None;
            let mut worker = self.stable.worker(&self.start).await?;
            let mut lost = BTreeSet::new();
            let mut cut = None;
            for (place, ran) in self.ran.iter().enumerate() {
                if ran.fate == Fate::Whole {
                    // What a later cell sets again is back.
                    for name in source::bound_from(&ran.code, None) {
                        lost.remove(&name);
                    }
                }
                let line = match ran.is_replayed() {
                    true => match self.replay(&mut worker, ran).await? {
                        Replayed::Whole => None,
                        Replayed::To(line) => line,
                        Replayed::Limited => {
                            cut = Some(place);
                            break;
                        }
                    },
                    false => None,
                };
                lost.extend(ran.lost(line));
            }
            match cut {
                Some(place) => self.ran[place].fate = Fate::Cut,
                None => {
                    self.worker = Some(worker);
                    for ran in self.ran.iter_mut().filter(|ran| ran.fate == Fate::Cut) {
                        ran.loss = Loss::Told;
                    }
                    return Ok(lost);
                }
            }
        }
    }

    /// Runs one cell again on its recorded results.
    async fn replay(&self, worker: &mut Worker, ran: &Ran) -> Result<Replayed, ExecutorError> {
        let diverged = |what: String| ExecutorError::Diverged(format!("cell {}: {what}", ran.number));
        worker.queue(&ToWorker::Cell { number: ran.number, code: ran.code.clone() })?;
        let mut done = 0;
        // Recorded results come at once, so the whole cell has the time that its computing had.
        let end = Instant::now() + self.start.limits.wall + GRACE;
        loop {
            match worker.next(end.saturating_duration_since(Instant::now())).await {
                Ok(FromWorker::Printed { .. }) => {}
                Ok(FromWorker::Ended { number, .. }) if number != ran.number => {}
                Ok(FromWorker::Call { id, tool, args }) => {
                    let Some(recorded) = ran.calls.get(done) else {
                        return Err(diverged(format!("it now calls {tool} once more than before")));
                    };
                    if (&recorded.tool, &recorded.args) != (&tool, &args) {
                        return Err(diverged(format!(
                            "call {done} was {}({}) and is now {tool}({args})",
                            recorded.tool, recorded.args
                        )));
                    }
                    match (&recorded.result, ran.stops_at()) {
                        (Some(result), stop) if stop != Some(done) => {
                            worker.queue(&ToWorker::Result { id, result: result.clone() })?;
                        }
                        _ => worker.queue(&ToWorker::Stop)?,
                    }
                    done += 1;
                }
                Ok(FromWorker::Stopped { line }) if ran.fate == Fate::Cut => return Ok(Replayed::To(line)),
                Ok(FromWorker::Ended { fate: Fate::Whole, .. })
                    if ran.fate == Fate::Whole && done == ran.calls.len() =>
                {
                    return Ok(Replayed::Whole);
                }
                // A limit that held by a hair the last time.
                Ok(FromWorker::Ended { fate: Fate::Cut, .. }) | Err(Silence::Timeout | Silence::Gone(_))
                    if ran.fate == Fate::Whole =>
                {
                    return Ok(Replayed::Limited);
                }
                Ok(FromWorker::Ended { end, .. }) => {
                    return Err(diverged(format!(
                        "it now ends after {done} of {} calls: {end:?}",
                        ran.calls.len()
                    )));
                }
                Ok(other) => return Err(ExecutorError::Protocol(format!("during a replay: {other:?}"))),
                Err(Silence::Timeout) => return Err(diverged("it now takes too long".into())),
                Err(Silence::Gone(reason)) => {
                    return Err(diverged(format!("it now ends the worker: {reason}")));
                }
            }
        }
    }

    /// Takes note of a cell that ended by itself.
    async fn ended(&mut self, end: CellEnd, fate: Fate, health: Health) -> Result<CellEnd, ExecutorError> {
        if let Some(mut ran) = self.open.take() {
            ran.fate = fate;
            self.ran.push(ran);
        }
        match health {
            Health::Good => Ok(end),
            Health::Spent => {
                // What a replay brings back is known after the next cell.
                self.variables.clear();
                self.restore(end).await
            }
        }
    }

    /// Takes note of a cell that did not come to its end.
    fn cut(&mut self) {
        self.variables.clear();
        if let Some(mut ran) = self.open.take() {
            ran.fate = Fate::Cut;
            self.ran.push(ran);
        }
    }

    /// Ends a cell that hands over more than it may, and with it the worker that lets it.
    async fn stopped(&mut self, message: String) -> Result<CellEnd, ExecutorError> {
        self.cut();
        self.worker = None;
        self.restore(CellEnd::Limited { message }).await
    }

    /// Takes note of a cell in which the worker died or hung.
    async fn died(&mut self, silence: Silence) -> Result<CellEnd, ExecutorError> {
        self.cut();
        let limits = &self.start.limits;
        let worker = self.worker.take();
        let end = match (silence, worker) {
            (Silence::Timeout, Some(mut worker)) => {
                worker.kill();
                worker.bury().await;
                CellEnd::Limited {
                    message: format!(
                        "TimeoutError: the code ran longer than {} s inside one operation and was stopped",
                        limits.wall.as_secs_f32()
                    ),
                }
            }
            (Silence::Gone(_), Some(worker)) => worker.bury().await.end(limits),
            (_, None) => CellEnd::Crashed { message: "the Python interpreter is gone".into() },
        };
        self.restore(end).await
    }

    /// Brings the session back after this end, and says in it what was lost.
    async fn restore(&mut self, end: CellEnd) -> Result<CellEnd, ExecutorError> {
        let note = match self.rebuild().await {
            Ok(lost) if lost.is_empty() => "the session was restored; nothing else was lost".to_owned(),
            Ok(lost) => {
                let names: Vec<String> = lost.into_iter().collect();
                format!(
                    "the session was restored as it was before this code; lost or reset: {}",
                    names.join(", ")
                )
            }
            Err(error @ ExecutorError::Diverged(_)) if self.stable.repeats() => {
                // What cannot be repeated is given up rather than guessed: the session goes on empty.
                self.ran.clear();
                self.worker = Some(self.stable.worker(&self.start).await?);
                format!("the session could not be restored ({error}); all variables are lost")
            }
            Err(error) => return Err(error),
        };
        Ok(match end {
            CellEnd::Limited { message } => CellEnd::Limited { message: format!("{message}; {note}") },
            CellEnd::Crashed { message } => CellEnd::Crashed { message: format!("{message}; {note}") },
            other @ (CellEnd::Done { .. } | CellEnd::Answer { .. } | CellEnd::Raised { .. }) => other,
        })
    }
}

/// How far a cell was run again.
enum Replayed {
    /// To its end.
    Whole,
    /// To its last call, made in this line.
    To(Option<u32>),
    /// Into a limit that it kept the first time.
    Limited,
}

impl Session for PythonSession {
    fn cell<'a>(&'a mut self, code: &'a str) -> BoxFuture<'a, Result<Box<dyn Cell + 'a>, ExecutorError>> {
        async move {
            self.settle().await?;
            self.cells += 1;
            let number = self.cells;
            let Some(worker) = self.worker.as_mut() else {
                return Err(ExecutorError::Died("no worker".into()));
            };
            worker.queue(&ToWorker::Cell { number, code: code.to_owned() })?;
            self.open = Some(Ran {
                number,
                code: code.to_owned(),
                calls: Vec::new(),
                fate: Fate::Whole,
                loss: Loss::Untold,
            });
            let left = self.start.limits.wall + GRACE;
            Ok(Box::new(PythonCell { session: self, left, spent: Spent::default() }) as Box<dyn Cell + 'a>)
        }
        .boxed()
    }

    fn variables(&self) -> Vec<Variable> {
        self.variables.clone()
    }

    fn weaknesses(&self) -> Vec<String> {
        self.weaknesses.clone()
    }
}

/// A running cell. Dropping it while it waits for a host call ends it there; dropping it while it computes kills
/// the worker, which the session then rebuilds up to the cell's last host call.
struct PythonCell<'a> {
    session: &'a mut PythonSession,
    /// Computing time left before the worker is killed.
    left: Duration,
    /// What it has handed over.
    spent: Spent,
}

impl PythonCell<'_> {
    async fn next_event(&mut self) -> Result<CellEvent, ExecutorError> {
        let Some(open) = self.session.open.as_mut() else {
            return Err(ExecutorError::Protocol("the cell has ended".into()));
        };
        let Some(worker) = self.session.worker.as_mut() else {
            return Err(ExecutorError::Died("no worker".into()));
        };
        let message = loop {
            let began = Instant::now();
            let message = worker.next(self.left).await;
            self.left = self.left.saturating_sub(began.elapsed());
            match message {
                // Late news of a cell that is over, as from a process that its code has forked.
                Ok(FromWorker::Ended { number, .. }) if number != open.number => {}
                other => break other,
            }
        };
        match message {
            Ok(FromWorker::Printed { stream, text }) => {
                match self.spent.print(&text, &self.session.start.limits) {
                    Ok(()) => Ok(CellEvent::Printed { text, stream }),
                    Err(excess) => self.session.stopped(excess).await.map(CellEvent::Ended),
                }
            }
            Ok(FromWorker::Call { id, tool, args }) if id == open.calls.len() as u64 => {
                match self.spent.call(&self.session.start.limits) {
                    Ok(()) => {
                        open.calls.push(Called { tool: tool.clone(), args: args.clone(), result: None });
                        Ok(CellEvent::HostCall { id, tool, args })
                    }
                    Err(excess) => self.session.stopped(excess).await.map(CellEvent::Ended),
                }
            }
            Ok(FromWorker::Ended { number: _, end, fate, health, variables }) => {
                let told = variables.into_iter().filter(Variable::is_plain).take(VARIABLES);
                self.session.variables = told.collect();
                let end = bounded(end, &self.session.start.limits);
                self.session.ended(end, fate, health).await.map(CellEvent::Ended)
            }
            Ok(other) => {
                self.session.worker = None;
                Err(ExecutorError::Protocol(format!("unexpected from a running cell: {other:?}")))
            }
            Err(silence) => self.session.died(silence).await.map(CellEvent::Ended),
        }
    }

    async fn answer(&mut self, id: u64, result: Result<Value, ToolFailure>) -> Result<(), ExecutorError> {
        let open = self.session.open.as_mut();
        let call = open.and_then(|open| open.calls.last_mut().filter(|call| call.result.is_none()));
        let (Some(call), Some(worker)) = (call, self.session.worker.as_mut()) else {
            return Err(ExecutorError::Protocol(format!("no call {id} waits for a result")));
        };
        let result = match result {
            Ok(value) => CallResult::Ok(value),
            Err(failure) => CallResult::Failed(Box::new(failure)),
        };
        call.result = Some(result.clone());
        worker.queue(&ToWorker::Result { id, result })?;
        // A worker that has died meanwhile shows itself at the next event.
        let _ = worker.flush().await;
        Ok(())
    }
}

impl Cell for PythonCell<'_> {
    fn next(&mut self) -> BoxFuture<'_, Result<CellEvent, ExecutorError>> {
        self.next_event().boxed()
    }

    fn resume<'a>(
        &'a mut self,
        id: u64,
        result: Result<Value, ToolFailure>,
    ) -> BoxFuture<'a, Result<(), ExecutorError>> {
        self.answer(id, result).boxed()
    }
}

impl Drop for PythonCell<'_> {
    fn drop(&mut self) {
        let waits = |ran: &Ran| ran.calls.last().is_some_and(|call| call.result.is_none());
        if self.session.open.as_ref().is_some_and(|ran| !waits(ran))
            && let Some(worker) = self.session.worker.as_mut()
        {
            worker.kill();
        }
    }
}
