//! One worker process and its pipes. Dropping it kills it.
//!
//! Reading and writing keep their place in buffers of their own, so a future that is dropped half-way loses nothing.

use std::future::poll_fn;
use std::pin::pin;
use std::process::Stdio;
use std::task::Poll;
use std::time::{Duration, Instant};

use gimlet::cell::ExecutorError;
use gimlet::worker::{Launched, WorkerLife};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::Program;
use super::death::Death;
use super::nest::Nest;
use crate::eager::Eager;
use crate::protocol::{FromWorker, Start, ToWorker, checked_length, encode};

/// Longest a fresh worker may take to be ready.
const START: Duration = Duration::from_secs(20);
/// How long a nest is left alone before it is asked again about a worker that is dying.
const ASK_AGAIN: Duration = Duration::from_millis(5);
/// How much of a dying worker's last words is read.
const LAST_WORDS: usize = 8 << 10;

pub(crate) struct Worker {
    life: Life,
    input: Box<dyn AsyncWrite + Send + Sync + Unpin>,
    output: Box<dyn AsyncRead + Send + Sync + Unpin>,
    /// Keeps the end of what the worker says on standard error; ends when the pipe closes.
    errors: JoinHandle<String>,
    /// Bytes read and not yet taken as frames.
    read: Vec<u8>,
    eager: Eager,
    /// Bytes still to be written.
    unsent: Vec<u8>,
    /// What the worker could not be given.
    pub(crate) weaknesses: Vec<String>,
}

/// How a worker is ended.
enum Life {
    /// Our own child.
    Child(Box<Child>),
    /// A child of the nest.
    Nestling { pid: u32, nest: Nest },
    /// Someone else's, such as a container.
    Foreign(Box<dyn WorkerLife>),
}

impl Drop for Life {
    fn drop(&mut self) {
        match self {
            // The handle kills its process by itself.
            Life::Child(_) => {}
            Life::Nestling { pid, nest } => nest.kill(*pid),
            Life::Foreign(life) => life.kill(),
        }
    }
}

/// Why no message came.
pub(crate) enum Silence {
    /// The time given is over.
    Timeout,
    /// The worker closed its pipe or broke the protocol.
    Gone(String),
}

