//! `gimlet memory`: what is remembered of a project, for the person whose project it is. Only here can anything be
//! forgotten.

mod print;

use std::io::{Read, Write};
use std::path::Path;

use anyhow::Context;
use gimlet::tool::ToolError;
use gimlet_runtime::parts::memory::{Archive, Id, Kit, Memory, MemoryError, Ranking};
use serde_json::json;

use crate::args::{ExportFormat, JsonArgs, MemoryCommand, Remembered, RootArgs};
use crate::exit::{ExitStatus, UsageError};
use crate::show::{agreed, counted};
use crate::style::WARNING;
use crate::{app, diagnostics};
use gimlet_runtime::memory;
use print::{models_list, notes, nothing, predictions_list, print_json, show, status};

/// Largest archive that is read.
const MOST_BYTES: u64 = 64 << 20;

/// Looks, takes out, takes in, or forgets.
pub(crate) async fn memory(
    command: Option<MemoryCommand>,
    root: &RootArgs,
    json: JsonArgs,
) -> anyhow::Result<ExitStatus> {
    let settings = app::settings(root)?;
    diagnostics::start(&settings);
    let kit = memory::kit(&settings)?;
    let memory = &kit.memory;
    let list = MemoryCommand::List { what: Remembered::Notes, tag: None, limit: 20, json };
    match command.unwrap_or(list) {
        MemoryCommand::List { what, tag, limit, json } => match what {
            Remembered::Notes => notes(&known(memory, |memory| memory.newest(tag.as_deref(), limit))?, json),
            Remembered::Models => {
                let mut models = known(memory, Memory::models)?;
                models.sort_by_key(|model| std::cmp::Reverse((model.time, model.id)));
                models.truncate(limit);
                models_list(&models, json)
            }
            Remembered::Predictions => {
                let mut predictions = known(memory, Memory::predictions)?;
                predictions.reverse();
                predictions.truncate(limit);
                predictions_list(&predictions, json)
            }
        },
        MemoryCommand::Search { query, tag, limit, json } => {
            search(&kit, &query, tag.as_deref(), limit, json).await
        }
        MemoryCommand::Show { id, json } => show(memory, id.parse().map_err(told)?, json),
        MemoryCommand::Export { format, output } => export(memory, format, output.as_deref()),
        MemoryCommand::Import { file, json } => import(memory, &file, json),
        MemoryCommand::Forget { id: Some(id), .. } => forget(memory, id.parse().map_err(told)?),
        MemoryCommand::Forget { id: None, yes, .. } => forget_all(memory, yes),
        MemoryCommand::Status(json) => status(memory, &settings, json),
    }
}

/// What a look finds. Looking makes no file.
fn known<T: Default>(
    memory: &Memory,
    look: impl FnOnce(&Memory) -> Result<T, MemoryError>,
) -> anyhow::Result<T> {
    if memory.exists() { look(memory).map_err(told) } else { Ok(T::default()) }
}

/// An error in words for people.
fn told(error: MemoryError) -> anyhow::Error {
    let hint = error.hint();
    match error {
        MemoryError::Io { .. } | MemoryError::Database { .. } | MemoryError::Newer { .. } => match hint {
            Some(hint) => anyhow::anyhow!("{error}\nhint: {hint}"),
            None => anyhow::anyhow!("{error}"),
        },
        MemoryError::BadId(_)
        | MemoryError::Unknown(_)
        | MemoryError::UnknownModel { .. }
        | MemoryError::Resolved { .. }
        | MemoryError::Invalid(_)
        | MemoryError::Full { .. }
        | MemoryError::Archive(_) => {
            let usage = UsageError::new(error.to_string());
            match hint {
                Some(hint) => usage.hint(hint).into(),
                None => usage.into(),
            }
        }
    }
}

