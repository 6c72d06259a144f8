//! A server's process: its own group, an environment that was given to it, and an end that cannot be missed. Whatever
//! it started dies with it: when it is closed, when its owner is dropped by a panic or an error, and when the program
//! has no time left and calls [`Reaper::kill_all`].

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStdin, ChildStdout};

use crate::config::ServerConfig;

/// How long a server may take to end by itself once its input is closed, and then once it was asked to.
const PATIENCE: Duration = Duration::from_secs(2);

/// Bytes of a server's standard error that are kept.
const KEPT: usize = 4096;

/// Knows the process groups that are alive, for the moment when nothing else is left to end them.
#[derive(Debug, Clone, Default)]
pub struct Reaper(Arc<Mutex<BTreeSet<i32>>>);

impl Reaper {
    /// Ends all of them at once.
    pub fn kill_all(&self) {
        for group in std::mem::take(&mut *lock(&self.0)) {
            kill(group, Signal::KILL);
        }
    }

    fn add(&self, group: i32) {
        lock(&self.0).insert(group);
    }

    fn forget(&self, group: i32) {
        lock(&self.0).remove(&group);
    }
}

/// The last words a process wrote to its standard error.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastWords(Arc<Mutex<Vec<u8>>>);

impl LastWords {
    /// What was written, cut at the front.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&lock(&self.0)).trim().to_owned()
    }

    pub(crate) fn add(&self, bytes: &[u8]) {
        let mut kept = lock(&self.0);
        kept.extend_from_slice(bytes);
        let excess = kept.len().saturating_sub(KEPT);
        kept.drain(..excess);
    }
}

/// A running process.
#[derive(Debug)]
pub(crate) struct Process {
    /// Killed when dropped.
    child: tokio::process::Child,
    /// Of the group; none if the process was gone before it could be asked.
    group: Option<i32>,
    reaper: Reaper,
}

/// A program, ready to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// By its name or its path.
    pub command: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// All of its variables.
    pub environment: BTreeMap<OsString, OsString>,
}

impl Program {
    /// Fails if there is no such file, in the words of the system. What starts a program for us could not say it as well.
    pub(crate) fn check(&self) -> std::io::Result<()> {
        let is_path = self.command.as_encoded_bytes().contains(&b'/');
        let folders = self.environment.get(OsStr::new("PATH")).cloned().unwrap_or_default();
        let is_there = match is_path {
            true => self.cwd.join(&self.command).exists(),
            false => std::env::split_paths(&folders).any(|folder| folder.join(&self.command).is_file()),
        };
        if is_there { Ok(()) } else { Err(rustix::io::Errno::NOENT.into()) }
    }
}

/// Why a server is not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotStarted {
    /// What is in the way.
    pub reason: String,
    /// What a person can do about it.
    pub hint: String,
}

/// Decides how a server's process is started: in a jail, under a supervisor, or not at all.
pub trait Starter: Send + Sync {
    /// What is started in place of `program`. It is asked before every start, restarts included.
    fn prepare(&self, server: &ServerConfig, program: Program) -> Result<Program, NotStarted>;
}

impl Process {
    /// Starts it.
    pub(crate) fn start(
        program: Program,
        reaper: &Reaper,
        words: LastWords,
    ) -> std::io::Result<(Process, ChildStdout, ChildStdin)> {
        let mut child = tokio::process::Command::new(program.command)
            .args(program.args)
            .current_dir(program.cwd)
            .env_clear()
            .envs(program.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let group = child.id().map(u32::cast_signed);
        if let Some(group) = group {
            reaper.add(group);
        }
        let streams = (child.stdout.take(), child.stdin.take(), child.stderr.take());
        let process = Process { child, group, reaper: reaper.clone() };
        let (Some(stdout), Some(stdin), Some(stderr)) = streams else {
            return Err(std::io::Error::other("its streams cannot be reached"));
        };
        tokio::spawn(listen(stderr, words));
        Ok((process, stdout, stdin))
    }

    /// Waits for its end.
    pub(crate) async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends it: its input is closed already, so it is given time, then asked, then killed, with everything it started.
    pub(crate) async fn close(mut self) {
        if tokio::time::timeout(PATIENCE, self.child.wait()).await.is_err() {
            if let Some(group) = self.group {
                kill(group, Signal::TERM);
            }
            let _ = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        }
        self.kill();
        let _ = self.child.wait().await;
    }

    fn kill(&mut self) {
        if let Some(group) = self.group.take() {
            kill(group, Signal::KILL);
            self.reaper.forget(group);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A group that is gone already is as good as killed.
fn kill(group: i32, signal: Signal) {
    if let Some(group) = Pid::from_raw(group) {
        let _ = kill_process_group(group, signal);
    }
}

/// Reads a stream to its end, so that a process which writes much is never held up.
async fn listen(mut stream: impl AsyncRead + Unpin, words: LastWords) {
    let mut chunk = vec![0u8; 16 * 1024];
    while let Ok(read) = stream.read(&mut chunk).await {
        if read == 0 {
            break;
        }
        words.add(&chunk[..read]);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_the_last() {
        let words = LastWords::default();
        for _ in 0..10_000 {
            words.add(b"noise\n");
        }
        words.add(b"the end\n");
        assert!(words.text().ends_with("noise\nthe end") && words.text().len() <= KEPT);
    }
}
