//! The interactive session: lines become tasks of one conversation, or commands about it. While a task runs, what is
//! typed steers it, Ctrl-C stops it, and questions are answered by a key.

mod commands;
mod complete;
mod editor;
mod shell;
mod slash;

use std::io::Write;

use gimlet::Ending;
use gimlet::event::Suspension;
use gimlet_runtime::knowledge::Knowledge;
use gimlet_runtime::{Input, Session, clip, models};

use crate::args::RunOptions;
use crate::attach;
use crate::custom;
use crate::ending::{At, refused, resume_line, tell};
use crate::exit::ExitStatus;
use crate::front::Front;
use crate::interrupt::Interrupts;
use crate::style::{BOLD, DIM};
use complete::{Customs, Models};
use editor::{Editor, Entered};
use slash::Line;

/// A person and a session.
pub(crate) struct Interactive {
    session: Session,
    /// What the session was begun with on the command line.
    options: RunOptions,
    front: Front,
    editor: Editor,
    /// Ctrl-C and requests to stop while a task runs.
    interrupts: Interrupts,
    /// What the model is told with the next task: what happened to its work behind its back.
    behind: Vec<String>,
}

/// What happens after a line.
enum Next {
    /// Another line is asked for.
    Prompt,
    /// The person stopped a task: one more Ctrl-C ends the session.
    Stopped,
    /// The session is over.
    End,
}

impl Interactive {
    pub(crate) fn new(session: Session, mut front: Front, options: RunOptions) -> anyhow::Result<Self> {
        let models = Models::default();
        know_models(&session, models.clone());
        front.tell_warnings(session.settings());
        Ok(Interactive {
            front,
            editor: Editor::new(
                session.project().root().clone(),
                models,
                customs(session.project().knowledge()),
                session.settings().vi.value,
            ),
            interrupts: Interrupts::listen()?,
            behind: Vec::new(),
            session,
            options,
        })
    }

    /// Asks for lines until the person ends it.
    pub(crate) async fn run(mut self) -> anyhow::Result<ExitStatus> {
        self.greet()?;
        // How often Ctrl-C was pressed with nothing in between.
        let mut pressed = 0;
        loop {
            let begun = self.front.screen().take_typed();
            let next = match self.editor.read(&begun, self.session.approve()).await? {
                Entered::Line(line) => {
                    pressed = 0;
                    self.take(&line).await?
                }
                Entered::Mode => {
                    self.session.set_approve(self.session.approve().next());
                    continue;
                }
                Entered::Cleared => {
                    pressed = 0;
                    continue;
                }
                Entered::Interrupted => {
                    pressed += 1;
                    if pressed > 1 {
                        break;
                    }
                    self.say(&format!("{DIM}Ctrl-C once more ends the session{DIM:#}"))?;
                    continue;
                }
                Entered::End => break,
            };
            match next {
                Next::Prompt => {}
                Next::Stopped => pressed = 1,
                Next::End => break,
            }
        }
        self.part()?;
        Ok(ExitStatus::Success)
    }

    fn greet(&self) -> anyhow::Result<()> {
        self.say(&format!(
            "{BOLD}gimlet{BOLD:#} {} {DIM}· {} · {}{DIM:#}",
            env!("CARGO_PKG_VERSION"),
            self.session.model(),
            self.session.project().path().display()
        ))?;
        if let Some(id) = self.session.id() {
            self.say(&format!("{DIM}going on with run {id}{DIM:#}"))?;
        }
        self.say(&format!(
            "{DIM}Say what to do. /help shows commands, @path attaches a file, Alt-Enter begins a new line.{DIM:#}\n"
        ))
    }

    /// How to come back.
    fn part(&self) -> anyhow::Result<()> {
        match (&self.options.session, self.session.id()) {
            (Some(name), Some(_)) => self.say(&format!("hint: gimlet --session {name} comes back to it")),
            (None, Some(_)) => self.say(&format!("hint: {} comes back to it", resume_line(&self.session))),
            (_, None) => Ok(()),
        }
    }

