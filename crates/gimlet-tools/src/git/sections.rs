//! A diff taken apart by file, so that files which may not be shown can be left out.

use std::path::Path;

use crate::patch::unquote;
use crate::root::Root;

/// What may be shown of a diff.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) diff: String,
    /// Files that changed and are not shown.
    pub(crate) omitted: Vec<String>,
}

/// Leaves out the files that may not be shown. In a diff only a header begins with `diff --`: lines of a file always
/// begin with a space, `+`, `-` or `\`.
pub(crate) fn shown(diff: &str, root: &Root) -> Shown {
    let mut shown = Shown::default();
    let mut section = String::new();
    for line in diff.split_inclusive('\n') {
        if line.starts_with("diff --") {
            take(&mut section, root, &mut shown);
        }
        section.push_str(line);
    }
    take(&mut section, root, &mut shown);
    shown
}

fn take(section: &mut String, root: &Root, shown: &mut Shown) {
    let secret = names(section).into_iter().find(|name| !root.may_show(Path::new(name)));
    match secret {
        Some(name) => shown.omitted.push(name),
        None => shown.diff.push_str(section),
    }
    section.clear();
}

/// Every name a section's header gives.
fn names(section: &str) -> Vec<String> {
    let mut names = Vec::new();
    for line in section.lines().take_while(|line| !line.starts_with("@@")) {
        let named = [("--- ", "a/"), ("+++ ", "b/")]
            .iter()
            .find_map(|(start, prefix)| line.strip_prefix(start).map(|name| (name, *prefix)))
            .or_else(|| {
                ["rename from ", "rename to ", "copy from ", "copy to "]
                    .iter()
                    .find_map(|start| line.strip_prefix(start).map(|name| (name, "")))
            });
        if let Some((name, prefix)) = named {
            let name = unquote(name.trim_end_matches('\t'));
            if name != "/dev/null" {
                names.push(name.strip_prefix(prefix).unwrap_or(&name).to_owned());
            }
        }
        // Sections without contents have only this line; conflicts name the one file there is.
        if let Some(rest) = line.strip_prefix("diff --cc ").or_else(|| line.strip_prefix("diff --combined "))
        {
            names.push(unquote(rest));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_files_are_left_out_and_named() {
        let temp = tempfile::tempdir().unwrap();
        let root = Root::open(temp.path()).unwrap();
        let fine = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-diff --git\n+--- a/.env\n";
        let secret = "diff --git a/.env b/.env\n--- a/.env\n+++ b/.env\n@@ -1 +1 @@\n-A=1\n+A=2\n";
        let renamed = "diff --git a/k.pem b/k.txt\nrename from k.pem\nrename to k.txt\n--- a/k.pem\n+++ b/k.txt\n@@ -1 +1 @@\n-s\n+t\n";
        let merged = "diff --cc .env\nindex 1,2..3\n--- a/.env\n+++ b/.env\n@@@ -1,1 -1,1 +1,5 @@@\n++<<<\n";
        let seen = shown(&format!("{fine}{secret}{renamed}{merged}{fine}"), &root);
        assert_eq!(seen.diff, format!("{fine}{fine}"));
        assert_eq!(seen.omitted, [".env", "k.pem", ".env"]);
    }
}
