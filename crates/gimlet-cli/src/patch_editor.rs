//! A patch in the person's own editor, before it is approved.

use std::io::Write;
use std::process::Stdio;

use anyhow::Context;

use crate::keys::Mode;

/// Used where neither `VISUAL` nor `EDITOR` names one.
const USUAL: &str = "vi";

/// Lets the person edit a patch. None where they left it as it was, or emptied it.
pub(crate) async fn edited(patch: &str) -> anyhow::Result<Option<String>> {
    let mut file = tempfile::Builder::new().prefix("gimlet-").suffix(".diff").tempfile()?;
    file.write_all(patch.as_bytes())?;
    file.flush()?;
    let named = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let editor = named("VISUAL").or_else(|| named("EDITOR")).unwrap_or_else(|| USUAL.to_owned());
    // An editor may be a command with options, so the shell reads it, and the file is an argument.
    let mut command = tokio::process::Command::new("/bin/sh");
    command.args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(file.path());
    // The terminal is the editor's until it ends.
    let _cooked = Mode::as_before();
    let status = command
        .stdin(Stdio::inherit())
        .stdout(Stdio::inherit())
        .stderr(Stdio::inherit())
        .status()
        .await
        .with_context(|| format!("cannot start the editor `{editor}`"))?;
    anyhow::ensure!(status.success(), "the editor `{editor}` failed");
    let text = std::fs::read_to_string(file.path()).context("cannot read the edited patch")?;
    Ok(Some(text).filter(|text| text != patch && !text.trim().is_empty()))
}
