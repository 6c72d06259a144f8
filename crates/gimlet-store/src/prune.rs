//! Removing runs, and the long texts that no run names any more.

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufRead};
use std::path::Path;
use std::time::{Duration, SystemTime};

use gimlet::ids::RunId;
use gimlet::store::{StoreError, Swept};

use crate::files::io_error;
use crate::home::Home;
use crate::lock::{Attempt, Door};

impl Home {
    /// Removes a run: its log, its patches and its lock. One that somebody works on is [`StoreError::Locked`]. Blocks on
    /// files.
    pub(crate) fn delete(&self, run: &RunId) -> Result<(), StoreError> {
        let folder = self.run_dir(run);
        if !folder.is_dir() {
            return Err(StoreError::NoSuchRun(run.clone()));
        }
        // The door is kept until the folder is gone, so that nobody can take the run up meanwhile.
        let door = Door::enter(self.path()).map_err(io_error("locking", &folder))?;
        match door.lock(&folder).map_err(io_error("locking", &folder))? {
            Attempt::Busy => return Err(StoreError::Locked(run.clone())),
            Attempt::Held(_lock) => {
                // The log goes first: what is left of a removal that was cut short is no run.
                let log = self.log_path(run);
                match fs::remove_file(&log) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(io_error("removing", &log)(error));
                    }
                    Ok(()) | Err(_) => {}
                }
                fs::remove_dir_all(&folder).map_err(io_error("removing", &folder))?;
            }
        }
        Ok(())
    }

    /// Removes long texts that no log names, unless they are younger than `grace`: a run at work stores a text before it
    /// names it. Blocks on files.
    pub(crate) fn sweep(&self, grace: Duration) -> Result<Swept, StoreError> {
        let mut named = HashSet::new();
        for (run, _) in self.scan()? {
            let log = self.log_path(&run);
            names_in(&log, &mut named).map_err(io_error("reading", &log))?;
        }
        let blobs = self.blobs();
        let mut swept = Swept::default();
        for folder in entries(&blobs)? {
            for file in entries(&folder)? {
                let Ok(data) = fs::symlink_metadata(&file) else { continue };
                let age = data.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
                let name =
                    file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                if !data.is_file() || named.contains(&name) || age.is_none_or(|age| age < grace) {
                    continue;
                }
                fs::remove_file(&file).map_err(io_error("removing", &file))?;
                swept.files += 1;
                swept.bytes += data.len();
            }
        }
        Ok(swept)
    }
}

fn entries(folder: &Path) -> Result<Vec<std::path::PathBuf>, StoreError> {
    match fs::read_dir(folder) {
        Ok(found) => Ok(found.flatten().map(|entry| entry.path()).collect()),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        Err(error) => Err(io_error("reading", folder)(error)),
    }
}

/// The addresses of long texts in a log.
fn names_in(log: &Path, named: &mut HashSet<String>) -> io::Result<()> {
    const HEX: usize = 64;
    for line in io::BufReader::new(fs::File::open(log)?).split(b'\n') {
        let line = line?;
        for (at, _) in line.windows(5).enumerate().filter(|(_, part)| part == b"blob:") {
            let hex = line.get(at + 5..at + 5 + HEX).filter(|hex| hex.iter().all(u8::is_ascii_hexdigit));
            named.extend(hex.map(|hex| String::from_utf8_lossy(hex).into_owned()));
        }
    }
    Ok(())
}
