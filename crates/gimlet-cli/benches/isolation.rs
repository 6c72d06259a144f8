//! What isolation costs: a jailed `true` beside a bare one, and, with a Docker engine in `GIMLET_TEST_DOCKER`, a cell of
//! Python cold and warm, and the check of a patch in a container beside one in a scratch folder.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement fails by panicking and prints")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gimlet::cell::{CellEvent, Executor, SessionSpec};
use gimlet::command::{Command, CommandRunner, Environment, Invocation, Permissions};
use gimlet::patch::{Draft, FileChange, FileState, PatchValidator};
use gimlet_python::{Limits, PythonExecutor};
use gimlet_sandbox::docker::{DockerConfig, DockerLauncher, DockerValidator};
use gimlet_sandbox::jail::{self, JailConfig, JailedRunner, Program, Wanted};
use gimlet_tools::command::HostRunner;
use gimlet_tools::patch::ScratchValidator;
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 30;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let bare = commands(&HostRunner, &root).await;
    println!("a bare `true`: {bare:.2?}");
    for wanted in [Wanted::Bubblewrap, Wanted::Landlock] {
        match jail::detect(wanted, &root, &[]) {
            Ok(found) => {
                let name = found.mechanism.name();
                let helper =
                    Program { path: env!("CARGO_BIN_EXE_gimlet").into(), args: vec!["__jail".into()] };
                let config = JailConfig {
                    helper,
                    found,
                    home: None,
                    hidden: Vec::new(),
                    cache: None,
                    limits: jail::Limits::default(),
                };
                let jailed = commands(&JailedRunner::new(config, Arc::new(HostRunner)), &root).await;
                println!("jailed by {name}: {jailed:.2?}, {:.2?} more", jailed.saturating_sub(bare));
            }
            Err(why) => println!("{wanted:?}: {why}"),
        }
    }
    match std::env::var("GIMLET_TEST_DOCKER") {
        Ok(host) => docker(host, &root).await,
        Err(_) => println!("no GIMLET_TEST_DOCKER, so no containers"),
    }
}

/// The median time of a command that does nothing.
async fn commands(runner: &dyn CommandRunner, root: &Path) -> Duration {
    let command = Command {
        text: "true".into(),
        invocation: Invocation::Direct(vec!["true".into()]),
        root: root.to_owned(),
        cwd: root.to_owned(),
        environment: Environment::allowed([("PATH", "/usr/bin:/bin")]),
        timeout: Duration::from_secs(60),
        keep: 1024,
        permissions: Permissions::default(),
    };
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let finished = runner.run(&command, &CancellationToken::new()).await.unwrap();
        times.push(begun.elapsed());
        assert_eq!(finished.end, gimlet::command::End::Exited(0), "{}", finished.stderr.text());
    }
    median(times)
}

async fn docker(host: String, root: &Path) {
    let config =
        DockerConfig { host, image: "gimlet-sandbox:latest".into(), timeout: Duration::from_secs(30) };
    let launcher = DockerLauncher { config: config.clone(), root: PathBuf::from(root) };
    let executor = PythonExecutor::launched_by(Arc::new(launcher), Limits::default());
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let begun = Instant::now();
        let mut session = executor.start(&SessionSpec::default()).await.unwrap();
        for round in 0..3 {
            let again = Instant::now();
            let mut cell = session.cell("1 + 1").await.unwrap();
            while !matches!(cell.next().await.unwrap(), CellEvent::Ended(_)) {}
            if round == 0 { cold.push(begun.elapsed()) } else { warm.push(again.elapsed()) }
        }
    }
    println!("a cell in a container: cold {:.2?}, warm {:.2?}", median(cold), median(warm));
    std::fs::write(root.join("a.txt"), "one\n").unwrap();
    let state = |text: &str| Some(FileState { text: text.into(), mode: None });
    let changes = [FileChange {
        path: "a.txt".into(),
        renamed_from: None,
        before: state("one\n"),
        after: state("two\n"),
    }];
    let diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n";
    let scratch = ScratchValidator { environment: Environment::allowed(std::env::vars_os()) };
    let container = DockerValidator::new(config);
    for (name, validator) in
        [("a scratch folder", &scratch as &dyn PatchValidator), ("a container", &container)]
    {
        let mut times = Vec::new();
        for _ in 0..10 {
            let begun = Instant::now();
            validator
                .validate(Draft { root, changes: &changes, diff }, &CancellationToken::new())
                .await
                .unwrap();
            times.push(begun.elapsed());
        }
        let (first, later) = (times[0], median(times.split_off(1)));
        println!("a patch checked in {name}: first {first:.2?}, then {later:.2?}");
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
