//! What a program brings to a session: tools that run in it, and checks of the answer.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::effect::Effect;
use gimlet::hook::{Check, Facts};
use gimlet::message::ToolCall;
use gimlet::tool::{Manner, Tool, ToolCx, ToolError, ToolFailure, ToolOutput, ToolSpec, code};
use serde_json::{Value, json};

use crate::params::{ProgramTool, Wishes};
use crate::wire::{Peer, Unanswered};

/// Longest execution of a program's tool when it says nothing about it.
const TIMEOUT: Duration = Duration::from_secs(300);

/// A tool that runs in the client.
struct ClientTool {
    peer: Peer,
    session: String,
    spec: Arc<ToolSpec>,
    reads_only: bool,
}

/// The tools of a program.
pub(crate) fn tools(peer: &Peer, session: &str, wishes: &Wishes) -> Vec<Arc<dyn Tool>> {
    let tool = |tool: &ProgramTool| {
        Arc::new(ClientTool {
            peer: peer.clone(),
            session: session.to_owned(),
            spec: Arc::new(spec(tool)),
            reads_only: tool.reads_only,
        }) as Arc<dyn Tool>
    };
    wishes.tools.iter().map(tool).collect()
}

/// A program's tool as models are told of it.
pub(crate) fn spec(tool: &ProgramTool) -> ToolSpec {
    let timeout = tool.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    ToolSpec {
        name: tool.name.clone(),
        description: tool.description.clone(),
        input: tool.input.clone(),
        output: tool.output.clone(),
        manner: Manner { timeout: timeout.unwrap_or(TIMEOUT), ..Manner::default() },
    }
}

impl Tool for ClientTool {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn effects(&self, args: &Value) -> Result<Vec<Effect>, ToolError> {
        let opaque = || Effect::Opaque { what: format!("the program's function {}({args})", self.spec.name) };
        Ok(if self.reads_only { Vec::new() } else { vec![opaque()] })
    }

    fn call<'a>(
        &'a self,
        call: &'a ToolCall,
        _cx: &'a ToolCx,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        async move {
            let params =
                json!({ "sessionId": self.session, "id": call.id, "name": call.name, "args": call.args });
            match ask(&self.peer, params).await {
                Ok(value) => Ok(ToolOutput::new(value)),
                Err(failure) => Err(ToolError::Failed(Box::new(failure))),
            }
        }
        .boxed()
    }
}

/// Calls a function of the program.
pub(crate) async fn ask(peer: &Peer, params: Value) -> Result<Value, ToolFailure> {
    match peer.request("_gimlet/tool", params).await {
        Ok(mut answer) => match answer.get("error") {
            Some(error) => {
                let text = |name: &str| error[name].as_str().map(str::to_owned);
                let word = text("error").unwrap_or_else(|| code::TOOL_EXCEPTION.to_owned());
                let failure = ToolFailure::new(word, text("message").unwrap_or_default());
                let context = error["context"].as_object().cloned().unwrap_or_default();
                Err(ToolFailure { context, ..failure })
            }
            None => Ok(answer["value"].take()),
        },
        Err(Unanswered::Error(message)) => Err(ToolFailure::new(code::TOOL_EXCEPTION, message)),
        Err(Unanswered::Closed) => {
            Err(ToolFailure::new(code::CANCELLED, "the program that has this tool is gone"))
        }
    }
}

/// A check that runs in the client.
struct ClientCheck {
    peer: Peer,
    session: String,
    index: usize,
}

/// The checks of a program.
pub(crate) fn checks(peer: &Peer, session: &str, wishes: &Wishes) -> Vec<Arc<dyn Check>> {
    let check = |index| {
        Arc::new(ClientCheck { peer: peer.clone(), session: session.to_owned(), index }) as Arc<dyn Check>
    };
    (0..wishes.checks).map(check).collect()
}

impl Check for ClientCheck {
    fn check<'a>(&'a self, answer: &'a str, facts: Facts<'a>) -> BoxFuture<'a, Result<(), String>> {
        async move {
            let calls: Vec<&str> = facts.calls.iter().map(|call| call.tool.as_str()).collect();
            let params = json!({
                "sessionId": self.session,
                "index": self.index,
                "answer": answer,
                "task": facts.task,
                "calls": calls,
            });
            match self.peer.request("_gimlet/check", params).await {
                Ok(answer) => match answer["problem"].as_str() {
                    Some(problem) => Err(problem.to_owned()),
                    None => Ok(()),
                },
                // A check that cannot say yes has not said yes.
                Err(Unanswered::Error(message)) => Err(format!("the check failed: {message}")),
                Err(Unanswered::Closed) => Err("the program that checks the answer is gone".to_owned()),
            }
        }
        .boxed()
    }
}
