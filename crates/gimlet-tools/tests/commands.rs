//! Commands as real processes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::io::Read;
use std::sync::Arc;

use gimlet::command::{Environment, Invocation, Permission, Permissions};
use gimlet::tool::{ToolError, TypedTool};
use gimlet_tools::Root;
use gimlet_tools::command::{HostRunner, invocation};
use gimlet_tools::run_cmd::{Input, Output, RunCmd, Shell, run};
use tokio_util::sync::CancellationToken;

fn shell() -> (tempfile::TempDir, Shell) {
    let temp = tempfile::tempdir().unwrap();
    let given = std::env::vars_os().chain([("SERVICE_TOKEN".into(), "hush".into())]);
    let shell = Shell {
        root: Root::open(temp.path()).unwrap(),
        environment: Environment::allowed(given),
        runner: Arc::new(HostRunner),
        permissions: Permissions::default(),
        looks_only: Arc::new(|_| false),
    };
    (temp, shell)
}

async fn go(cmd: &str) -> Output {
    let (_temp, shell) = shell();
    run(&shell, cmd, 60, &[], &CancellationToken::new()).await.unwrap()
}

/// Whether a process has ended, even if nobody has collected it yet.
fn is_gone(pid: &str) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X'])),
        Err(_) => true,
    }
}

