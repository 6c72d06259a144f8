//! `run_cmd`: a command in the project's root.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gimlet::command::{
    Captured, Command, CommandRunner, End, Environment, Finished, Invocation, Missing, Permission,
    Permissions, Profile,
};
use gimlet::effect::Effect;
use gimlet::text::{first_control, shown};
use gimlet::tool::{Keep, Manner, ToolCx, ToolError, TypedTool, code as core};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::code;
use crate::command::invocation;
use crate::root::Root;

/// Most bytes kept of each stream. More than a model is shown: the rest is stored, and the memory stays bounded.
const KEPT_BYTES: usize = 1024 * 1024;
/// Longest time a call may ask for.
pub(crate) const MOST_SECONDS: u64 = 3600;
/// What the guard allows beyond the command's own limit, for killing it and reading what it said last.
const GRACE: Duration = Duration::from_secs(30);

/// How commands are run; shared by the tools that do.
#[derive(Clone)]
pub struct Shell {
    /// Where they run.
    pub root: Root,
    /// What they see of the environment.
    pub environment: Environment,
    /// Who runs them.
    pub runner: Arc<dyn CommandRunner>,
    /// What they may touch unasked.
    pub permissions: Permissions,
    /// Which commands need nothing beyond that.
    pub looks_only: LooksOnly,
}

/// Whether a command changes nothing, as the shipped rules of the policy see it.
pub type LooksOnly = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The tool.
#[derive(Clone)]
pub struct RunCmd {
    /// How.
    pub shell: Shell,
}

/// Run a shell command in the project root and return its exit code and the end of its output.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// The command, such as: python -m mypkg --help
    pub cmd: String,
    /// Seconds until it is killed.
    #[serde(default = "sixty")]
    #[schemars(range(min = 1, max = 3600))]
    pub timeout: u64,
    /// Leave out. Only when a result's `missing` names a permission: that permission; a person is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<Permission>,
}

fn sixty() -> u64 {
    60
}

/// The result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Output {
    /// What was run.
    pub cmd: String,
    /// Its exit code; 128 and the signal's number if it was killed by one.
    pub exit: i32,
    /// The end of its output.
    pub stdout_tail: String,
    /// The end of its error output.
    pub stderr_tail: String,
    /// How long it took.
    pub seconds: f64,
    /// Where it ran.
    pub ran_in: String,
    /// Permissions it seems to have failed for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    /// What was too much to keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl TypedTool for RunCmd {
    const NAME: &'static str = "run_cmd";
    type Input = Input;
    type Output = Output;

    fn manner(&self) -> Manner {
        manner()
    }

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        effects(&self.shell, checked(&input.cmd)?, &input.permissions)
    }

    fn preview(&self, input: &Input) -> Option<String> {
        Some(preview(&self.shell, &input.cmd, &input.permissions))
    }

    async fn run(&self, input: Input, cx: &ToolCx) -> Result<Output, ToolError> {
        let output = run(&self.shell, &input.cmd, input.timeout, &input.permissions, &cx.cancel).await?;
        tell_missing(&output, cx).await;
        Ok(output)
    }
}

/// How the guard treats commands: their end matters, and their own limit comes before its.
pub(crate) fn manner() -> Manner {
    let timeout = Duration::from_secs(MOST_SECONDS) + GRACE;
    Manner { timeout, keep: Keep::Tail, parallel: false, ..Manner::default() }
}

/// What a person sees before agreeing.
pub(crate) fn preview(shell: &Shell, cmd: &str, asked: &[Permission]) -> String {
    let how = match invocation(cmd) {
        Invocation::Direct(_) => "without a shell",
        Invocation::Shell(_) => "by /bin/sh",
    };
    let is_free = asked.contains(&Permission::Unrestricted);
    let place = if is_free { "without a jail" } else { shell.runner.name() };
    format!("{cmd}\n(in {}, {how}, {place})", shell.root.path().display())
}

/// What a command would do: run, and whatever it needs beyond what every command may.
pub(crate) fn effects(shell: &Shell, cmd: &str, asked: &[Permission]) -> Result<Vec<Effect>, ToolError> {
    if let Some(why) = shell.runner.grants_nothing().filter(|_| !asked.is_empty()) {
        return Err(ToolError::failed(code::PERMISSION_UNAVAILABLE, why).with("cmd", cmd));
    }
    let mut effects = vec![Effect::Run { command: cmd.into(), cwd: PathBuf::new() }];
    effects.extend(needed(shell, cmd, asked).into_iter().map(|permission| match permission {
        Permission::Network => Effect::Network { host: "any".into() },
        Permission::WriteGit => Effect::Opaque { what: "change .git".into() },
        Permission::WriteWorkspace => Effect::Opaque { what: "change files of the project".into() },
        Permission::Unrestricted => Effect::Opaque { what: "run without a jail".into() },
    }));
    Ok(effects)
}

