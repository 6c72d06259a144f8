//! What the commands of a session do.

use std::io::Write;

use anyhow::Context;
use gimlet::approval::{Decision, Scope};
use gimlet::event::{ActionFormat, EventKind};
use gimlet::message::Message;
use gimlet::state::State;
use gimlet_runtime::parts::tools::git::Git;
use gimlet_runtime::parts::tools::git_diff;
use gimlet_runtime::parts::tools::patch::Stage;
use tokio_util::sync::CancellationToken;

use gimlet_runtime::config::DEFAULT_AGENT;
use gimlet_runtime::options::{ApproveMode, Choice};
use gimlet_runtime::{Input, Options, is_answered, open_question};

use super::slash::{ALL, Slash};
use super::{Interactive, Next};
use crate::commands::export::document;
use crate::commands::knowledge::{command_lines, skill_lines};
use crate::commands::undo::line;
use crate::exit::UsageError;
use crate::show::{clip, counted, diff, plan, question};
use crate::style::{BOLD, DIM, NAME};

impl Interactive {
    pub(super) async fn command(&mut self, command: Slash, rest: &str) -> anyhow::Result<Next> {
        match command {
            Slash::Help => self.help()?,
            Slash::Model => self.model(rest).await?,
            Slash::Mode => self.mode(rest)?,
            Slash::Tools => self.tools()?,
            Slash::Skills => self.skills()?,
            Slash::Approve => return self.answer(yes(rest)?).await,
            Slash::Deny => {
                let feedback = Some(rest.to_owned()).filter(|text| !text.is_empty());
                return self.answer(Decision::Deny { feedback }).await;
            }
            Slash::Resume => return self.carry_on(None).await,
            Slash::Plan => return self.plan(rest).await,
            Slash::Diff => self.diff().await?,
            Slash::Undo => self.undo(rest).await?,
            Slash::Compact => self.compact().await?,
            Slash::State => self.state().await?,
            Slash::Cost => self.cost().await?,
            Slash::Context => self.context().await?,
            Slash::Copy => self.copy().await?,
            Slash::Save => self.save(rest).await?,
            Slash::Clear => self.clear().await?,
            Slash::Quit => return Ok(Next::End),
        }
        Ok(Next::Prompt)
    }

    fn help(&self) -> anyhow::Result<()> {
        let width = ALL.iter().map(|(name, _, rest, _)| name.len() + rest.len() + 1).max().unwrap_or(0);
        for (name, _, rest, about) in ALL {
            let pad = width - name.len() - rest.len() - 1;
            self.say(&format!("{NAME}{name}{NAME:#} {DIM}{rest}{DIM:#}{:pad$}  {about}", ""))?;
        }
        for line in command_lines(self.session.project().knowledge()) {
            self.say(&line)?;
        }
        self.say(&format!(
            "{DIM}!command runs a command of yours, and the model reads what it printed with your next task. @path or\n\
             @path:10-20 attaches a file or lines of it. Alt-Enter, or \\ at the end of a line, begins\n\
             a new one. What you type while a task runs reaches the model at its next step. Ctrl-C stops a task.{DIM:#}"
        ))
    }

    async fn model(&mut self, id: &str) -> anyhow::Result<()> {
        if !id.is_empty() {
            self.session.change_model(id).await?;
        }
        let action = match self.session.action() {
            ActionFormat::Tools => "calls tools",
            ActionFormat::Code => "writes Python",
            ActionFormat::Guided => "is guided",
        };
        self.say(&format!("{BOLD}{}{BOLD:#} {DIM}· {action}{DIM:#}", self.session.model()))
    }

    /// Shows the approval mode, or switches to another one.
    fn mode(&self, name: &str) -> anyhow::Result<()> {
        if !name.is_empty() {
            let mode = ApproveMode::named(name).ok_or_else(|| {
                UsageError::new(format!("there is no mode `{name}`"))
                    .hint("ask, edits, auto, plan, never or all")
            })?;
            self.session.set_approve(mode);
        }
        let now = self.session.approve();
        for (mode, name, about) in ApproveMode::ALL {
            let (mark, style) = if *mode == now { ("▸", BOLD) } else { (" ", DIM) };
            self.say(&format!("{mark} {style}{name:<6}{style:#} {about}"))?;
        }
        Ok(())
    }

    fn tools(&self) -> anyhow::Result<()> {
        let specs = self.session.tools();
        let width = specs.iter().map(|spec| spec.name.len()).max().unwrap_or(0);
        for spec in specs.iter() {
            let first = spec.description.lines().next().unwrap_or_default();
            let room = self.front.screen().columns().saturating_sub(width + 3);
            self.say(&format!("{NAME}{:width$}{NAME:#}  {}", spec.name, clip(first, room)))?;
        }
        Ok(())
    }

