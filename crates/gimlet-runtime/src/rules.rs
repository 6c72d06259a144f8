//! The rules for commands in force here: the shipped ones, the user's, the project's.
//!
//! Both files keep them in the table `policy`. A project's need no trust: they can only tighten.

use std::path::Path;

use gimlet_policy::{Policy, RulesError};
use miette::{GraphicalReportHandler, GraphicalTheme};

use gimlet_config::{PROJECT_FILE, Process, USER_FILE, UsageError, read_small, shown};

/// The rules in force in a folder. Rules that cannot be read are no rules that can be left out.
pub fn policy(process: &Process, root: &Path) -> anyhow::Result<Policy> {
    let mut policy = Policy::builtin();
    if let Some(home) = process.home()
        && let Some((name, text)) = settings(&home.path().join(USER_FILE))?
    {
        policy = policy.with_user_settings(&text, &name).map_err(|error| unusable(&error))?;
    }
    if let Some((name, text)) = settings(&root.join(PROJECT_FILE))? {
        policy = policy.with_project_settings(&text, &name).map_err(|error| unusable(&error))?;
    }
    Ok(policy)
}

/// Name and text of a file that may be absent.
fn settings(path: &Path) -> anyhow::Result<Option<(String, String)>> {
    let Some(bytes) = read_small(path)? else { return Ok(None) };
    let name = shown(path);
    let text =
        String::from_utf8(bytes).map_err(|_| UsageError::new(format!("{name} is not text in UTF-8")))?;
    Ok(Some((name, text)))
}

/// Points at the line that is wrong.
fn unusable(error: &RulesError) -> UsageError {
    let mut told = String::new();
    let theme = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(100);
    match theme.render_report(&mut told, error) {
        Ok(()) => UsageError::new(format!("the rules for commands cannot be used\n{}", told.trim_end())),
        Err(_) => UsageError::new(error.to_string()),
    }
    .hint("`gimlet policy show` lists the rules in force once they can be read")
}
