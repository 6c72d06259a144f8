//! `gimlet models`: what the server has, which one would be chosen and why, and how well one calls tools.

use std::io::Write;

use gimlet_models::catalog::{Families, choose, probe, table::table};

use crate::args::{ModelOptions, ModelsCommand};
use crate::exit::{ExitStatus, UsageError};
use crate::models;
use crate::style::DIM;

/// How often each micro-task is asked.
const ROUNDS: u32 = 3;

/// Lists or grades models.
pub(crate) async fn models(
    command: Option<ModelsCommand>,
    options: &ModelOptions,
) -> anyhow::Result<ExitStatus> {
    match command.unwrap_or(ModelsCommand::List) {
        ModelsCommand::List => list(options).await,
        ModelsCommand::Probe { model } => grade(model.as_deref().or(options.model.as_deref()), options).await,
    }
}

async fn list(options: &ModelOptions) -> anyhow::Result<ExitStatus> {
    let (server, installed) = models::installed(options).await?;
    let families = Families::built_in()?;
    let choice = choose(None, &installed, &families, server.wire(), server.host());
    let mut stdout = std::io::stdout().lock();
    let chosen = choice.as_ref().ok().map(|choice| choice.model.name.as_str());
    write!(stdout, "{}", table(&installed, &families, chosen))?;
    match &choice {
        Ok(choice) => {
            writeln!(
                anstream::stderr(),
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

async fn grade(model: Option<&str>, options: &ModelOptions) -> anyhow::Result<ExitStatus> {
    let found = models::find(model, options).await?;
    writeln!(anstream::stderr(), "{DIM}asking {} {} small tasks …{DIM:#}", found.model.id(), ROUNDS * 4)?;
    let card = probe(found.model.as_ref(), ROUNDS).await?;
    writeln!(std::io::stdout(), "{}", card.render().trim_end())?;
    if let Some(digest) = found.digest {
        models::scorecards()?.insert(digest, card)?;
    }
    Ok(ExitStatus::Success)
}
