//! How a person and a run are in contact: what they see of it, how they are asked, and how they steer it.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gimlet::Ending;
use gimlet::approval::{ApprovalRequest, Decision, Scope};
use gimlet::event::ActionFormat;
use gimlet::feed::After;
use gimlet::text::Printable;
use gimlet_runtime::options::{ApproveMode, Choice};
use gimlet_runtime::{Attendance, Project, Runtime, Session, SessionApprover, Settings, Turn};
use tokio_util::sync::CancellationToken;

use crate::args::RunOptions;
use crate::asking::{Pressed, Question};
use crate::keys::{Key, Keys, Mode, discard_pending};
use crate::patch_editor;
use crate::show::{JsonLines, Live, Prose, Screen, Show, Talk, Telling, Volume, Warnings, Words, question};
use crate::style::{BOLD, DIM};

/// A task that took longer is worth a bell at its end.
const LONG: Duration = Duration::from_secs(10);

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
    /// Whether the person is told by bell that something waits for them.
    notifies: bool,
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

    /// What the settings say of warnings and of the bell, once they are known.
    pub(crate) fn tell_warnings(&mut self, settings: &Settings) {
        self.notifies = settings.notify.value && self.is_attended;
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

    /// What is seen of a run whose answer is for the program: its calls, and not the model's words.
    pub(crate) fn errand() -> Self {
        let mut front = Front::plain(false);
        if let Style::Live(_, words) = &mut front.style {
            *words = Words::Kept;
        }
        front
    }

    /// The same for the demo, which answers its questions itself.
    pub(crate) fn demo(json: bool) -> Self {
        Front { answers: Answers::Demo, ..Front::plain(json) }
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
        Front {
            screen: Arc::new(screen),
            style,
            typing,
            is_attended: input && talk,
            answers: Answers::Person,
            notifies: false,
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

    /// Whether the model's words are shown as they come.
    pub(crate) fn streams_words(&self) -> bool {
        matches!(self.style, Style::Live(_, Words::Streamed))
    }

    /// Whether this answer is on the screen already.
    pub(crate) fn showed(&self, answer: &str) -> bool {
        self.live.as_ref().is_some_and(|live| live.showed(answer))
    }

    /// Follows a turn to its end: its events are shown, its questions asked, and what is typed reaches it.
    pub(crate) async fn follow(&mut self, session: &Session, turn: Turn) -> anyhow::Result<Ending> {
        let shown = self.showing(session.action());
        self.screen.show_mode(session.approve());
        let mut events = turn.events()?;
        let mut keys = match (self.typing, self.is_attended) {
            (Typing::Steers, true) => Keys::listen(),
            (Typing::Steers, false) | (Typing::Ignored, _) => None,
        };
        let mut open: Option<Question> = None;
        let begun = Instant::now();
        let work = turn.ended();
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                Some(event) = events.next() => shown.show(event?.as_ref()),
                ending = &mut work => {
                    while let Some(event) = events.next_now() {
                        shown.show(&event);
                    }
                    self.screen.rest();
                    if begun.elapsed() > LONG {
                        self.ring("gimlet: the task is done");
                    }
                    if open.is_some() {
                        // The cursor stands behind a question that needs no answer any more.
                        self.screen.line("");
                    }
                    return ending;
                }
                request = session.asked(), if open.is_none() => {
                    self.screen.rest();
                    match self.answers {
                        Answers::Demo => self.agree(session, &request),
                        Answers::Person => {
                            if keys.is_none() {
                                // Typed for something else, before the question was there.
                                discard_pending();
                                keys = Keys::listen();
                            }
                            open = Some(Question::ask(request, Instant::now()));
                            self.ring("gimlet: a question waits");
                        }
                    }
                }
                key = next(&mut keys) => match open.take() {
                    question if key == Key::Interrupt => {
                        open = question;
                        session.cancel();
                    }
                    question if key == Key::Mode => {
                        open = question;
                        self.next_mode(session);
                    }
                    Some(question) => match pressed(question, key, &mut keys).await {
                        Pressed::Waits(question) => open = Some(question),
                        Pressed::TooEarly(question) => {
                            open = Some(question);
                            self.keep_typed(key);
                        }
                        Pressed::Answered(id, decision) => {
                            // A run that ended meanwhile needs no answer.
                            session.decide(&id, decision);
                            if self.typing == Typing::Ignored {
                                keys = None;
                            }
                        }
                        // The editor is closed by now.
                        Pressed::Edits(question) => open = Some(question),
                    },
                    None => self.steer(key, session).await?,
                },
                () = quiet(open.as_ref()) => {
                    if let Some(question) = &mut open {
                        question.listen();
                    }
                }
                () = elsewhere(session, open.as_ref()), if !session.is_cancelled() => {
                    open = None;
                    self.screen.line(&format!("\n  {DIM}(answered elsewhere){DIM:#}"));
                    if self.typing == Typing::Ignored {
                        keys = None;
                    }
                }
            }
        }
    }

    /// The same, and stops the turn when `cancel` says so.
    pub(crate) async fn follow_until(
        &mut self,
        session: &Session,
        turn: Turn,
        cancel: &CancellationToken,
    ) -> anyhow::Result<Ending> {
        let work = self.follow(session, turn);
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                ending = &mut work => return ending,
                () = cancel.cancelled(), if !session.is_cancelled() => session.cancel(),
            }
        }
    }

    /// Tells a person who looks elsewhere that something waits for them.
    fn ring(&self, words: &'static str) {
        if self.notifies {
            // A terminal that went away needs no bell.
            let _ = crate::out::notify(words);
        }
    }

    /// Switches to the next approval mode.
    fn next_mode(&self, session: &Session) {
        let mode = session.approve().next();
        session.set_approve(mode);
        self.screen.show_mode(mode);
        self.screen.line(&format!("{DIM}mode: {}{DIM:#}", mode.name()));
    }

    /// A key that came too early to answer a question is part of what was being typed to steer the run. That is back
    /// on its line when the question is answered.
    fn keep_typed(&self, key: Key) {
        match (self.typing, key) {
            (Typing::Ignored, _) | (Typing::Steers, Key::Enter | Key::Mode | Key::Interrupt) => {}
            (Typing::Steers, Key::Char(_) | Key::Backspace | Key::Clear) => {
                self.screen.type_quietly(|typed| edit(typed, key));
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
                self.screen.line(&format!("{BOLD}›{BOLD:#} {}", Printable::block(text.trim())));
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
pub(crate) fn clerk(runtime: &Runtime, project: &Project, mode: ApproveMode) -> SessionApprover {
    let attendance = if crate::out::can_ask() { Attendance::Person } else { Attendance::Nobody };
    let notify = Arc::new({
        let runtime = runtime.clone();
        move |notice| runtime.notify(notice)
    });
    SessionApprover::new(runtime.inbox().clone(), mode, None, attendance, project.bounded(), notify)
}

/// Does something while its questions are put to the person at the terminal.
pub(crate) async fn asking<T>(approver: &SessionApprover, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    let mut keys = None;
    let mut open: Option<Question> = None;
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            request = approver.asked(), if open.is_none() => {
                discard_pending();
                keys = Keys::listen();
                open = Some(Question::ask(request, Instant::now()));
            }
            key = next(&mut keys) => {
                let Some(question) = open.take() else { continue };
                match pressed(question, key, &mut keys).await {
                    Pressed::Waits(question) | Pressed::TooEarly(question) | Pressed::Edits(question) => {
                        open = Some(question);
                    }
                    Pressed::Answered(id, decision) => {
                        approver.decide(&id, decision);
                        keys = None;
                    }
                }
            }
            () = quiet(open.as_ref()) => {
                if let Some(question) = &mut open {
                    question.listen();
                }
            }
        }
    }
}

/// What becomes of a key at a question. A patch that is to be edited is edited here, while nobody listens to keys.
async fn pressed(question: Question, key: Key, keys: &mut Option<Keys>) -> Pressed {
    match question.press(key, Instant::now()) {
        Pressed::Edits(question) => {
            *keys = None;
            let patch = patch_editor::edited(question.patch()).await;
            discard_pending();
            *keys = Keys::listen();
            question.edited(patch, Instant::now())
        }
        other @ (Pressed::Waits(_) | Pressed::TooEarly(_) | Pressed::Answered(..)) => other,
    }
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

/// Waits until an open question is answered by somebody else; for ever where none is open.
async fn elsewhere(session: &Session, open: Option<&Question>) {
    match open {
        Some(question) => session.settled(question.id()).await,
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
        Key::Mode | Key::Interrupt => {}
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
