//! One try: a fresh copy of the repository, a home of its own, and this same program as a child, run as anybody would run
//! it. Whatever happens to the child, the evaluation goes on.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use gimlet::event::{Event, EventKind};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use super::ledger::Try;
use super::progress::Progress;
use super::suite::Task;
use super::transcript::{Ended, Transcript};
use crate::options::Writing;
use gimlet_runtime::UsageError;
use gimlet_runtime::config::{Settings, USER_FILE, create, secrets};

/// The variable by which a child knows whose it is.
const PARENT: &str = "GIMLET_EVAL_PARENT";

/// What a child gets beyond its own limit, to end by itself.
const GRACE: Duration = Duration::from_secs(60);
/// What it gets after it was asked to stop.
const PATIENCE: Duration = Duration::from_secs(10);
/// Errors that say nothing about the model: trying on would only make more of them.
const NOBODY_THERE: &[&str] = &["MODEL_UNREACHABLE", "MODEL_AUTH", "MODEL_NOT_FOUND", "BUDGET_EXHAUSTED"];

/// What is the same for all tries.
pub(crate) struct Bench {
    program: PathBuf,
    writing: Writing,
    /// Keys of the user's file, which a home of its own does not have.
    keys: Vec<(String, String)>,
    /// The user's settings, if there are any.
    settings: Option<PathBuf>,
}

/// Where a try is made.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a> {
    /// The repository. Its path tells nothing about the task or the model: a model may read it and take it for a hint.
    pub(crate) copy: &'a Path,
    /// What is kept of the try.
    pub(crate) folder: &'a Path,
}

/// How a try went.
pub(crate) enum Outcome {
    /// It can be judged.
    Over(Transcript),
    /// The person stopped it.
    Interrupted,
}

impl Bench {
    pub(crate) fn new(settings: &Settings, writing: &Writing) -> anyhow::Result<Self> {
        let process = settings.process();
        let settings = process.home().map(|home| home.path().join(USER_FILE)).filter(|file| file.is_file());
        Ok(Bench {
            program: std::env::current_exe().context("this program does not find itself")?,
            writing: writing.clone(),
            keys: secrets::for_child(process)?,
            settings,
        })
    }

    /// Tries a task in a copy of its repository, and keeps what is told about it in a folder. Both are made anew.
    pub(crate) async fn attempt(
        &self,
        task: &Task,
        attempt: &Try,
        Places { copy: repo, folder }: Places<'_>,
        progress: &Progress,
        cancel: &CancellationToken,
    ) -> anyhow::Result<Outcome> {
        for place in [repo, folder] {
            if place.exists() {
                std::fs::remove_dir_all(place)
                    .with_context(|| format!("cannot clear {}", place.display()))?;
            }
        }
        task.fixture.make(repo)?;
        let own_home = folder.join("home");
        create(&own_home)?;
        if let Some(settings) = &self.settings {
            std::fs::copy(settings, own_home.join(USER_FILE))?;
        }
        let stderr = folder.join("stderr.txt");
        let mut child = self
            .command(task, attempt, repo, &own_home)
            .stderr(std::fs::File::create(&stderr)?)
            .spawn()
            .context("cannot start this program")?;
        let begun = Instant::now();
        let limit = Duration::try_from_secs_f64(task.timeout).unwrap_or(Duration::MAX).saturating_add(GRACE);
        let mut transcript = Transcript::default();
        let events = folder.join("events.jsonl");
        let reading = follow(&mut child, &events, &mut transcript, progress);
        let stopped = tokio::select! {
            biased;
            () = cancel.cancelled() => Some(Stopped::ByPerson),
            () = tokio::time::sleep(limit) => Some(Stopped::ByTime),
            read = reading => read.map(|()| None)?,
        };
        match stopped {
            Some(Stopped::ByPerson) => {
                stop(&mut child).await;
                return Ok(Outcome::Interrupted);
            }
            Some(Stopped::ByTime) => {
                stop(&mut child).await;
                let transcript = transcript.broken("HUNG", format!("it did not end within {limit:?}"));
                return Ok(Outcome::Over(Transcript { seconds: limit.as_secs_f64(), ..transcript }));
            }
            None => {}
        }
        let status = child.wait().await?;
        if cancel.is_cancelled() {
            return Ok(Outcome::Interrupted);
        }
        let said = std::fs::read_to_string(&stderr).unwrap_or_default();
        // A run that never began, or had nobody to talk to, says nothing about the model.
        let idle = if transcript == Transcript::default() {
            Some(said.trim().trim_start_matches("error: "))
        } else {
            let idle = transcript.error.as_ref().filter(|it| NOBODY_THERE.contains(&it.error.as_str()));
            idle.map(|broken| broken.message.as_str())
        };
        if let Some(why) = idle {
            let why = format!("{}: {why}", attempt.contender.model);
            let hint = "mend it and run the same command again; finished tries are kept";
            return Err(UsageError::new(why).hint(hint).into());
        }
        if transcript.ended == Ended::Broken {
            if transcript.error.is_none() {
                let last = said.lines().last().unwrap_or_default().to_owned();
                transcript = transcript.broken("CRASHED", format!("{status}: {last}"));
            }
            transcript.seconds = begun.elapsed().as_secs_f64();
        }
        Ok(Outcome::Over(transcript))
    }

