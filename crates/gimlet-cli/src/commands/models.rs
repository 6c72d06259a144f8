//! `gimlet models`: what the server has, which one would be chosen and why, and how well one calls tools.

use std::io::Write;

use gimlet_runtime::parts::models::catalog::{
    Action, Evidence, Families, Installed, KINDS, Profile, Scorecard, choose, probe, table::table, tier_word,
};
use serde_json::{Value, json};

use crate::args::{JsonArgs, ModelsCommand, ServerArgs};
use gimlet::event::ActionFormat;
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
        ModelsCommand::Probe { name, reset, options } => (Options::from(&options), Ok((name, reset))),
    };
    let settings = app::settings(options)?;
    diagnostics::start(&settings);
    match probed {
        Err(json) => list(&settings, json).await,
        Ok((name, true)) => forget(name.as_deref(), &settings).await,
        Ok((name, false)) => grade(name.as_deref(), &settings).await,
    }
}

async fn list(settings: &Settings, json: JsonArgs) -> anyhow::Result<ExitStatus> {
    let (server, installed) = models::installed(settings).await?;
    let families = Families::built_in()?;
    let cards = models::scorecards(settings.process()).ok();
    let profile = |model: &Installed| graded(&families, cards.as_ref(), model);
    let choice = choose(None, &installed, &families, profile, server.wire(), server.host());
    let mut stdout = crate::out::stdout();
    let chosen = choice.as_ref().ok().map(|choice| choice.model.name.as_str());
    // What a model showed stands beside what is known of its family.
    let treated = |model: &Installed| {
        let mut profile = profile(model);
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
            let profile = profile(&choice.model);
            let mut stderr = crate::out::stderr();
            writeln!(stderr, "{DIM}{} would be chosen: {}{DIM:#}", choice.model.name, choice.why)?;
            writeln!(stderr, "{DIM}it works with {}{DIM:#}", working(&profile))?;
            writeln!(stderr, "{DIM}its window: {}{DIM:#}", profile.window.told())?;
            Ok(ExitStatus::Success)
        }
        Err(error) => Err(UsageError::new(error.to_string()).maybe_hint(error.hint()).into()),
    }
}

/// What a probe came to, in a few words.
fn probed(card: &Scorecard) -> String {
    let grades = [card.native, card.json, card.code, card.edit, card.correction];
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
        "context": profile.window.tokens,
        "window": profile.window.told(),
        "digest": model.digest,
        "tier": tier_word(profile.tier),
        "action": action_word(profile.action),
        "why": profile.why,
        "evidence": profile.evidence,
        "notes": profile.defects,
        "chosen": chosen == Some(model.name.as_str()),
    })
}

async fn grade(model: Option<&str>, settings: &Settings) -> anyhow::Result<ExitStatus> {
    let found = match model {
        Some(model) => models::find(model, settings).await?,
        None => models::chosen(settings).await?,
    };
    writeln!(
        crate::out::stderr(),
        "{DIM}asking {} {} small tasks …{DIM:#}",
        found.model.id(),
        ROUNDS * KINDS
    )?;
    let card = probe(found.model.as_ref(), ROUNDS).await?;
    let mut stdout = crate::out::stdout();
    writeln!(stdout, "{}", card.render().trim_end())?;
    writeln!(stdout, "  {:<24}{}", "will be used with", use_of(&card, &found))?;
    match found.digest {
        Some(digest) => models::scorecards(settings.process())?.insert(digest, card)?,
        None => writeln!(
            crate::out::stderr(),
            "{DIM}not remembered: its server does not tell weights apart{DIM:#}"
        )?,
    }
    Ok(ExitStatus::Success)
}

/// Forgets the grade of a model, or all grades.
async fn forget(model: Option<&str>, settings: &Settings) -> anyhow::Result<ExitStatus> {
    let mut cards = models::scorecards(settings.process())?;
    let forgotten = match model {
        None => cards.forget(None)?,
        Some(model) => {
            let found = models::find(model, settings).await?;
            let Some(digest) = &found.digest else {
                return Err(UsageError::new(format!("there is no grade of {model}"))
                    .hint("its server does not tell weights apart; `gimlet models probe --reset` forgets all")
                    .into());
            };
            cards.forget(Some(digest))?
        }
    };
    let grades = if forgotten == 1 { "1 grade".to_owned() } else { format!("{forgotten} grades") };
    writeln!(crate::out::stderr(), "{DIM}forgot {grades}{DIM:#}")?;
    Ok(ExitStatus::Success)
}

fn action_word(action: Action) -> &'static str {
    match action {
        Action::Tools => "tools",
        Action::Code => "code",
        Action::Guided => "guided",
    }
}

/// How a model is asked, and why.
fn working(profile: &Profile) -> String {
    let action = action_word(profile.action);
    let untried = match profile.evidence {
        Evidence::Documented => "; by documentation only: `gimlet models probe` tries it",
        Evidence::Unknown => "; how dependable its calls are is not known: `gimlet models probe` tries it",
        Evidence::Tried => "",
    };
    format!("--action {action}: {}{untried}", profile.why)
}

/// What a grade comes to.
fn use_of(card: &Scorecard, found: &models::Found) -> String {
    let usual = match found.manner.action {
        ActionFormat::Tools => Action::Tools,
        ActionFormat::Code => Action::Code,
        ActionFormat::Guided => Action::Guided,
    };
    let (action, why) = card.action(usual);
    format!("--action {}: {why}", action_word(action))
}
