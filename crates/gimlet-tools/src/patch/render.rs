//! Writing a change as a git diff that git itself accepts: what a person approves and a validator checks.

use std::time::Duration;

use gimlet::patch::{FileChange, FileState};
use similar::{Algorithm, ChangeTag, TextDiff};

use super::quote::quote;

/// Longest time spent on finding a small diff; then a larger one is good enough.
const PATIENCE: Duration = Duration::from_secs(2);

/// Writes all changes as one diff.
pub fn render(changes: &[FileChange]) -> String {
    changes.iter().map(file).collect()
}

fn file(change: &FileChange) -> String {
    let (old, new) = (change.old_path(), change.path.as_str());
    let mut out = format!("diff --git {} {}\n", quote(&format!("a/{old}")), quote(&format!("b/{new}")));
    match (&change.before, &change.after) {
        (None, Some(after)) => out.push_str(&format!("new file mode {:o}\n", after.git_mode())),
        (Some(before), None) => out.push_str(&format!("deleted file mode {:o}\n", before.git_mode())),
        (Some(before), Some(after)) => {
            if before.git_mode() != after.git_mode() {
                out.push_str(&format!("old mode {:o}\nnew mode {:o}\n", before.git_mode(), after.git_mode()));
            }
            if old != new {
                out.push_str(&format!("rename from {}\nrename to {}\n", quote(old), quote(new)));
            }
        }
        (None, None) => return String::new(),
    }
    let text = |state: &Option<FileState>| state.as_ref().map(|state| state.text.clone()).unwrap_or_default();
    let (before, after) = (text(&change.before), text(&change.after));
    if before != after {
        let name = |state: &Option<FileState>, prefix: &str, path: &str| match state {
            // A tab ends a name with spaces; git writes it so, and reads it back.
            Some(_) if path.contains(' ') => format!("{}\t", quote(&format!("{prefix}{path}"))),
            Some(_) => quote(&format!("{prefix}{path}")),
            None => "/dev/null".into(),
        };
        out.push_str(&format!(
            "--- {}\n+++ {}\n",
            name(&change.before, "a/", old),
            name(&change.after, "b/", new)
        ));
        out.push_str(&hunks(&before, &after));
    }
    out
}

/// The hunks with three lines of context. Lines end at `\n` only: to git a lone `\r` is a letter.
fn hunks(before: &str, after: &str) -> String {
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let diff = TextDiff::configure().algorithm(Algorithm::Patience).timeout(PATIENCE).diff_slices(&old, &new);
    let mut out = String::new();
    for group in diff.grouped_ops(3) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let range = |start: usize, end: usize| {
            let length = end - start;
            // An empty range names the line before it.
            let start = if length == 0 { start } else { start + 1 };
            if length == 1 { start.to_string() } else { format!("{start},{length}") }
        };
        out.push_str(&format!(
            "@@ -{} +{} @@\n",
            range(first.old_range().start, last.old_range().end),
            range(first.new_range().start, last.new_range().end)
        ));
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            out.push(match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            });
            out.push_str(change.value());
            if !change.value().ends_with('\n') {
                out.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    out
}
