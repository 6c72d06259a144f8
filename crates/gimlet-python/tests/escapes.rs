//! Attempts to get out of the sandbox. What they raise is theirs; what counts is that nothing outside changes and
//! nothing outside is seen.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "what fails here fails the test")]

mod common;

use std::net::TcpListener;

use common::{config, run, session};
use gimlet::cell::CellEnd;

const CORPUS: &str = include_str!("corpus/escapes.py.txt");
/// What must never show up in anything the code gets or sends.
const TREASURE: &str = "treasure-8f1d3c";

/// The cases of a corpus file: a name after `### `, then the code.
fn cases(corpus: &str) -> Vec<(&str, &str)> {
    corpus.split("\n### ").skip(1).map(|case| case.split_once('\n').unwrap()).collect()
}

#[tokio::test]
async fn nothing_gets_out() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret.txt");
    let target = folder.path().join("target");
    std::fs::write(&secret, TREASURE).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port().to_string();

    let cases = cases(CORPUS);
    assert!(cases.len() >= 100, "{}", cases.len());
    let mut session = session(config()).await;
    let mut crashed = Vec::new();
    for (place, (name, code)) in cases.into_iter().enumerate() {
        // A fresh session now and then, so that one attempt's leftovers do not shield from the next.
        if place % 10 == 0 {
            session = common::session(config()).await;
        }
        let code = code
            .replace("SECRETMODULE", "secret")
            .replace("SECRET", secret.to_str().unwrap())
            .replace("TARGET", target.to_str().unwrap())
            .replace("PORT", &port);
        let outcome = run(&mut *session, &code).await;
        let seen = format!("{outcome:?}");
        assert!(!seen.contains(TREASURE), "{name} read the secret: {seen}");
        assert!(!target.exists(), "{name} wrote a file: {seen}");
        let names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["secret.txt"], "{name}");
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), TREASURE, "{name}");
        assert!(listener.accept().is_err(), "{name} connected");
        assert!(
            !outcome.calls.iter().any(|(tool, _)| !["read_file", "echo", "fail"].contains(&tool.as_str())),
            "{name}"
        );
        if let CellEnd::Crashed { message } = &outcome.end {
            crashed.push(format!("{name}: {message}"));
        }
    }
    // A crash is contained, yet each one is a bug to know of.
    assert_eq!(crashed, Vec::<String>::new());
}
