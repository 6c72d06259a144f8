//! Asks the policy, and a person where the policy says so. What was approved is what runs: nothing inside this layer
//! changes the arguments. A person may approve another patch than the one shown; then that one runs, judged anew.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tracing::Instrument;

use super::redact::clean_failure;
use super::{Layer, Outcome, Pass};
use crate::approval::{ApprovalRequest, Asking, Decision, Scope, binding};
use crate::digest::digest_json;
use crate::effect::{Effect, Verdict, judge_all};
use crate::event::{EventKind, Suspension};
use crate::run::Services;
use crate::telemetry;
use crate::tool::{Tool, ToolError, ToolFailure, code};

pub(super) struct Approve {
    pub inner: Box<dyn Layer>,
    pub tool: Arc<dyn Tool>,
}

impl Layer for Approve {
    fn pass<'a>(&'a self, pass: &'a mut Pass) -> BoxFuture<'a, Outcome> {
        async move {
            match self.tool.effects(&pass.call.args) {
                Ok(effects) => pass.effects = effects,
                Err(ToolError::Failed(mut failure)) => {
                    // The tool was not called, so the layer that cleans its words never sees these.
                    clean_failure(&pass.services.redactor, &mut failure);
                    return Outcome::Failed(failure);
                }
                Err(ToolError::Suspended(suspension)) => return Outcome::Suspended(suspension),
                Err(ToolError::Fatal(message)) => return Outcome::Fatal(message),
            }
            let verdict = judge_all(&pass.services.policies, &pass.effects);
            pass.verdict = Some(verdict.clone());
            match verdict {
                Verdict::Allow => self.inner.pass(pass).await,
                Verdict::Ask(reason) => match self.ask(pass, reason).await {
                    Ok(Yes::AsAsked) => self.inner.pass(pass).await,
                    Ok(Yes::Edited(patch)) => self.pass_edited(pass, &patch).await,
                    Err(outcome) => outcome,
                },
                Verdict::Deny(reason) => Outcome::failed(
                    denied(&pass.effects),
                    format!("This is not allowed, and no approval can allow it: {reason}."),
                ),
            }
        }
        .boxed()
    }
}

/// The word for a denial: people and models look for the one about commands.
fn denied(effects: &[Effect]) -> &'static str {
    let runs = effects.iter().any(|effect| matches!(effect, Effect::Run { .. }));
    if runs { code::COMMAND_DENIED } else { code::DENIED }
}

/// What the agent is told that may ask nobody.
const ASKS_NOBODY: &str =
    "This agent may do nothing that needs an approval. Do without, or say what is needed.";

/// The approver's answer, unless the agent may not even ask.
async fn answer(services: &Services, request: ApprovalRequest) -> Decision {
    match request.asking {
        Asking::Open | Asking::Person => services.approver.ask(request).await,
        Asking::Nobody => Decision::Deny { feedback: Some(ASKS_NOBODY.into()) },
    }
}

/// What a person agreed to.
enum Yes {
    /// What was asked.
    AsAsked,
    /// This patch in place of the one that was shown.
    Edited(String),
}

/// Most characters of an edited patch that the model is told.
const EDITED_CHARS: usize = 2000;

impl Approve {
    /// Passes the call on with the person's patch. Its effects are judged like any other's: an edit passes no denial.
    async fn pass_edited(&self, pass: &mut Pass, patch: &str) -> Outcome {
        let Some(args) = self.tool.with_patch(&pass.call.args, patch) else {
            return Outcome::failed(
                code::APPROVAL_DENIED,
                "The person sent a patch, and this tool takes none.",
            );
        };
        let effects = match self.tool.effects(&args) {
            Ok(effects) => effects,
            Err(ToolError::Failed(mut failure)) => {
                clean_failure(&pass.services.redactor, &mut failure);
                failure.message = format!("The person changed the patch, and theirs: {}", failure.message);
                return Outcome::Failed(failure);
            }
            Err(ToolError::Suspended(suspension)) => return Outcome::Suspended(suspension),
            Err(ToolError::Fatal(message)) => return Outcome::Fatal(message),
        };
        if let Verdict::Deny(reason) = judge_all(&pass.services.policies, &effects) {
            return Outcome::failed(
                denied(&effects),
                format!("The person changed the patch, and theirs is not allowed: {reason}."),
            );
        }
        let shown = self.tool.preview(&args).unwrap_or_else(|| patch.to_owned());
        let shown = pass.services.redactor.clean_text(&shown).chars().take(EDITED_CHARS).collect::<String>();
        (pass.call.args, pass.effects) = (args, effects);
        match self.inner.pass(pass).await {
            Outcome::Done(mut done) => {
                if let Some(result) = done.value.as_object_mut() {
                    let told = format!(
                        "The person changed your patch before approving it. This was applied:\n{shown}"
                    );
                    result.insert("edited_by_person".into(), told.into());
                }
                Outcome::Done(done)
            }
            other => other,
        }
    }

    async fn ask(&self, pass: &Pass, reason: String) -> Result<Yes, Outcome> {
        let request = self.question(pass, reason);
        let id = request.id.clone();
        let journal = &pass.services.journal;
        let fatal = |error: crate::store::StoreError| Outcome::Fatal(error.to_string());
        journal.append(EventKind::ApprovalRequested(request.clone())).await.map_err(fatal)?;

        let span = telemetry::approval_span(&request, &pass.services.payload());
        let decision = tokio::select! {
            biased;
            () = pass.cancel.cancelled() => return Err(Outcome::Suspended(Suspension::Interrupted)),
            decision = answer(&pass.services, request).instrument(span.clone()) => decision,
        };
        telemetry::record_decision(&span, &decision, &pass.services.payload());
        if decision == Decision::Defer {
            return Err(Outcome::Suspended(Suspension::Approval { approval: id }));
        }
        journal.append(EventKind::ApprovalDecided { id, decision: decision.clone() }).await.map_err(fatal)?;
        match decision {
            Decision::Approve { scope: Scope::Once | Scope::Session | Scope::Always } => Ok(Yes::AsAsked),
            Decision::Edit { patch } => Ok(Yes::Edited(patch)),
            Decision::Deny { feedback } => Err(Outcome::Failed(Box::new(ToolFailure {
                advice: Some(
                    feedback.unwrap_or_else(|| "Find another way, or say what you would have done.".into()),
                ),
                ..ToolFailure::new(code::APPROVAL_DENIED, "The person you work for refused this.")
            }))),
            Decision::Abort | Decision::Defer => Err(Outcome::Suspended(Suspension::Interrupted)),
        }
    }

    fn question(&self, pass: &Pass, reason: String) -> ApprovalRequest {
        let services = &pass.services;
        let asker = services.journal.path().as_str().to_owned();
        let binding = binding(&pass.call.name, &pass.effects, &services.root, services.confinement);
        let place = serde_json::json!([services.journal.run(), asker, pass.call.id, binding]);
        ApprovalRequest {
            id: format!("ap_{}", &digest_json(&place)[..10]),
            run: services.journal.run().clone(),
            binding,
            call: pass.call.id.clone(),
            asker,
            tool: pass.call.name.clone(),
            args: pass.call.args.clone(),
            effects: pass.effects.clone(),
            reason,
            asking: services.asking,
            editable: self.tool.with_patch(&pass.call.args, "").is_some(),
            preview: self.tool.preview(&pass.call.args),
        }
    }
}
