//! `!command`: a command of the person's own, by the same policy and in the same jail as the agent's. The model reads what
//! came of it with the next task.

use std::sync::Arc;

use gimlet::Agent;
use gimlet::guard::truncate;
use gimlet::message::ToolCall;
use gimlet::run::{Invocation, invoke};
use gimlet::text::Printable;
use gimlet::tool::Keep;
use gimlet_runtime::options::ApproveMode;
use gimlet_runtime::parts::models::{Script, ScriptedModel};
use gimlet_runtime::{BlobsOnly, PlanPolicy};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Interactive;
use crate::front;
use crate::show::fence;
use crate::style::{DIM, ERROR};

/// Most characters of a command's output that the model reads.
const MOST_CHARS: usize = 4000;

impl Interactive {
    /// Runs a command.
    pub(super) async fn shell(&mut self, command: &str) -> anyhow::Result<()> {
        let (project, runtime) = (self.session.project(), self.session.runtime());
        project.check_folder()?;
        // A toolbox belongs to an agent; this one never speaks.
        let model = Arc::new(ScriptedModel::new("none", Script::default()));
        let agent = Agent::builder(model).tools(project.tools()).build()?;
        let mode = self.session.approve();
        let approver = Arc::new(front::clerk(runtime, project, mode));
        let cancel = CancellationToken::new();
        let store = Arc::new(BlobsOnly(runtime.store().clone()));
        let mut env = project.env(store, approver.clone(), cancel.clone());
        env.policies.push(PlanPolicy::while_on(move || mode == ApproveMode::Plan));
        let call = ToolCall {
            id: "call_1".into(),
            name: "run_cmd".into(),
            args: json!({ "cmd": command, "timeout": 600 }),
        };
        let outcome = {
            let work = front::asking(&approver, invoke(&agent, env, call));
            tokio::pin!(work);
            loop {
                tokio::select! {
                    biased;
                    outcome = &mut work => break outcome,
                    () = self.interrupts.next() => cancel.cancel(),
                }
            }
        };
        match outcome {
            Invocation::Done(result) => self.tell_output(command, &result),
            Invocation::Failed(failure) => {
                self.say(&format!("{ERROR}✗{ERROR:#} {}", Printable::block(&failure.message)))
            }
            Invocation::Suspended(_) => self.say(&format!("{DIM}it was not run{DIM:#}")),
            Invocation::Fatal(message) => Err(anyhow::anyhow!(message)),
        }
    }

    /// Shows what a command printed, and keeps it for the model.
    fn tell_output(&mut self, command: &str, result: &Value) -> anyhow::Result<()> {
        let text = |key: &str| result[key].as_str().unwrap_or_default().trim_end().to_owned();
        let printed = [text("stdout_tail"), text("stderr_tail")];
        let printed = printed.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join("\n");
        if !printed.is_empty() {
            self.say(Printable::block(&printed).as_str())?;
        }
        let exit = result["exit"].as_i64().unwrap_or_default();
        if exit != 0 {
            self.say(&format!("{DIM}exit {exit}{DIM:#}"))?;
        }
        let (kept, _) = truncate(&printed, MOST_CHARS, usize::MAX, Keep::Tail);
        let fence = fence(&kept);
        self.behind.push(format!("I ran `{command}` (exit {exit}). It printed:\n{fence}\n{kept}\n{fence}"));
        Ok(())
    }
}