impl Worker {
    /// Launches a process that gets itself ready for whatever session comes.
    pub(crate) fn launch(program: &Program) -> Result<Worker, ExecutorError> {
        let mut child = Command::new(&program.path)
            .args(&program.args)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| ExecutorError::Start(format!("{}: {error}", program.path.display())))?;
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(ExecutorError::Start("the worker has no pipes".into()));
        };
        let errors = tokio::spawn(last_words(errors));
        Ok(Worker::new(Life::Child(Box::new(child)), Box::new(input), Box::new(output), errors))
    }

    /// Has a nest fork a worker.
    pub(crate) async fn hatch(nest: &Nest) -> std::io::Result<Worker> {
        let (their_input, input) = std::io::pipe()?;
        let (output, their_output) = std::io::pipe()?;
        let (errors, their_errors) = std::io::pipe()?;
        let input = pipe::Sender::from_owned_fd(input.into())?;
        let output = pipe::Receiver::from_owned_fd(output.into())?;
        let errors = tokio::spawn(last_words(pipe::Receiver::from_owned_fd(errors.into())?));
        let pid = nest.fork([their_input.into(), their_output.into(), their_errors.into()]).await?;
        let life = Life::Nestling { pid, nest: nest.clone() };
        Ok(Worker::new(life, Box::new(input), Box::new(output), errors))
    }

    /// Takes over a worker that someone else has launched.
    pub(crate) fn adopt(launched: Launched) -> Worker {
        let errors = tokio::spawn(last_words(launched.errors));
        Worker::new(Life::Foreign(launched.life), launched.input, launched.output, errors)
    }

    fn new(
        life: Life,
        input: Box<dyn AsyncWrite + Send + Sync + Unpin>,
        output: Box<dyn AsyncRead + Send + Sync + Unpin>,
        errors: JoinHandle<String>,
    ) -> Self {
        Worker {
            life,
            input,
            output,
            errors,
            read: Vec::new(),
            eager: Eager::default(),
            unsent: Vec::new(),
            weaknesses: Vec::new(),
        }
    }

    /// Begins a session and waits until it stands.
    pub(crate) async fn begin(mut self, start: &Start) -> Result<Worker, ExecutorError> {
        self.queue(&ToWorker::Start(Box::new(start.clone())))?;
        match self.next(START).await {
            Ok(FromWorker::Ready { weaknesses }) => {
                self.weaknesses = weaknesses;
                Ok(self)
            }
            Ok(other) => Err(ExecutorError::Protocol(format!("expected a ready worker, got {other:?}"))),
            Err(Silence::Timeout) => Err(ExecutorError::Timeout(START)),
            Err(Silence::Gone(reason)) => {
                let death = self.bury().await;
                Err(ExecutorError::Start(format!("{reason}; {}", death.words())))
            }
        }
    }

    /// Takes a message to be written with the next read.
    pub(crate) fn queue(&mut self, message: &ToWorker) -> Result<(), ExecutorError> {
        let frame = encode(message).map_err(|error| ExecutorError::Protocol(error.to_string()))?;
        self.unsent.extend_from_slice(&frame);
        Ok(())
    }

    /// Writes what is queued. A worker that does not read shows itself at the next read.
    pub(crate) async fn flush(&mut self) -> std::io::Result<()> {
        while !self.unsent.is_empty() {
            let written = self.input.write(&self.unsent).await?;
            self.unsent.drain(..written);
        }
        Ok(())
    }

    /// The next message, if it comes within this time.
    pub(crate) async fn next(&mut self, within: Duration) -> Result<FromWorker, Silence> {
        match tokio::time::timeout(within, self.message()).await {
            Ok(message) => message,
            Err(_) => Err(Silence::Timeout),
        }
    }

    async fn message(&mut self) -> Result<FromWorker, Silence> {
        let gone = |error: std::io::Error| Silence::Gone(error.to_string());
        self.flush().await.map_err(gone)?;
        loop {
            if let Some(message) = self.take_frame().map_err(gone)? {
                return Ok(message);
            }
            if self.read_more().await.map_err(gone)? == 0 {
                return Err(Silence::Gone("the worker closed its pipe".into()));
            }
        }
    }

    /// Reads what there is or what comes.
    async fn read_more(&mut self) -> std::io::Result<usize> {
        let mut reading = pin!(self.output.read_buf(&mut self.read));
        let Some(end) = self.eager.until() else { return reading.await };
        loop {
            let look = poll_fn(|context| Poll::Ready(reading.as_mut().poll(context)));
            if let Poll::Ready(read) = look.await {
                return read;
            }
            if Instant::now() >= end {
                self.eager.in_vain();
                return reading.await;
            }
            tokio::task::yield_now().await;
        }
    }

    fn take_frame(&mut self) -> std::io::Result<Option<FromWorker>> {
        let Some((head, rest)) = self.read.split_first_chunk::<4>() else { return Ok(None) };
        let length = checked_length(*head)?;
        if rest.len() < length {
            return Ok(None);
        }
        let message = serde_json::from_slice(&rest[..length])?;
        self.read.drain(..4 + length);
        Ok(Some(message))
    }

    /// Kills it without waiting.
    pub(crate) fn kill(&mut self) {
        match &mut self.life {
            // It fails only when the process has already ended.
            Life::Child(child) => drop(child.start_kill()),
            Life::Nestling { pid, nest } => nest.kill(*pid),
            Life::Foreign(life) => life.kill(),
        }
    }

    /// Kills it if it still lives, and finds out how it died.
    pub(crate) async fn bury(mut self) -> Death {
        // A worker that is dying by itself is given a moment, so that its own way of dying is seen.
        let moment = Duration::from_millis(200);
        let status = match &mut self.life {
            Life::Child(child) => match tokio::time::timeout(moment, child.wait()).await {
                Ok(status) => status.ok(),
                Err(_) => {
                    self.kill();
                    None
                }
            },
            Life::Nestling { pid, nest } => {
                let ended = async {
                    loop {
                        match nest.status(*pid).await {
                            Some(status) => break status,
                            None => tokio::time::sleep(ASK_AGAIN).await,
                        }
                    }
                };
                tokio::time::timeout(moment, ended).await.ok()
            }
            // Only whoever launched it could know more than its last words.
            Life::Foreign(_) => None,
        };
        let words = match tokio::time::timeout(moment, &mut self.errors).await {
            Ok(words) => words,
            Err(_) => {
                self.kill();
                self.errors.await
            }
        };
        Death::new(status, &words.unwrap_or_default())
    }
}

/// Reads a pipe to its end and keeps the last of it, so that a talkative worker never blocks.
async fn last_words(mut errors: impl AsyncRead + Unpin) -> String {
    let mut words = Vec::new();
    while errors.read_buf(&mut words).await.is_ok_and(|read| read > 0) {
        if words.len() > 2 * LAST_WORDS {
            words.drain(..words.len() - LAST_WORDS);
        }
    }
    String::from_utf8_lossy(&words).into_owned()
}
