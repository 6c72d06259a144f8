//! What a run did, in a few words below its answer.

use gimlet::work::{CommandWork, Verification, Work};

use super::clip;
use crate::style::{DIM, WARNING};

/// Most names told of a kind; the rest is counted.
const NAMES: usize = 3;

/// The lines below an answer; none when nothing was done.
pub(crate) fn footer(work: &Work) -> Vec<String> {
    let mut parts = Vec::new();
    if !work.files_changed.is_empty() {
        parts.push(format!(
            "changed {}",
            names(
                work.files_changed
                    .iter()
                    .map(|name| clip(name, 80))
                    .collect::<Vec<_>>()
                    .iter()
                    .map(String::as_str)
            )
        ));
    }
    match work.files_read.len() {
        0 => {}
        1 => parts.push("read 1 file".to_owned()),
        n => parts.push(format!("read {n} files")),
    }
    if !work.commands.is_empty() {
        let told: Vec<String> = work.commands.iter().map(command).collect();
        parts.push(format!("ran {}", names(told.iter().map(String::as_str))));
    }
    let open =
        work.patches.proposed.iter().filter(|patch| {
            !work.patches.applied.contains(*patch) && !work.patches.rejected.contains(*patch)
        });
    match open.count() {
        0 => {}
        1 => parts.push("1 patch proposed and not applied".to_owned()),
        n => parts.push(format!("{n} patches proposed and not applied")),
    }
    match work.patches.rejected.len() {
        0 => {}
        1 => parts.push("1 patch refused".to_owned()),
        n => parts.push(format!("{n} patches refused")),
    }
    if work.fallbacks > 0 {
        parts.push("fell back from code to tool calls".to_owned());
    }
    if !work.errors.is_empty() {
        let told: Vec<String> = work
            .errors
            .iter()
            .map(|(error, times)| if *times == 1 { error.clone() } else { format!("{error} ×{times}") })
            .collect();
        parts.push(format!("errors: {}", names(told.iter().map(String::as_str))));
    }
    let mut lines = Vec::new();
    if !parts.is_empty() {
        lines.push(format!("{DIM}{}{DIM:#}", parts.join(" · ")));
    }
    match work.verification {
        Verification::Missing => {
            lines.push(format!("{WARNING}untried:{WARNING:#} nothing was run after the last change"));
        }
        Verification::NotNeeded | Verification::Refused | Verification::Done => {}
    }
    lines
}

fn command(work: &CommandWork) -> String {
    let text = clip(&work.command, 40);
    match (work.exit, &work.error) {
        (Some(exit), _) => format!("`{text}` (exit {exit})"),
        (None, Some(error)) => format!("`{text}` ({error})"),
        (None, None) => format!("`{text}`"),
    }
}

fn names<'a>(all: impl ExactSizeIterator<Item = &'a str>) -> String {
    let rest = all.len().saturating_sub(NAMES);
    let told: Vec<&str> = all.take(NAMES).collect();
    let told = told.join(", ");
    if rest == 0 { told } else { format!("{told} and {rest} more") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(work: &Work) -> String {
        anstream::adapter::strip_str(&footer(work).join("\n")).to_string()
    }

    #[test]
    fn what_was_done_fits_two_lines() {
        let mut work = Work::default();
        assert_eq!(plain(&work), "");
        work.files_read.extend(["a.py".to_owned(), "b.py".to_owned()]);
        work.files_changed.insert("a.py".into());
        work.patches.proposed.extend(["p1".to_owned(), "p2".to_owned()]);
        work.patches.applied.insert("p1".into());
        work.commands.push(CommandWork { command: "pytest -q".into(), times: 2, exit: Some(0), error: None });
        work.errors.insert("FILE_NOT_FOUND".into(), 2);
        work.verification = Verification::Missing;
        assert_eq!(
            plain(&work),
            "changed a.py · read 2 files · ran `pytest -q` (exit 0) · 1 patch proposed and not applied · \
             errors: FILE_NOT_FOUND ×2\nuntried: nothing was run after the last change"
        );
        work.files_changed.extend(["b", "c", "d", "e"].map(String::from));
        assert!(plain(&work).starts_with("changed a.py, b, c and 2 more"));
    }
}
