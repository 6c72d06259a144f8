//! How a person and a run are in contact: what they see of it, how they are asked, and how they steer it.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use gimlet::Ending;
use gimlet::approval::{ApprovalRequest, Decision, Scope};
use gimlet::event::ActionFormat;
use gimlet::feed::After;
use gimlet_runtime::options::ApproveMode;
use gimlet_runtime::{Attendance, Runtime, Session, SessionApprover, Settings, Turn};

use crate::args::RunOptions;
use crate::keys::{Key, Keys, Mode};
use crate::show::{JsonLines, Live, Prose, Screen, Show, Talk, Telling, Volume, Warnings, Words, question};
use crate::style::{BOLD, DIM};

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
    /// Whether somebody at a terminal can be asked.
    is_attended: bool,
    /// Who answers questions.
    answers: Answers,
    /// Shows the run that is under way, on a terminal.
    live: Option<Arc<Live>>,
    /// Keeps what is typed off the screen; set back when this ends.
    _mode: Option<Mode>,
}

/// Who answers questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// The person at the terminal.
    Person,
    /// The demo: each question is shown, and agreed to for the rest of the session.
    Demo,
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
    pub(crate) fn new(options: &RunOptions, typing: Typing) -> Self {
        let telling = Telling { volume: volume(options), warnings: Warnings::Counted };
        Front::with(options.json, telling, typing)
    }

    /// Whether warnings are shown or only counted, once the settings are known.
    pub(crate) fn tell_warnings(&mut self, settings: &Settings) {
        let said = if settings.suppress_warnings.value { Warnings::Counted } else { Warnings::Shown };
        match &mut self.style {
            Style::Told(telling) | Style::Live(telling, _) => telling.warnings = said,
            Style::Json => {}
        }
    }

    /// What fits where input and output go, without any options.
    pub(crate) fn plain(json: bool) -> Self {
        let telling = Telling { volume: Volume::Normal, warnings: Warnings::Shown };
        Front::with(json, telling, Typing::Ignored)
    }

    /// The same for the demo, which answers its questions itself.
    pub(crate) fn demo(json: bool) -> Self {
        Front { answers: Answers::Demo, ..Front::plain(json) }
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
        Front {
            screen: Arc::new(screen),
            style,
            typing,
            is_attended: input && talk,
            answers: Answers::Person,
            live: None,
            _mode: match style {
                Style::Live(..) => Mode::silent(),
                Style::Json | Style::Told(_) => None,
            },
        }
    }

    /// Whether questions are answered here.
    pub(crate) fn attendance(&self) -> Attendance {
        match self.answers {
            Answers::Demo => Attendance::Person,
            Answers::Person if self.is_attended => Attendance::Person,
            Answers::Person => Attendance::Nobody,
        }
    }

    /// The screen everything is shown on.
    pub(crate) fn screen(&self) -> &Arc<Screen> {
        &self.screen
    }

    /// Shows the next run, whose agent acts like this.
    pub(crate) fn showing(&mut self, action: ActionFormat) -> Arc<dyn Show> {
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

    /// Follows a turn to its end: its events are shown, its questions asked, and what is typed reaches it.
    pub(crate) async fn follow(&mut self, session: &Session, turn: Turn) -> anyhow::Result<Ending> {
        let shown = self.showing(session.action());
        let mut events = turn.events()?;
        let mut keys = match (self.typing, self.is_attended) {
            (Typing::Steers, true) => Keys::listen(),
            (Typing::Steers, false) | (Typing::Ignored, _) => None,
        };
        let mut open: Option<Open> = None;
        let work = turn.ended();
        tokio::pin!(work);
        loop {
            let asked = open.as_ref().map(|open| open.request.id.clone());
            tokio::select! {
                biased;
                Some(event) = events.next() => shown.show(event?.as_ref()),
                ending = &mut work => {
                    while let Some(event) = events.next_now() {
                        shown.show(&event);
                    }
                    self.screen.rest();
                    if open.is_some() {
                        // The cursor stands behind a question that needs no answer any more.
                        self.screen.line("");
                    }
                    return ending;
                }
                request = session.asked(asked.as_deref()), if open.is_none() => {
                    self.screen.rest();
                    match self.answers {
                        Answers::Demo => self.agree(session, &request),
                        Answers::Person => {
                            open = Some(Open::ask(request));
                            if keys.is_none() {
                                keys = Keys::listen();
                            }
                        }
                    }
                }
                key = next(&mut keys) => match open.take() {
                    question if key == Key::Interrupt => {
                        open = question;
                        session.cancel();
                    }
                    Some(question) => {
                        open = match question.press(key) {
                            Pressed::Open(question) => Some(question),
                            Pressed::Decided(id, decision) => {
                                // A run that ended meanwhile needs no answer.
                                session.decide(&id, decision);
                                None
                            }
                        };
                        if open.is_none() && self.typing == Typing::Ignored {
                            keys = None;
                        }
                    }
                    None => self.steer(key, session).await?,
                },
            }
        }
    }

    /// Shows what happened to a run that rests.
    pub(crate) fn show_since(&mut self, session: &Session, seq: u64) -> anyhow::Result<()> {
        let shown = self.showing(session.action());
        let mut events = session.events(After::Seq(seq))?;
        while let Some(event) = events.next_now() {
            shown.show(&event);
        }
        Ok(())
    }

    /// Shows a question and agrees to it, as the demo does.
    fn agree(&self, session: &Session, request: &ApprovalRequest) {
        if !self.is_json() {
            self.screen.line(&format!(
                "{}  {DIM}(you would be asked here; the demo says yes, for this session){DIM:#}",
                question(request)
            ));
        }
        session.decide(&request.id, Decision::Approve { scope: Scope::Session });
    }

    /// A key pressed while the task runs: part of a line that is sent to it.
    async fn steer(&self, key: Key, session: &Session) -> anyhow::Result<()> {
        if key == Key::Enter {
            let text = self.screen.take_typed();
            if !text.trim().is_empty() {
                self.screen.line(&format!("{BOLD}›{BOLD:#} {}", text.trim()));
                match text.trim() {
                    "/plan" | "/plan now" => session.replan().await?,
                    words => session.say(words).await?,
                }
            }
        }
        self.screen.busy(|status| edit(&mut status.typed, key));
        Ok(())
    }
}

