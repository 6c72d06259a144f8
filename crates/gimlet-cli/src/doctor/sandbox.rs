//! What stands between model code and this machine: the Python worker's own report of its walls, and the layers around
//! commands.

use gimlet_runtime::parts::python::{Limits, Warmth};

use super::{Health, Row};
use crate::commands;
use gimlet_runtime::config::Settings;

/// Starts the sandbox and runs a line of Python in it.
pub(super) async fn python() -> Vec<Row> {
    const CHECK: &str = "python sandbox";
    match try_it().await {
        Ok(weaknesses) if weaknesses.is_empty() => {
            vec![Row::good(CHECK, "works, behind Landlock, seccomp and resource limits")]
        }
        Ok(weaknesses) => {
            std::iter::once(Row::good(CHECK, "works"))
                .chain(weaknesses.into_iter().map(|weakness| {
                    Row::weak(CHECK, weakness, "a newer kernel (6.12 or later) has every layer")
                }))
                .collect()
        }
        Err(error) => vec![Row::failed(CHECK, &error, "see `gimlet python -c 'print(1)'`")],
    }
}

/// The jail around commands, and Docker. A run works without either: then commands ask, and code has its own sandbox.
pub(super) async fn layers(settings: &Settings) -> Vec<Row> {
    let layers = commands::sandbox::rows(settings).await;
    layers
        .into_iter()
        .map(|layer| {
            let health = match (&layer.state, &layer.hint) {
                (Ok(_), None) => Health::Good,
                (Ok(_), Some(_)) | (Err(_), _) => Health::Weak,
            };
            let (Ok(found) | Err(found)) = layer.state;
            Row { check: layer.name, health, found, fix: layer.hint }
        })
        .collect()
}

async fn try_it() -> anyhow::Result<Vec<String>> {
    let executor = gimlet_runtime::python(Limits::default(), &[], Warmth::Cold)?;
    let tried = commands::sandbox::evaluate(&*executor, "6 * 7").await?;
    anyhow::ensure!(tried.value == "42", "6 * 7 is {}", tried.value);
    Ok(tried.weaknesses)
}
