//! `gimlet config`: the settings in force and where each comes from, and a commented file to begin with.

use std::io::Write;
use std::path::PathBuf;

use serde_json::{Value, json};

use gimlet_runtime::Options;
use gimlet_runtime::options::Sandbox;

use crate::app;
use crate::args::{ConfigCommand, JsonArgs, RootArgs};
use crate::diagnostics;
use crate::exit::{ExitStatus, UsageError};
use crate::style::{BOLD, DIM, NAME, WARNING};
use gimlet_runtime::Project;
use gimlet_runtime::config::{
    Origin, PROJECT_FILE, Row, Settings, Source, USER_FILE, Whose, create, secrets, shown, template,
};

/// Shows settings, or writes a file.
pub(crate) fn config(
    command: Option<ConfigCommand>,
    root: &RootArgs,
    JsonArgs { json }: JsonArgs,
) -> anyhow::Result<ExitStatus> {
    let (options, json) = match command {
        Some(ConfigCommand::Init { user }) => return init(user, root),
        Some(ConfigCommand::Show { model, max_steps, validation_tests, json: JsonArgs { json } }) => {
            let sandbox = Sandbox { validation_tests, ..Sandbox::default() };
            (Options { root: root.root.clone(), sandbox, max_steps, ..Options::from(&model) }, json)
        }
        None => (Options::from(root), json),
    };
    let settings = app::settings(options)?;
    diagnostics::start(&settings);
    let keys = keys(&settings)?;
    if json { show_json(&settings, &keys) } else { show(&settings, &keys) }
}

/// A key that is there, and where.
struct KeyRow {
    variable: String,
    source: String,
}

fn keys(settings: &Settings) -> anyhow::Result<Vec<KeyRow>> {
    let named = settings.named_models()?;
    let environment = secrets::of_environment(settings.process(), &named.providers);
    let in_environment: Vec<&str> = environment.variables().collect();
    let all = secrets::keys(settings.process(), &named.providers)?;
    let file = secrets::file(settings.process()).map(|path| shown(&path)).unwrap_or_default();
    let mut rows: Vec<KeyRow> = all
        .variables()
        .map(|variable| KeyRow {
            variable: variable.to_owned(),
            source: if in_environment.contains(&variable) { "environment".to_owned() } else { file.clone() },
        })
        .collect();
    rows.sort_by(|a, b| a.variable.cmp(&b.variable));
    Ok(rows)
}

fn show(settings: &Settings, keys: &[KeyRow]) -> anyhow::Result<ExitStatus> {
    let mut out = crate::out::stdout();
    let rows: Vec<(&Row, String)> = settings.rows().iter().map(|row| (row, words(row))).collect();
    let width = rows.iter().map(|(_, value)| value.chars().count()).max().unwrap_or(0).min(48);
    for (row, value) in &rows {
        let (style, mark) = match &row.origin {
            Origin::Default => (DIM, ""),
            Origin::Project { trusted: false, .. } => (BOLD, " (not trusted)"),
            Origin::Project { trusted: true, .. }
            | Origin::Flag(_)
            | Origin::Environment
            | Origin::User(_) => (BOLD, ""),
        };
        writeln!(
            out,
            "{NAME}{:<26}{NAME:#} {style}{value:<width$}{style:#} {DIM}{}{mark}{DIM:#}",
            row.key.variable, row.origin
        )?;
    }
    let (home, origin) = data_directory()?;
    writeln!(out, "{NAME}{:<26}{NAME:#} {home:<width$} {DIM}{origin}{DIM:#}", "GIMLET_HOME")?;
    for key in keys {
        writeln!(
            out,
            "{NAME}{:<26}{NAME:#} {:<width$} {DIM}{}{DIM:#}",
            key.variable, "set, not shown", key.source
        )?;
    }
    writeln!(out)?;
    for source in settings.files() {
        let (style, word) = match &source {
            Source::User(_) => (DIM, "yours"),
            Source::Project { trusted: true, .. } => (DIM, "trusted"),
            Source::Project { trusted: false, .. } => (WARNING, "not trusted"),
        };
        writeln!(out, "read {}: {style}{word}{style:#}", shown(source.path()))?;
    }
    writeln!(out, "{}", instructions(settings)?)?;
    let named = settings.named_models()?;
    if !named.names().is_empty() {
        writeln!(out, "models by name: {}", named.names().into_iter().collect::<Vec<_>>().join(", "))?;
    }
    let agents = settings.agents()?;
    if !agents.defined.is_empty() {
        writeln!(out, "agents: {}", agents.defined.into_keys().collect::<Vec<_>>().join(", "))?;
    }
    Ok(ExitStatus::Success)
}