    fn skills(&self) -> anyhow::Result<()> {
        let lines = skill_lines(self.session.project().knowledge());
        if lines.is_empty() {
            return self.say("there are no skills; a skill is a folder with a SKILL.md in .gimlet/skills");
        }
        lines.iter().try_for_each(|line| self.say(line))
    }

    /// Answers the question the conversation stopped at, and carries on.
    async fn answer(&mut self, decision: Decision) -> anyhow::Result<Next> {
        if open_question(&self.session.stored_events().await?).is_none() {
            return Err(UsageError::new("no question is open").into());
        }
        self.carry_on(Some(decision)).await
    }

    /// Carries on what stopped, with an answer to what it asked if there is one.
    async fn carry_on(&mut self, decision: Option<Decision>) -> anyhow::Result<Next> {
        self.work_on(Input::Resume(decision)).await
    }

    /// Shows the plan, or has a new one made before the next step.
    async fn plan(&mut self, rest: &str) -> anyhow::Result<Next> {
        self.session.id().ok_or_else(nothing_said)?;
        let events = self.session.stored_events().await?;
        match rest {
            "" => {
                let state = State::fold(&events, &Default::default());
                let shown = state.plan.as_deref().and_then(plan);
                self.say(&shown.unwrap_or_else(|| "there is no plan; /plan now asks for one".to_owned()))?;
                Ok(Next::Prompt)
            }
            "now" => {
                self.session.replan().await?;
                if is_answered(&events) {
                    self.say("the next task begins with a plan")?;
                    return Ok(Next::Prompt);
                }
                self.carry_on(None).await
            }
            other => Err(UsageError::new(format!("`{other}` is nothing /plan knows"))
                .hint("/plan shows the plan, /plan now asks for a new one")
                .into()),
        }
    }

    async fn diff(&self) -> anyhow::Result<()> {
        let kit = self.session.project().kit();
        let git = Git { root: kit.root.clone(), environment: kit.environment.clone() };
        let input = git_diff::Input { file_path: String::new(), staged: false };
        let changed = git_diff::diff(&git, &input, &CancellationToken::new()).await?;
        match changed.message {
            Some(message) => self.say(&message),
            None => self.say(diff(&changed.diff).trim_end()),
        }
    }

    /// Takes back patches of the conversation.
    async fn undo(&mut self, patch: &str) -> anyhow::Result<()> {
        self.session.id().ok_or_else(nothing_said)?;
        let named = Some(patch).filter(|patch| !patch.is_empty());
        let undone = self.session.undo(named).await?;
        self.behind.extend(undone.untold);
        for outcome in &undone.outcomes {
            self.say(&line(outcome))?;
        }
        Ok(())
    }

    /// Makes room now, not only when the model's window is full.
    async fn compact(&mut self) -> anyhow::Result<()> {
        self.session.id().ok_or_else(nothing_said)?;
        let made = self.make_room().await?;
        self.front.screen().rest();
        match made {
            true => Ok(()),
            false => self.say("nothing can give way: no long result is older than the last steps"),
        }
    }

    async fn state(&self) -> anyhow::Result<()> {
        let events = self.session.stored_events().await?;
        let state = State::fold(&events, &Default::default());
        match self.session.id() {
            Some(id) => self.say(&format!("run {id}: {} of {} steps", state.step, state.limits.max_steps))?,
            None => self.say("nothing was said yet")?,
        }
        let agent = self.session.agent_name();
        if agent != DEFAULT_AGENT {
            self.say(&format!("agent {agent}"))?;
        }
        self.say(&format!("model {}", self.session.model()))?;
        self.say(&format!("folder {}", self.session.project().path().display()))?;
        for patch in self.session.project().patches().all() {
            let stage = match patch.stage {
                Stage::Proposed => "proposed",
                Stage::Applying => "may be applied",
                Stage::Applied => "applied",
                Stage::Undone => "taken back",
            };
            self.say(&format!("{} {stage}: {} ({})", patch.id, clip(&patch.intent, 60), patch.file_path()))?;
        }
        if let Some(request) = open_question(&events) {
            self.say(question(request).trim_end())?;
            self.say("  /approve or /deny answers it")?;
        }
        Ok(())
    }

    async fn cost(&self) -> anyhow::Result<()> {
        let state = State::fold(&self.session.stored_events().await?, &Default::default());
        let usage = state.usage;
        let cached = match usage.cached {
            0 => String::new(),
            cached => format!(", {cached} of them cached"),
        };
        self.say(&format!(
            "{} steps, {} tokens read{cached}, {} written, {:.1} s of work",
            state.step,
            usage.input,
            usage.output,
            state.seconds(jiff::Timestamp::now())
        ))
    }

