//! Follows a run's log, whoever writes it: lines as they are in the file, from any number on, without gap or double.
//! One reader for each run that is watched; it keeps where lines begin, and the newest of them.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use gimlet::ids::RunId;
use gimlet::store::{Line, StoreError};
use tokio::sync::watch;

use crate::files::io_error;

/// How often a log is looked at.
const PAUSE: Duration = Duration::from_millis(40);
/// Lines kept in memory.
const RECENT: usize = 512;
/// Most lines handed out at once.
const BATCH: usize = 256;

/// The logs that are watched.
#[derive(Debug, Default)]
pub(crate) struct Logs {
    feeds: Mutex<HashMap<RunId, Weak<Feed>>>,
}

#[derive(Debug)]
struct Feed {
    path: PathBuf,
    read: Mutex<Seen>,
    newest: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Where each line begins.
    offsets: Vec<u64>,
    /// Where the next one will.
    end: u64,
    recent: VecDeque<Line>,
}

impl Logs {
    /// Watches a log from the line after this number on.
    pub(crate) fn watch(
        &self,
        run: &RunId,
        path: &Path,
        after: u64,
    ) -> BoxStream<'static, Result<Vec<Line>, StoreError>> {
        let mut feeds = lock(&self.feeds);
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let feed = feeds.get(run).and_then(Weak::upgrade).unwrap_or_else(|| {
            let feed = Arc::new(Feed {
                path: path.to_owned(),
                read: Mutex::default(),
                newest: watch::Sender::new(0),
            });
            feeds.insert(run.clone(), Arc::downgrade(&feed));
            tokio::spawn(follow(Arc::downgrade(&feed)));
            feed
        });
        let newest = feed.newest.subscribe();
        let watch = Watch { feed, newest, last: after };
        stream::unfold(watch, async |mut watch| Some((watch.next().await?, watch))).boxed()
    }
}

/// Reads on while anybody watches.
async fn follow(feed: Weak<Feed>) {
    loop {
        let Some(feed) = feed.upgrade() else { return };
        // A log that cannot be read now may be readable later; its watchers wait.
        let _ = tokio::task::spawn_blocking(move || feed.read_on()).await;
        tokio::time::sleep(PAUSE).await;
    }
}

impl Feed {
    fn read_on(&self) -> io::Result<()> {
        let mut seen = lock(&self.read);
        if std::fs::metadata(&self.path)?.len() <= seen.end {
            return Ok(());
        }
        let mut file = std::fs::File::open(&self.path)?;
        file.seek(SeekFrom::Start(seen.end))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let Some(text) = line.strip_suffix(b"\n") else { break };
            let begins = seen.end;
            seen.offsets.push(begins);
            seen.end += line.len() as u64;
            let number = seen.offsets.len() as u64;
            if seen.recent.len() == RECENT {
                seen.recent.pop_front();
            }
            seen.recent.push_back(Line { seq: number, json: String::from_utf8_lossy(text).into() });
        }
        let newest = seen.offsets.len() as u64;
        drop(seen);
        self.newest.send_replace(newest);
        Ok(())
    }

    fn lines(&self, after: u64) -> io::Result<Vec<Line>> {
        let (from, to) = {
            let seen = lock(&self.read);
            if seen.recent.front().is_some_and(|first| first.seq <= after + 1) {
                let newer = seen.recent.iter().filter(|line| line.seq > after);
                return Ok(newer.take(BATCH).cloned().collect());
            }
            let at = usize::try_from(after).unwrap_or(usize::MAX);
            let Some(from) = seen.offsets.get(at) else { return Ok(Vec::new()) };
            (*from, seen.offsets.get(at + BATCH).copied().unwrap_or(seen.end))
        };
        let mut file = std::fs::File::open(&self.path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(to - from).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        Ok((after + 1..).zip(text.lines()).map(|(seq, json)| Line { seq, json: json.into() }).collect())
    }
}

/// One watcher.
struct Watch {
    feed: Arc<Feed>,
    newest: watch::Receiver<u64>,
    last: u64,
}

impl Watch {
    /// The next lines, once there are some.
    async fn next(&mut self) -> Option<Result<Vec<Line>, StoreError>> {
        let last = self.last;
        self.newest.wait_for(|newest| *newest > last).await.ok()?;
        let feed = self.feed.clone();
        let lines = tokio::task::spawn_blocking(move || feed.lines(last)).await.ok()?;
        let lines = lines.map_err(io_error("reading", &self.feed.path));
        self.last = lines.as_ref().ok().and_then(|lines| lines.last()).map_or(last, |line| line.seq);
        Some(lines)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
