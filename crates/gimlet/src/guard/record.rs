//! Writes what is asked and what came of it into the log, in the order the model asked.
//!
//! A call that an earlier process started and never finished is not made again: nobody knows what it did. The model
//! is told so.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{Done, Layer, Outcome, Pass};
use crate::event::{EventKind, RequestedCall, ToolFinished};
use crate::state::CallStatus;
use crate::tool::{ToolFailure, code};

pub(super) struct Record {
    pub inner: Box<dyn Layer>,
    pub resumable: bool,
}

impl Layer for Record {
    fn pass<'a>(&'a self, pass: &'a mut Pass) -> BoxFuture<'a, Outcome> {
        async move {
            let clock = pass.services.clock.clone();
            let begun = clock.elapsed();
            let outcome = match pass.status {
                CallStatus::New => {
                    let call = RequestedCall {
                        id: pass.call.id.clone(),
                        tool: pass.call.name.clone(),
                        args: pass.call.args.clone(),
                        cell: pass.cell,
                    };
                    match pass.services.journal.append(EventKind::ToolRequested { call }).await {
                        Ok(()) => self.inner.pass(pass).await,
                        Err(error) => Outcome::Fatal(error.to_string()),
                    }
                }
                CallStatus::Started if !self.resumable => unknown(),
                CallStatus::Requested | CallStatus::Started | CallStatus::Finished(_) => {
                    self.inner.pass(pass).await
                }
            };
            pass.turn.wait().await;
            let seconds = clock.elapsed().saturating_sub(begun).as_secs_f64();
            finish(pass, outcome, seconds).await
        }
        .boxed()
    }
}

async fn finish(pass: &Pass, outcome: Outcome, seconds: f64) -> Outcome {
    let finished = |ok, result, truncated, stored| ToolFinished {
        id: pass.call.id.clone(),
        tool: pass.call.name.clone(),
        ok,
        result,
        truncated,
        stored,
        seconds,
    };
    let (event, outcome) = match outcome {
        Outcome::Done(Done { value, truncated, stored }) => {
            let event = finished(true, value.clone(), truncated, stored.clone());
            (event, Outcome::Done(Done { value, truncated, stored }))
        }
        Outcome::Failed(mut failure) => {
            failure.tool.clone_from(&pass.call.name);
            let result = serde_json::to_value(&failure).unwrap_or_default();
            (finished(false, result, false, Vec::new()), Outcome::Failed(failure))
        }
        open @ (Outcome::Suspended(_) | Outcome::Fatal(_)) => return open,
    };
    pass.services.after_tool(&pass.call, &event).await;
    match pass.services.journal.append(EventKind::ToolFinished(event)).await {
        Ok(()) => outcome,
        Err(error) => Outcome::Fatal(error.to_string()),
    }
}

fn unknown() -> Outcome {
    Outcome::Failed(Box::new(ToolFailure {
        advice: Some("Look at the current state before you decide whether to do it again.".into()),
        ..ToolFailure::new(
            code::OUTCOME_UNKNOWN,
            "The program stopped while this call was running, so nobody knows whether it took effect. It was not run again.",
        )
    }))
}
