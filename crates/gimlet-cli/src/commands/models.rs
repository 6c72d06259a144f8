//! `gimlet models`: what the server has, which one would be chosen and why, and how well one calls tools.

use std::io::Write;

use gimlet_models::catalog::{Families, choose, probe, table::table};

use crate::args::{ModelsCommand, ServerArgs};
use crate::config::{Flags, Settings};
use crate::diagnostics;
use crate::exit::{ExitStatus, UsageError};
use crate::models;
use crate::served::graded;
use crate::style::DIM;

/// How often each micro-task is asked.
const ROUNDS: u32 = 3;

/// Lists or grades models.
pub(crate) async fn models(command: Option<ModelsCommand>, server: ServerArgs) -> anyhow::Result<ExitStatus> {
    let (flags, probed) = match command {
        None | Some(ModelsCommand::List) => (Flags::from(&server), None),
        Some(ModelsCommand::Probe { name, options }) => (Flags::from(&options), Some(name)),
    };
    let settings = Settings::load(flags)?;
    diagnostics::start(&settings);
    match probed {
        None => list(&settings).await,
        Some(name) => grade(name.as_deref(), &settings).await,
    }
}

async fn list(settings: &Settings) -> anyhow::Result<ExitStatus> {
    let (server, installed) = models::installed(settings).await?;
    let families = Families::built_in()?;
    let choice = choose(None, &installed, &families, server.wire(), server.host());
    let mut stdout = crate::out::stdout();
    let chosen = choice.as_ref().ok().map(|choice| choice.model.name.as_str());
    let cards = models::scorecards().ok();
    write!(stdout, "{}", table(&installed, |model| graded(&families, cards.as_ref(), model), chosen))?;
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
        Err(error) => {
            let usage = UsageError::new(error.to_string());
            Err(match error.hint() {
                Some(hint) => usage.hint(hint).into(),
                None => usage.into(),
            })
        }
    }
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
        Some(digest) => models::scorecards()?.insert(digest, card)?,
        None => writeln!(
            crate::out::stderr(),
            "{DIM}not remembered: its server does not tell weights apart{DIM:#}"
        )?,
    }
    Ok(ExitStatus::Success)
}