fn show_json(settings: &Settings, keys: &[KeyRow]) -> anyhow::Result<ExitStatus> {
    let rows: Vec<Value> = settings
        .rows()
        .iter()
        .map(|row| {
            let mut shown = json!({ "key": row.key.variable, "path": row.key.path, "value": row.value });
            let (source, spot) = match &row.origin {
                Origin::Flag(_) => ("flag", None),
                Origin::Environment => ("environment", None),
                Origin::Project { spot, trusted } => {
                    shown["trusted"] = json!(trusted);
                    (if spot.path.ends_with(".env") { ".env" } else { "project" }, Some(spot))
                }
                Origin::User(spot) => ("user", Some(spot)),
                Origin::Default => ("default", None),
            };
            shown["source"] = json!(source);
            if let Some(spot) = spot {
                shown["file"] = json!(spot.path);
                shown["line"] = json!(spot.line);
            }
            shown
        })
        .collect();
    let files: Vec<Value> = settings
        .files()
        .iter()
        .map(|source| json!({ "path": source.path(), "trusted": source.is_trusted() }))
        .collect();
    let keys: Vec<Value> =
        keys.iter().map(|key| json!({ "key": key.variable, "source": key.source })).collect();
    let all = json!({
        "settings": rows,
        "home": data_directory()?.0,
        "instructions": instructions(settings)?,
        "api_keys": keys,
        "files": files,
        "models": settings.named_models()?.names(),
        "agents": settings.agents()?.defined.into_keys().collect::<Vec<_>>(),
    });
    crate::out::json(&all)?;
    Ok(ExitStatus::Success)
}

/// What the user and the project tell agents: a line for each file.
fn instructions(settings: &Settings) -> anyhow::Result<String> {
    // What a model with the largest window reads; how much that is for another depends on its window.
    let found = Project::to_look_at(settings)?.instructions(Some(u32::MAX));
    let parts = found.parts.iter().map(|part| {
        let state = match (settings.instructions.value, part.next_line) {
            (false, _) => "not offered to the model".to_owned(),
            (true, None) => format!("its {} characters are offered to the model", part.chars),
            (true, Some(line)) => format!(
                "its first {} characters are offered to the model, up to line {}",
                part.chars,
                line - 1
            ),
        };
        format!("{}: {state}", part.name)
    });
    let lines: Vec<String> = parts.chain(found.problems.iter().cloned()).collect();
    Ok(match lines.is_empty() {
        true => format!("{}: none in this project", gimlet_runtime::instructions::FILE),
        false => lines.join("\n"),
    })
}

/// A value as people write it; one that depends on other things in words.
fn words(row: &Row) -> String {
    match &row.value {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => row.key.default.to_owned(),
    }
}

fn data_directory() -> anyhow::Result<(String, &'static str)> {
    let named = std::env::var_os("GIMLET_HOME").is_some_and(|value| !value.is_empty());
    let process = app::process()?;
    let home = process.need_home()?.path();
    Ok((home.display().to_string(), if named { "environment" } else { "default" }))
}

fn init(user: bool, root: &RootArgs) -> anyhow::Result<ExitStatus> {
    let (path, whose): (PathBuf, Whose) = if user {
        let process = app::process()?;
        let home = process.need_home()?.path();
        create(home)?;
        (home.join(USER_FILE), Whose::User)
    } else {
        (root.folder().join(PROJECT_FILE), Whose::Project)
    };
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if user {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let mut file = options.open(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => UsageError::new(format!("{} is there already", shown(&path)))
            .hint("edit it, or move it away first"),
        _ => UsageError::new(format!("cannot write {}: {error}", shown(&path))),
    })?;
    file.write_all(template(whose).as_bytes())?;
    writeln!(crate::out::stderr(), "wrote {}; every line of it is commented out", shown(&path))?;
    Ok(ExitStatus::Success)
}
