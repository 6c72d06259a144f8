//! Follows a turn: its events become updates, and its questions are put to the client.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gimlet::Ending;
use gimlet::approval::{ApprovalRequest, Decision, Scope};
use gimlet::event::{AgentPath, Event};
use gimlet::patch::FileChange;
use gimlet_runtime::parts::tools::patch::propose_diff;
use gimlet_runtime::{Session, Turn};
use serde_json::{Value, json};

use crate::content;
use crate::updates::{Telling, Updates, call_id};
use crate::wire::{Peer, Unanswered};

/// What the model reads when a person rejects a call and says no more.
const REJECTED: &str = "The user rejected this. Do not try it again in another way; ask what to do instead, or go on without it.";

/// What the client is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Updates, for an editor.
    Updates,
    /// Events as they are logged, for a program.
    Events,
}

/// One session as the client sees it.
#[derive(Clone)]
pub(crate) struct View {
    pub(crate) peer: Peer,
    pub(crate) id: String,
    pub(crate) wanted: Wanted,
    /// Whether a question was left for whoever comes next.
    deferred: Arc<AtomicBool>,
}

impl View {
    pub(crate) fn new(peer: Peer, id: String, wanted: Wanted) -> View {
        View { peer, id, wanted, deferred: Arc::default() }
    }

    /// Whether a question was left for whoever comes next.
    pub(crate) fn is_deferred(&self) -> bool {
        self.deferred.load(Ordering::Relaxed)
    }

    /// Tells the client of an update.
    pub(crate) fn update(&self, update: Value) {
        self.peer.notify("session/update", json!({ "sessionId": self.id, "update": update }));
    }

    fn show(&self, updates: &mut Updates, event: &Event) {
        match self.wanted {
            Wanted::Updates => updates.of(event).into_iter().for_each(|update| self.update(update)),
            Wanted::Events => {
                self.peer.notify("_gimlet/event", json!({ "sessionId": self.id, "event": event }));
            }
        }
    }

    /// Tells a log again.
    pub(crate) fn replay(&self, session: &Session, events: &[Event]) {
        let mut updates = updates(session, Telling::Replay);
        for event in events {
            self.show(&mut updates, event);
        }
    }

    /// Follows a turn to its end.
    pub(crate) async fn follow(&self, session: &Session, turn: Turn) -> anyhow::Result<Ending> {
        let mut updates = updates(session, Telling::Live);
        updates.learn(&session.stored_events().await?);
        let mut events = turn.events()?;
        let mut question: Option<Asked<'_>> = None;
        let work = turn.ended();
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                Some(event) = events.next() => self.show(&mut updates, event?.as_ref()),
                ending = &mut work => {
                    while let Some(event) = events.next_now() {
                        self.show(&mut updates, &event);
                    }
                    return ending;
                }
                request = session.asked(), if question.is_none() => {
                    question = Some(Box::pin(async move {
                        let decision = self.ask(session, &request).await;
                        (request.id, decision)
                    }));
                }
                (id, decision) = answered(&mut question) => {
                    question = None;
                    // A run that ended meanwhile needs no answer.
                    session.decide(&id, decision);
                }
            }
        }
    }

    /// Puts a question to the client.
    pub(crate) async fn ask(&self, session: &Session, request: &ApprovalRequest) -> Decision {
        let answer = self.peer.request("session/request_permission", self.question(session, request)).await;
        match answer {
            Ok(answer) => decision(&answer),
            // Nobody is there, or nobody who can be asked: the question waits.
            Err(Unanswered::Closed | Unanswered::Error(_)) => {
                self.deferred.store(true, Ordering::Relaxed);
                Decision::Defer
            }
        }
    }

    fn question(&self, session: &Session, request: &ApprovalRequest) -> Value {
        let root = session.project().path();
        let agents: Vec<&str> = request.askers().collect();
        let changes = changes(session, request);
        let mut shown = content::diffs(root, &changes);
        if let Some(command) = content::command(&request.args) {
            shown.push(content::text(&content::fenced("sh", command)));
        } else if let Some(preview) = request.preview.as_ref().filter(|_| changes.is_empty()) {
            shown.push(content::text(&content::fenced("", preview)));
        }
        shown.push(content::text(&request.reason));
        let asker: AgentPath = serde_json::from_value(json!(request.asker)).unwrap_or_default();
        json!({
            "sessionId": self.id,
            "toolCall": {
                "toolCallId": call_id(&asker, &request.call),
                "title": content::title(&request.tool, &request.args, &agents),
                "kind": content::kind(&request.tool),
                "status": "pending",
                "rawInput": request.args,
                "locations": content::locations(root, &request.effects),
                "content": shown,
            },
            "options": [
                { "optionId": "allow_once", "name": "Allow once", "kind": "allow_once" },
                { "optionId": "allow_always", "name": "Allow for this session", "kind": "allow_always" },
                { "optionId": "reject_once", "name": "Reject", "kind": "reject_once" },
            ],
            "_meta": { "gimlet": { "approval": request } },
        })
    }
}

