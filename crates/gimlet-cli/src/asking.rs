//! A question on the terminal that waits for a key. Keys that were pressed before anybody could have read the question
//! do not answer it: it becomes ready only after the keyboard has been quiet for a while, and says so by showing the
//! choices. Whatever reaches further than one call needs a second key.

use std::io::Write;
use std::time::{Duration, Instant};

use gimlet::approval::{ApprovalRequest, Decision, Scope};
use gimlet::text::Printable;
use gimlet_runtime::Bounded;
use termimad::crossterm::terminal;

use crate::keys::Key;
use crate::out;
use crate::show::{is_cut, question, whole_question};
use crate::style::{BOLD, DIM};

/// How long no key may be pressed before a question listens.
const QUIET: Duration = Duration::from_millis(500);

/// Columns from which on all words of the choices fit a line.
const WIDE: u16 = 112;

/// A question that waits for a key.
pub(crate) struct Question {
    request: ApprovalRequest,
    stage: Stage,
    /// When the quiet began that makes it ready; none while it listens.
    quiet_since: Option<Instant>,
    /// Whether the person sees less than all of it.
    extent: Shown,
}

/// What the next key is for.
enum Stage {
    /// One of the choices.
    Choice,
    /// Whether a yes is to reach that far.
    Confirmation(Scope),
    /// What to do instead, as far as it is typed.
    Reason(String),
}

/// How much of the question was shown.
enum Shown {
    All,
    /// The lines of all of it, of which so many were looked at.
    Cut {
        lines: Vec<String>,
        seen: usize,
    },
}

/// What became of a key.
pub(crate) enum Pressed {
    /// The question waits on.
    Waits(Question),
    /// It came too early to be an answer.
    TooEarly(Question),
    /// The person wants to edit the patch first; the question goes on with [`Question::edited`].
    Edits(Question),
    /// The question of this id is answered.
    Answered(String, Decision),
}

impl Question {
    /// Shows a question. It listens after the keyboard was quiet.
    pub(crate) fn ask(request: ApprovalRequest, now: Instant) -> Self {
        say(&question(&request));
        let extent = match is_cut(&request) {
            false => Shown::All,
            true => {
                let lines = whole_question(&request).lines().map(str::to_owned).collect();
                Shown::Cut { lines, seen: 0 }
            }
        };
        Question { request, stage: Stage::Choice, quiet_since: Some(now), extent }
    }

    /// Its id.
    pub(crate) fn id(&self) -> &str {
        &self.request.id
    }

    /// When the question begins to listen; none when it does.
    pub(crate) fn ready_at(&self) -> Option<Instant> {
        self.quiet_since.map(|since| since + QUIET)
    }

    /// The keyboard was quiet for long enough: the choices are shown, and the next key counts.
    pub(crate) fn listen(&mut self) {
        self.quiet_since = None;
        match &self.stage {
            Stage::Choice => {
                say(&choices(self.request.editable, matches!(self.extent, Shown::Cut { .. })));
            }
            Stage::Confirmation(scope) => {
                let reach = match scope {
                    Scope::Once => "once",
                    Scope::Session if Bounded::is_edit(&self.request) => {
                        "all edits to this project, for the rest of this session"
                    }
                    Scope::Session => "for the rest of this session",
                    Scope::Always => "from now on, in every run",
                };
                say(&format!("  {BOLD}{reach}?{BOLD:#} [y]es · any other key goes back "));
            }
            Stage::Reason(_) => {}
        }
    }

    /// Takes a key.
    pub(crate) fn press(mut self, key: Key, now: Instant) -> Pressed {
        if self.quiet_since.is_some() {
            // Somebody is typing something else, and each key of it proves that they still are.
            self.quiet_since = Some(now);
            return Pressed::TooEarly(self);
        }
        match std::mem::replace(&mut self.stage, Stage::Choice) {
            Stage::Choice => self.choose(key, now),
            Stage::Confirmation(scope) => match key {
                Key::Char('y' | 'Y') => self.decide("yes\n", Decision::Approve { scope }),
                Key::Char(_) | Key::Enter | Key::Backspace | Key::Clear | Key::Mode | Key::Interrupt => {
                    self.again("no\n", Stage::Choice, now)
                }
            },
            Stage::Reason(reason) => self.type_reason(reason, key),
        }
    }

