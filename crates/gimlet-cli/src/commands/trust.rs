//! `gimlet trust`: shows what a project's file would do beyond harmless settings, and pins it as it is now. The bytes
//! that are shown are the bytes that are pinned.

use std::io::Write;
use std::path::{Path, PathBuf};

use gimlet::text::Printable;
use jiff::Timestamp;
use serde_json::json;

use crate::args::TrustArgs;
use crate::config::{PROJECT_FILE, Standing, TrustList, ask_for, read_small, shown};
use crate::exit::{ExitStatus, UsageError};
use crate::home;
use crate::show::agreed;
use crate::style::{BOLD, DIM, GOOD, WARNING};

/// Files of a project that may ask for more than harmless settings.
const FILES: &[&str] = &[PROJECT_FILE, ".env", "mcp.json", ".mcp.json"];

/// Trusts a file, takes trust away, or lists what is trusted.
pub(crate) fn trust(args: &TrustArgs) -> anyhow::Result<ExitStatus> {
    let mut list = TrustList::open(Some(&home::path()?))?;
    if args.list {
        return show_list(&list, args.json.json);
    }
    if args.revoke {
        return revoke(&mut list, args);
    }
    let files = match &args.file {
        Some(file) => vec![file.clone()],
        None => FILES.iter().map(|name| args.root.folder().join(name)).filter(|path| path.exists()).collect(),
    };
    if files.is_empty() {
        return Err(UsageError::new("the project has no file that could be trusted")
            .hint(format!("looked for {}", FILES.join(", ")))
            .into());
    }
    let mut status = ExitStatus::Success;
    for file in &files {
        if !offer(&mut list, file, args.yes)? {
            status = ExitStatus::Failure;
        }
    }
    Ok(status)
}

/// Shows a file's wishes and pins it. Says whether it is trusted now.
fn offer(list: &mut TrustList, path: &Path, yes: bool) -> anyhow::Result<bool> {
    let Some(bytes) = read_small(path)? else {
        return Err(UsageError::new(format!("there is no file {}", path.display())).into());
    };
    let mut err = crate::out::stderr();
    let name = shown(&path.canonicalize()?);
    match list.standing(path, &bytes) {
        Standing::Trusted => {
            writeln!(err, "{name} is trusted already")?;
            return Ok(true);
        }
        Standing::Changed => {
            writeln!(err, "{BOLD}{name}{BOLD:#} {WARNING}has changed since it was trusted{WARNING:#}")?
        }
        Standing::Unknown => writeln!(err, "{BOLD}{name}{BOLD:#}")?,
    }
    let wishes = ask_for(path, &bytes)?;
    if wishes.is_empty() {
        writeln!(err, "  asks for nothing that needs trust")?;
    }
    for wish in wishes {
        writeln!(err, "  {DIM}line {}{DIM:#} {}", wish.line, Printable::line(&wish.what))?;
    }
    if !yes && crate::out::can_ask() && !agreed(&mut err, "  trust it?")? {
        writeln!(err, "{name} is not trusted")?;
        return Ok(false);
    }
    list.pin(path, &bytes, Timestamp::now())?;
    writeln!(err, "{GOOD}trusted{GOOD:#} {name} as it is now")?;
    writeln!(err, "{DIM}a change to it asks again; `gimlet trust --revoke {name}` takes it back{DIM:#}")?;
    Ok(true)
}

fn revoke(list: &mut TrustList, args: &TrustArgs) -> anyhow::Result<ExitStatus> {
    let files: Vec<PathBuf> = match &args.file {
        Some(file) => vec![file.clone()],
        None => FILES.iter().map(|name| args.root.folder().join(name)).collect(),
    };
    let mut found = false;
    for file in &files {
        if list.revoke(file)? {
            found = true;
            writeln!(crate::out::stderr(), "{} is not trusted any more", file.display())?;
        }
    }
    if found {
        return Ok(ExitStatus::Success);
    }
    Err(UsageError::new("none of it was trusted").hint("see `gimlet trust --list`").into())
}

fn show_list(list: &TrustList, json: bool) -> anyhow::Result<ExitStatus> {
    let mut out = crate::out::stdout();
    let standing = |path: &Path| match read_small(path) {
        Ok(Some(bytes)) => match list.standing(path, &bytes) {
            Standing::Trusted => "trusted",
            Standing::Changed | Standing::Unknown => "changed",
        },
        Ok(None) | Err(_) => "gone",
    };
    if json {
        let rows: Vec<_> = list
            .pins()
            .iter()
            .map(|pin| json!({ "path": pin.path, "sha256": pin.sha256, "time": pin.time, "state": standing(&pin.path) }))
            .collect();
        crate::out::json(&rows)?;
        return Ok(ExitStatus::Success);
    }
    if list.pins().is_empty() {
        writeln!(crate::out::stderr(), "nothing is trusted")?;
    }
    for pin in list.pins() {
        let (style, word) = match standing(&pin.path) {
            "trusted" => (GOOD, "trusted"),
            other => (WARNING, other),
        };
        let since = pin.time.strftime("%Y-%m-%d");
        writeln!(
            out,
            "{style}{word:<8}{style:#} {} {DIM}{since} {}{DIM:#}",
            pin.path.display(),
            &pin.sha256[..12.min(pin.sha256.len())]
        )?;
    }
    Ok(ExitStatus::Success)
}