    fn command(&self, task: &Task, attempt: &Try, repo: &Path, own_home: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["run", "--json", "--no-trace", "--approve", task.approve.name(), "--root"]).arg(repo);
        command.args(["--action", &attempt.contender.action]);
        command.args(["--max-steps", &task.max_steps.to_string(), "--timeout", &task.timeout.to_string()]);
        if attempt.contender.model != DEFAULT_MODEL {
            command.args(["--model", &attempt.contender.model]);
        }
        let Writing { api_base, temperature, max_tokens } = &self.writing;
        if let Some(address) = api_base {
            command.args(["--api-base", address]);
        }
        if let Some(temperature) = temperature {
            command.args(["--temperature", &temperature.to_string()]);
        }
        if let Some(tokens) = max_tokens {
            command.args(["--max-tokens", &tokens.to_string()]);
        }
        command.args(["--", &task.words]);
        command.envs(self.keys.iter().map(|(name, key)| (name, key))).env("GIMLET_HOME", own_home);
        command.env(PARENT, std::process::id().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        // Ctrl-C is for this program, which then stops the child in its own time.
        #[cfg(unix)]
        command.process_group(0);
        command
    }
}

/// In a child: ends with the evaluation that started it, even one that is killed. Otherwise it would go on working in a
/// folder that the next evaluation clears. Where the system knows no such thing, its own limits end it.
pub fn stay_with_parent() {
    #[cfg(target_os = "linux")]
    if let Some(parent) = std::env::var_os(PARENT) {
        use rustix::process::{Signal, getppid, set_parent_process_death_signal};
        let bound = set_parent_process_death_signal(Some(Signal::TERM)).is_ok();
        let real = getppid().map(|pid| pid.as_raw_nonzero().to_string());
        if bound && real.is_none_or(|real| parent != *real) {
            std::process::exit(130);
        }
    }
}

/// The model's name where a run would choose one by itself.
pub(crate) const DEFAULT_MODEL: &str = "default";

enum Stopped {
    ByPerson,
    ByTime,
}

/// Reads what the child tells, and keeps it.
async fn follow(
    child: &mut Child,
    file: &Path,
    transcript: &mut Transcript,
    progress: &Progress,
) -> anyhow::Result<()> {
    let Some(stdout) = child.stdout.take() else { return Ok(()) };
    let mut kept = tokio::fs::File::create(file).await?;
    let mut lines = BufReader::new(stdout).split(b'\n');
    while let Some(mut line) = lines.next_segment().await? {
        // Words as they come are not worth keeping; the whole reply follows.
        let Ok(event) = serde_json::from_slice::<Event>(&line) else { continue };
        if let EventKind::ModelDelta { .. } = event.kind {
            continue;
        }
        line.push(b'\n');
        kept.write_all(&line).await?;
        transcript.read(event);
        progress.step(transcript.steps);
    }
    kept.flush().await?;
    Ok(())
}

/// Asks the child to stop, and makes it.
async fn stop(child: &mut Child) {
    #[cfg(unix)]
    if let Some(pid) = child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed())) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    if tokio::time::timeout(PATIENCE, child.wait()).await.is_err() {
        // It may have ended in this moment.
        let _ = child.kill().await;
    }
}
