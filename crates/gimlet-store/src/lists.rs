//! A run's lists, beside its log: `runs/<run>/<list>.jsonl`, one entry a line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;

use gimlet::ids::RunId;
use gimlet::store::StoreError;
use serde_json::Value;

use crate::files::{io_error, private};
use crate::home::Home;
use crate::json;

impl Home {
    /// Adds an entry; returns when it is on the disk.
    pub(crate) fn add_entry(&self, run: &RunId, list: &str, entry: &Value) -> Result<(), StoreError> {
        let path = self.list_path(run, list)?;
        let mut line = json::encode(entry).map_err(|error| {
            StoreError::Backend(format!("an entry of `{list}` cannot be written: {error}"))
        })?;
        line.push(b'\n');
        private()
            .append(true)
            .create(true)
            .open(&path)
            .and_then(|mut file| file.write_all(&line).and_then(|()| file.sync_data()))
            .map_err(io_error("writing", &path))
    }

    /// The entries so far. A torn last line was never acknowledged.
    pub(crate) fn entries(&self, run: &RunId, list: &str) -> Result<Vec<Value>, StoreError> {
        let path = self.list_path(run, list)?;
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io_error("reading", &path)(error)),
        };
        let mut entries = Vec::new();
        for line in BufReader::new(file).split(b'\n') {
            match json::decode(&line.map_err(io_error("reading", &path))?) {
                Ok(entry) => entries.push(entry),
                Err(_) => break,
            }
        }
        Ok(entries)
    }

    fn list_path(&self, run: &RunId, list: &str) -> Result<PathBuf, StoreError> {
        let fits = !list.is_empty() && list.bytes().all(|byte| byte.is_ascii_lowercase()) && list != "log";
        match fits {
            true => Ok(self.run_dir(run).join(format!("{list}.jsonl"))),
            false => Err(StoreError::Backend(format!("`{list}` cannot be the name of a list"))),
        }
    }
}
