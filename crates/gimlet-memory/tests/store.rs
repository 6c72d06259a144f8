//! The store from outside: several processes, crashes, odd questions, files of other versions.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "a writing process says what it has kept")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use gimlet_memory::{Archive, Id, Memory, MemoryError, Note, NoteKind, Source};
use jiff::Timestamp;
use proptest::prelude::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn archive(texts: &[&str]) -> Archive {
    let note = |(at_second, text): (usize, &&str)| Note {
        id: Id::Note(at_second as i64 + 1),
        kind: NoteKind::Note,
        text: (*text).to_owned(),
        tags: vec!["shelf".into()],
        time: at(at_second as i64),
        source: Source { run: "r".into(), agent: String::new() },
        sources: Vec::new(),
    };
    Archive {
        gimlet_memory: 1,
        root: String::new(),
        notes: texts.iter().enumerate().map(note).collect(),
        models: Vec::new(),
        predictions: Vec::new(),
    }
}

fn with(home: &Path, texts: &[&str]) -> Memory {
    let memory = Memory::of_project(home, Path::new("/home/me/project"));
    memory.import(archive(texts), &str::to_owned).unwrap();
    memory
}

fn found(memory: &Memory, question: &str) -> Vec<String> {
    memory.search(question, None, 5).unwrap().into_iter().map(|note| note.text).collect()
}

#[test]
fn words_are_found_by_their_stems_and_the_newer_of_two_equals_comes_first() {
    let home = tempfile::tempdir().unwrap();
    let memory = with(
        home.path(),
        &[
            "The tests run with cargo nextest.",
            "Releases are signed.",
            "apple pie",
            "apple tart",
            "Crème brûlée",
        ],
    );
    assert_eq!(found(&memory, "testing"), ["The tests run with cargo nextest."]);
    assert_eq!(found(&memory, "apple"), ["apple tart", "apple pie"]);
    assert_eq!(found(&memory, "creme"), ["Crème brûlée"]);
    assert_eq!(found(&memory, "nothing like it"), Vec::<String>::new());
    assert_eq!(found(&memory, " \"*() "), found(&memory, ""), "no words find the newest");
    assert_eq!(found(&memory, "")[0], "Crème brûlée");
    assert_eq!(memory.search("apple", Some("SHELF"), 5).unwrap().len(), 2);
    assert_eq!(memory.search("apple", Some("other"), 5).unwrap().len(), 0);
}

#[test]
fn a_query_language_is_only_words() {
    let home = tempfile::tempdir().unwrap();
    let memory = with(home.path(), &["alpha beta", "gamma"]);
    for question in
        ["alpha NOT beta", "text:alpha", "alpha*", "\"alpha", "NEAR(alpha gamma)", "alpha AND zeta", "^alpha"]
    {
        assert!(found(&memory, question).contains(&"alpha beta".to_owned()), "{question}");
    }
}

static SHARED: OnceLock<(tempfile::TempDir, Memory)> = OnceLock::new();

proptest! {
    #[test]
    fn no_question_is_an_error(question in any::<String>(), tag in any::<Option<String>>()) {
        let (_, memory) = SHARED.get_or_init(|| {
            let home = tempfile::tempdir().unwrap();
            let memory = with(home.path(), &["alpha beta", "日本語 のテスト", "naïve café ½ ²"]);
            (home, memory)
        });
        let once = memory.search(&question, tag.as_deref(), 5);
        prop_assert!(once.is_ok(), "{once:?}");
        prop_assert_eq!(once.unwrap(), memory.search(&question, tag.as_deref(), 5).unwrap());
    }

    #[test]
    fn what_is_kept_is_found_by_any_of_its_words(words in proptest::collection::vec("[a-z]{3,12}", 1..8)) {
        let home = tempfile::tempdir().unwrap();
        let memory = with(home.path(), &[&words.join(" "), "something else entirely 123"]);
        for word in &words {
            prop_assert_eq!(found(&memory, word)[0].clone(), words.join(" "));
        }
    }

    #[test]
    fn no_text_breaks_the_store(text in any::<String>()) {
        let home = tempfile::tempdir().unwrap();
        let memory = Memory::of_project(home.path(), Path::new("/p"));
        match memory.import(archive(&[&text]), &str::to_owned) {
            Ok(_) => {
                let kept = &memory.newest(None, 1).unwrap()[0];
                let bare = !kept.text.contains(['\u{0}', '\u{1b}', '\u{7}']);
                prop_assert!(bare);
                let again = memory.export().unwrap();
                prop_assert_eq!(memory.import(again, &str::to_owned).unwrap().known, 1);
            }
            Err(error) => prop_assert!(matches!(error, MemoryError::Invalid(_)), "{error}"),
        }
    }
}

/// Not a test of its own: another process that keeps notes and says which, until it is done or ended.
#[test]
#[ignore = "started by other tests"]
fn writer() {
    let (Ok(home), Ok(name)) = (std::env::var("MEMORY_HOME"), std::env::var("MEMORY_NAME")) else { return };
    let count: i64 = std::env::var("MEMORY_COUNT").unwrap().parse().unwrap();
    let memory = Memory::of_project(Path::new(&home), Path::new("/p"));
    for number in 0..count {
        memory.import(archive(&[&format!("{name} kept number{number}")]), &str::to_owned).unwrap();
        println!("\nkept {name} {number}");
    }
}

