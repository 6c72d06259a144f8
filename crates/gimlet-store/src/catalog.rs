//! The catalogue on files: the work is in `index`, `find` and `prune`; names are files below `sessions/`.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::ids::RunId;
use gimlet::store::{Catalog, FindError, RunSummary, StoreError, Swept};

use crate::files::{create_dir, io_error, private};
use crate::store::{FileStore, blocking};

impl Catalog for FileStore {
    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<RunSummary>, StoreError>> {
        let home = self.home.clone();
        blocking(move || home.list(limit)).boxed()
    }

    fn find<'a>(&'a self, text: &'a str, folder: &'a Path) -> BoxFuture<'a, Result<RunId, FindError>> {
        let (home, text, folder) = (self.home.clone(), text.to_owned(), folder.to_owned());
        async move { blocking(move || Ok(home.find(&text, &folder))).await? }.boxed()
    }

    fn name<'a>(&'a self, name: &'a str, run: &'a RunId) -> BoxFuture<'a, Result<(), StoreError>> {
        let (path, run) = (self.session_path(name), run.clone());
        blocking(move || {
            let path = path?;
            let folder = path.parent().unwrap_or(&path);
            create_dir(folder)
                .and_then(|()| private().write(true).create(true).truncate(true).open(&path))
                .and_then(|mut file| io::Write::write_all(&mut file, format!("{run}\n").as_bytes()))
                .map_err(io_error("writing", &path))
        })
        .boxed()
    }

    fn named<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<RunId>, StoreError>> {
        let path = self.session_path(name);
        blocking(move || {
            let path = path?;
            match fs::read_to_string(&path) {
                Ok(text) => Ok(text.trim().parse().ok()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(io_error("reading", &path)(error)),
            }
        })
        .boxed()
    }

    fn delete<'a>(&'a self, run: &'a RunId) -> BoxFuture<'a, Result<(), StoreError>> {
        let (home, run) = (self.home.clone(), run.clone());
        blocking(move || home.delete(&run)).boxed()
    }

    fn sweep(&self, grace: Duration) -> BoxFuture<'_, Result<Swept, StoreError>> {
        let home = self.home.clone();
        blocking(move || home.sweep(grace)).boxed()
    }
}

impl FileStore {
    fn session_path(&self, name: &str) -> Result<PathBuf, StoreError> {
        // A name is one file, wherever it came from.
        match Path::new(name).file_name() {
            Some(file) if file == name => Ok(self.home().join("sessions").join(name)),
            Some(_) | None => Err(StoreError::Backend(format!("`{name}` cannot be the name of a session"))),
        }
    }
}
