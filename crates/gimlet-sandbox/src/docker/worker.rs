//! A container as a worker of the Python executor: its first process speaks the protocol, tools stay on the host.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bollard::container::LogOutput;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use gimlet::cell::ExecutorError;
use gimlet::worker::{Launched, Launcher, WorkerLife};
use tokio::io::{AsyncWriteExt, DuplexStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::container::{Container, Streams};
use super::engine::{DockerConfig, DockerError, Engine, Kind};
use super::pack::Archive;

/// How much waits in each direction before the other side must read.
const BUFFER: usize = 256 * 1024;

/// Launches Python sessions in containers, each with a copy of the project.
pub struct DockerLauncher {
    /// Which engine and image.
    pub config: DockerConfig,
    /// The project.
    pub root: PathBuf,
    /// Which of its files may be in the copy, by their paths below it: the rules that tools have.
    pub may_copy: Arc<dyn Fn(&Path) -> bool + Send + Sync>,
}

/// What models are told of the copy: that it is one.
const TOLD: &str = "The current folder of your code is a copy of the repository. What code changes there is lost, and what \
functions change, such as apply_patch, does not show there: read and change the repository itself by the functions.";

/// The kind of place such sessions live in, as runs record it.
pub const KIND: &str = "docker";

impl Launcher for DockerLauncher {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn told(&self) -> &'static str {
        TOLD
    }

    fn launch(&self) -> BoxFuture<'_, Result<Launched, ExecutorError>> {
        async move {
            let start = |error: DockerError| ExecutorError::Start(format!("{error}\nhint: {}", error.hint()));
            let archive = Archive::of(&self.root, &*self.may_copy)
                .map_err(|error| ExecutorError::Start(format!("{}: {error}", self.root.display())))?;
            let gaps = named(&archive.gaps);
            let files = archive.finish();
            let engine = Engine::connect(self.config.clone()).await.map_err(start)?;
            let mut container =
                Container::start(&engine, &Kind::Runs { files: files.len(), gaps }).await.map_err(start)?;
            let Some(mut streams) = container.streams.take() else {
                return Err(ExecutorError::Start("the container has no streams".into()));
            };
            let died =
                |error: io::Error| ExecutorError::Start(format!("the container ended at once: {error}"));
            streams.input.write_all(&files).await.map_err(died)?;
            let (input, their_input) = tokio::io::duplex(BUFFER);
            let (their_output, output) = tokio::io::duplex(BUFFER);
            let (their_errors, errors) = tokio::io::duplex(BUFFER);
            let end = CancellationToken::new();
            let pipes = Pipes { input: their_input, output: their_output, errors: their_errors };
            tokio::spawn(carry(container, streams, pipes, end.clone()));
            let life = Life(Some(end.drop_guard()));
            Ok(Launched {
                input: Box::new(input),
                output: Box::new(output),
                errors: Box::new(errors),
                life: Box::new(life),
            })
        }
        .boxed()
    }
}

/// The first few of what is missing, and how much more there is.
fn named(gaps: &[String]) -> String {
    let first = gaps.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
    match gaps.len().saturating_sub(3) {
        0 => first,
        more => format!("{first}, and {more} more"),
    }
}

/// Ends its worker when it is dropped.
struct Life(Option<DropGuard>);

impl WorkerLife for Life {
    fn kill(&mut self) {
        self.0 = None;
    }
}

/// Our ends of the worker's streams.
struct Pipes {
    input: DuplexStream,
    output: DuplexStream,
    errors: DuplexStream,
}

/// Carries bytes both ways until either side is done, then removes the container.
async fn carry(container: Container, mut streams: Streams, mut pipes: Pipes, end: CancellationToken) {
    let inwards = async {
        // An error here is the other side's end, which the reader sees.
        let _ = tokio::io::copy(&mut pipes.input, &mut streams.input).await;
        let _ = streams.input.shutdown().await;
    };
    let outwards = async {
        while let Some(Ok(part)) = streams.output.next().await {
            let written = match part {
                LogOutput::StdErr { message } => pipes.errors.write_all(&message).await,
                LogOutput::StdOut { message } | LogOutput::Console { message } => {
                    pipes.output.write_all(&message).await
                }
                LogOutput::StdIn { .. } => Ok(()),
            };
            if written.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = end.cancelled() => {}
        () = outwards => {}
        () = async { inwards.await; std::future::pending::<()>().await } => {}
    }
    drop(pipes);
    container.end().await;
}
