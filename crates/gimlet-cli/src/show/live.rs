//! Shows a run on a terminal while it happens: lines as they are written, a line for each call, and a living line
//! for what goes on at this moment.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gimlet::event::{ActionFormat, Event, EventKind, Purpose};

use super::markdown::Markdown;
use super::screen::Screen;
use super::stream::Stream;
use super::talk::{Prose, Talk, Telling};
use super::{Show, arguments, clip};

/// Shows a run on a terminal.
pub(crate) struct Live {
    screen: Arc<Screen>,
    talk: Talk,
    /// Whether the model's words are shown as they come: only when they and the answer go to the same terminal.
    words: Words,
    reply: Mutex<Reply>,
}

/// Where the model's words go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    /// To the terminal, as they come.
    Streamed,
    /// The answer goes elsewhere, at the end.
    Kept,
}

struct Reply {
    /// The main agent's reply as far as it came.
    stream: Stream,
    /// How it looks on the terminal.
    page: Markdown,
    /// The last answer that was shown.
    answer: Option<String>,
}

impl Live {
    pub(crate) fn new(screen: Arc<Screen>, telling: Telling, words: Words, action: ActionFormat) -> Self {
        let prose = match words {
            Words::Streamed => Prose::Elsewhere,
            Words::Kept => Prose::Quoted,
        };
        let talk = Talk::new(telling, screen.columns(), prose);
        Live {
            screen,
            talk,
            words,
            reply: Mutex::new(Reply { stream: Stream::new(action), page: Markdown::default(), answer: None }),
        }
    }

    /// Whether this answer is on the screen already.
    pub(crate) fn showed(&self, answer: &str) -> bool {
        self.reply().answer.as_deref() == Some(answer)
    }

    fn reply(&self) -> MutexGuard<'_, Reply> {
        self.reply.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows lines of the reply.
    fn lines(&self, page: &mut Markdown, text: &str) {
        let columns = self.screen.columns();
        let before = page.has_begun();
        let shown: Vec<String> = text.lines().filter_map(|line| page.line(line, columns)).collect();
        self.words(before, &shown);
    }

    /// Shows what is left of the reply; the next one begins a new page.
    fn last_lines(&self, page: &mut Markdown, text: Option<String>) {
        if let Some(text) = text {
            self.lines(page, &text);
        }
        let mut page = std::mem::take(page);
        let before = page.has_begun();
        self.words(before, page.end(self.screen.columns()).as_slice());
    }

    fn words(&self, has_begun: bool, lines: &[String]) {
        if !lines.is_empty() {
            // The first line of a reply is set apart from what was told before.
            let gap = if has_begun { "" } else { "\n" };
            self.screen.words(&format!("{gap}{}", lines.join("\n")));
        }
    }

    /// The main agent's words.
    fn speak(&self, event: &Event) {
        if self.words == Words::Kept || !event.path.is_root() {
            return;
        }
        let mut reply = self.reply();
        let reply = &mut *reply;
        match &event.kind {
            // A reply that was cut off is written anew.
            EventKind::StepStarted { .. } => {
                reply.stream.begin();
                reply.page = Markdown::default();
            }
            EventKind::ActionChanged(change) => reply.stream = Stream::new(change.action),
            EventKind::ModelDelta { text, .. } => {
                if let Some(lines) = reply.stream.feed(text) {
                    self.lines(&mut reply.page, &lines);
                }
                let glimpse = reply.stream.glimpse();
                if !glimpse.is_empty() {
                    let skip = glimpse.chars().count().saturating_sub(40);
                    let words = clip(&glimpse.chars().skip(skip).collect::<String>(), 40);
                    self.screen.busy(|status| status.doing = format!("“…{words}”"));
                }
            }
            EventKind::ModelMessage(message) => {
                let rest = reply.stream.finish(message);
                self.last_lines(&mut reply.page, rest);
                reply.answer.clone_from(&message.answer);
            }
            // Stopped in the middle of a reply: what there is of it is not lost.
            EventKind::RunSuspended { .. } | EventKind::RunFinished(_) | EventKind::RunFailed { .. } => {
                if let EventKind::RunFinished(finished) = &event.kind
                    && finished.answer.trim() == reply.stream.so_far().trim()
                {
                    reply.answer = Some(finished.answer.clone());
                }
                let rest = reply.stream.stop();
                self.last_lines(&mut reply.page, rest);
            }
            _ => {}
        }
    }

    /// The living line.
    fn glimpse(&self, event: &Event) {
        match &event.kind {
            EventKind::RunStarted(_) | EventKind::RunResumed { .. } | EventKind::ApprovalDecided { .. } => {
                self.screen.doing("thinking");
            }
            EventKind::StepStarted { step } if event.path.is_root() => {
                self.screen.busy(|status| status.step = *step);
                self.screen.doing("thinking");
            }
            EventKind::ModelMessage(message) => {
                self.screen.busy(|status| status.tokens += message.usage.total());
            }
            EventKind::ModelAsked { purpose, .. } => self.screen.doing(match purpose {
                Purpose::Plan => "planning",
                Purpose::Summary => "summing up",
                Purpose::Aim => "reading the task",
                Purpose::Pick => "choosing files",
                Purpose::Edit => "writing the edit",
            }),
            EventKind::Plan(plan) => {
                self.screen.busy(|status| status.tokens += plan.usage.total());
                self.screen.doing("thinking");
            }
            EventKind::ContextCompacted(made) => {
                self.screen.busy(|status| status.tokens += made.usage.total());
                self.screen.doing("thinking");
            }
            EventKind::ToolRequested { call } => {
                self.screen.doing(format!("{} {}", call.tool, arguments(&call.args, 40)));
            }
            EventKind::ToolFinished(_) | EventKind::CellFinished { .. } => self.screen.doing("thinking"),
            EventKind::CellStarted { .. } => self.screen.doing("python"),
            EventKind::AgentStarted(started) => self.screen.doing(format!("{} begins", started.agent)),
            EventKind::RunSuspended { .. } | EventKind::RunFinished(_) | EventKind::RunFailed { .. } => {
                self.screen.rest();
            }
            EventKind::StepStarted { .. }
            | EventKind::ModelDelta { .. }
            | EventKind::Feedback { .. }
            | EventKind::UserMessage { .. }
            | EventKind::ToolStarted { .. }
            | EventKind::CellOutput { .. }
            | EventKind::ApprovalRequested(_)
            | EventKind::AgentFinished(_)
            | EventKind::PlanRequested
            | EventKind::ContextPruned(_)
            | EventKind::ActionChanged(_)
            | EventKind::GuidedAimed(_)
            | EventKind::GuidedFound(_)
            | EventKind::GuidedLocated(_)
            | EventKind::GuidedEdited(_)
            | EventKind::GuidedChecked(_)
            | EventKind::Warning { .. }
            | EventKind::Unknown => {}
        }
    }
}

impl Show for Live {
    fn show(&self, event: &Event) {
        self.speak(event);
        if let Some(lines) = self.talk.told(event) {
            self.screen.line(&lines);
        }
        self.glimpse(event);
    }
}