    /// Tells what fills the model's window, as far as that can be told without asking the server.
    async fn context(&self) -> anyhow::Result<()> {
        let state = State::fold(&self.session.stored_events().await?, &Default::default());
        let tokens = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX) * 10 / 33;
        let mut parts = [("instructions", 0), ("you and the project", 0), ("the model", 0), ("results", 0)];
        for (at, message) in state.messages.iter().enumerate() {
            let part = match message.as_ref() {
                Message::System { .. } => 0,
                Message::User { .. } if state.observations.contains_key(&at) => 3,
                Message::User { .. } => 1,
                Message::Assistant { .. } => 2,
                Message::Tool { .. } => 3,
            };
            parts[part].1 += gimlet::context::bytes(message);
        }
        let specs = self.session.tools();
        let described: usize = match state.is_native() {
            true => specs.iter().map(|spec| spec.description.len() + spec.input.to_string().len()).sum(),
            false => 0,
        };
        let all = tokens(parts.iter().map(|(_, bytes)| bytes).sum::<usize>() + described);
        let window = match self.session.window() {
            Some(window) => format!("of {window} tokens ({} %)", all * 100 / u64::from(window.max(1))),
            None => "tokens; the model's window is not known".to_owned(),
        };
        self.say(&format!("about {all} {window}"))?;
        let rows = parts.into_iter().chain([("descriptions of tools", described)]);
        for (name, bytes) in rows.filter(|(_, bytes)| *bytes > 0) {
            self.say(&format!("  {:>7}  {name}", tokens(bytes)))?;
        }
        match state.measured {
            Some(measured) => {
                self.say(&format!("{DIM}the server counted {} for the last request{DIM:#}", measured.tokens))
            }
            None => Ok(()),
        }
    }

    /// Puts the last answer into the clipboard.
    async fn copy(&self) -> anyhow::Result<()> {
        let events = self.session.stored_events().await?;
        let answer = events.iter().rev().find_map(|event| match &event.kind {
            EventKind::RunFinished(finished) if !finished.answer.is_empty() => Some(finished.answer.as_str()),
            _ => None,
        });
        let Some(answer) = answer else { return Err(UsageError::new("there is no answer yet").into()) };
        crate::out::copy(answer)?;
        self.say(&format!(
            "{DIM}{} sent to the terminal's clipboard{DIM:#}",
            counted(answer.chars().count() as u64, "character")
        ))
    }

    async fn save(&self, file: &str) -> anyhow::Result<()> {
        let id = self.session.id().ok_or_else(nothing_said)?;
        let path = if file.is_empty() { format!("gimlet-{id}.md") } else { file.to_owned() };
        let mut options = std::fs::OpenOptions::new();
        // A name given by nobody must not replace anything.
        if file.is_empty() {
            options.create_new(true)
        } else {
            options.create(true).truncate(true)
        };
        let text = document(&self.session.stored_events().await?);
        options
            .write(true)
            .open(&path)
            .and_then(|mut to| to.write_all(text.as_bytes()))
            .with_context(|| format!("cannot write {path}"))?;
        self.say(&format!("{DIM}written to {path}{DIM:#}"))
    }

    async fn clear(&mut self) -> anyhow::Result<()> {
        let options = Options {
            model: Some(self.session.model_name()),
            root: Some(self.session.project().path().to_owned()),
            approve: Some(self.session.approve()),
            ..Options::from(&self.options)
        };
        let attendance = self.front.attendance();
        self.session = self.session.runtime().clone().begin_anew(options, attendance).await?;
        self.behind.clear();
        self.front.screen().begin_anew();
        self.say(&format!("{DIM}a new conversation{DIM:#}"))
    }

    /// Makes room, and shows what gives way.
    async fn make_room(&mut self) -> anyhow::Result<bool> {
        let last = self.session.stored_events().await?.last().map_or(0, |event| event.seq);
        let made = self.session.make_room().await?;
        self.front.show_since(&self.session, last)?;
        Ok(made)
    }
}

fn nothing_said() -> UsageError {
    UsageError::new("nothing was said yet")
}

fn yes(rest: &str) -> anyhow::Result<Decision> {
    let scope = match rest {
        "" | "once" => Scope::Once,
        "session" => Scope::Session,
        "always" => Scope::Always,
        other => {
            return Err(UsageError::new(format!("`{other}` is no way to approve"))
                .hint("/approve, /approve session or /approve always")
                .into());
        }
    };
    Ok(Decision::Approve { scope })
}
