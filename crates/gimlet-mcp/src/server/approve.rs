//! Asking the person behind a client. What was decided before counts first; then the client is asked, in the way its
//! revision of the protocol has for it; and where it has none, the question is left for the command line.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::approval::{ApprovalRequest, Approver, Decision, Scope};
use gimlet::effect::Effect;
use rmcp::RoleServer;
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputResponses,
};
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;

/// Characters of a preview that a client is shown.
const SHOWN: usize = 3000;

/// The field of the form that is a yes.
const FIELD: &str = "allow";

/// Questions put to the client in this session: an answer to any other is no answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked(Arc<Mutex<HashSet<String>>>);

impl Asked {
    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How the person behind a client can be asked.
pub(super) enum Way {
    /// By a request in the middle of the call.
    Elicit(Peer<RoleServer>),
    /// By an answer that asks back; the client calls again with what it learned.
    AskBack {
        /// What it learned.
        answers: InputResponses,
    },
    /// Not at all.
    None,
}

impl Way {
    /// What this client can do.
    pub(super) fn of(context: &RequestContext<RoleServer>, answers: Option<InputResponses>) -> Way {
        let forms = context
            .client_capabilities()
            .and_then(|capabilities| capabilities.elicitation)
            .is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none());
        if !forms {
            return Way::None;
        }
        if context.protocol_version().is_some_and(|version| !version.has_initialize()) {
            Way::AskBack { answers: answers.unwrap_or_default() }
        } else {
            Way::Elicit(context.peer.clone())
        }
    }
}

/// Answers for one call of a client.
pub(super) struct ClientApprover {
    /// Knows earlier decisions.
    pub(super) standing: Arc<dyn Approver>,
    /// Leaves a question for the command line.
    pub(super) waiting: Arc<dyn Approver>,
    pub(super) way: Way,
    pub(super) asked: Asked,
    /// The question to ask back.
    pub(super) open: Mutex<Option<ApprovalRequest>>,
}

impl ClientApprover {
    /// The question that the client is to ask, if there is one.
    pub(super) fn question(&self) -> Option<(String, ElicitRequest)> {
        let request = self.open.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        self.asked.lock().insert(request.id.clone());
        let form = form(&request)?;
        Some((request.id, ElicitRequest::new(form)))
    }
}

impl Approver for ClientApprover {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        async move {
            let standing = self.standing.ask(request.clone()).await;
            if standing != Decision::Defer {
                return standing;
            }
            match &self.way {
                Way::Elicit(peer) => {
                    let Some(form) = form(&request) else { return self.waiting.ask(request).await };
                    match peer.create_elicitation(form).await {
                        Ok(answer) => decision(&answer),
                        // A client that promised to ask and cannot is like one that never did.
                        Err(_) => self.waiting.ask(request).await,
                    }
                }
                Way::AskBack { answers } => {
                    let answer = answers
                        .get(&request.id)
                        .filter(|_| self.asked.lock().remove(&request.id))
                        .and_then(|answer| serde_json::from_value(answer.clone()).ok());
                    match answer {
                        Some(answer) => decision(&answer),
                        None => {
                            *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(request);
                            Decision::Defer
                        }
                    }
                }
                Way::None => self.waiting.ask(request).await,
            }
        }
        .boxed()
    }
}

/// Only a clear yes is one.
fn decision(answer: &ElicitResult) -> Decision {
    let yes = answer.content.as_ref().and_then(|content| content.get(FIELD)) == Some(&Value::Bool(true));
    if answer.action == ElicitationAction::Accept && yes {
        Decision::Approve { scope: Scope::Once }
    } else {
        Decision::Deny { feedback: None }
    }
}

fn form(request: &ApprovalRequest) -> Option<ElicitRequestParams> {
    let requested_schema = ElicitationSchema::builder()
        .required_bool_with(FIELD, |field| field.title("Allow this once").description("Yes to go ahead."))
        .build()
        .ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message: words(request), requested_schema })
}

/// The question in words.
fn words(request: &ApprovalRequest) -> String {
    let mut text = format!("May `{}` go ahead? It is asked because {}.", request.tool, request.reason);
    for effect in &request.effects {
        text.push_str("\n- ");
        text.push_str(&match effect {
            Effect::Read { path } => format!("read {}", path.display()),
            Effect::Write { path, digest: Some(_) } => format!("write {}", path.display()),
            Effect::Write { path, digest: None } => format!("remove {}", path.display()),
            Effect::Run { command, .. } => format!("run {command}"),
            Effect::Network { host } => format!("talk to {host}"),
            Effect::Delegate { agent } => format!("hand a task to {agent}"),
            Effect::Remember { what, .. } => format!("remember {what}"),
            Effect::Opaque { what } => what.clone(),
        });
    }
    if let Some(preview) = &request.preview {
        text.push_str("\n\n");
        text.extend(preview.chars().take(SHOWN));
        if preview.chars().count() > SHOWN {
            text.push_str("\n[… the rest is not shown]");
        }
    }
    text
}