/// Who is asked where no run is watched: the person at the terminal, if there is one.
pub(crate) fn clerk(runtime: &Runtime, mode: ApproveMode) -> SessionApprover {
    let is_attended = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let attendance = if is_attended { Attendance::Person } else { Attendance::Nobody };
    let notify = Arc::new({
        let runtime = runtime.clone();
        move |notice| runtime.notify(notice)
    });
    SessionApprover::new(runtime.approvals().clone(), mode, None, attendance, notify)
}

/// Does something while its questions are put to the person at the terminal.
pub(crate) async fn asking<T>(approver: &SessionApprover, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    loop {
        let request = tokio::select! {
            biased;
            done = &mut work => return done,
            request = approver.asked(None) => request,
        };
        let mut open = Open::ask(request);
        let mut keys = Keys::listen();
        let (id, decision) = loop {
            open = match open.press(next(&mut keys).await) {
                Pressed::Open(open) => open,
                Pressed::Decided(id, decision) => break (id, decision),
            };
        };
        approver.decide(&id, decision);
    }
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
    request: ApprovalRequest,
    /// What to do instead, as far as it is typed; none while no refusal was given.
    instead: Option<String>,
}

/// What became of a question with a key.
enum Pressed {
    /// It is still open.
    Open(Open),
    /// It is answered.
    Decided(String, Decision),
}

const CHOICES: &str = "[y]es once · [s]ession · [a]lways · [n]o, and say why · [q]uit";

impl Open {
    fn ask(request: ApprovalRequest) -> Self {
        say(&format!("{}  {CHOICES} ", question(&request)));
        Open { request, instead: None }
    }

    /// Takes a key.
    fn press(mut self, key: Key) -> Pressed {
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
                return Pressed::Open(self);
            }
            // Anything that is no clear answer is none.
            Key::Char(_) | Key::Enter | Key::Backspace | Key::Clear | Key::Interrupt => {
                return Pressed::Open(self);
            }
        };
        say("\n");
        self.decide(decision)
    }

    fn type_reason(mut self, key: Key) -> Pressed {
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
        Pressed::Open(self)
    }

    fn decide(self, decision: Decision) -> Pressed {
        Pressed::Decided(self.request.id, decision)
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
