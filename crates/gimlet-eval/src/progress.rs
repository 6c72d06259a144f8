//! What a person sees while models are tried: a line for each finished try, and on a terminal one that lives.

use std::io::Write;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::ledger::{Record, Try};
use crate::style::{DIM, ERROR, GOOD};
use gimlet_runtime::clip;

pub(crate) struct Progress {
    /// Present on a terminal.
    bar: Option<ProgressBar>,
}

impl Progress {
    /// So many tries lie ahead.
    pub(crate) fn new(tries: usize) -> Self {
        if !crate::out::talks_on_terminal() {
            return Progress { bar: None };
        }
        let bar = ProgressBar::with_draw_target(Some(tries as u64), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {pos}/{len} {elapsed} {prefix} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Progress { bar: Some(bar) }
    }

    /// A try begins.
    pub(crate) fn begin(&self, attempt: &Try) {
        if let Some(bar) = &self.bar {
            let Try { contender, task, repetition } = attempt;
            bar.set_prefix(format!("{task} · {} · {} · {repetition}", contender.model, contender.action));
            bar.set_message("");
        }
    }

    /// It is at this step.
    pub(crate) fn step(&self, step: u32) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("· step {step}"));
        }
    }

    /// It is over.
    pub(crate) fn end(&self, record: &Record) {
        let Try { contender, task, repetition } = &record.attempt;
        let (style, mark) = if record.passed { (GOOD, "✓") } else { (ERROR, "✗") };
        let mut line = format!(
            "{style}{mark}{style:#} {task:<24} {:<6}{repetition:>2} {:>3} steps {:>7.1} s  {DIM}{}{DIM:#}",
            contender.action, record.transcript.steps, record.transcript.seconds, contender.model
        );
        if !record.passed {
            line.push_str(&format!("\n  {DIM}{}{DIM:#}", clip(&record.reason(), 160)));
        }
        self.say(&line);
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Tells something.
    pub(crate) fn say(&self, text: &str) {
        // Standard error that went away stops nothing.
        let print = || drop(writeln!(crate::out::stderr(), "{text}"));
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
