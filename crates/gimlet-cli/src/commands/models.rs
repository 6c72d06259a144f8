//! `gimlet models`: what the server has, which one would be chosen and why, and how well one calls tools.

use std::io::Write;

use gimlet_runtime::parts::models::catalog::{
    Families, Installed, Profile, Scorecard, choose, probe, table::table, tier_word,
};
use serde_json::{Value, json};

use crate::args::{JsonArgs, ModelsCommand, ServerArgs};
use gimlet_runtime::{Options, Settings};

use crate::app;
use crate::diagnostics;
use crate::exit::{ExitStatus, UsageError};
use crate::style::DIM;
use gimlet_runtime::models;
use gimlet_runtime::served::graded;

/// How often each micro-task is asked.
const ROUNDS: u32 = 3;

/// Lists or grades models.
pub(crate) async fn models(
    command: Option<ModelsCommand>,
    server: ServerArgs,
    json: JsonArgs,
) -> anyhow::Result<ExitStatus> {
    let (options, probed) = match command.unwrap_or(ModelsCommand::List(json)) {
        ModelsCommand::List(json) => (Options::from(&server), Err(json)),
        ModelsCommand::Probe { name, options } => (Options::from(&options), Ok(name)),
    };
    let settings = app::settings(options)?;
    diagnostics::start(&settings);
    match probed {
        Err(json) => list(&settings, json).await,
        Ok(name) => grade(name.as_deref(), &settings).await,
    }
}

async fn list(settings: &Settings, json: JsonArgs) -> anyhow::Result<ExitStatus> {
    let (server, installed) = models::installed(settings).await?;
    let families = Families::built_in()?;
    let choice = choose(None, &installed, &families, server.wire(), server.host());
    let mut stdout = crate::out::stdout();
    let chosen = choice.as_ref().ok().map(|choice| choice.model.name.as_str());
    let cards = models::scorecards(settings.process()).ok();
    // What a model showed stands beside what is known of its family.
    let treated = |model: &Installed| {
        let mut profile = graded(&families, cards.as_ref(), model);
        let card = model.digest.as_deref().and_then(|digest| cards.as_ref()?.get(digest));
        profile.defects.splice(0..0, card.map(probed));
        profile
    };
    if json.json {
        let rows: Vec<Value> = installed.iter().map(|model| row(model, &treated(model), chosen)).collect();
        crate::out::json(&rows)?;
        return Ok(ExitStatus::Success);
    }
    write!(stdout, "{}", table(&installed, treated, chosen))?;
    match &choice {
        Ok(choice) => {
            writeln!(
                crate::out::stderr(),
                "{DIM}{} would be chosen: {}{DIM:#}",
                choice.model.name,
                choice.why
            )?;
            Ok(ExitStatus::Success)
        }
        Err(error) => Err(UsageError::new(error.to_string()).maybe_hint(error.hint()).into()),
    }
}

/// What a probe came to, in a few words.
fn probed(card: &Scorecard) -> String {
    let grades = [card.native, card.json, card.code, card.correction];
    let (right, of) = grades.iter().fold((0, 0), |(right, of), grade| (right + grade.right, of + grade.of));
    format!("probe: {right} of {of} right")
}

/// A model, for programs.
fn row(model: &Installed, profile: &Profile, chosen: Option<&str>) -> Value {
    json!({
        "name": model.name,
        "bytes": model.bytes,
        "billions": model.billions(),
        "quantisation": model.quantisation,
        "context": model.set_context.or(model.context),
        "digest": model.digest,
        "tier": tier_word(profile.tier),
        "notes": profile.defects,
        "chosen": chosen == Some(model.name.as_str()),
    })
}

async fn grade(model: Option<&str>, settings: &Settings) -> anyhow::Result<ExitStatus> {
    let found = match model {
        Some(model) => models::find(model, settings).await?,
        None => models::chosen(settings).await?,
    };
    writeln!(crate::out::stderr(), "{DIM}asking {} {} small tasks …{DIM:#}", found.model.id(), ROUNDS * 4)?;
    let card = probe(found.model.as_ref(), ROUNDS).await?;
    writeln!(crate::out::stdout(), "{}", card.render().trim_end())?;
    match found.digest {
        Some(digest) => models::scorecards(settings.process())?.insert(digest, card)?,
        None => writeln!(
            crate::out::stderr(),
            "{DIM}not remembered: its server does not tell weights apart{DIM:#}"
        )?,
    }
    Ok(ExitStatus::Success)
}
