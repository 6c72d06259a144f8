//! What is remembered, as a person or a program reads it.

use std::io::Write;

use gimlet_runtime::parts::memory::{Id, Memory, MemoryError, Model, Note, Prediction, Record};
use serde::Serialize;
use serde_json::json;

use super::told;
use crate::args::JsonArgs;
use crate::exit::ExitStatus;
use crate::show::{clip, counted, day, minute};
use crate::style::{DIM, GOOD, NAME, WARNING};
use gimlet_runtime::config::Settings;

/// Characters of a text in a list.
const LINE: usize = 100;

pub(super) fn print_json(value: &impl Serialize) -> anyhow::Result<ExitStatus> {
    crate::out::json(value)?;
    Ok(ExitStatus::Success)
}

pub(super) fn nothing() -> anyhow::Result<ExitStatus> {
    writeln!(crate::out::stderr(), "nothing is remembered here")?;
    Ok(ExitStatus::Success)
}

pub(super) fn notes(notes: &[Note], json: JsonArgs) -> anyhow::Result<ExitStatus> {
    if json.json {
        return print_json(&notes);
    }
    if notes.is_empty() {
        return nothing();
    }
    let mut out = crate::out::stdout();
    for note in notes {
        let tags: String = note.tags.iter().map(|tag| format!(" #{}", tag.replace(' ', "-"))).collect();
        let text = clip(&note.text, LINE);
        writeln!(
            out,
            "{NAME}{:<5}{NAME:#} {DIM}{}{DIM:#}  {text}{DIM}{tags}{DIM:#}",
            note.id,
            day(note.time)
        )?;
    }
    Ok(ExitStatus::Success)
}

pub(super) fn models_list(models: &[Model], json: JsonArgs) -> anyhow::Result<ExitStatus> {
    if json.json {
        return print_json(&models);
    }
    if models.is_empty() {
        return nothing();
    }
    let mut out = crate::out::stdout();
    for model in models {
        let statement = clip(&model.statement, LINE);
        writeln!(
            out,
            "{NAME}{:<5}{NAME:#} {:.2}  {}: {statement} {DIM}({}){DIM:#}",
            model.id,
            model.confidence,
            model.name,
            record(&model.record)
        )?;
    }
    Ok(ExitStatus::Success)
}

fn record(record: &Record) -> String {
    match (record.accuracy, record.brier) {
        (Some(accuracy), Some(brier)) => format!(
            "{} of {} predictions resolved, accuracy {accuracy:.2}, Brier score {brier:.2}",
            record.resolved,
            record.resolved + record.open
        ),
        _ => format!("{} open", counted(record.open, "prediction")),
    }
}

pub(super) fn predictions_list(predictions: &[Prediction], json: JsonArgs) -> anyhow::Result<ExitStatus> {
    if json.json {
        return print_json(&predictions);
    }
    if predictions.is_empty() {
        return nothing();
    }
    let mut out = crate::out::stdout();
    for prediction in predictions {
        let (style, word) = match prediction.outcome {
            None => (DIM, "open"),
            Some(true) => (GOOD, "true"),
            Some(false) => (WARNING, "false"),
        };
        let statement = clip(&prediction.statement, LINE);
        writeln!(
            out,
            "{NAME}{:<5}{NAME:#} {style}{word:<5}{style:#} {:.2}  {statement} {DIM}({}){DIM:#}",
            prediction.id, prediction.probability, prediction.model
        )?;
    }
    Ok(ExitStatus::Success)
}

pub(super) fn show(memory: &Memory, id: Id, json: JsonArgs) -> anyhow::Result<ExitStatus> {
    if !memory.exists() {
        return Err(told(MemoryError::Unknown(id)));
    }
    let mut out = crate::out::stdout();
    match id {
        Id::Note(_) => {
            let note = memory.get(id).map_err(told)?;
            if json.json {
                return print_json(&note);
            }
            writeln!(
                out,
                "{NAME}{id}{NAME:#} {DIM}{} · {} · run {}{DIM:#}",
                note.kind.word(),
                minute(note.time),
                note.source.run
            )?;
            if !note.tags.is_empty() {
                writeln!(out, "{DIM}tags: {}{DIM:#}", note.tags.join(", "))?;
            }
            if !note.sources.is_empty() {
                let sources: Vec<String> = note.sources.iter().map(Id::to_string).collect();
                writeln!(out, "{DIM}made of: {}{DIM:#}", sources.join(", "))?;
            }
            writeln!(out, "{}", note.text)?;
        }
        Id::Model(_) => {
            let model = memory.model_by_id(id).map_err(told)?;
            let revisions = memory.revisions(id).map_err(told)?;
            if json.json {
                return print_json(&json!({ "model": model, "revisions": revisions }));
            }
            writeln!(out, "{NAME}{id}{NAME:#} {} {DIM}({}){DIM:#}", model.name, record(&model.record))?;
            for revision in revisions.iter().rev() {
                let because =
                    revision.because.as_ref().map(|why| format!("; because {why}")).unwrap_or_default();
                writeln!(
                    out,
                    "{:>3}. {:.2} {} {DIM}({}, run {}{because}){DIM:#}",
                    revision.number,
                    revision.confidence,
                    revision.statement,
                    day(revision.time),
                    revision.source.run
                )?;
            }
        }
        Id::Prediction(_) => {
            let prediction = memory.prediction(id).map_err(told)?;
            if json.json {
                return print_json(&prediction);
            }
            return predictions_list(&[prediction], json);
        }
    }
    Ok(ExitStatus::Success)
}

pub(super) fn status(memory: &Memory, settings: &Settings, json: JsonArgs) -> anyhow::Result<ExitStatus> {
    let status = memory.exists().then(|| memory.status()).transpose().map_err(told)?;
    let bytes = std::fs::metadata(memory.path()).map_or(0, |data| data.len());
    let embeddings = settings.memory_embeddings.as_ref().map(|setting| setting.value.as_str());
    if json.json {
        return print_json(&json!({
            "enabled": settings.memory_enabled.value,
            "embeddings": embeddings,
            "path": memory.path(),
            "root": memory.root(),
            "bytes": bytes,
            "remembered": status,
        }));
    }
    let mut out = crate::out::stdout();
    let enabled = match settings.memory_enabled.value {
        true => "on",
        false => "off: `--memory`, or `enabled = true` in [memory]",
    };
    writeln!(out, "memory       {enabled} {DIM}({}){DIM:#}", settings.memory_enabled.origin)?;
    writeln!(out, "embeddings   {}", embeddings.unwrap_or("none: found by words"))?;
    writeln!(out, "project      {}", memory.root())?;
    let Some(status) = status else {
        return nothing();
    };
    writeln!(out, "file         {} {DIM}({bytes} bytes){DIM:#}", memory.path().display())?;
    writeln!(out, "notes        {} {DIM}({} of them syntheses){DIM:#}", status.notes, status.syntheses)?;
    writeln!(out, "models       {}", status.models)?;
    writeln!(out, "predictions  {} open, {} resolved", status.open_predictions, status.resolved_predictions)?;
    Ok(ExitStatus::Success)
}
