//! `gimlet skills` and `gimlet commands`: what a person and a project keep for agents.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use crate::app;
use crate::args::{JsonArgs, RootArgs};
use crate::exit::ExitStatus;
use crate::show::clip;
use crate::style::{DIM, NAME, WARNING};
use gimlet_runtime::knowledge::{Command, Knowledge, Skill, Standpoint, off};

/// One line of a list.
struct Row<'a> {
    name: String,
    description: &'a str,
    path: &'a Path,
    standpoint: Standpoint,
}

/// Lists skills.
pub(crate) fn skills(root: &RootArgs, json: JsonArgs) -> anyhow::Result<ExitStatus> {
    let known = Knowledge::of(&app::settings(root)?);
    let rows: Vec<Row<'_>> = known.skills.iter().map(skill_row).collect();
    told(&known, &rows, json, "no skill is defined", "a skill is a folder with a SKILL.md in .gimlet/skills")
}

/// Lists commands.
pub(crate) fn commands(root: &RootArgs, json: JsonArgs) -> anyhow::Result<ExitStatus> {
    let known = Knowledge::of(&app::settings(root)?);
    let rows: Vec<Row<'_>> = known.commands.iter().map(command_row).collect();
    told(&known, &rows, json, "no command is defined", "a command is a file NAME.md in .gimlet/commands")
}

/// Skills as lines for a session.
pub(crate) fn skill_lines(known: &Knowledge) -> Vec<String> {
    lines(&known.skills.iter().map(skill_row).collect::<Vec<_>>())
}

/// Commands as lines for a session.
pub(crate) fn command_lines(known: &Knowledge) -> Vec<String> {
    lines(&known.commands.iter().map(command_row).collect::<Vec<_>>())
}

fn skill_row(skill: &Skill) -> Row<'_> {
    let (description, path) = (skill.description.as_str(), skill.path.as_path());
    Row { name: skill.name.clone(), description, path, standpoint: skill.standpoint }
}

fn command_row(command: &Command) -> Row<'_> {
    let arguments = clip(&command.arguments, 40);
    let name = format!("/{} {arguments}", command.name).trim_end().to_owned();
    Row { name, description: &command.description, path: &command.path, standpoint: command.standpoint }
}

fn told(
    known: &Knowledge,
    rows: &[Row<'_>],
    json: JsonArgs,
    none: &str,
    hint: &str,
) -> anyhow::Result<ExitStatus> {
    let mut stderr = crate::out::stderr();
    if json.json {
        let rows = rows.iter().map(|row| {
            json!({ "name": row.name.trim_start_matches('/').split(' ').next(), "description": row.description,
                    "path": row.path, "state": row.standpoint })
        });
        crate::out::json(&Value::from_iter(rows))?;
        return Ok(ExitStatus::Success);
    }
    for warning in &known.warnings {
        writeln!(stderr, "{WARNING}warning:{WARNING:#} {warning}")?;
    }
    if rows.is_empty() {
        writeln!(stderr, "{none}\nhint: {hint}")?;
    }
    for line in lines(rows) {
        writeln!(crate::out::stdout(), "{line}")?;
    }
    Ok(ExitStatus::Success)
}

fn lines(rows: &[Row<'_>]) -> Vec<String> {
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let line = |row: &Row<'_>| {
        let about = match (off(row.standpoint, row.path), row.standpoint) {
            (Some((why, hint)), _) => format!("{WARNING}off{WARNING:#}: {why}; {hint}"),
            (None, Standpoint::Yours) => format!("{} {DIM}yours{DIM:#}", clip(row.description, 100)),
            (None, _) => clip(row.description, 100),
        };
        format!("{NAME}{:width$}{NAME:#}  {about}", row.name)
    };
    rows.iter().map(line).collect()
}