    async fn take(&mut self, line: &str) -> anyhow::Result<Next> {
        let done = match slash::read(line) {
            Line::Empty => Ok(Next::Prompt),
            Line::Quit => Ok(Next::End),
            Line::Command(command, rest) => self.command(command, rest).await,
            Line::Custom(line) => self.custom(line).await,
            Line::Shell(command) => self.shell(command).await.map(|()| Next::Prompt),
            Line::Task(task) => self.task(task).await,
        };
        // What goes wrong in a session is told, and the session goes on.
        done.or_else(|error| {
            crate::exit::report(&error);
            Ok(Next::Prompt)
        })
    }

    /// Works on the task that a command of the person's or the project's own stands for.
    async fn custom(&mut self, line: &str) -> anyhow::Result<Next> {
        let called = custom::called(line, self.session.project().knowledge(), custom::At::Session)?;
        self.task(called.as_deref().unwrap_or(line)).await
    }

    /// Works on a task.
    async fn task(&mut self, words: &str) -> anyhow::Result<Next> {
        let expanded = attach::expand(words, &mut attach::Attaching::to(&self.session)).await?;
        for file in &expanded.files {
            self.say(&format!("{DIM}attached {file}{DIM:#}"))?;
        }
        let mut text = expanded.text;
        for note in self.behind.drain(..) {
            text = format!("{note}\n\n{text}");
        }
        self.work_on(Input::Task(text)).await
    }

    /// Works on something to its end; Ctrl-C stops it, and once more ends the program.
    async fn work_on(&mut self, input: Input) -> anyhow::Result<Next> {
        let turn = self.session.submit(input).await.map_err(|error| refused(error, At::Session))?;
        let id = turn.run().to_string();
        let ending = {
            let work = self.front.follow(&self.session, turn);
            tokio::pin!(work);
            loop {
                tokio::select! {
                    biased;
                    ending = &mut work => break ending?,
                    () = self.interrupts.next() => {
                        if self.session.is_cancelled() {
                            crate::keys::restore();
                            crate::app::kill_all();
                            std::process::exit(130);
                        }
                        self.session.cancel();
                    }
                }
            }
        };
        let mut stderr = crate::out::stderr();
        match &ending {
            Ending::Suspended(Suspension::Interrupted) => {
                writeln!(stderr, "{DIM}stopped; /resume carries on, or say something else{DIM:#}\n")?;
                Ok(Next::Stopped)
            }
            Ending::Finished(_) | Ending::Suspended(_) | Ending::Failed(_) => {
                tell(&id, At::Session, &ending, &self.front).await?;
                writeln!(stderr)?;
                Ok(Next::Prompt)
            }
        }
    }

    fn say(&self, text: &str) -> anyhow::Result<()> {
        Ok(writeln!(crate::out::stderr(), "{text}")?)
    }
}

/// The commands of the person's and the project's own that can be called, with what they do.
fn customs(known: &Knowledge) -> Customs {
    let on = known.commands.iter().filter(|command| command.standpoint.is_on());
    let on = on.filter(|command| slash::ALL.iter().all(|(name, ..)| name[1..] != command.name));
    on.map(|command| (format!("/{}", command.name), clip(&command.description, 60))).collect()
}

/// Knows which models can be named: those of the configuration at once, and those of the server when it has answered.
fn know_models(session: &Session, known: Models) {
    let add = move |names: Vec<String>| {
        let mut known = known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.extend(names);
        known.sort();
        known.dedup();
    };
    let named = session.settings().named_models();
    let named = named.map(|named| named.names().into_iter().map(str::to_owned).collect::<Vec<_>>());
    add(named.unwrap_or_default());
    add(vec![session.model_name()]);
    if session.model().starts_with("ollama") {
        let session = session.clone();
        // Ends when the server has answered or is not there.
        tokio::spawn(async move {
            if let Ok((_, installed)) = models::installed(session.settings()).await {
                add(installed.into_iter().map(|model| format!("ollama_chat/{}", model.name)).collect());
            }
        });
    }
}