/// Waits until a process is gone; a process that was killed is, as soon as the kernel gets to it.
async fn assert_gone(pid: &str) {
    for _ in 0..100_000 {
        if is_gone(pid) {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{pid} is still running");
}

fn context(error: &ToolError, key: &str) -> String {
    match error {
        ToolError::Failed(failure) => failure.context[key].as_str().unwrap().to_owned(),
        other @ (ToolError::Suspended(_) | ToolError::Fatal(_)) => panic!("{other}"),
    }
}

#[tokio::test]
async fn exit_codes_and_both_streams_come_back() {
    let output = go("echo out; echo err >&2; exit 3").await;
    assert_eq!(
        (output.exit, output.stdout_tail.as_str(), output.stderr_tail.as_str()),
        (3, "out\n", "err\n")
    );
    assert_eq!((output.ran_in.as_str(), output.note), ("host", None));
    assert_eq!(go("true").await.exit, 0);
    assert_eq!(go("kill -9 $$").await.exit, 137);
}

#[tokio::test]
async fn a_plain_command_gets_no_shell() {
    assert_eq!(go("printf %s 'a | b; $HOME'").await.stdout_tail, "a | b; $HOME");
    let (_temp, shell) = shell();
    let error = run(&shell, "no-such-program-here", 60, &[], &CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().starts_with("CMD_FAILED"), "{error}");
}

#[tokio::test]
async fn it_runs_in_the_root_without_input_and_without_secrets() {
    let (temp, shell) = shell();
    fs::write(temp.path().join("here"), "").unwrap();
    let cancel = CancellationToken::new();
    assert_eq!(run(&shell, "ls", 60, &[], &cancel).await.unwrap().stdout_tail, "here\n");
    assert_eq!(run(&shell, "cat", 60, &[], &cancel).await.unwrap().exit, 0);
    let environment = run(&shell, "env", 60, &[], &cancel).await.unwrap().stdout_tail;
    assert!(environment.contains("PATH=") && !environment.contains("hush"));
}

#[tokio::test]
async fn the_end_of_much_output_survives() {
    let output = go("seq 1 500000").await;
    assert!(output.stdout_tail.ends_with("499999\n500000\n"));
    assert!(output.stdout_tail.len() <= 1024 * 1024);
    assert!(output.note.is_some_and(|note| note.ends_with("bytes of earlier output were not kept")));
}

#[tokio::test]
async fn a_timeout_kills_the_whole_group_and_keeps_the_last_words() {
    let (_temp, shell) = shell();
    let cmd = "sleep 1000 & echo $!; echo working; wait";
    let error = run(&shell, cmd, 1, &[], &CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.to_string(), "CMD_TIMEOUT: killed after 1 s");
    let said = context(&error, "stdout_tail");
    assert!(said.ends_with("working\n"));
    assert_gone(said.lines().next().unwrap()).await;
}

#[tokio::test]
async fn what_a_command_leaves_running_is_killed() {
    let output = go("sleep 1000 & echo $!").await;
    assert_eq!(output.exit, 0);
    assert!(output.seconds < 30.0);
    assert_gone(output.stdout_tail.trim()).await;
}

/// Starts a command that tells its process id through a pipe and then waits for ever.
async fn start(
    shell: &Shell,
    fifo: &std::path::Path,
) -> (impl Future<Output = Result<Output, ToolError>>, CancellationToken) {
    assert!(std::process::Command::new("mkfifo").arg(fifo).status().unwrap().success());
    let (shell, cancel) = (shell.clone(), CancellationToken::new());
    let token = cancel.clone();
    (async move { run(&shell, "(sleep 1000 & echo $! > fifo; wait)", 1000, &[], &token).await }, cancel)
}

async fn told(fifo: &std::path::Path) -> String {
    let fifo = fifo.to_owned();
    let read = move || {
        let mut text = String::new();
        fs::File::open(fifo).unwrap().read_to_string(&mut text).unwrap();
        text.trim().to_owned()
    };
    tokio::task::spawn_blocking(read).await.unwrap()
}

#[tokio::test]
async fn a_cancelled_command_is_killed() {
    let (temp, shell) = shell();
    let fifo = temp.path().join("fifo");
    let (running, cancel) = start(&shell, &fifo).await;
    let (result, pid) = tokio::join!(running, async {
        let pid = told(&fifo).await;
        cancel.cancel();
        pid
    });
    assert!(result.unwrap_err().to_string().starts_with("CANCELLED"));
    assert_gone(&pid).await;
}

#[tokio::test]
async fn a_dropped_command_is_killed() {
    let (temp, shell) = shell();
    let fifo = temp.path().join("fifo");
    let (running, _cancel) = start(&shell, &fifo).await;
    let pid = tokio::select! {
        pid = told(&fifo) => pid,
        result = running => panic!("{result:?}"),
    };
    assert_gone(&pid).await;
}

#[tokio::test]
async fn an_empty_command_is_refused() {
    let (_temp, shell) = shell();
    for cmd in ["", "  ", "echo \0"] {
        let error = run(&shell, cmd, 60, &[], &CancellationToken::new()).await.unwrap_err();
        assert!(error.to_string().starts_with("VALIDATION_FAILED"), "{error}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 300, ..Default::default() })]

    /// What runs without a shell has the very words a shell would have given it.
    #[test]
    fn words_are_those_of_a_shell(text in "[ab'\"\\\\ $`*~#=\t!%{}\\[\\]?;é-]{1,12}") {
        if let Invocation::Direct(words) = invocation(&text) {
            let script = format!("printf '%s\\0' {text}");
            let shell = std::process::Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
            let said = String::from_utf8(shell.stdout).unwrap();
            let said: Vec<&str> = said.split_terminator('\0').collect();
            proptest::prop_assert_eq!(said, words, "{}", text);
        }
    }
}

#[test]
fn no_program_is_looked_for_in_the_project() {
    let temp = tempfile::tempdir().unwrap();
    let base = temp.path().canonicalize().unwrap();
    for folder in ["project/.venv/bin", "tools/bin"] {
        std::fs::create_dir_all(base.join(folder)).unwrap();
    }
    std::os::unix::fs::symlink(base.join("project"), base.join("alias")).unwrap();
    std::os::unix::fs::symlink(base.join("tools"), base.join("project/link")).unwrap();
    let [tools, inside, alias, link, gone] =
        ["tools/bin", "project/.venv/bin", "alias/.venv/bin", "project/link/bin", "alias/gone"]
            .map(|name| base.join(name).display().to_string());
    for (given, kept) in [
        (format!("{inside}:{tools}:{alias}:{link}:{gone}"), tools.as_str()),
        (format!(":{tools}::.:bin:project"), &tools),
        (format!("{tools}/../../project/.venv/bin:{tools}"), &tools),
        (inside.clone(), "/nonexistent"),
        (String::new(), "/nonexistent"),
    ] {
        let environment = Environment::allowed([("PATH", &given)]).outside(&base.join("alias"));
        assert_eq!(environment, Environment::allowed([("PATH", kept)]), "{given}");
    }
    assert_eq!(Environment::default().outside(&base), Environment::default());
}

#[test]
fn a_person_sees_where_a_command_would_run() {
    let (_temp, shell) = shell();
    let tool = RunCmd { shell };
    for (permissions, place) in [(vec![], "host"), (vec![Permission::Unrestricted], "without a jail")] {
        let input = Input { cmd: "ls".into(), timeout: 1, permissions };
        let shown = tool.preview(&input).unwrap();
        assert!(shown.ends_with(&format!(", without a shell, {place})")), "{shown}");
    }
}