/// The answer of the client, with the question it is for.
type Asked<'a> = Pin<Box<dyn Future<Output = (String, Decision)> + Send + 'a>>;

async fn answered(question: &mut Option<Asked<'_>>) -> (String, Decision) {
    match question {
        Some(question) => question.await,
        None => std::future::pending().await,
    }
}

/// How a session is shown.
fn updates(session: &Session, telling: Telling) -> Updates {
    let patches = session.project().patches().clone();
    Updates::new(
        telling,
        session.project().path().to_owned(),
        session.window(),
        Box::new(move |id| patches.get(id).ok().map(|patch| patch.changes)),
    )
}

/// What a call would change: a patch that was proposed, or the diff that is to be looked at.
fn changes(session: &Session, request: &ApprovalRequest) -> Vec<FileChange> {
    let project = session.project();
    let patch = request.args.get("patch_id").and_then(Value::as_str);
    if let Some(proposal) = patch.and_then(|patch| project.patches().get(patch).ok()) {
        return proposal.changes;
    }
    let diff = request.preview.as_deref().filter(|preview| preview.starts_with("diff --git"));
    let proposal = diff.and_then(|diff| propose_diff(project.root(), "", diff).ok());
    proposal.map(|proposal| proposal.changes).unwrap_or_default()
}

/// What a person's choice means. What nobody knows grants nothing.
fn decision(answer: &Value) -> Decision {
    let outcome = &answer["outcome"];
    if outcome["outcome"] == "cancelled" {
        return Decision::Abort;
    }
    match outcome["optionId"].as_str() {
        Some("allow_once") => Decision::Approve { scope: Scope::Once },
        Some("allow_always") => Decision::Approve { scope: Scope::Session },
        Some(_) | None => {
            let said = answer["_meta"]["gimlet"]["feedback"].as_str().filter(|said| !said.trim().is_empty());
            Decision::Deny { feedback: Some(said.unwrap_or(REJECTED).to_owned()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_known_yes_is_a_yes() {
        let selected = |option: &str| json!({ "outcome": { "outcome": "selected", "optionId": option } });
        assert_eq!(decision(&selected("allow_once")), Decision::Approve { scope: Scope::Once });
        assert_eq!(decision(&selected("allow_always")), Decision::Approve { scope: Scope::Session });
        for answer in [selected("reject_once"), selected("allow_everything"), json!({}), json!(null)] {
            assert!(matches!(decision(&answer), Decision::Deny { feedback: Some(_) }), "{answer}");
        }
        assert_eq!(decision(&json!({ "outcome": { "outcome": "cancelled" } })), Decision::Abort);
        let mut said = selected("reject_once");
        said["_meta"] = json!({ "gimlet": { "feedback": "use tabs" } });
        assert_eq!(decision(&said), Decision::Deny { feedback: Some("use tabs".into()) });
    }
}
