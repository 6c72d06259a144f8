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
use gimlet::command::{Captured, Command, CommandRunner, Confinement, End, Finished, Missing, Permission};
use tokio::io::AsyncWriteExt;
use tokio_util::sync::CancellationToken;

use super::container::Container;
use super::engine::{DockerConfig, DockerError, Engine, Kind, PATIENCE, WORKSPACE, Workspace};

/// Runs the words it is given, rather to be killed for memory than anything else, and then ends whatever they left running
/// and would hold their output open.
const RUN: &str = r#"(echo 1000 >/proc/self/oom_score_adj; "$@"); s=$?; kill -9 -1 2>/dev/null; exit $s"#;
/// Ends whatever is left even so, and tells how often the container has killed for memory, whichever kind of control group
/// it has. Not a part of the above, which a command may have ended.
const TIDY: &str = "kill -9 -1 2>/dev/null
cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control 2>/dev/null
exit 0";

/// Said when more is asked for.
const GRANTS_NOTHING: &str = "commands in a container only read the project and have no network, and nobody can allow them \
     more; a person can run gimlet with `--sandbox workspace-write`, where permissions can be granted";
/// What programs say, in small letters, when they lack what no command in a container has.
const LACKED: &[(&str, Permission)] = &[
    ("read-only file system", Permission::WriteWorkspace),
    ("network is unreachable", Permission::Network),
    ("name resolution", Permission::Network),
    ("could not resolve host", Permission::Network),
];

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

    fn grants_nothing(&self) -> Option<&str> {
        Some(GRANTS_NOTHING)
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
            finished.missing = missing(&finished);
            Ok(finished)
        }
        .boxed()
    }
}

/// What a command seems to have failed for, by its own words. That nobody can grant it is said with it.
fn missing(finished: &Finished) -> Vec<Missing> {
    if finished.end == End::Exited(0) {
        return Vec::new();
    }
    let mut found: Vec<Missing> = Vec::new();
    for line in [finished.stderr.text(), finished.stdout.text()].iter().flat_map(|text| text.lines()) {
        let lower = line.to_lowercase();
        let Some((_, permission)) = LACKED.iter().find(|(words, _)| lower.contains(words)) else { continue };
        if !found.iter().any(|known| known.permission == *permission) {
            let line: String = line.trim().chars().take(200).collect();
            let because = format!("{line} (do not ask for it: {GRANTS_NOTHING})");
            found.push(Missing { permission: *permission, because });
        }
    }
    found
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
    /// Taken while something runs in it, so that two things never share one.
    idle: Mutex<Option<Idle>>,
}

/// A container in which nothing runs.
struct Idle {
    container: Container,
    /// What it sees.
    workspace: Workspace,
    /// How often it has killed for memory.
    kills: u64,
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
        let idle = match idle {
            Some(idle) => idle.if_fit(&workspace).await,
            None => None,
        };
        let mut idle = match idle {
            Some(idle) => idle,
            None => {
                let engine = Engine::connect(self.config.clone()).await?;
                let container = Container::start(&engine, &Kind::Waits(&workspace)).await?;
                Idle { container, workspace, kills: 0 }
            }
        };
        let (engine, name) = (idle.container.engine.clone(), idle.container.name.clone());
        let mut finished = execute(&engine, &name, job, cancel).await;
        let kills = match &finished {
            Ok(Finished { end: End::Exited(_), .. }) => tidy(&engine, &name).await,
            Ok(_) | Err(_) => None,
        };
        let Some(kills) = kills else {
            // Only with its container does everything in it end.
            idle.container.end().await;
            return finished;
        };
        if let Ok(finished) = &mut finished
            && kills > idle.kills
        {
            let told = b"gimlet sandbox: killed: it used more than 512 MB of memory\n";
            finished.stderr.bytes.extend_from_slice(told);
        }
        idle.kills = kills;
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = Some(idle);
        finished
    }
}

impl Idle {
    /// This one, if it still runs and sees the right thing; otherwise it is ended.
    async fn if_fit(self, workspace: &Workspace) -> Option<Idle> {
        // By name: a container itself cannot be looked at across threads.
        let (engine, name) = (self.container.engine.clone(), self.container.name.clone());
        if self.workspace == *workspace && engine.is_running(&name).await {
            return Some(self);
        }
        self.container.end().await;
        None
    }
}

async fn execute(
    engine: &Engine,
    container: &str,
    job: Job,
    cancel: &CancellationToken,
) -> Result<Finished, DockerError> {
    let started = Instant::now();
    let mut words = vec!["sh".to_owned(), "-c".into(), RUN.into(), "sh".into()];
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
        Ok(code) => End::Exited(i32::try_from(code).unwrap_or(-1)),
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

/// Ends everything in a container but its first process, and tells how often it has killed for memory; none if it is of no
/// more use.
async fn tidy(engine: &Engine, container: &str) -> Option<u64> {
    let (mut out, mut err) = (Captured::default(), Captured::default());
    let words = ["sh", "-c", TIDY].map(str::to_owned).to_vec();
    let kept = Kept { most: 4096, stdout: &mut out, stderr: &mut err };
    let tidied = tokio::time::timeout(PATIENCE, start(engine, container, words, "/".into(), None, kept));
    if !matches!(tidied.await, Ok(Ok(0))) {
        return None;
    }
    Some(kills(&out.text()))
}

/// How often a control group has killed for memory, by its own account.
fn kills(account: &str) -> u64 {
    let counts = account.lines().filter_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok());
    counts.max().unwrap_or(0)
}

fn trim(kept: &mut Captured, limit: usize) {
    let excess = kept.bytes.len().saturating_sub(limit);
    kept.bytes.drain(..excess);
    kept.dropped += excess as u64;
}
