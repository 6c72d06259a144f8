//! `gimlet doctor`: everything a run needs, on one screen. A check is a function that returns rows; to add one, write
//! it and name it in [`doctor`].

mod machine;
mod model;
mod sandbox;
mod servers;

use std::io::Write;

use serde::Serialize;
use serde_json::json;

use gimlet_runtime::Options;
use gimlet_runtime::options::Sandbox;

use crate::app;
use crate::args::DoctorArgs;
use crate::exit::{ExitStatus, hint_of};
use crate::style::{BOLD, DIM, ERROR, GOOD, WARNING};

/// How something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Health {
    /// As it should be.
    Good,
    /// A run works without it, but not as well.
    Weak,
    /// A run cannot do without it.
    Bad,
}

/// One line on the screen.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    /// What was looked at.
    pub(crate) check: &'static str,
    pub(crate) health: Health,
    /// What was found.
    pub(crate) found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<String>,
}

impl Row {
    pub(crate) fn good(check: &'static str, found: impl Into<String>) -> Row {
        Row { check, health: Health::Good, found: found.into(), fix: None }
    }

    pub(crate) fn weak(check: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Row {
        Row { check, health: Health::Weak, found: found.into(), fix: Some(fix.into()) }
    }

    pub(crate) fn bad(check: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Row {
        Row { check, health: Health::Bad, found: found.into(), fix: Some(fix.into()) }
    }

    /// An error as a row; its own hint is the fix, where it has one.
    fn failed(check: &'static str, error: &anyhow::Error, otherwise: &str) -> Row {
        Row::bad(check, format!("{error:#}"), hint_of(error).unwrap_or(otherwise))
    }
}

/// What was found so far; told line by line, unless a program is to read it at the end.
struct Report {
    rows: Vec<Row>,
    json: bool,
}

impl Report {
    fn add(&mut self, rows: impl IntoIterator<Item = Row>) -> std::io::Result<()> {
        for row in rows {
            if !self.json {
                tell(&row)?;
            }
            self.rows.push(row);
        }
        Ok(())
    }
}

/// Checks everything.
pub(crate) async fn doctor(args: &DoctorArgs) -> anyhow::Result<ExitStatus> {
    let mut report = Report { rows: Vec::new(), json: args.json.json };
    let sandbox = Sandbox { jail: (&args.jail).into(), ..Sandbox::default() };
    let options = Options { root: args.root.root.clone(), sandbox, ..Options::from(&args.model) };
    match app::settings(options) {
        Err(error) => report.add([Row::failed("settings", &error, "mend the file it names")])?,
        Ok(settings) => {
            crate::diagnostics::start(&settings);
            report.add([machine::settings(&settings)])?;
            report.add(machine::data_directory(settings.process()))?;
            report.add([machine::git(settings.process(), &settings.root).await])?;
            report.add(sandbox::python().await)?;
            report.add(sandbox::layers(&settings).await)?;
            report.add([machine::collector(&settings).await])?;
            report.add(servers::mcp(&settings).await)?;
            report.add(machine::agents(&settings))?;
            model::check(&settings, args.quick, &mut report).await?;
        }
    }
    conclude(&report)
}

fn tell(row: &Row) -> std::io::Result<()> {
    let (style, mark) = match row.health {
        Health::Good => (GOOD, "✓"),
        Health::Weak => (WARNING, "!"),
        Health::Bad => (ERROR, "✗"),
    };
    let mut out = crate::out::stdout();
    writeln!(out, "{style}{mark}{style:#} {BOLD}{:<15}{BOLD:#} {}", row.check, row.found)?;
    if let Some(fix) = &row.fix {
        writeln!(out, "  {:<15} {DIM}fix:{DIM:#} {fix}", "")?;
    }
    out.flush()
}

fn conclude(report: &Report) -> anyhow::Result<ExitStatus> {
    let worst = report.rows.iter().map(|row| row.health).max().unwrap_or(Health::Good);
    let status = match worst {
        Health::Good | Health::Weak => ExitStatus::Success,
        Health::Bad => ExitStatus::Failure,
    };
    if report.json {
        let all = json!({ "ok": worst < Health::Bad, "checks": report.rows });
        crate::out::json(&all)?;
        return Ok(status);
    }
    let count = |health| report.rows.iter().filter(|row| row.health == health).count();
    let verdict = match (count(Health::Bad), count(Health::Weak)) {
        (0, 0) => format!("{GOOD}everything is in order{GOOD:#}"),
        (0, weak) => format!("{GOOD}ready to work{GOOD:#}; {weak} could be better"),
        (bad, _) => format!("{ERROR}{bad} needed, and missing{ERROR:#}"),
    };
    writeln!(crate::out::stdout(), "\n{verdict}")?;
    Ok(status)
}
