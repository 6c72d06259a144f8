//! How a person and a run are in contact: what they see of it, how they are asked, and how they steer it.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Instant;

use gimlet::approval::{ApprovalRequest, Decision};
use gimlet::event::ActionFormat;
use gimlet::journal::Observer;
use gimlet::run::{Handle, RunError};
use gimlet::text::Printable;
use gimlet::{Ending, Run};
use tokio::sync::{mpsc, oneshot};

use crate::args::RunOptions;
use crate::asking::{Pressed, Question};
use crate::config::Settings;
use crate::keys::{Key, Keys, Mode, discard_pending};
use crate::show::{JsonLines, Live, Prose, Screen, Talk, Telling, Volume, Warnings, Words};
use crate::style::BOLD;

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
            crate::out::talks_on_terminal(),
            crate::out::answers_on_terminal(),
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
        let mut open: Option<Question> = None;
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
                    if keys.is_none() {
                        // Typed for something else, before the question was there.
                        discard_pending();
                        keys = Keys::listen();
                    }
                    open = Some(Question::ask(asked, Instant::now()));
                }
                key = next(&mut keys) => match open.take() {
                    question if key == Key::Interrupt => {
                        open = question;
                        handle.cancel();
                    }
                    Some(question) => match question.press(key, Instant::now()) {
                        Pressed::Waits(question) => open = Some(question),
                        Pressed::TooEarly(question) => {
                            open = Some(question);
                            self.keep_typed(key);
                        }
                        Pressed::Answered => {
                            if self.typing == Typing::Ignored {
                                keys = None;
                            }
                        }
                    },
                    None => self.steer(key, &handle).await?,
                },
                () = quiet(open.as_ref()) => {
                    if let Some(question) = &mut open {
                        question.listen();
                    }
                }
            }
        }
    }

    /// A key that came too early to answer a question is part of what was being typed to steer the run. That is back
    /// on its line when the question is answered.
    fn keep_typed(&self, key: Key) {
        match (self.typing, key) {
            (Typing::Ignored, _) | (Typing::Steers, Key::Enter | Key::Interrupt) => {}
            (Typing::Steers, Key::Char(_) | Key::Backspace | Key::Clear) => {
                self.screen.type_quietly(|typed| edit(typed, key));
            }
        }
    }

    /// A key pressed while the task runs: part of a line that is sent to it.
    async fn steer(&self, key: Key, handle: &Handle) -> Result<(), RunError> {
        if key == Key::Enter {
            let text = self.screen.take_typed();
            if !text.trim().is_empty() {
                self.screen.line(&format!("{BOLD}›{BOLD:#} {}", Printable::block(text.trim())));
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
    if !crate::out::can_ask() {
        return None;
    }
    let (person, mut questions) = mpsc::unbounded_channel();
    // Ends with the last one who could ask.
    tokio::spawn(async move {
        while let Some(asked) = questions.recv().await {
            discard_pending();
            let mut keys = Keys::listen();
            let mut open = Some(Question::ask(asked, Instant::now()));
            while let Some(mut question) = open.take() {
                let key = tokio::select! {
                    biased;
                    key = next(&mut keys) => Some(key),
                    () = quiet(Some(&question)) => None,
                };
                open = match key {
                    Some(key) => match question.press(key, Instant::now()) {
                        Pressed::Waits(question) | Pressed::TooEarly(question) => Some(question),
                        Pressed::Answered => None,
                    },
                    None => {
                        question.listen();
                        Some(question)
                    }
                };
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

/// Waits until an open question may listen; for ever where none has to.
async fn quiet(open: Option<&Question>) {
    match open.and_then(Question::ready_at) {
        Some(at) => tokio::time::sleep_until(at.into()).await,
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