    fn choose(mut self, key: Key, now: Instant) -> Pressed {
        match key {
            Key::Char('y' | 'Y') => self.decide("yes\n", Decision::Approve { scope: Scope::Once }),
            Key::Char('s' | 'S') => self.again("session\n", Stage::Confirmation(Scope::Session), now),
            Key::Char('a' | 'A') => self.again("always\n", Stage::Confirmation(Scope::Always), now),
            Key::Char('q' | 'Q') => self.decide("quit\n", Decision::Abort),
            Key::Char('n' | 'N') => {
                say(&format!("no\n  {DIM}What should it do instead? (Enter to skip){DIM:#} "));
                self.stage = Stage::Reason(String::new());
                Pressed::Waits(self)
            }
            Key::Char('e' | 'E') if self.request.editable => {
                say("edit\n");
                Pressed::Edits(self)
            }
            Key::Char('v' | 'V') if matches!(self.extent, Shown::Cut { .. }) => {
                say("view\n");
                self.view();
                // Turning a page is no typing: the next key counts at once.
                self.listen();
                Pressed::Waits(self)
            }
            // Whoever types something that is no answer is not answering: what follows is no answer either.
            Key::Char(_) | Key::Enter | Key::Backspace | Key::Clear | Key::Mode | Key::Interrupt => {
                self.again("\n", Stage::Choice, now)
            }
        }
    }

    /// The patch that the person may edit.
    pub(crate) fn patch(&self) -> &str {
        self.request.preview.as_deref().unwrap_or_default()
    }

    /// Goes on after the person has edited the patch, or left it as it is.
    pub(crate) fn edited(self, patch: anyhow::Result<Option<String>>, now: Instant) -> Pressed {
        match patch {
            Ok(Some(patch)) => self.decide("", Decision::Edit { patch }),
            Ok(None) => self.again(&format!("  {DIM}the patch is as it was{DIM:#}\n"), Stage::Choice, now),
            Err(error) => self.again(&format!("  {error:#}\n"), Stage::Choice, now),
        }
    }

    /// Shows the next page of all of the question.
    fn view(&mut self) {
        let Shown::Cut { lines, seen } = &mut self.extent else { return };
        let rows = terminal::size().map_or(24, |(_, rows)| usize::from(rows));
        let from = if *seen >= lines.len() { 0 } else { *seen };
        let to = lines.len().min(from + rows.saturating_sub(3).max(5));
        *seen = to;
        let page = lines[from..to].join("\n");
        say(&format!("{page}\n  {DIM}lines {} to {to} of {}{DIM:#}\n", from + 1, lines.len()));
    }

    fn type_reason(mut self, mut reason: String, key: Key) -> Pressed {
        match key {
            Key::Enter => {
                let feedback = Some(reason.trim().to_owned()).filter(|reason| !reason.is_empty());
                return self.decide("\n", Decision::Deny { feedback });
            }
            Key::Char(c) => {
                say(Printable::line(c.encode_utf8(&mut [0; 4])).as_str());
                reason.push(c);
            }
            Key::Backspace => {
                let gone = usize::from(reason.pop().is_some());
                // A terminal that went away shows nothing.
                let _ = out::erase(gone);
            }
            Key::Clear => {
                let _ = out::erase(reason.chars().count());
                reason.clear();
            }
            Key::Mode | Key::Interrupt => {}
        }
        self.stage = Stage::Reason(reason);
        Pressed::Waits(self)
    }

