//! Reading `git status --porcelain=v2 -z`.

use std::path::{Path, PathBuf};

use crate::root::Root;

/// What has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// Name of the branch, or `(detached)`.
    pub(crate) branch: Option<String>,
    pub(crate) changes: Vec<Change>,
}

/// One changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) path: PathBuf,
    /// What is staged: a letter, or `.` for nothing; `?` for an untracked file, `U` for a conflict.
    pub(crate) staged: u8,
    /// What is not staged.
    pub(crate) unstaged: u8,
}

impl Change {
    pub(crate) fn is_untracked(&self) -> bool {
        self.staged == b'?'
    }

    pub(crate) fn is_conflict(&self) -> bool {
        self.staged == b'U'
    }
}

/// Git printed something else than promised.
#[derive(Debug, thiserror::Error)]
#[error("git printed a status line that cannot be read: {0:?}")]
pub(crate) struct StatusError(String);

impl Status {
    pub(crate) fn parse(printed: &[u8]) -> Result<Self, StatusError> {
        let mut status = Status::default();
        let mut records = printed.split(|byte| *byte == 0).filter(|record| !record.is_empty());
        while let Some(record) = records.next() {
            let unreadable = || StatusError(String::from_utf8_lossy(record).into_owned());
            match record.first() {
                Some(b'#') => {
                    if let Some(name) = record.strip_prefix(b"# branch.head ") {
                        status.branch = Some(String::from_utf8_lossy(name).into_owned());
                    }
                }
                Some(b'1') => status.changes.push(change(record, 8).ok_or_else(unreadable)?),
                Some(b'2') => {
                    status.changes.push(change(record, 9).ok_or_else(unreadable)?);
                    // The old name follows as a record of its own.
                    records.next().ok_or_else(unreadable)?;
                }
                Some(b'u') => {
                    let found = change(record, 10).ok_or_else(unreadable)?;
                    status.changes.push(Change { staged: b'U', unstaged: b'U', ..found });
                }
                Some(b'?') => {
                    let path = path(record.get(2..).ok_or_else(unreadable)?);
                    status.changes.push(Change { path, staged: b'?', unstaged: b'?' });
                }
                Some(b'!') => {}
                Some(_) | None => return Err(unreadable()),
            }
        }
        status.changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(status)
    }

    /// Leaves what lies below the root and is not hidden from tools, with paths relative to it.
    pub(crate) fn keep_below(&mut self, prefix: &Path, root: &Root) {
        self.changes.retain_mut(|change| match change.path.strip_prefix(prefix) {
            Ok(path) if !root.is_hidden(path) => {
                change.path = path.to_path_buf();
                true
            }
            Ok(_) | Err(_) => false,
        });
    }
}

/// A change whose path is the field after `fields` others.
fn change(record: &[u8], fields: usize) -> Option<Change> {
    let mut parts = record.splitn(fields + 1, |byte| *byte == b' ');
    let letters = parts.nth(1)?;
    let path = path(parts.nth(fields - 2)?);
    Some(Change { path, staged: *letters.first()?, unstaged: *letters.get(1)? })
}

fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_kind_of_record_is_read() {
        let printed = b"# branch.oid 123\0# branch.head main\0\
            1 .M N... 100644 100644 100644 aa bb src/with space.rs\0\
            2 R. N... 100644 100644 100644 aa bb R100 new\nname\0old name\0\
            u UU N... 100644 100644 100644 100644 aa bb cc both.rs\0\
            ? -dash\0! ignored\0";
        let status = Status::parse(printed).unwrap();
        assert_eq!(status.branch.as_deref(), Some("main"));
        let seen: Vec<_> = status
            .changes
            .iter()
            .map(|c| (c.path.to_str().unwrap(), c.staged as char, c.unstaged as char))
            .collect();
        assert_eq!(
            seen,
            [
                ("-dash", '?', '?'),
                ("both.rs", 'U', 'U'),
                ("new\nname", 'R', '.'),
                ("src/with space.rs", '.', 'M')
            ]
        );
    }

    proptest! {
        #[test]
        fn no_output_breaks_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Status::parse(&bytes);
        }
    }
}
