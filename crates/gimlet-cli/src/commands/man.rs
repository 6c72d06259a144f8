//! `gimlet man`: the manual pages, made from the same words as the help.

use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;

use crate::args::Cli;
use crate::exit::ExitStatus;

/// Prints the main page, or writes a page for every command into a folder.
pub(crate) fn man(dir: Option<&Path>) -> anyhow::Result<ExitStatus> {
    let mut command = Cli::command();
    match dir {
        Some(dir) => {
            std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
            command.build();
            clap_mangen::generate_to(command, dir)
                .with_context(|| format!("cannot write to {}", dir.display()))?;
        }
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            crate::out::data(&page)?;
        }
    }
    Ok(ExitStatus::Success)
}
