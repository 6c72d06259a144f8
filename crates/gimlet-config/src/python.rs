//! `[python]` of the configuration: what code may import. A project may take modules away as it is; to add one it must
//! be trusted.

use gimlet_python::imports::{BadChange, changed, changes};
use serde::Deserialize;

use super::{Settings, Spot, needs_trust};
use crate::UsageError;

/// The table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Python {
    /// Changes to the imports, in the words of `--imports`.
    #[serde(default)]
    imports: Vec<String>,
}

impl Settings {
    /// Changes to what code may import: the user's, then the project's, then those of the command line.
    pub fn imports(&self, flags: &[String]) -> anyhow::Result<Vec<String>> {
        let mut all = Vec::new();
        for file in [&self.layers.user, &self.layers.project].into_iter().flatten() {
            let Some(part) = file.section::<Python>("python")? else { continue };
            let line = file.line_of("python")?.unwrap_or(1);
            let spot = Spot { path: part.source.path().to_owned(), line };
            let added = part.value.imports.iter().find(|change| !change.starts_with('-'));
            if let Some(added) = added.filter(|_| !part.source.is_trusted()) {
                let name = added.trim_start_matches('+');
                return Err(needs_trust(&spot, &format!("lets code import `{name}`")).into());
            }
            add(&mut all, &part.value.imports)
                .map_err(|error| UsageError::new(format!("{spot}: [python] imports: {error}")))?;
        }
        add(&mut all, flags).map_err(|error| {
            UsageError::new(error.to_string()).hint("gimlet python --help shows --imports")
        })?;
        Ok(all)
    }
}

/// Makes more changes. What somebody took away already may be taken away again.
fn add(all: &mut Vec<String>, more: &[String]) -> Result<(), BadChange> {
    for change in more {
        if !all.contains(change) {
            all.push(change.clone());
            *all = changes(&changed(all)?);
        }
    }
    Ok(())
}