    /// Goes on with another stage, which listens after the keyboard was quiet.
    fn again(mut self, echo: &str, stage: Stage, now: Instant) -> Pressed {
        say(echo);
        self.stage = stage;
        self.quiet_since = Some(now);
        Pressed::Waits(self)
    }

    fn decide(self, echo: &str, decision: Decision) -> Pressed {
        say(echo);
        Pressed::Answered(self.request.id, decision)
    }
}

/// The keys that answer, on one line of this terminal.
fn choices(is_patch: bool, is_cut: bool) -> String {
    let is_wide = terminal::size().is_ok_and(|(columns, _)| columns >= WIDE);
    let words = match is_wide {
        true => [
            "[y]es once",
            "[e]dit it first",
            "[s]ession",
            "[a]lways",
            "[n]o, and say why",
            "[v]iew all of it",
        ],
        false => ["[y]es", "[e]dit", "[s]ession", "[a]lways", "[n]o", "[v]iew all"],
    };
    let [yes, edit, session, always, no, view] = words;
    let shown = [
        Some(yes),
        is_patch.then_some(edit),
        Some(session),
        Some(always),
        Some(no),
        is_cut.then_some(view),
        Some("[q]uit"),
    ];
    let between = if is_wide { " · " } else { " " };
    format!("  {} ", shown.into_iter().flatten().collect::<Vec<_>>().join(between))
}

fn say(text: &str) {
    let mut stderr = out::stderr();
    // A terminal that went away shows nothing.
    let _ = write!(stderr, "{text}").and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use gimlet::approval::Asking;

    use super::*;

    fn request() -> ApprovalRequest {
        ApprovalRequest {
            id: "ap_1".into(),
            run: "run-1".parse().unwrap(),
            binding: String::new(),
            call: String::new(),
            asker: String::new(),
            tool: "run_cmd".into(),
            args: serde_json::Value::Null,
            effects: Vec::new(),
            reason: "it runs a command".into(),
            asking: Asking::Open,
            preview: None,
            editable: false,
        }
    }

    fn waits(pressed: Pressed) -> Question {
        match pressed {
            Pressed::Waits(question) | Pressed::TooEarly(question) => question,
            Pressed::Answered(..) | Pressed::Edits(_) => panic!("it was answered"),
        }
    }

    #[test]
    fn finding_06_every_early_key_starts_the_quiet_again() {
        let begun = Instant::now();
        let mut question = Question::ask(request(), begun);
        for tenth in 1..=20 {
            let now = begun + Duration::from_millis(100 * tenth);
            question = match question.press(Key::Char('y'), now) {
                Pressed::TooEarly(question) => question,
                Pressed::Waits(_) | Pressed::Edits(_) | Pressed::Answered(..) => {
                    panic!("an early key counted")
                }
            };
            assert_eq!(question.ready_at(), Some(now + QUIET));
        }
        question.listen();
        let Pressed::Answered(_, decision) = question.press(Key::Char('y'), begun) else {
            panic!("a key in time did not count");
        };
        assert_eq!(decision, Decision::Approve { scope: Scope::Once });
    }

    #[test]
    fn finding_06_words_typed_at_a_question_do_not_answer_it() {
        for words in ["ls\r", "please", "assess", "ssh host", "d"] {
            let now = Instant::now();
            let mut question = Question::ask(request(), now);
            question.listen();
            for c in words.chars() {
                question = waits(question.press(Key::Char(c), now));
            }
        }
    }

    #[test]
    fn finding_06_a_wide_yes_takes_a_second_key() {
        for (key, scope) in [('s', Scope::Session), ('a', Scope::Always)] {
            let now = Instant::now();
            let mut question = Question::ask(request(), now);
            question.listen();
            question = waits(question.press(Key::Char(key), now));
            question = waits(question.press(Key::Char('y'), now));
            // The second key has to wait for its question.
            question.listen();
            let Pressed::Answered(_, decision) = question.press(Key::Char('y'), now) else {
                panic!("the second key did not count");
            };
            assert_eq!(decision, Decision::Approve { scope });
        }
    }
}
