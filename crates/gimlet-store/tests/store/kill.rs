//! `kill -9` at any moment loses no acknowledged event.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use gimlet::effect::Effect;
use gimlet::event::{Event, EventKind};
use gimlet::ids::RunId;
use gimlet::store::{Repair, RunLog, StoreError};
use gimlet_store::FileStore;

use crate::support::{HOME, child, event, run, started, warning};

const RUN: &str = "STORE_TEST_RUN";
const RUNS: u32 = 9;
const KILLS_OF_A_RUN: u32 = 5;

/// What the child writes as its nth event: small ones, barriers, and some so long that a kill can tear them.
fn nth(run: &RunId, seq: u64) -> Event {
    let kind = match seq {
        1 => started("write until killed"),
        seq if seq % 9 == 0 => warning(&"é\n".repeat(60_000)),
        seq if seq % 5 == 0 => EventKind::ToolStarted {
            id: format!("call_{seq}"),
            tool: "write_file".into(),
            effects: vec![Effect::Write { path: "a.txt".into(), digest: None }],
        },
        seq => warning(&format!("event {seq}")),
    };
    event(run, seq, kind)
}

#[tokio::test]
#[ignore = "run as another process by the tests of this module"]
async fn child_appends() {
    let store = FileStore::open(&PathBuf::from(std::env::var_os(HOME).unwrap())).unwrap();
    let run = run(&std::env::var(RUN).unwrap());
    let written = match store.open(&run).await {
        Ok(opened) => opened.events,
        Err(StoreError::NoSuchRun(_)) => 0,
        Err(error) => panic!("{error}"),
    };
    for seq in written + 1.. {
        if let Err(error) = store.append(&nth(&run, seq)).await {
            let again = store.append(&nth(&run, seq)).await.unwrap_err();
            let next = store.append(&nth(&run, seq + 1)).await.unwrap_err();
            say(&format!("failed {error}"));
            say(&format!("again {again}"));
            say(&format!("next {next}"));
            return;
        }
        say(&format!("ack {seq}"));
    }
}

/// Past the test harness, which would keep printed lines to itself; a kill leaves whole lines or a torn last one.
#[expect(clippy::disallowed_methods, reason = "another test reads it")]
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

fn acknowledged(line: &str) -> Option<u64> {
    line.strip_prefix("ack ")?.parse().ok()
}

#[tokio::test]
async fn no_acknowledged_event_is_lost() {
    let home = tempfile::tempdir().unwrap();
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut torn = 0;
    for nr in 0..RUNS {
        let run = run(&format!("kill-{nr}"));
        let mut last = 0;
        for _ in 0..KILLS_OF_A_RUN {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            last = last.max(kill_after(home.path(), &run, (random >> 33) as usize % 30).await);

            let store = FileStore::open(home.path()).unwrap();
            let opened = match store.open(&run).await {
                Ok(opened) => opened,
                Err(StoreError::NoSuchRun(_)) if last == 0 => continue,
                Err(error) => panic!("{error}"),
            };
            assert!(opened.events >= last, "{last} events were acknowledged and {} are there", opened.events);
            torn += u32::from(opened.repair != Repair::Clean);
            let expected: Vec<_> = (1..=opened.events).map(|seq| nth(&run, seq)).collect();
            assert!(store.load(&run).await.unwrap() == expected, "the log holds something else");
            last = opened.events + 1;
            store.append(&nth(&run, last)).await.unwrap();
        }
    }
    println!("{} kills, {torn} torn lines", RUNS * KILLS_OF_A_RUN);
}

/// Starts a writer, kills it once it has acknowledged so many events, and returns the last one it acknowledged.
async fn kill_after(home: &std::path::Path, run: &RunId, count: usize) -> u64 {
    let mut writer = child("kill::child_appends", home).env(RUN, run.as_str()).spawn().unwrap();
    let mut out = BufReader::new(writer.stdout.take().unwrap()).lines();
    let mut acks: Vec<u64> =
        out.by_ref().map_while(Result::ok).filter_map(|line| acknowledged(&line)).take(count).collect();
    if count > 0 {
        assert_eq!(acks.len(), count, "the writer stopped by itself");
        let locked = FileStore::open(home).unwrap().open(run).await;
        assert!(matches!(locked, Err(StoreError::Locked(_))), "a live writer's run is open to others");
    }
    writer.kill().unwrap();
    writer.wait().unwrap();
    // A number cut short by the kill is smaller than the one before it and does no harm.
    acks.extend(out.map_while(Result::ok).filter_map(|line| acknowledged(&line)));
    acks.into_iter().max().unwrap_or(0)
}

/// The kernel refuses to let the file grow, in the middle of a line.
#[cfg(unix)]
#[tokio::test]
async fn after_a_failed_write_nothing_more_is_written() {
    let home = tempfile::tempdir().unwrap();
    let run = run("full-disk");
    let direct = child("kill::child_appends", home.path());
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 100; exec \"$0\" \"$@\""]).arg(direct.get_program());
    limited.args(direct.get_args()).env(HOME, home.path()).env(RUN, run.as_str());
    let output = limited.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    let line = |start: &str| said.lines().find_map(|line| line.strip_prefix(start)).unwrap().to_owned();
    assert!(line("failed ").contains("File too large"), "{said}");
    assert!(line("again ").contains("nothing more is written after a failure"), "{said}");
    assert!(line("next ").contains("nothing more is written after a failure"), "{said}");

    let last = said.lines().filter_map(acknowledged).max().unwrap();
    let store = FileStore::open(home.path()).unwrap();
    assert_eq!(store.load(&run).await.unwrap().len() as u64, last);
    let opened = store.open(&run).await.unwrap();
    assert_eq!(opened.events, last);
    assert!(matches!(opened.repair, Repair::TornLine { bytes: 1.. }));
    store.append(&nth(&run, last + 1)).await.unwrap();
    assert_eq!(store.load(&run).await.unwrap().last(), Some(&nth(&run, last + 1)));
}