async fn search(
    kit: &Kit,
    query: &str,
    tag: Option<&str>,
    limit: usize,
    json: JsonArgs,
) -> anyhow::Result<ExitStatus> {
    if !kit.memory.exists() {
        return notes(&[], json);
    }
    let found = kit.find(query, tag, limit).await.map_err(|error| match error {
        ToolError::Failed(failure) => anyhow::anyhow!("{}", failure.message),
        other => anyhow::anyhow!("{other}"),
    })?;
    if json.json {
        return print_json(
            &json!({ "notes": found.notes, "ranking": found.ranking, "warning": found.warning }),
        );
    }
    if let Some(warning) = &found.warning {
        writeln!(crate::out::stderr(), "{WARNING}warning:{WARNING:#} {warning}")?;
    }
    if found.notes.is_empty() && found.ranking != Ranking::Newest {
        writeln!(crate::out::stderr(), "nothing like it is remembered here")?;
        return Ok(ExitStatus::Success);
    }
    notes(&found.notes, json)
}

fn export(memory: &Memory, format: ExportFormat, output: Option<&Path>) -> anyhow::Result<ExitStatus> {
    let archive = memory.export().map_err(told)?;
    let text = match format {
        ExportFormat::Markdown => archive.markdown(),
        ExportFormat::Json => format!("{}\n", serde_json::to_string_pretty(&archive)?),
    };
    match output {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?
        }
        None => crate::out::data(text.as_bytes())?,
    }
    Ok(ExitStatus::Success)
}

fn import(memory: &Memory, file: &Path, json: JsonArgs) -> anyhow::Result<ExitStatus> {
    let cannot = |error| UsageError::new(format!("cannot read {}: {error}", file.display()));
    let mut bytes = Vec::new();
    let read = match file == Path::new("-") {
        true => std::io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut bytes),
        false => std::fs::File::open(file).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes)),
    };
    read.map_err(cannot)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(UsageError::new(format!("{} is larger than 64 megabytes", file.display())).into());
    }
    let archive: Archive =
        serde_json::from_slice(&bytes).map_err(|error| told(MemoryError::Archive(error.to_string())))?;
    let redactor = gimlet_runtime::redactor(app::process()?.as_ref());
    let done = memory.import(archive, &|text| redactor.clean_text(text).into_owned()).map_err(told)?;
    if json.json {
        return print_json(&done);
    }
    writeln!(
        crate::out::stderr(),
        "took in {}, {} and {}; known already: {}",
        counted(done.notes as u64, "note"),
        counted(done.models as u64, "mental model"),
        counted(done.predictions as u64, "prediction"),
        done.known
    )?;
    Ok(ExitStatus::Success)
}

fn forget(memory: &Memory, id: Id) -> anyhow::Result<ExitStatus> {
    if !memory.exists() || !memory.forget(id).map_err(told)? {
        return Err(told(MemoryError::Unknown(id)));
    }
    writeln!(crate::out::stderr(), "forgot {id}")?;
    Ok(ExitStatus::Success)
}

fn forget_all(memory: &Memory, yes: bool) -> anyhow::Result<ExitStatus> {
    if !memory.exists() {
        return nothing();
    }
    let status = memory.status().map_err(told)?;
    let mut err = crate::out::stderr();
    let what = format!(
        "{}, {} and {} of {}",
        counted(status.notes, "note"),
        counted(status.models, "mental model"),
        counted(status.open_predictions + status.resolved_predictions, "prediction"),
        memory.root()
    );
    if !yes {
        if !crate::out::can_ask() {
            return Err(UsageError::new(format!("this would forget {what}"))
                .hint("say --yes; `gimlet memory export` keeps a copy")
                .into());
        }
        if !agreed(&mut err, &format!("forget {what}?"))? {
            writeln!(err, "nothing was forgotten")?;
            return Ok(ExitStatus::Failure);
        }
    }
    memory.forget_all().map_err(told)?;
    writeln!(err, "forgot {what}")?;
    Ok(ExitStatus::Success)
}