fn start_writer(home: &Path, name: &str, count: i64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "writer", "--ignored", "--nocapture"])
        .env("MEMORY_HOME", home)
        .env("MEMORY_NAME", name)
        .env("MEMORY_COUNT", count.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn said(child: &mut Child) -> impl Iterator<Item = String> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.map_while(Result::ok).filter(|line| line.starts_with("kept "))
}

#[test]
fn processes_that_write_at_once_lose_nothing() {
    let home = tempfile::tempdir().unwrap();
    let mut writers: Vec<Child> = ["a", "b", "c"].map(|name| start_writer(home.path(), name, 40)).into();
    for writer in &mut writers {
        assert_eq!(said(writer).count(), 40);
        assert!(writer.wait().unwrap().success());
    }
    let memory = Memory::of_project(home.path(), Path::new("/p"));
    assert_eq!(memory.status().unwrap().notes, 120);
    assert_eq!(memory.search("number7", None, 20).unwrap().len(), 3, "each is found by its words, too");
}

#[test]
fn what_was_said_to_be_kept_survives_a_kill() {
    let home = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let name = format!("round{round}");
        let mut writer = start_writer(home.path(), &name, i64::MAX);
        let mut lines = said(&mut writer);
        let mut kept: Vec<String> = lines.by_ref().take(5 + round * 7).collect();
        writer.kill().unwrap();
        writer.wait().unwrap();
        kept.extend(lines);
        let memory = Memory::of_project(home.path(), Path::new("/p"));
        for line in &kept {
            let number = line.rsplit(' ').next().unwrap();
            let texts: Vec<String> = memory
                .search(&format!("{name} number{number}"), None, 3)
                .unwrap()
                .into_iter()
                .map(|note| note.text)
                .collect();
            assert!(texts.contains(&format!("{name} kept number{number}")), "{line}: {texts:?}");
        }
        let check = rusqlite::Connection::open(memory.path()).unwrap();
        let health: String = check.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(health, "ok");
    }
}

#[test]
fn a_file_of_a_later_version_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let path = with(home.path(), &["x"]).path().to_owned();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.pragma_update(None, "user_version", 99).unwrap();
    drop(other);
    let memory = Memory::of_project(home.path(), Path::new("/home/me/project"));
    let error = memory.status().unwrap_err();
    assert!(matches!(error, MemoryError::Newer { found: 99, known: 1, .. }), "{error}");
    assert!(error.to_string().contains("has version 99, and this program knows versions up to 1"), "{error}");
    assert!(error.hint().unwrap().contains("newer gimlet"));
}

#[test]
fn a_file_that_is_no_database_is_an_error_that_names_it() {
    let home = tempfile::tempdir().unwrap();
    let memory = Memory::of_project(home.path(), Path::new("/p"));
    std::fs::create_dir_all(memory.path().parent().unwrap()).unwrap();
    std::fs::write(
        memory.path(),
        "this is no database, and long enough to be read as a header of one".repeat(9),
    )
    .unwrap();
    let error = memory.status().unwrap_err();
    assert!(matches!(error, MemoryError::Database { .. }), "{error}");
    assert!(error.to_string().contains(&memory.path().display().to_string()), "{error}");
}

#[test]
#[cfg(unix)]
fn only_its_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    let memory = with(home.path(), &["x"]);
    let folder = memory.path().parent().unwrap();
    assert_eq!(std::fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", entry.path());
    }
}

#[test]
fn forgotten_words_are_in_no_file() {
    let home = tempfile::tempdir().unwrap();
    let memory = with(home.path(), &["the password was xylophone", "something else"]);
    assert!(bytes_hold(&memory, "xylophone"));
    let id = memory.search("xylophone", None, 1).unwrap()[0].id;
    assert!(memory.forget(id).unwrap());
    assert!(!memory.forget(id).unwrap());
    assert!(memory.search("xylophone", None, 1).unwrap().is_empty());
    assert!(!bytes_hold(&memory, "xylophone"));
    memory.forget_all().unwrap();
    assert!(!bytes_hold(&memory, "something"));
    assert_eq!(memory.status().unwrap().notes, 0);
    memory.import(archive(&["new"]), &str::to_owned).unwrap();
    assert_eq!(memory.newest(None, 1).unwrap()[0].id, Id::Note(3), "a number is never given twice");
}

fn bytes_hold(memory: &Memory, word: &str) -> bool {
    let folder = memory.path().parent().unwrap();
    std::fs::read_dir(folder).unwrap().flatten().any(|entry| {
        let bytes = std::fs::read(entry.path()).unwrap();
        bytes.windows(word.len()).any(|window| window == word.as_bytes())
    })
}

#[test]
fn projects_have_files_of_their_own() {
    let home = Path::new("/home");
    let one = Memory::of_project(home, Path::new("/a/web"));
    let other = Memory::of_project(home, Path::new("/b/web"));
    assert_ne!(one.path(), other.path());
    assert!(one.path().starts_with("/home/memory") && one.path().to_string_lossy().contains("/web-"));
    assert!(!one.exists());
}
