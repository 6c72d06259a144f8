//! Turns events of a run into updates of a session. The same code shows a turn that is under way and one of a log; what is
//! under way comes in pieces, a log's replies come whole.

use std::collections::HashMap;
use std::path::PathBuf;

use gimlet::cell::CellEnd;
use gimlet::event::{ActionFormat, AgentPath, Dialect, Event, EventKind, ModelMessage, ToolFinished};
use gimlet::patch::FileChange;
use gimlet::plan::Plan;
use gimlet_runtime::clip;
use serde_json::{Value, json};

use crate::content;

/// Longest title of a session.
const TITLE: usize = 80;

/// Whether a turn is watched as it happens or told from a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Telling {
    /// It happens now: the client knows what it said itself.
    Live,
    /// It is told again, with what the person said.
    Replay,
}

/// Finds what a patch of the run changes, by its id.
pub(crate) type PatchChanges = Box<dyn Fn(&str) -> Option<Vec<FileChange>> + Send + Sync>;

/// Turns the events of one session into updates, in order.
pub(crate) struct Updates {
    telling: Telling,
    root: PathBuf,
    /// The model's context window, where it is known.
    window: Option<u32>,
    /// Whether replies are shown as they are written: text that may hold calls or code is shown once it is understood.
    streams: bool,
    /// What was shown of the reply that is being written.
    streamed: String,
    /// What the agent said last, and was shown.
    said: String,
    /// What cells printed so far, by call id.
    printed: HashMap<String, String>,
    /// Finds what a patch of the run changes.
    patches: PatchChanges,
}

impl Updates {
    pub(crate) fn new(telling: Telling, root: PathBuf, window: Option<u32>, patches: PatchChanges) -> Self {
        Updates {
            telling,
            root,
            window,
            streams: false,
            streamed: String::new(),
            said: String::new(),
            printed: HashMap::new(),
            patches,
        }
    }

    /// Learns from events of earlier turns how the agent writes.
    pub(crate) fn learn(&mut self, events: &[Event]) {
        for event in events {
            self.learn_from(event);
        }
    }

    fn learn_from(&mut self, event: &Event) {
        if !event.path.is_root() {
            return;
        }
        let (action, dialect) = match &event.kind {
            EventKind::RunStarted(started) => (started.action, started.dialect),
            EventKind::ActionChanged(change) => (change.action, change.dialect),
            _ => return,
        };
        self.streams = action == ActionFormat::Tools && dialect == Dialect::Native;
    }

    /// The updates for an event.
    pub(crate) fn of(&mut self, event: &Event) -> Vec<Value> {
        self.learn_from(event);
        let path = &event.path;
        match &event.kind {
            EventKind::RunStarted(started) => {
                let mut updates = self.person(&started.task);
                updates.push(json!({
                    "sessionUpdate": "session_info_update",
                    "title": session_title(&started.task),
                    "updatedAt": event.time.to_string(),
                }));
                updates
            }
            EventKind::UserMessage { text } => self.person(text),
            EventKind::ModelDelta { text, thinking, .. } => self.piece(path, text, thinking),
            EventKind::ModelMessage(message) => self.reply(path, message),
            EventKind::ToolRequested { call } => {
                let agents: Vec<&str> = path.agents().collect();
                vec![json!({
                    "sessionUpdate": "tool_call",
                    "toolCallId": call_id(path, &call.id),
                    "title": content::title(&call.tool, &call.args, &agents),
                    "kind": content::kind(&call.tool),
                    "status": "pending",
                    "rawInput": call.args,
                    "locations": content::named_place(&self.root, &call.args),
                })]
            }
            EventKind::ToolStarted { id, effects, .. } => {
                let mut update = progress(&call_id(path, id), "in_progress");
                let locations = content::locations(&self.root, effects);
                if !locations.is_empty() {
                    update["locations"] = json!(locations);
                }
                vec![update]
            }
            EventKind::ToolFinished(finished) => vec![self.finished(path, finished)],
            EventKind::CellStarted { cell, code } => {
                let id = cell_id(path, *cell);
                self.printed.insert(id.clone(), String::new());
                vec![json!({
                    "sessionUpdate": "tool_call",
                    "toolCallId": id,
                    "title": "Python",
                    "kind": "execute",
                    "status": "in_progress",
                    "rawInput": { "code": code },
                    "content": [content::text(&content::fenced("python", code))],
                })]
            }
            EventKind::CellOutput { cell, text, .. } => {
                let id = cell_id(path, *cell);
                let printed = self.printed.entry(id.clone()).or_default();
                printed.push_str(text);
                let mut update = progress(&id, "in_progress");
                update["content"] = json!([content::text(&content::fenced("", printed))]);
                vec![update]
            }
            EventKind::CellFinished { cell, end, observation, .. } => {
                let id = cell_id(path, *cell);
                let printed = self.printed.remove(&id).unwrap_or_default();
                let status = match end {
                    CellEnd::Done { .. } | CellEnd::Answer { .. } => "completed",
                    CellEnd::Raised { .. } | CellEnd::Limited { .. } | CellEnd::Crashed { .. } => "failed",
                };
                let mut update = progress(&id, status);
                let shown = if observation.is_empty() { &printed } else { observation };
                update["content"] = json!([content::text(&content::fenced("", shown))]);
                update["rawOutput"] = json!(end);
                vec![update]
            }
            EventKind::Plan(plan) => self.plan(plan),
            EventKind::RunFinished(finished) => {
                let mut updates = Vec::new();
                if self.said.trim() != finished.answer.trim() {
                    updates.extend(self.say(&finished.answer));
                }
                updates.extend(finished.notes.iter().map(|note| thought(&format!("note: {note}\n"))));
                updates
            }
            EventKind::Feedback { text, .. } => vec![thought(&format!("{text}\n"))],
            EventKind::Warning { message } => vec![thought(&format!("warning: {message}\n"))],
            EventKind::AgentStarted(_)
            | EventKind::AgentFinished(_)
            | EventKind::RunResumed { .. }
            | EventKind::StepStarted { .. }
            | EventKind::ApprovalRequested(_)
            | EventKind::ApprovalDecided { .. }
            | EventKind::ModelAsked { .. }
            | EventKind::PlanRequested
            | EventKind::ContextPruned(_)
            | EventKind::ContextCompacted(_)
            | EventKind::ActionChanged(_)
            | EventKind::GuidedAimed(_)
            | EventKind::GuidedFound(_)
            | EventKind::GuidedLocated(_)
            | EventKind::GuidedEdited(_)
            | EventKind::GuidedChecked(_)
            | EventKind::RunSuspended { .. }
            | EventKind::RunFailed { .. }
            | EventKind::Unknown => Vec::new(),
        }
    }