/// The permissions a command is to have: what was asked for, and what a git command cannot do without.
fn needed(shell: &Shell, cmd: &str, asked: &[Permission]) -> Vec<Permission> {
    const NETWORK: &[&str] = &["clone", "fetch", "ls-remote", "pull", "push"];
    const WRITING: &[&str] = &[
        "add",
        "am",
        "bisect",
        "branch",
        "checkout",
        "cherry-pick",
        "clean",
        "clone",
        "commit",
        "config",
        "fetch",
        "gc",
        "init",
        "merge",
        "mv",
        "notes",
        "pull",
        "push",
        "rebase",
        "remote",
        "reset",
        "restore",
        "revert",
        "rm",
        "stash",
        "submodule",
        "switch",
        "tag",
        "update-index",
        "worktree",
    ];
    if shell.runner.grants_nothing().is_some() {
        return Vec::new();
    }
    let mut needed = asked.to_vec();
    if let Invocation::Direct(words) = invocation(cmd)
        && words.first().is_some_and(|program| program == "git")
        // `git branch -a` is not `git branch -D x`, and who tells them apart is the policy.
        && !(shell.looks_only)(cmd)
    {
        let is_one_of =
            |names: &[&str]| names.iter().any(|name| words.get(1).is_some_and(|word| word == *name));
        needed.extend(is_one_of(WRITING).then_some(Permission::WriteGit));
        needed.extend(is_one_of(NETWORK).then_some(Permission::Network));
    }
    // Where nothing is written, `.git` is not either, and git writes files with it.
    if shell.permissions.profile == Profile::ReadOnly && needed.contains(&Permission::WriteGit) {
        needed.push(Permission::WriteWorkspace);
    }
    needed.sort();
    needed.dedup();
    needed
}

/// Tells the person what a command seems to have failed for; the model reads it in the result.
pub(crate) async fn tell_missing(output: &Output, cx: &ToolCx) {
    for missing in &output.missing {
        let permission = match missing.permission {
            Permission::WriteWorkspace => "to change the project",
            Permission::WriteGit => "to change .git and the top of the project",
            Permission::Network => "to use the network",
            Permission::Unrestricted => "to touch files outside the project, or those it protects",
        };
        cx.notice(format!("the jail did not allow `{}` {permission}: {}", output.cmd, missing.because)).await;
    }
}

pub(crate) fn checked(cmd: &str) -> Result<&str, ToolError> {
    if cmd.trim().is_empty() {
        return Err(ToolError::failed(core::VALIDATION_FAILED, "the command is empty"));
    }
    if let Some(control) = first_control(cmd) {
        let message = format!("the command has a control character, {}", shown(control));
        let hint = "Write the command without it; printf '\\033' writes such a character from a script.";
        return Err(ToolError::failed(core::VALIDATION_FAILED, message).with("hint", hint));
    }
    Ok(cmd)
}

/// Runs a command. That it fails is a result; only its not running, or not ending, is an error.
pub async fn run(
    shell: &Shell,
    cmd: &str,
    seconds: u64,
    asked: &[Permission],
    cancel: &CancellationToken,
) -> Result<Output, ToolError> {
    let wanted = Duration::from_secs(seconds.clamp(1, MOST_SECONDS));
    let command = Command {
        text: checked(cmd)?.into(),
        invocation: invocation(cmd),
        root: shell.root.path().to_path_buf(),
        cwd: shell.root.path().to_path_buf(),
        environment: shell.environment.clone().with("TERM", "dumb").with("NO_COLOR", "1"),
        timeout: shell.runner.limit(wanted),
        keep: KEPT_BYTES,
        permissions: needed(shell, cmd, asked).into_iter().fold(shell.permissions, Permissions::with),
    };
    let finished = shell.runner.run(&command, cancel).await.map_err(|error| {
        ToolError::failed(code::CMD_FAILED, format!("the command cannot be started: {error}"))
            .with("cmd", cmd)
    })?;
    let exit = match finished.end {
        End::Exited(exit) => exit,
        End::Signalled(signal) => 128 + signal,
        End::TimedOut => {
            let (after, place) = (command.timeout.as_secs_f64(), shell.runner.name());
            let message = if command.timeout < wanted {
                format!("killed after {after} s, the longest a command may run in {place}")
            } else {
                format!("killed after {after} s")
            };
            return Err(with_output(ToolError::failed(code::CMD_TIMEOUT, message), cmd, &finished));
        }
        End::Cancelled => {
            return Err(with_output(
                ToolError::failed(core::CANCELLED, "stopped and killed"),
                cmd,
                &finished,
            ));
        }
    };
    Ok(Output {
        cmd: cmd.into(),
        exit,
        stdout_tail: finished.stdout.text(),
        stderr_tail: finished.stderr.text(),
        seconds: (finished.duration.as_secs_f64() * 1000.0).round() / 1000.0,
        ran_in: finished.isolation,
        missing: finished.missing,
        note: note(&finished.stdout, &finished.stderr),
    })
}

fn note(stdout: &Captured, stderr: &Captured) -> Option<String> {
    let dropped = stdout.dropped + stderr.dropped;
    (dropped > 0).then(|| format!("{dropped} bytes of earlier output were not kept"))
}

/// A killed command's last words often say why; a failure quotes their end.
fn with_output(error: ToolError, cmd: &str, finished: &Finished) -> ToolError {
    const QUOTED: usize = 2000;
    let tail = |captured: &Captured| {
        let text = captured.text();
        let skipped = text.chars().count().saturating_sub(QUOTED);
        text.chars().skip(skipped).collect::<String>()
    };
    error
        .with("cmd", cmd)
        .with("stdout_tail", tail(&finished.stdout))
        .with("stderr_tail", tail(&finished.stderr))
}
