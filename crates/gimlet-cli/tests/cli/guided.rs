//! The guided action format through the real binary: the program leads, and the model answers small questions.

use gimlet_models::Script;
use gimlet_testkit::ModelServer;
use serde_json::Value;

use crate::support::{Project, Said, has_python, of_type};

const STUB: &str = "def double(n):\n    pass\n";
const TEST: &str = "import unittest\n\nfrom double import double\n\n\nclass DoubleTest(unittest.TestCase):\n    def test_two(self):\n        self.assertEqual(double(2), 4)\n\n    def test_zero(self):\n        self.assertEqual(double(0), 0)\n";
const ENGLISH: &str = "Write the solution into double.py, which has only a stub now. Check it with python3 -m unittest double_test";
const GERMAN: &str = "Schreibe die Lösung in double.py; dort steht bisher nur ein Gerüst. Prüfe sie mit python3 -m unittest double_test";

fn project() -> Project {
    let project = Project::new();
    project.file("double.py", STUB);
    project.file("double_test.py", TEST);
    project
}

/// A reply that gives the whole file.
fn edit(body: &str) -> String {
    format!("[[reply]]\ntext = '''\ndouble.py\n```python\ndef double(n):\n    return {body}\n```\n'''\n")
}

fn guided(project: &Project, script: &str, task: &str, more: &[&str]) -> Said {
    let aim = if script.starts_with("aim") { "" } else { "aim = \"change\"\n" };
    let model = project.script(&format!("{aim}{script}"));
    let mut args = vec!["--model", &model, "--action", "guided", task];
    args.extend(more);
    project.say(&args)
}

fn double(project: &Project) -> String {
    std::fs::read_to_string(project.repo.path().join("double.py")).unwrap()
}

fn types(events: &[Value]) -> Vec<&str> {
    let of_interest = |kind: &&str| kind.starts_with("guided.") || *kind == "tool.finished";
    events.iter().filter_map(|event| event["type"].as_str()).filter(of_interest).collect()
}

#[test]
fn a_change_passes_at_the_first_try_in_any_language() {
    if !has_python() {
        return;
    }
    for task in [ENGLISH, GERMAN] {
        let project = project();
        let script = edit("n * 2");
        let said = guided(&project, &script, task, &["--approve", "all", "--json"]);
        assert_eq!(said.code, 0, "{task}: {}\n{}", said.stdout, said.stderr);
        let events = said.events();
        assert_eq!(
            types(&events),
            [
                "guided.aimed",
                "guided.located",
                "guided.edited",
                "tool.finished",
                "tool.finished",
                "guided.checked"
            ]
        );
        let located = of_type(&events, "guided.located")[0];
        assert_eq!(located["files"][0], "double.py");
        assert_eq!(located["tests"][0], "double_test.py");
        assert!(double(&project).contains("n * 2"));
        let answer = of_type(&events, "run.finished")[0]["answer"].as_str().unwrap();
        assert!(
            answer.starts_with("Changed double.py.") && answer.contains("passes (2 tests passed)"),
            "{answer}"
        );
        assert_eq!(project.say(&["runs", "undo", "last"]).code, 0);
        assert_eq!(double(&project), STUB, "an edit can be undone");
    }
}

