//! Any text is a diff or is refused; a diff that fits can be written, read back, and taken back to the byte.

use std::collections::BTreeMap;
use std::convert::Infallible;

use gimlet::patch::{FileChange, FileState};
use gimlet_tools::patch::{Files, plan, read, render};

/// A project of two files.
struct Project(BTreeMap<String, FileState>);

impl Files for Project {
    type Error = Infallible;

    fn locate(&self, name: &str) -> Result<String, Infallible> {
        Ok(name.to_owned())
    }

    fn load(&self, path: &str) -> Result<Option<FileState>, Infallible> {
        Ok(self.0.get(path).cloned())
    }
}

impl Project {
    fn apply(&mut self, changes: &[FileChange]) {
        for change in changes {
            assert_eq!(self.0.remove(change.old_path()), change.before, "made for another file");
            if let Some(after) = &change.after {
                self.0.insert(change.path.clone(), after.clone());
            }
        }
    }
}

fn project() -> Project {
    let file = |text: &str| FileState { text: text.into(), mode: Some(0o644) };
    Project(BTreeMap::from([
        (
            "calc.py".to_owned(),
            file("def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a - b\n"),
        ),
        ("w.txt".to_owned(), file("one\r\ntwo\r\nthree")),
    ]))
}

/// Reads a diff and applies it to a small project.
pub fn run(data: &[u8]) -> &'static str {
    let Ok(text) = std::str::from_utf8(data) else { return "not text" };
    let Ok(diffs) = read(text) else { return "no diff" };
    let Ok(planned) = plan(&diffs, &project()) else { return "does not fit" };
    let mut files = project();
    files.apply(&planned.changes);
    let written = render(&planned.changes);
    let again = read(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
    let again =
        plan(&again, &project()).unwrap_or_else(|_| panic!("what was written does not fit\n{written}"));
    let mut other = project();
    other.apply(&again.changes);
    let texts = |project: &Project| -> Vec<(String, String)> {
        project.0.iter().map(|(path, state)| (path.clone(), state.text.clone())).collect()
    };
    assert_eq!(texts(&files), texts(&other), "written and read back it means something else\n{written}");
    let reversed: Vec<FileChange> = planned.changes.iter().rev().map(FileChange::reversed).collect();
    files.apply(&reversed);
    assert_eq!(texts(&files), texts(&project()), "taken back it is not what it was");
    "fits"
}
