//! Reading text line by line, with what is wrong with it said: a stretch of any length can be reached without holding
//! the rest of the file.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use gimlet::tool::ToolError;

use crate::code;
use crate::root::{Root, RootPath};

/// How many bytes are looked at to tell text from something else, as git and grep do.
const SNIFFED: usize = 8192;

/// A text file read from its beginning.
pub(crate) struct TextFile<'a> {
    path: &'a RootPath,
    reader: BufReader<File>,
    line: Vec<u8>,
    /// Whether something read so far was not UTF-8.
    pub(crate) damaged: bool,
}

impl<'a> TextFile<'a> {
    /// Opens a file and refuses what is not text.
    pub(crate) fn open(root: &Root, path: &'a RootPath) -> Result<Self, ToolError> {
        let mut reader = BufReader::with_capacity(64 * 1024, root.open_file(path)?);
        let head = reader.fill_buf().map_err(|error| unreadable(path, &error))?;
        if head.starts_with(&[0xff, 0xfe]) || head.starts_with(&[0xfe, 0xff]) {
            return Err(binary(path, "is UTF-16 text, which these tools do not read"));
        }
        if head[..head.len().min(SNIFFED)].contains(&0) {
            return Err(binary(path, "is a binary file"));
        }
        Ok(TextFile { path, reader, line: Vec::new(), damaged: false })
    }

    /// The next line with its ending, or nothing at the end.
    pub(crate) fn next_line(&mut self) -> Result<Option<&[u8]>, ToolError> {
        self.line.clear();
        let read =
            self.reader.read_until(b'\n', &mut self.line).map_err(|error| unreadable(self.path, &error))?;
        Ok((read > 0).then_some(&self.line))
    }

    /// Decodes the current line.
    pub(crate) fn text(&mut self) -> String {
        match std::str::from_utf8(&self.line) {
            Ok(text) => text.into(),
            Err(_) => {
                self.damaged = true;
                String::from_utf8_lossy(&self.line).into_owned()
            }
        }
    }

    /// What the model should know about the text it gets.
    pub(crate) fn note(&self) -> Option<String> {
        self.damaged.then(|| "not valid UTF-8; unreadable bytes are shown as \u{fffd}".into())
    }
}

/// A whole file of at most `limit` bytes.
pub(crate) fn read_all(root: &Root, path: &RootPath, limit: u64) -> Result<Vec<u8>, ToolError> {
    let mut bytes = Vec::new();
    let file = root.open_file(path)?;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > limit {
        let message = format!("{} is larger than {limit} bytes", path.display());
        return Err(ToolError::failed(code::READ_FAILED, message).with("path", path.display()));
    }
    Ok(bytes)
}

fn unreadable(path: &RootPath, error: &std::io::Error) -> ToolError {
    ToolError::failed(code::READ_FAILED, format!("{}: {error}", path.display())).with("path", path.display())
}

fn binary(path: &RootPath, what: &str) -> ToolError {
    ToolError::failed(code::BINARY_FILE, format!("{} {what}", path.display())).with("path", path.display())
}