    fn person(&mut self, text: &str) -> Vec<Value> {
        self.said.clear();
        match self.telling {
            Telling::Live => Vec::new(),
            Telling::Replay => vec![chunk("user_message_chunk", text)],
        }
    }

    fn piece(&mut self, path: &AgentPath, text: &str, thinking: &str) -> Vec<Value> {
        let mut updates = Vec::new();
        if self.telling == Telling::Replay {
            return updates;
        }
        if !thinking.is_empty() {
            updates.push(thought(thinking));
        }
        if !text.is_empty() && path.is_root() && self.streams {
            if self.streamed.is_empty() && !self.said.is_empty() {
                updates.push(chunk("agent_message_chunk", "\n\n"));
            }
            self.streamed.push_str(text);
            updates.push(chunk("agent_message_chunk", text));
        }
        updates
    }

    /// A reply is whole: what was not shown while it was written is shown now, and what it cost.
    fn reply(&mut self, path: &AgentPath, message: &ModelMessage) -> Vec<Value> {
        let mut updates = Vec::new();
        let streamed = std::mem::take(&mut self.streamed);
        if self.telling == Telling::Replay {
            updates.extend(message.thinking.iter().map(|thinking| thought(&thinking.text)));
        }
        let acts = !message.tool_calls.is_empty() || message.code.is_some();
        if !path.is_root() {
            if !acts && !message.text.is_empty() {
                updates.push(thought(&format!("{}\n", message.text)));
            }
            return updates;
        }
        if !streamed.is_empty() {
            self.said = streamed;
        } else if self.streams && !message.text.is_empty() && message.answer.is_none() {
            updates.extend(self.say(&message.text));
        } else if let Some(code) = &message.code {
            // The code is shown where it runs; the words before it are the reasoning.
            let words = message.text.split("```").next().unwrap_or_default().trim();
            if !words.is_empty() && words != code.trim() {
                updates.push(thought(&format!("{words}\n")));
            }
        }
        if let Some(window) = self.window {
            updates.push(json!({
                "sessionUpdate": "usage_update",
                "used": message.usage.total(),
                "size": window,
            }));
        }
        updates
    }

    fn say(&mut self, text: &str) -> Vec<Value> {
        let mut updates = Vec::new();
        if !self.said.is_empty() {
            updates.push(chunk("agent_message_chunk", "\n\n"));
        }
        self.said = text.to_owned();
        updates.push(chunk("agent_message_chunk", text));
        updates
    }

    fn finished(&self, path: &AgentPath, finished: &ToolFinished) -> Value {
        let mut update =
            progress(&call_id(path, &finished.id), if finished.ok { "completed" } else { "failed" });
        let changes = finished.result["patch_id"]
            .as_str()
            .filter(|_| finished.ok)
            .and_then(|patch| (self.patches)(patch))
            .unwrap_or_default();
        update["content"] = if changes.is_empty() {
            json!([content::text(&content::result(&finished.result))])
        } else {
            json!(content::diffs(&self.root, &changes))
        };
        if !changes.is_empty() {
            let place = |change: &FileChange| json!({ "path": self.root.join(&change.path) });
            update["locations"] = changes.iter().map(place).collect();
        }
        update["rawOutput"] = finished.result.clone();
        update
    }

    fn plan(&self, plan: &Plan) -> Vec<Value> {
        let entry = |step: &String| json!({ "content": step, "priority": "medium", "status": "pending" });
        let entries: Vec<Value> = plan.steps.iter().map(entry).collect();
        if entries.is_empty() {
            return Vec::new();
        }
        vec![json!({ "sessionUpdate": "plan", "entries": entries })]
    }
}

/// The id of a call, unique in a session: agents below the main one count their calls themselves.
pub(crate) fn call_id(path: &AgentPath, id: &str) -> String {
    if path.is_root() { id.to_owned() } else { format!("{}/{id}", path.as_str()) }
}

fn cell_id(path: &AgentPath, cell: u32) -> String {
    call_id(path, &format!("cell_{cell}"))
}

fn progress(id: &str, status: &str) -> Value {
    json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status })
}

pub(crate) fn chunk(kind: &str, text: &str) -> Value {
    json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } })
}

fn thought(text: &str) -> Value {
    chunk("agent_thought_chunk", text)
}

/// The first line of a task, for a list of sessions.
pub(crate) fn session_title(task: &str) -> String {
    let line = task.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    clip(line, TITLE)
}
