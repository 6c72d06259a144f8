//! What isolation costs: a jailed `true` beside a bare one and beside bubblewrap by itself; and, with a Docker engine in
//! `GIMLET_TEST_DOCKER`, a cell of Python cold and warm, and the check of a patch in a container beside one in a scratch
//! folder.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement fails by panicking and prints")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gimlet::cell::{CellEvent, Executor, SessionSpec};
use gimlet::command::{Command, CommandRunner, Environment, Invocation, Permissions};
use gimlet::patch::{Draft, FileChange, FileState, PatchValidator};
use gimlet_python::{Limits, PythonExecutor};
use gimlet_sandbox::docker::{DockerConfig, DockerLauncher, DockerValidator};
use gimlet_sandbox::jail::{self, JailConfig, JailedRunner, Mechanism, Program, Wanted};
use gimlet_tools::command::HostRunner;
use gimlet_tools::patch::ScratchValidator;
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 60;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    // Not among the temporary files, which a jail hides: few projects are there.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let root = folder.path().canonicalize().unwrap();
    jails(&root).await;
    match std::env::var("GIMLET_TEST_DOCKER") {
        Ok(host) => docker(host, &root).await,
        Err(_) => println!("no GIMLET_TEST_DOCKER, so no containers"),
    }
}

/// One way to run `true`.
struct Way {
    name: String,
    runner: Box<dyn CommandRunner>,
    words: Vec<&'static str>,
    times: Vec<Duration>,
}

/// Runs `true` in every way, in turn, so that a slow minute of the machine is everyone's.
async fn jails(root: &Path) {
    let way = |name: &str, runner: Box<dyn CommandRunner>, words: &[&'static str]| Way {
        name: name.to_owned(),
        runner,
        words: words.to_vec(),
        times: Vec::new(),
    };
    let mut ways = vec![way("a bare `true`", Box::new(HostRunner), &["true"])];
    for wanted in [Wanted::Bubblewrap, Wanted::Landlock] {
        let found = match jail::detect(wanted, root, &[]) {
            Ok(found) => found,
            Err(why) => {
                println!("{wanted:?}: {why}");
                continue;
            }
        };
        let name = found.mechanism.name();
        if matches!(found.mechanism, Mechanism::Bubblewrap(_)) {
            // What no jail made by it can be faster than.
            ways.push(way("bubblewrap by itself", Box::new(HostRunner), BUBBLEWRAP));
        }
        let small = Program { path: env!("CARGO_BIN_EXE_gimlet-jail").into(), args: Vec::new() };
        let large = Program { path: env!("CARGO_BIN_EXE_gimlet").into(), args: vec!["__jail".into()] };
        let bare = JailConfig {
            helper: small,
            found: found.clone(),
            home: None,
            hidden: Vec::new(),
            secrets: Vec::new(),
            public: Vec::new(),
            cache: None,
            limits: jail::Limits::default(),
        };
        let by_gimlet = JailConfig { helper: large, ..bare.clone() };
        // As in a run: how much there is to show and to hide depends on the machine.
        let as_used = JailConfig {
            home: std::env::home_dir(),
            hidden: jail::system_secrets().to_vec(),
            cache: Some(root.with_extension("cache")),
            ..bare.clone()
        };
        for (config, how) in [
            (bare, "gimlet-jail as the helper"),
            (by_gimlet, "gimlet itself as the helper"),
            (as_used, "gimlet-jail as the helper, with this user's home and secrets"),
        ] {
            let runner = Box::new(JailedRunner::new(config, Arc::new(HostRunner)));
            ways.push(way(&format!("jailed by {name}, {how}"), runner, &["true"]));
        }
    }
    for _ in 0..ROUNDS {
        for way in &mut ways {
            let took = run(way, root).await;
            way.times.push(took);
        }
    }
    let bare = median(ways[0].times.clone());
    for way in ways {
        let (best, median) = (way.times.iter().min().unwrap(), median(way.times.clone()));
        println!(
            "{}: best {best:.2?}, median {median:.2?}, {:.2?} more than a bare one",
            way.name,
            median.saturating_sub(bare)
        );
    }
}

/// Bubblewrap with the namespaces of the jail and its simplest file system.
const BUBBLEWRAP: &[&str] = &[
    "bwrap",
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--unshare-net",
    "--die-with-parent",
    "--cap-drop",
    "ALL",
    "--ro-bind",
    "/",
    "/",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "true",
];

async fn run(way: &Way, root: &Path) -> Duration {
    let command = Command {
        text: "true".into(),
        invocation: Invocation::Direct(way.words.iter().map(Into::into).collect()),
        root: root.to_owned(),
        cwd: root.to_owned(),
        environment: Environment::allowed([("PATH", "/usr/bin:/bin")]),
        timeout: Duration::from_secs(60),
        keep: 1024,
        permissions: Permissions::default(),
    };
    let begun = Instant::now();
    let finished = way.runner.run(&command, &CancellationToken::new()).await.unwrap();
    let took = begun.elapsed();
    assert_eq!(finished.end, gimlet::command::End::Exited(0), "{}", finished.stderr.text());
    took
}

async fn docker(host: String, root: &Path) {
    let config = DockerConfig {
        host,
        image: "gimlet-sandbox:latest".into(),
        timeout: Duration::from_secs(30),
        containers: Default::default(),
    };
    let may_copy = Arc::new(|_: &Path| true);
    let launcher = DockerLauncher { config: config.clone(), root: PathBuf::from(root), may_copy };
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
