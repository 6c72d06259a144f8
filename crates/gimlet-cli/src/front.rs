//! How a person and a run are in contact: what they see of it, how they are asked, and how they steer it.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use gimlet::approval::{ApprovalRequest, Decision, Scope};
use gimlet::event::ActionFormat;
use gimlet::journal::Observer;
use gimlet::run::{Handle, RunError};
use gimlet::{Ending, Run};
use tokio::sync::{mpsc, oneshot};

use crate::args::RunOptions;
use crate::config::Settings;
use crate::keys::{Key, Keys, Mode};
use crate::show::{JsonLines, Live, Prose, Screen, Talk, Telling, Volume, Warnings, Words, question};
use crate::style::{BOLD, DIM};

/// A question on its way to the person, and the way back.
pub(crate) struct Asked {
    pub(crate) request: ApprovalRequest,
    pub(crate) answer: oneshot::Sender<Decision>,
}

/// Somebody at a terminal who can be asked.
pub(crate) type Person = mpsc::UnboundedSender<Asked>;

/// Whether what is typed while a task runs is meant for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Typing {
    /// It is.
    Steers,
    /// It is not, unless a question is open.
    Ignored,
}

/// The contact between a person and runs.
pub(crate) struct Front {
    screen: Arc<Screen>,
    style: Style,
    typing: Typing,
    /// Where questions arrive; whoever asks holds the other end.
    questions: mpsc::UnboundedReceiver<Asked>,
    person: Option<Person>,
    /// Shows the run that is under way, on a terminal.
    live: Option<Arc<Live>>,
    /// Keeps what is typed off the screen; set back when this ends.
    _mode: Option<Mode>,
}

/// What is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Json,
    Told(Telling),
    Live(Telling, Words),
}

impl Front {
    /// What fits the options and where input and output go.
    pub(crate) fn new(options: &RunOptions, settings: &Settings, typing: Typing) -> Self {
        let warnings = if settings.suppress_warnings.value { Warnings::Counted } else { Warnings::Shown };
        Front::with(options.json, Telling { volume: volume(options), warnings }, typing)
    }

    /// What fits where input and output go, without any options.
    pub(crate) fn plain(json: bool) -> Self {
        Front::with(json, Telling { volume: Volume::Normal, warnings: Warnings::Shown }, Typing::Ignored)
    }

    fn with(json: bool, telling: Telling, typing: Typing) -> Self {
        let (input, talk, answer) = (
            std::io::stdin().is_terminal(),
            std::io::stderr().is_terminal(),
            std::io::stdout().is_terminal(),
        );
        let style = if json {
            Style::Json
        } else if talk && telling.volume > Volume::Quiet {
            Style::Live(telling, if answer { Words::Streamed } else { Words::Kept })
        } else {
            Style::Told(telling)
        };
        let screen = match style {
            Style::Live(..) => Screen::living(),
            Style::Json | Style::Told(_) => Screen::still(),
        };
        let (person, questions) = mpsc::unbounded_channel();
        Front {
            screen: Arc::new(screen),
            style,
            typing,
            questions,
            person: (input && talk).then_some(person),
            live: None,
            _mode: match style {
                Style::Live(..) => Mode::silent(),
                Style::Json | Style::Told(_) => None,
            },
        }
    }

    /// Somebody to ask, if there is.
    pub(crate) fn person(&self) -> Option<Person> {
        self.person.clone()
    }

    /// The screen everything is shown on.
    pub(crate) fn screen(&self) -> &Arc<Screen> {
        &self.screen
    }

    /// Who watches the next run.
    pub(crate) fn observer(&mut self, action: ActionFormat) -> Arc<dyn Observer> {
        match self.style {
            Style::Json => Arc::new(JsonLines),
            Style::Told(telling) => Arc::new(Talk::new(telling, self.screen.columns(), Prose::Quoted)),
            Style::Live(telling, words) => {
                let live = Arc::new(Live::new(self.screen.clone(), telling, words, action));
                self.live = Some(live.clone());
                live
            }
        }
    }

    /// Whether people see anything but events.
    pub(crate) fn is_json(&self) -> bool {
        self.style == Style::Json
    }

    /// Whether nothing but the answer is to be seen.
    pub(crate) fn is_quiet(&self) -> bool {
        matches!(self.style, Style::Told(Telling { volume: Volume::Quiet, .. }))
    }

    /// Whether this answer is on the screen already.
    pub(crate) fn showed(&self, answer: &str) -> bool {
        self.live.as_ref().is_some_and(|live| live.showed(answer))
    }

