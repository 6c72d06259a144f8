//! Commands in a container that sees the project and cannot change it. One container serves all commands of a run; a
//! command that overstays takes its container with it.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bollard::container::LogOutput;
use bollard::exec::{CreateExecOptions, StartExecResults};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use gimlet::command::{Captured, Command, CommandRunner, Confinement, End, Finished};
use tokio::io::AsyncWriteExt;
use tokio_util::sync::CancellationToken;

use super::container::Container;
use super::engine::{DockerConfig, DockerError, Engine, Kind, WORKSPACE, Workspace};

/// Runs the words it is given and then ends whatever they left running.
const TIDY: &str = r#""$@"; s=$?; kill -9 -1 2>/dev/null; exit $s"#;
/// Tells how often the container's memory ran out, whichever kind of control group it has.
const RAN_OUT: &str = "cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control 2>/dev/null | grep '^oom_kill '";
/// What a kill looks like from outside.
const KILLED: i64 = 137;

/// Runs commands in a container.
pub struct DockerRunner {
    warm: Warm,
    timeout: Duration,
}

impl DockerRunner {
    /// A runner; no container is started yet.
    pub fn new(config: DockerConfig) -> Self {
        let timeout = config.timeout;
        DockerRunner { warm: Warm::new(config), timeout }
    }
}

impl CommandRunner for DockerRunner {
    fn name(&self) -> &str {
        "docker"
    }

    fn confinement(&self) -> Confinement {
        Confinement::Jailed
    }

    fn limit(&self, asked: Duration) -> Duration {
        asked.min(self.timeout)
    }

    fn run<'a>(
        &'a self,
        command: &'a Command,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, io::Result<Finished>> {
        async move {
            let words: Vec<String> = command
                .invocation
                .argv()
                .iter()
                .map(|word| word.to_str().map(str::to_owned))
                .collect::<Option<_>>()
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a word is not text"))?;
            let inside = command.cwd.strip_prefix(&command.root).unwrap_or(Path::new(""));
            let job = Job {
                words,
                folder: Path::new(WORKSPACE).join(inside).display().to_string(),
                input: None,
                timeout: self.limit(command.timeout),
                keep: command.keep,
            };
            let failed = |error: DockerError| io::Error::other(format!("{error} (hint: {})", error.hint()));
            let project = Workspace::Project(command.root.clone());
            let mut finished = self.warm.run(project, job, cancel).await.map_err(failed)?;
            finished.isolation = "docker (read-only)".into();
            Ok(finished)
        }
        .boxed()
    }
}

/// Something to be run in a container.
pub(crate) struct Job {
    pub(crate) words: Vec<String>,
    /// Where, inside of the container.
    pub(crate) folder: String,
    pub(crate) input: Option<Vec<u8>>,
    pub(crate) timeout: Duration,
    /// Most bytes kept of each stream; the end survives.
    pub(crate) keep: usize,
}

/// A container that is started when it is first needed and kept for the next time.
pub(crate) struct Warm {
    config: DockerConfig,
    /// With what it sees. Taken while something runs in it, so that two things never share one.
    idle: Mutex<Option<(Workspace, Container)>>,
}

impl Warm {
    pub(crate) fn new(config: DockerConfig) -> Self {
        Warm { config, idle: Mutex::new(None) }
    }

    pub(crate) async fn run(
        &self,
        workspace: Workspace,
        job: Job,
        cancel: &CancellationToken,
    ) -> Result<Finished, DockerError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        let kept = match idle {
            Some((seen, container)) => {
                // By name: a container itself cannot be looked at across threads.
                let (engine, name) = (container.engine.clone(), container.name.clone());
                if seen == workspace && engine.is_running(&name).await {
                    Some(container)
                } else {
                    container.end().await;
                    None
                }
            }
            None => None,
        };
        let container = match kept {
            Some(container) => container,
            None => {
                let engine = Engine::connect(self.config.clone()).await?;
                Container::start(&engine, &Kind::Waits(&workspace)).await?
            }
        };
        let finished = execute(&container.engine, &container.name, job, cancel).await;
        match &finished {
            Ok(Finished { end: End::Exited(_), .. }) => {
                *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = Some((workspace, container));
            }
            // Only with its container does everything in it end.
            Ok(_) | Err(_) => container.end().await,
        }
        finished
    }
}

