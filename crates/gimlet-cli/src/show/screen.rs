//! The lines of a terminal while a task runs: talk above, and at the bottom one line that lives, with what is being done,
//! what it has cost and what the person is typing.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gimlet::text::Printable;
use gimlet_runtime::options::{ApproveMode, Choice};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use termimad::crossterm::terminal;

use super::clip;
use crate::style::DIM;

/// Columns assumed where there is no terminal to ask.
const USUAL: usize = 120;

/// Where a run is told.
pub(crate) struct Screen {
    /// Present on a terminal; cleared whenever something else is to be seen.
    bar: Option<ProgressBar>,
    status: Mutex<Status>,
}

/// What the living line says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Status {
    /// The approval mode.
    pub(crate) mode: ApproveMode,
    pub(crate) step: u32,
    /// In a word or two: thinking, a tool.
    pub(crate) doing: String,
    pub(crate) tokens: u64,
    /// What the person has typed and not sent.
    pub(crate) typed: String,
}

impl Screen {
    /// A screen without a living line: for pipes, files and `--json`.
    pub(crate) fn still() -> Self {
        Screen { bar: None, status: Mutex::default() }
    }

    /// A terminal's screen.
    pub(crate) fn living() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}{seconds}") {
            bar.set_style(style.with_key("seconds", seconds));
        }
        bar.finish_and_clear();
        Screen { bar: Some(bar), status: Mutex::default() }
    }

    /// How wide lines may be.
    pub(crate) fn columns(&self) -> usize {
        match &self.bar {
            Some(_) => terminal::size().map_or(80, |(columns, _)| usize::from(columns)).max(20),
            None => USUAL,
        }
    }

    /// Tells something.
    pub(crate) fn line(&self, text: &str) {
        // Standard error that went away does not stop the run.
        self.above(|| {
            let _ = writeln!(crate::out::stderr(), "{text}");
        });
    }

    /// Shows words of the model where the answer goes.
    pub(crate) fn words(&self, text: &str) {
        self.above(|| {
            let _ = writeln!(crate::out::stdout(), "{text}");
        });
    }

    fn above(&self, print: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Something is being done: the line comes to life, or changes.
    pub(crate) fn busy(&self, change: impl FnOnce(&mut Status)) {
        let mut status = self.status();
        change(&mut status);
        let Some(bar) = &self.bar else { return };
        bar.set_message(status.render(self.columns()));
        if bar.is_finished() {
            bar.reset();
            bar.enable_steady_tick(Duration::from_millis(120));
        }
    }

    /// A new thing is being done: its seconds count from here.
    pub(crate) fn doing(&self, what: impl Into<String>) {
        self.busy(|status| status.doing = what.into());
        if let Some(bar) = &self.bar {
            bar.reset_elapsed();
        }
    }

    /// Nothing is being done: the line goes away.
    pub(crate) fn rest(&self) {
        if let Some(bar) = &self.bar {
            bar.disable_steady_tick();
            bar.finish_and_clear();
        }
    }

    /// Changes what the person has typed without bringing the line to life.
    pub(crate) fn type_quietly(&self, change: impl FnOnce(&mut String)) {
        change(&mut self.status().typed);
    }

    /// Shows which approval mode is on.
    pub(crate) fn show_mode(&self, mode: ApproveMode) {
        self.status().mode = mode;
    }

    /// Forgets what the last conversation has cost.
    pub(crate) fn begin_anew(&self) {
        *self.status() = Status::default();
    }

    /// What the person has typed and not sent, taken away.
    pub(crate) fn take_typed(&self) -> String {
        std::mem::take(&mut self.status().typed)
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn seconds(state: &indicatif::ProgressState, to: &mut dyn std::fmt::Write) {
    let seconds = state.elapsed().as_secs();
    // Nobody reads a second that has just begun.
    if seconds > 0 {
        let _ = write!(to, " · {seconds} s");
    }
}

impl Status {
    fn render(&self, columns: usize) -> String {
        let mode = match self.mode {
            ApproveMode::Ask => String::new(),
            mode => format!("{} · ", mode.name()),
        };
        let mut text = match self.step {
            0 => format!("{mode}{}", self.doing),
            step => format!("{mode}step {step} · {}", self.doing),
        };
        if self.tokens > 0 {
            text.push_str(&format!(" · {} tokens", short(self.tokens)));
        }
        let room = columns.saturating_sub(14);
        if self.typed.is_empty() {
            return dim(&clip(&text, room));
        }
        // Of what is being typed the end matters.
        let most = room.saturating_sub(text.chars().count() + 4).max(12);
        let skip = self.typed.chars().count().saturating_sub(most);
        let tail: String = self.typed.chars().skip(skip).collect();
        let text = clip(&text, room.saturating_sub(tail.chars().count() + 4));
        format!("{} › {}", dim(&text), Printable::line(&tail))
    }
}

/// Dimmed where colours are wanted. The line is drawn past `anstream`, which would decide that otherwise.
fn dim(text: &str) -> String {
    match crate::out::is_coloured() {
        true => format!("{DIM}{text}{DIM:#}"),
        false => text.to_owned(),
    }
}

/// `1234` as `1.2k`.
fn short(n: u64) -> String {
    match n {
        0..1000 => n.to_string(),
        1000..1_000_000 => format!("{:.1}k", n as f64 / 1e3),
        1_000_000.. => format!("{:.1}M", n as f64 / 1e6),
    }
}
