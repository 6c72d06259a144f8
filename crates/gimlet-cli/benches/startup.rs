//! How long the commands take that people wait for without a model, against `git --version` on the same machine.
//!
//! Rounds are interleaved, so that whatever else the machine does hits all alike, and medians are compared. Ends with an
//! error when a command takes more than five times as long. `GIMLET` measures another binary.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark speaks and fails at once")]

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 40;
const RUNS: usize = 200;
const MOST: f64 = 5.0;

const COMMANDS: &[&[&str]] =
    &[&["--version"], &["--help"], &["policy", "check", "git status"], &["tools", "list"], &["runs", "list"]];

fn main() -> ExitCode {
    let binary = std::env::var("GIMLET").unwrap_or_else(|_| env!("CARGO_BIN_EXE_gimlet").to_owned());
    let home = tempfile::tempdir().unwrap();
    make_runs(&binary, home.path());
    let run = |program: &str, args: &[&str]| {
        let begun = Instant::now();
        let status = Command::new(program)
            .args(args)
            .env("GIMLET_HOME", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "{program} {args:?}");
        begun.elapsed()
    };
    let mut git = Vec::new();
    let mut own = vec![Vec::new(); COMMANDS.len()];
    for _ in 0..ROUNDS {
        git.push(run("git", &["--version"]));
        for (times, args) in own.iter_mut().zip(COMMANDS) {
            times.push(run(&binary, args));
        }
    }
    let base = median(&mut git);
    println!("git --version: {:.2} ms", base.as_secs_f64() * 1e3);
    let mut worst: f64 = 0.0;
    for (times, args) in own.iter_mut().zip(COMMANDS) {
        let time = median(times);
        let ratio = time.as_secs_f64() / base.as_secs_f64();
        worst = worst.max(ratio);
        println!("gimlet {}: {:.2} ms, {ratio:.1} times as long", args.join(" "), time.as_secs_f64() * 1e3);
    }
    if worst > MOST {
        println!("more than {MOST} times as long as git");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// A home with many runs: one real one, and copies of it.
fn make_runs(binary: &str, home: &Path) {
    let script = home.join("script.toml");
    let reply = "[[reply]]\ncalls = [{ name = \"repo_info\", args = {} }]\n";
    std::fs::write(&script, reply.repeat(10) + "[[reply]]\ntext = \"done\"\n").unwrap();
    let status = Command::new(binary)
        .args(["-q", "-m", &format!("scripted/{}", script.display()), "look around"])
        .env("GIMLET_HOME", home)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let first = std::fs::read_dir(home.join("runs")).unwrap().next().unwrap().unwrap();
    let (path, id) = (first.path(), first.file_name().into_string().unwrap());
    let log = std::fs::read_to_string(path.join("log.jsonl")).unwrap();
    for number in 1..RUNS {
        let copy = format!("20260101-120000-{number:06x}");
        let folder = home.join("runs").join(&copy);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("log.jsonl"), log.replace(&id, &copy)).unwrap();
    }
}
