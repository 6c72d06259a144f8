//! `gimlet trust`: shows what a project's file would do beyond harmless settings, and pins it as it is now. The bytes
//! that are shown are the bytes that are pinned.

use std::io::Write;
use std::path::{Path, PathBuf};

use gimlet::text::Printable;
use jiff::Timestamp;
use serde_json::json;

use crate::app;
use crate::args::TrustArgs;
use crate::exit::{ExitStatus, UsageError};
use crate::show::{agreed, day};
use crate::style::{BOLD, DIM, GOOD, WARNING};
use gimlet_runtime::config::{
    PROJECT_FILE, Pin, Process, Standing, TrustList, ask_for, read_inside, read_small, shown,
};
use gimlet_runtime::knowledge::{code_behind, trustable};

/// Files of a project that may ask for more than harmless settings.
const FILES: &[&str] = &[PROJECT_FILE, ".env", "mcp.json", ".mcp.json"];

/// Trusts a file, takes trust away, or lists what is trusted.
pub(crate) fn trust(args: &TrustArgs) -> anyhow::Result<ExitStatus> {
    let process = app::process()?;
    let mut list = TrustList::open(Some(process.need_home()?.path()))?;
    if args.list {
        return show_list(&list, &process, args.json.json);
    }
    if args.revoke {
        return revoke(&mut list, args);
    }
    let root = args.root.folder().canonicalize()?;
    let files = match &args.file {
        Some(file) => vec![file.clone()],
        None => all_files(&root).into_iter().filter(|path| path.exists()).collect(),
    };
    if files.is_empty() {
        return Err(UsageError::new("the project has no file that could be trusted")
            .hint(format!("looked for {}, skills and commands", FILES.join(", ")))
            .into());
    }
    let mut status = ExitStatus::Success;
    for file in &files {
        if !offer(&mut list, &process, &root, file, args.yes)? {
            status = ExitStatus::Failure;
        }
    }
    Ok(status)
}

/// The files of a project that can be trusted, whether or not they are there.
fn all_files(root: &Path) -> Vec<PathBuf> {
    FILES.iter().map(|name| root.join(name)).chain(trustable(root)).collect()
}

/// Shows a file's wishes and pins it. Says whether it is trusted now.
fn offer(
    list: &mut TrustList,
    process: &Process,
    root: &Path,
    path: &Path,
    yes: bool,
) -> anyhow::Result<bool> {
    let Some(bytes) = read_inside(root, path)? else {
        return Err(UsageError::new(format!("there is no file {}", path.display())).into());
    };
    let mut err = crate::out::stderr();
    let name = shown(&path.canonicalize()?);
    let code = code_behind(process, root, path, &bytes)?;
    match list.standing(root, path, &bytes) {
        Standing::Trusted if list.code(root, path) == code => {
            writeln!(err, "{name} is trusted already")?;
            return Ok(true);
        }
        Standing::Trusted => writeln!(
            err,
            "{BOLD}{name}{BOLD:#} {WARNING}uses files that have changed since it was trusted{WARNING:#}"
        )?,
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
    let verb = if path.ends_with("SKILL.md") { "comes with" } else { "runs" };
    for file in &code {
        let name = file.path.display().to_string();
        let news = if list.code(root, path).contains(file) { "as it was trusted" } else { "as it is now" };
        writeln!(err, "  {verb} {} {DIM}{news}{DIM:#}", Printable::line(&name))?;
    }
    if !yes && !crate::out::can_ask() {
        return Err(UsageError::new(format!("{name} is not trusted: there is no terminal to ask on"))
            .hint("read the file, then run the same command with --yes")
            .into());
    }
    if !yes && !agreed(&mut err, "  trust it?")? {
        writeln!(err, "{name} is not trusted")?;
        return Ok(false);
    }
    list.pin(root, path, &bytes, code, Timestamp::now())?;
    writeln!(err, "{GOOD}trusted{GOOD:#} {name} as it is now")?;
    writeln!(err, "{DIM}a change to it asks again; `gimlet trust --revoke {name}` takes it back{DIM:#}")?;
    Ok(true)
}

fn revoke(list: &mut TrustList, args: &TrustArgs) -> anyhow::Result<ExitStatus> {
    let root = args.root.folder().canonicalize()?;
    let files: Vec<PathBuf> = match &args.file {
        Some(file) => vec![file.clone()],
        None => all_files(&root),
    };
    let mut found = false;
    for file in &files {
        if list.revoke(&root, file)? {
            found = true;
            writeln!(crate::out::stderr(), "{} is not trusted any more", file.display())?;
        }
    }
    if found {
        return Ok(ExitStatus::Success);
    }
    Err(UsageError::new("none of it was trusted").hint("see `gimlet trust --list`").into())
}

/// The project a pin is about; an older one is about a file at the top of its project.
fn root_of(pin: &Pin) -> &Path {
    pin.root.as_deref().or_else(|| pin.path.parent()).unwrap_or(&pin.path)
}

fn show_list(list: &TrustList, process: &Process, json: bool) -> anyhow::Result<ExitStatus> {
    let mut out = crate::out::stdout();
    let standing = |pin: &Pin| match read_small(&pin.path) {
        Ok(Some(bytes)) => match list.standing(root_of(pin), &pin.path, &bytes) {
            Standing::Trusted => match code_behind(process, root_of(pin), &pin.path, &bytes) {
                Ok(code) if code == pin.code => "trusted",
                Ok(_) | Err(_) => "changed",
            },
            Standing::Changed | Standing::Unknown => "changed",
        },
        Ok(None) | Err(_) => "gone",
    };
    if json {
        let rows: Vec<_> = list
            .pins()
            .iter()
            .map(|pin| json!({ "root": pin.root, "path": pin.path, "sha256": pin.sha256, "code": pin.code, "time": pin.time, "state": standing(pin) }))
            .collect();
        crate::out::json(&rows)?;
        return Ok(ExitStatus::Success);
    }
    if list.pins().is_empty() {
        writeln!(crate::out::stderr(), "nothing is trusted")?;
    }
    for pin in list.pins() {
        let (style, word) = match standing(pin) {
            "trusted" => (GOOD, "trusted"),
            other => (WARNING, other),
        };
        let since = day(pin.time);
        writeln!(
            out,
            "{style}{word:<8}{style:#} {} {DIM}{since} {}{DIM:#}",
            pin.path.display(),
            &pin.sha256[..12.min(pin.sha256.len())]
        )?;
    }
    Ok(ExitStatus::Success)
}