#[test]
fn a_failed_check_is_shown_and_repaired() {
    if !has_python() {
        return;
    }
    let project = project();
    let repaired =
        edit("n * 2").replace("[[reply]]", "[[reply]]\nexpect = ['AssertionError: 3 != 4', 'return n + 1']");
    let said = guided(&project, &format!("{}{repaired}", edit("n + 1")), ENGLISH, &["--approve", "all"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(double(&project).contains("n * 2"));
    assert!(said.stderr.contains("+    return n + 1"), "the diff is shown: {}", said.stderr);
    assert!(said.stderr.contains("AssertionError: 3 != 4"), "{}", said.stderr);
}

#[test]
fn a_repeated_edit_is_followed_by_a_fresh_question_and_the_best_is_kept() {
    if !has_python() {
        return;
    }
    let project = project();
    // `n` passes one of two tests, `n + 9` passes none.
    let fresh = edit("n + 9").replace("[[reply]]", "[[reply]]\nexpect = ['    pass']");
    let script = format!("{}{}{fresh}{}{}{}", edit("n"), edit("n"), edit("n + 9"), edit("n + 9"), edit("n"));
    let said = guided(&project, &script, ENGLISH, &["--approve", "all", "--json"]);
    let events = said.events();
    let outcomes: Vec<&str> =
        of_type(&events, "guided.edited").iter().filter_map(|event| event["outcome"].as_str()).collect();
    assert_eq!(outcomes[..3], ["usable", "repeated", "usable"], "{}", said.stdout);
    assert_eq!(said.code, 1, "the check still fails");
    assert!(
        double(&project).ends_with("    return n\n"),
        "the best edit is written back: {}",
        double(&project)
    );
}

#[test]
fn unusable_replies_end_honestly_and_leave_the_files() {
    let project = project();
    let words = "[[reply]]\ntext = \"You could multiply by two.\"\n";
    let said = guided(&project, &words.repeat(6), ENGLISH, &["--approve", "all"]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(said.stdout.starts_with("No change was made"), "{}", said.stdout);
    assert_eq!(double(&project), STUB);

    let broken = edit("(n * 2");
    let said = guided(&project, &broken.repeat(6), ENGLISH, &["--approve", "all"]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(said.stdout.contains("syntax error"), "{}", said.stdout);
    assert_eq!(double(&project), STUB, "a syntax error is never written");
}

#[test]
fn a_cut_reply_is_continued() {
    if !has_python() {
        return;
    }
    let project = project();
    let cut = "[[reply]]\nfinish = \"length\"\ntext = '''double.py\n```python\ndef double(n):\n    ret'''\n\
               [[reply]]\nexpect = ['Go on exactly where it stopped']\ntext = '''urn n * 2\n```'''\n";
    let said = guided(&project, cut, ENGLISH, &["--approve", "all"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(double(&project), "def double(n):\n    return n * 2\n");
}

#[test]
fn a_refused_edit_changes_nothing() {
    let project = project();
    let script = edit("n * 2");
    let said = guided(&project, &script, ENGLISH, &["--approve", "never"]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(said.stdout.contains("No change was made: the change was not approved"), "{}", said.stdout);
    assert_eq!(double(&project), STUB);
}

#[test]
fn a_run_that_waits_for_a_yes_goes_on_in_another_process() {
    if !has_python() {
        return;
    }
    let project = project();
    let script = edit("n * 2");
    let said = guided(&project, &script, ENGLISH, &[]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    assert!(said.stderr.contains("+    return n * 2"), "{}", said.stderr);
    assert_eq!(double(&project), STUB);
    let waiting: Vec<Value> = serde_json::from_str(&project.say(&["approvals", "--json"]).stdout).unwrap();
    let id = waiting[0]["request"]["id"].as_str().unwrap();
    assert_eq!(project.say(&["approve", id]).code, 0);
    let said = project.say(&["resume", "last"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(double(&project).contains("n * 2"));
}

#[test]
fn a_run_killed_at_any_event_is_carried_on() {
    if !has_python() {
        return;
    }
    let project = project();
    let script = edit("n * 2");
    let said = guided(&project, &script, ENGLISH, &["--approve", "all", "--json"]);
    let events = said.events();
    let run = events[0]["run"].as_str().unwrap().to_owned();
    let log = project.home.path().join("runs").join(&run).join("log.jsonl");
    let whole = std::fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    // What a process that died after these events leaves behind. The replies that are left are those it had not got.
    for (kind, replies) in [
        ("guided.aimed", edit("n * 2")),
        ("guided.located", edit("n * 2")),
        ("model.message", edit("n * 2")),
        ("guided.edited", String::new()),
        ("tool.requested", String::new()),
        ("guided.checked", String::new()),
    ] {
        project.file("double.py", STUB);
        let last = lines.iter().rposition(|line| line.contains(&format!("\"type\":\"{kind}\""))).unwrap();
        if kind == "guided.checked" || kind == "tool.requested" {
            project.file("double.py", "def double(n):\n    return n * 2\n");
        }
        let replies = if kind == "model.message" { String::new() } else { replies };
        std::fs::write(&log, lines[..=last].join("\n") + "\n").unwrap();
        project.script(&replies);
        let said = project.say(&["resume", &run, "--approve", "all"]);
        assert_eq!(said.code, 0, "after {kind}: {}\n{}", said.stdout, said.stderr);
        assert!(double(&project).contains("n * 2"), "after {kind}");
    }
}

#[test]
fn a_question_is_answered_with_tools() {
    let project = project();
    let script = "aim = \"answer\"\n\
                  [[reply]]\ncalls = [{ name = \"read_file\", args = { path = \"calc.py\" } }]\n\
                  [[reply]]\nexpect = ['return a - b']\ntext = \"It subtracts.\"\n";
    let said = guided(&project, script, "What does calc.py do?", &[]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "It subtracts.\n"), "{}", said.stderr);
    assert!(!said.stderr.contains("warning"), "{}", said.stderr);
}

#[test]
fn a_command_is_run_and_its_result_told() {
    if !has_python() {
        return;
    }
    let project = project();
    let script = "aim = \"run\"\n";
    let said = guided(&project, script, "Run `python3 -m unittest double_test`", &["--approve", "all"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stdout.contains("failed with exit code 1 (0 tests passed, 2 failed)"), "{}", said.stdout);
    assert_eq!(double(&project), STUB);
}

#[test]
fn files_are_picked_from_the_list_and_long_ones_edited_by_blocks() {
    let project = Project::new();
    let long: String = (0..200).map(|n| format!("value_{n} = {n}\n")).collect();
    project.file("ports.py", &format!("{long}default_port = 80\n"));
    let script = "[[reply]]\nexpect = ['1. ports.py']\ntext = '{\"files\": [\"ports.py\"]}'\n\
                  [[reply]]\nexpect = ['<<<<<<< SEARCH']\ntext = '''ports.py\n<<<<<<< SEARCH\ndefault_port = 80\n=======\ndefault_port = 8080\n>>>>>>> REPLACE\n'''\n";
    let said = guided(&project, script, "The default_port shall be 8080", &["--approve", "all"]);
    assert_eq!(said.code, 0, "{}\n{}", said.stdout, said.stderr);
    let text = std::fs::read_to_string(project.repo.path().join("ports.py")).unwrap();
    assert_eq!(text, format!("{long}default_port = 8080\n"));
}

/// A run against a server that has one model, without a word about the action format.
async fn plain(project: Project, model: &str, script: &str, task: &'static str) -> (Said, Project) {
    let script: Script = toml::from_str(script).unwrap();
    let server = ModelServer::builder(script).models([model]).start().await.unwrap();
    let url = server.url();
    tokio::task::spawn_blocking(move || {
        let said = project.say(&["--api-base", &url, "--approve", "all", "--json", task]);
        (said, project)
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_without_dependable_calls_is_guided_by_default() {
    if !has_python() {
        return;
    }
    let script = format!("aim = \"change\"\n{}", edit("n * 2"));
    let (said, project) = plain(project(), "qwen2.5-coder:1.5b", &script, GERMAN).await;
    assert_eq!(said.code, 0, "{}\n{}", said.stdout, said.stderr);
    assert_eq!(said.events()[0]["action"], "guided");
    assert!(double(&project).contains("n * 2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_describes_the_change_is_led_to_make_it() {
    if !has_python() {
        return;
    }
    let words = "[[reply]]\ntext = \"It should return n * 2.\"\n";
    let script = format!("aim = \"change\"\n{words}{words}{}", edit("n * 2"));
    let (said, project) = plain(project(), "qwen3:8b", &script, ENGLISH).await;
    assert_eq!(said.code, 0, "{}\n{}", said.stdout, said.stderr);
    let events = said.events();
    assert_eq!(events[0]["action"], "tools");
    let changed = of_type(&events, "action.changed");
    assert_eq!(
        (&changed[0]["action"], &changed[0]["cause"]),
        (&Value::from("guided"), &Value::from("no_change"))
    );
    assert_eq!(of_type(&events, "guided.aimed").len(), 1, "the model is asked once what the task wants");
    assert!(double(&project).contains("n * 2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_gives_nothing_usable_ends_honestly_in_every_format() {
    let words = "[[reply]]\ntext = \"It should return n * 2.\"\n".repeat(12);
    for model in ["qwen3:8b", "qwen2.5-coder:1.5b", "unheard-of"] {
        let (said, project) = plain(project(), model, &format!("aim = \"change\"\n{words}"), ENGLISH).await;
        assert_eq!(said.code, 1, "{model}: {}\n{}", said.stdout, said.stderr);
        let events = said.events();
        let answer = of_type(&events, "run.finished")[0]["answer"].as_str().unwrap();
        assert!(answer.starts_with("No change was made"), "{model}: {answer}");
        assert_eq!(double(&project), STUB, "{model}");
    }
}
