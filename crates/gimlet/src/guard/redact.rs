//! Takes secrets out of a result, once, before the model, the cell, the log or the store see it. Also the innermost
//! layer: it calls the tool, and turns a panic into a failure.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{Done, Layer, Outcome, Pass, Redactor};
use crate::tool::{Tool, ToolCx, ToolError, ToolFailure, code};

pub(super) struct Redact {
    pub tool: Arc<dyn Tool>,
}

impl Layer for Redact {
    fn pass<'a>(&'a self, pass: &'a mut Pass) -> BoxFuture<'a, Outcome> {
        async move {
            let cx = ToolCx {
                cancel: pass.cancel.clone(),
                id: pass.call.id.clone(),
                effects: pass.effects.clone(),
                services: pass.services.clone(),
            };
            let redactor = &pass.services.redactor;
            let called = AssertUnwindSafe(self.tool.call(&pass.call, &cx)).catch_unwind().await;
            match called {
                Ok(Ok(output)) => {
                    let mut value = output.value;
                    redactor.clean(&mut value);
                    Outcome::Done(Done { value, ..Done::default() })
                }
                Ok(Err(ToolError::Failed(mut failure))) => {
                    clean_failure(redactor, &mut failure);
                    Outcome::Failed(failure)
                }
                Ok(Err(ToolError::Suspended(suspension))) => Outcome::Suspended(suspension),
                Ok(Err(ToolError::Fatal(message))) => Outcome::Fatal(message),
                Err(panic) => Outcome::failed(
                    code::TOOL_EXCEPTION,
                    format!("The tool broke: {}", redactor.clean_text(panic_text(panic.as_ref()))),
                ),
            }
        }
        .boxed()
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it panicked")
}

/// Cleans what a failed call tells.
pub(super) fn clean_failure(redactor: &Redactor, failure: &mut ToolFailure) {
    failure.message = redactor.clean_text(&failure.message).into_owned();
    failure.context.values_mut().for_each(|value| redactor.clean(value));
}
