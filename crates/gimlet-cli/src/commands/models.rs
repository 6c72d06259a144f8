//! `gimlet models`: what the server has, which one would be chosen and why, and how well one calls tools.

use std::io::Write;

use gimlet_runtime::parts::models::catalog::{Families, choose, probe, table::table};

use crate::args::{ModelsCommand, ServerArgs};
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
pub(crate) async fn models(command: Option<ModelsCommand>, server: ServerArgs) -> anyhow::Result<ExitStatus> {
    let (options, probed) = match command {
        None | Some(ModelsCommand::List) => (Options::from(&server), None),
        Some(ModelsCommand::Probe { name, options }) => (Options::from(&options), Some(name)),
    };
    let settings = app::settings(options)?;
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
    let cards = models::scorecards(settings.process()).ok();
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
        Err(error) => Err(UsageError::new(error.to_string()).maybe_hint(error.hint()).into()),
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
        Some(digest) => models::scorecards(settings.process())?.insert(digest, card)?,
        None => writeln!(
            crate::out::stderr(),
            "{DIM}not remembered: its server does not tell weights apart{DIM:#}"
        )?,
    }
    Ok(ExitStatus::Success)
}