    /// Drives a run to its end while its questions are asked and what is typed reaches it.
    pub(crate) async fn drive(&mut self, run: Run) -> Result<Ending, RunError> {
        let handle = run.handle();
        let mut keys = match (self.typing, &self.person) {
            (Typing::Steers, Some(_)) => Keys::listen(),
            (Typing::Steers, None) | (Typing::Ignored, _) => None,
        };
        let mut open: Option<Open> = None;
        let work = run.drive();
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                ending = &mut work => {
                    self.screen.rest();
                    if open.is_some() {
                        // The cursor stands behind a question that needs no answer any more.
                        self.screen.line("");
                    }
                    return ending;
                }
                Some(asked) = self.questions.recv(), if open.is_none() => {
                    self.screen.rest();
                    open = Some(Open::ask(asked));
                    if keys.is_none() {
                        keys = Keys::listen();
                    }
                }
                key = next(&mut keys) => match open.take() {
                    question if key == Key::Interrupt => {
                        open = question;
                        handle.cancel();
                    }
                    Some(question) => {
                        open = question.press(key);
                        if open.is_none() && self.typing == Typing::Ignored {
                            keys = None;
                        }
                    }
                    None => self.steer(key, &handle).await?,
                },
            }
        }
    }

    /// A key pressed while the task runs: part of a line that is sent to it.
    async fn steer(&self, key: Key, handle: &Handle) -> Result<(), RunError> {
        if key == Key::Enter {
            let text = self.screen.take_typed();
            if !text.trim().is_empty() {
                self.screen.line(&format!("{BOLD}›{BOLD:#} {}", text.trim()));
                match text.trim() {
                    "/plan" | "/plan now" => handle.replan().await?,
                    words => handle.say(words).await?,
                }
            }
        }
        self.screen.busy(|status| edit(&mut status.typed, key));
        Ok(())
    }
}

/// Somebody to ask where no run is watched; none without a terminal.
pub(crate) fn clerk() -> Option<Person> {
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        return None;
    }
    let (person, mut questions) = mpsc::unbounded_channel();
    // Ends with the last one who could ask.
    tokio::spawn(async move {
        while let Some(asked) = questions.recv().await {
            let mut open = Some(Open::ask(asked));
            let mut keys = Keys::listen();
            while let Some(question) = open {
                open = question.press(next(&mut keys).await);
            }
        }
    });
    Some(person)
}

async fn next(keys: &mut Option<Keys>) -> Key {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}

fn edit(line: &mut String, key: Key) {
    match key {
        Key::Char(c) => line.push(c),
        Key::Backspace => {
            line.pop();
        }
        Key::Enter | Key::Clear => line.clear(),
        Key::Interrupt => {}
    }
}

/// A question that waits for a key, or a refusal that waits for its reason.
struct Open {
    asked: Asked,
    /// What to do instead, as far as it is typed; none while no refusal was given.
    instead: Option<String>,
}

const CHOICES: &str = "[y]es once · [s]ession · [a]lways · [n]o, and say why · [q]uit";

impl Open {
    fn ask(asked: Asked) -> Self {
        say(&format!("{}  {CHOICES} ", question(&asked.request)));
        Open { asked, instead: None }
    }

    /// Takes a key. Gone when the question is answered.
    fn press(mut self, key: Key) -> Option<Self> {
        if self.instead.is_some() {
            return self.type_reason(key);
        }
        let decision = match key {
            Key::Char('y' | 'Y') => Decision::Approve { scope: Scope::Once },
            Key::Char('s' | 'S') => Decision::Approve { scope: Scope::Session },
            Key::Char('a' | 'A') => Decision::Approve { scope: Scope::Always },
            Key::Char('q' | 'Q') => Decision::Abort,
            Key::Char('n' | 'N' | 'd' | 'D') => {
                say(&format!("no\n  {DIM}what instead? Enter alone for nothing:{DIM:#} "));
                self.instead = Some(String::new());
                return Some(self);
            }
            // Anything that is no clear answer is none.
            Key::Char(_) | Key::Enter | Key::Backspace | Key::Clear | Key::Interrupt => return Some(self),
        };
        say("\n");
        self.decide(decision)
    }

    fn type_reason(mut self, key: Key) -> Option<Self> {
        let mut reason = self.instead.take().unwrap_or_default();
        match key {
            Key::Enter => {
                say("\n");
                let feedback = Some(reason.trim().to_owned()).filter(|reason| !reason.is_empty());
                return self.decide(Decision::Deny { feedback });
            }
            Key::Char(c) => say(&c.to_string()),
            Key::Backspace if !reason.is_empty() => say("\u{8} \u{8}"),
            Key::Clear => say(&"\u{8} \u{8}".repeat(reason.chars().count())),
            Key::Backspace | Key::Interrupt => {}
        }
        edit(&mut reason, key);
        self.instead = Some(reason);
        Some(self)
    }

    fn decide(self, decision: Decision) -> Option<Self> {
        // A run that ended meanwhile needs no answer.
        let _ = self.asked.answer.send(decision);
        None
    }
}

fn say(text: &str) {
    let mut stderr = anstream::stderr().lock();
    // A terminal that went away shows nothing.
    let _ = write!(stderr, "{text}").and_then(|()| stderr.flush());
}

fn volume(options: &RunOptions) -> Volume {
    if options.quiet {
        Volume::Quiet
    } else if options.debug {
        Volume::Debug
    } else if options.verbose {
        Volume::Verbose
    } else {
        Volume::Normal
    }
}