async fn execute(
    engine: &Engine,
    container: &str,
    job: Job,
    cancel: &CancellationToken,
) -> Result<Finished, DockerError> {
    let started = Instant::now();
    let mut words = vec!["sh".to_owned(), "-c".into(), TIDY.into(), "sh".into()];
    words.extend(job.words);
    let mut stdout = Captured::default();
    let mut stderr = Captured::default();
    let ended = {
        let kept = Kept { most: job.keep, stdout: &mut stdout, stderr: &mut stderr };
        let run = start(engine, container, words, job.folder, job.input, kept);
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(End::Cancelled),
            () = tokio::time::sleep(job.timeout) => Err(End::TimedOut),
            code = run => Ok(code?),
        }
    };
    trim(&mut stdout, job.keep);
    trim(&mut stderr, job.keep);
    let end = match ended {
        Ok(code) => {
            if code == KILLED && ran_out(engine, container).await {
                stderr
                    .bytes
                    .extend_from_slice(b"gimlet sandbox: killed: it used more than 512 MB of memory\n");
            }
            End::Exited(i32::try_from(code).unwrap_or(-1))
        }
        Err(end) => end,
    };
    Ok(Finished {
        end,
        stdout,
        stderr,
        duration: started.elapsed(),
        isolation: "docker".into(),
        missing: Vec::new(),
    })
}

/// Where a program's words go.
struct Kept<'a> {
    most: usize,
    stdout: &'a mut Captured,
    stderr: &'a mut Captured,
}

/// Starts words in a container and reads what they say; their exit code.
async fn start(
    engine: &Engine,
    container: &str,
    words: Vec<String>,
    folder: String,
    input: Option<Vec<u8>>,
    kept: Kept<'_>,
) -> Result<i64, DockerError> {
    let docker = &engine.docker;
    let failed = |error| engine.failed(&error);
    let options = CreateExecOptions {
        attach_stdin: Some(input.is_some()),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        cmd: Some(words),
        working_dir: Some(folder),
        ..CreateExecOptions::default()
    };
    let job = docker.create_exec(container, options).await.map_err(failed)?.id;
    match docker.start_exec(&job, None).await.map_err(failed)? {
        StartExecResults::Attached { mut output, input: mut pipe } => {
            if let Some(input) = input {
                // A program that does not read its input says so by its exit code.
                let _ = pipe.write_all(&input).await;
                let _ = pipe.shutdown().await;
            }
            while let Some(part) = output.next().await {
                let (stream, message) = match part.map_err(failed)? {
                    LogOutput::StdErr { message } => (&mut *kept.stderr, message),
                    LogOutput::StdOut { message } | LogOutput::Console { message } => {
                        (&mut *kept.stdout, message)
                    }
                    LogOutput::StdIn { .. } => continue,
                };
                stream.bytes.extend_from_slice(&message);
                if stream.bytes.len() > kept.most.saturating_mul(2) {
                    trim(stream, kept.most);
                }
            }
        }
        StartExecResults::Detached => {}
    }
    let inspected = docker.inspect_exec(&job).await.map_err(failed)?;
    Ok(inspected.exit_code.unwrap_or(-1))
}

/// Whether the container's memory has ever run out.
async fn ran_out(engine: &Engine, container: &str) -> bool {
    let (mut out, mut err) = (Captured::default(), Captured::default());
    let words = ["sh", "-c", RAN_OUT].map(str::to_owned).to_vec();
    let kept = Kept { most: 4096, stdout: &mut out, stderr: &mut err };
    let asked = start(engine, container, words, "/".into(), None, kept).await;
    asked.is_ok() && out.text().lines().any(|line| line.trim_end() != "oom_kill 0")
}

fn trim(kept: &mut Captured, limit: usize) {
    let excess = kept.bytes.len().saturating_sub(limit);
    kept.bytes.drain(..excess);
    kept.dropped += excess as u64;
}
