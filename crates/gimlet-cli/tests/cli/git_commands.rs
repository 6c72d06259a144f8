//! `gimlet commit` and `gimlet review`, with the real git and a scripted model.

use std::process::Command;

use gimlet_testkit::ModelServer;
use serde_json::Value;

use crate::pty::{Look, Pty};
use crate::support::{Project, Said, named_model, of_type};

const MESSAGE: &str = "order = \"turns\"\n[[reply]]\nexpect = [\"The last commits\", \"- first\", \"+    return a + b\"]\n\
                       text = \"calc: add instead of subtracting\\n\\nThe sign was wrong.\\n\\nSigned-off-by: A Model <m@example.com>\"\n";

fn changed() -> Project {
    let project = Project::new();
    project.repo.git(&["config", "user.name", "Ada"]);
    project.repo.git(&["config", "user.email", "ada@example.com"]);
    project.file("calc.py", "def add(a, b):\n    return a + b\n");
    project
}

fn say(project: &Project, script: &str, args: &[&str]) -> Said {
    let model = project.script(script);
    let mut command: Command = project.gimlet(args);
    Said::from(command.args(["--model", &model]).env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap())
}

fn log(project: &Project) -> String {
    project.repo.git(&["log", "--format=%B", "-1"]).trim().to_owned()
}

#[test]
fn a_message_is_written_from_what_is_staged_and_committed() {
    let project = changed();
    let nothing = say(&project, MESSAGE, &["commit", "--yes"]);
    assert_eq!(nothing.code, 1, "{}", nothing.stderr);
    assert!(nothing.stderr.contains("nothing is staged"), "{}", nothing.stderr);
    assert!(
        nothing.stderr.contains("1 file changed: git add FILES, or gimlet commit --all"),
        "{}",
        nothing.stderr
    );

    project.repo.git(&["add", "calc.py"]);
    let only = say(&project, MESSAGE, &["commit", "--message-only"]);
    assert_eq!(
        (only.code, only.stdout.as_str()),
        (0, "calc: add instead of subtracting\n\nThe sign was wrong.\n"),
        "{}",
        only.stderr
    );
    assert_eq!(log(&project), "first", "nothing was committed");

    let asked = say(&project, MESSAGE, &["commit"]);
    assert_eq!(asked.code, 3, "{}", asked.stderr);
    assert!(asked.stderr.contains("hint: --yes"), "{}", asked.stderr);
    assert_eq!(log(&project), "first");

    let done = say(&project, MESSAGE, &["commit", "--yes"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert_eq!(
        log(&project),
        "calc: add instead of subtracting\n\nThe sign was wrong.",
        "a model signs nothing off"
    );
    assert_eq!(project.repo.git(&["status", "--porcelain"]), "");
    let again = say(&project, MESSAGE, &["commit", "--yes"]);
    assert_eq!(again.code, 1);
    assert!(again.stderr.contains("there is nothing to commit"), "{}", again.stderr);
}

#[test]
fn all_changes_are_committed_when_asked_for_and_text_of_the_model_is_no_command() {
    let project = changed();
    project.file("new.txt", "not known to git\n");
    let marker = project.home.path().join("ran");
    let script = format!("[[reply]]\ntext = \"fix $(touch {0}) `touch {0}`; touch {0}\"\n", marker.display());
    let done = say(&project, &script, &["commit", "-a", "-y"]);
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(log(&project).starts_with("fix $(touch"), "{}", log(&project));
    assert!(!marker.exists());
    assert_eq!(project.repo.git(&["status", "--porcelain"]), "?? new.txt\n");
    // The run is in the log, and had no tools.
    let events = project.say(&["runs", "show", "last", "--json"]).events();
    assert_eq!(of_type(&events, "run.started")[0]["tools"], serde_json::json!([]));
}

#[test]
fn secret_files_are_not_committed_and_keys_not_shown() {
    let project = changed();
    project.file(".env", "TOKEN=abc\n");
    project.repo.git(&["add", "--all", "--force"]);
    let refused = say(&project, MESSAGE, &["commit", "--yes"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains(".env may hold secrets"), "{}", refused.stderr);
    assert_eq!(log(&project), "first");
    project.repo.git(&["reset", "--quiet", ".env"]);
    project.file("calc.py", "KEY = \"sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"\n");
    project.repo.git(&["add", "calc.py"]);
    let masked = say(&project, "[[reply]]\ntext = \"add a key\"\n", &["commit", "--message-only"]);
    assert!(masked.stderr.contains("seem to hold a secret"), "{}", masked.stderr);
    let log = project.say(&["runs", "show", "last", "--json"]).stdout;
    assert!(!log.contains("sk-ant-api03-AAAA"), "the model does not see it");
}

#[test]
fn a_person_can_edit_the_message_or_refuse_it() {
    let project = changed();
    project.repo.git(&["add", "calc.py"]);
    let model = project.script(MESSAGE);
    let editor = project.home.path().join("editor.sh");
    std::fs::write(&editor, "echo 'calc: mend the sum' > \"$1\"\n").unwrap();
    let variables = [("EDITOR", format!("sh {}", editor.display()))];
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut pty = Pty::start_with(&project, &["commit", "-m", &model], Look::default(), &variables);
    pty.wait_for("commit with this message?");
    pty.enter("n");
    assert_eq!(pty.end(), 1);
    pty.wait_for("nothing was committed");
    let mut pty = Pty::start_with(&project, &["commit", "-m", &model], Look::default(), &variables);
    pty.wait_for("commit with this message?");
    pty.enter("e");
    pty.wait_for("calc: mend the sum");
    pty.wait_until("the second question", |shown| shown.matches("commit with this message?").count() == 2);
    pty.enter("y");
    assert_eq!(pty.end(), 0);
    assert_eq!(log(&project), "calc: mend the sum");
}

fn findings(list: &str) -> String {
    let answer = serde_json::json!({ "findings": serde_json::from_str::<Value>(list).unwrap(), "summary": "One fault." });
    let answer = answer.to_string().replace('\\', "\\\\").replace('"', "\\\"");
    format!("order = \"turns\"\n[[reply]]\nexpect = [\"    2 +    return a + b\"]\ntext = \"{answer}\"\n")
}

const LIST: &str = r#"[
  { "path": "calc.py", "line": 2, "severity": "error", "message": "It overflows." },
  { "path": "./README.md", "line": 3, "severity": "note", "message": "Says otherwise." },
  { "path": "calc.py", "line": 40, "severity": "error", "message": "No such line." },
  { "path": "nowhere.py", "line": 1, "severity": "error", "message": "No such file." },
  { "path": "../../etc/hosts", "line": 1, "severity": "error", "message": "Outside." }
]"#;

#[test]
fn findings_are_checked_against_the_files() {
    let project = changed();
    let said = say(&project, &findings(LIST), &["review"]);
    assert_eq!(said.code, 1, "{}{}", said.stdout, said.stderr);
    assert_eq!(said.stdout, "calc.py:2 error It overflows.\nREADME.md:3 note Says otherwise.\n");
    assert!(said.stderr.contains("3 findings left out: the line does not exist"), "{}", said.stderr);
    assert!(said.stderr.contains("1 error, 1 note"), "{}", said.stderr);
    let never = say(&project, &findings(LIST), &["review", "--fail-on", "never", "--json"]);
    assert_eq!(never.code, 0);
    let review: Value = serde_json::from_str(&never.stdout).unwrap();
    assert_eq!(review["findings"].as_array().unwrap().len(), 2);
    assert_eq!(review["dropped"].as_array().unwrap().len(), 3);
    assert_eq!(review["summary"], "One fault.");
    // Nothing that changes is offered.
    let events = project.say(&["runs", "show", "last", "--json"]).events();
    let started = of_type(&events, "run.started")[0];
    assert_eq!(started["tools"], serde_json::json!(["list_files", "rg_search", "read_file"]));
}

#[test]
fn a_branch_is_reviewed_against_its_base() {
    let project = changed();
    project.repo.git(&["checkout", "--quiet", "-b", "work"]);
    project.repo.git(&["commit", "--quiet", "-am", "fix"]);
    let said = say(&project, &findings("[]"), &["review", "main"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, ""), "{}", said.stderr);
    assert!(said.stderr.contains("no findings"), "{}", said.stderr);
    let nothing = say(&project, "", &["review"]);
    assert_eq!(nothing.code, 0);
    assert!(nothing.stderr.contains("there is nothing to review"), "{}", nothing.stderr);
    for bad in ["nowhere", "--output=x"] {
        let model = project.script("");
        let said = project.say(&["review", "--model", &model, "--", bad]);
        assert_ne!(said.code, 0, "{bad}");
        assert!(said.stderr.contains(&format!("there is no commit `{bad}`")), "{}", said.stderr);
    }
    let prose = say(&project, &"[[reply]]\ntext = \"Looks good to me.\"\n".repeat(4), &["review", "main"]);
    assert_eq!(prose.code, 1, "{}{}", prose.stdout, prose.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_change_is_cut_to_the_window_and_that_is_said() {
    let script = "order = \"turns\"\n[[reply]]\ntext = \"add lines\"\n";
    let server = ModelServer::start(toml::from_str(script).unwrap()).await;
    let url = server.url();
    tokio::task::spawn_blocking(move || {
        let project = changed();
        project.config(&named_model("small", &url, "context = 8192\n"));
        project.file("long.txt", &"a line of text that says nothing\n".repeat(5000));
        project.repo.git(&["add", "--all"]);
        let said = project.say(&["commit", "--message-only", "-m", "small"]);
        assert_eq!((said.code, said.stdout.as_str()), (0, "add lines\n"), "{}", said.stderr);
        assert!(said.stderr.contains("too long for the model's window; cut: long.txt"), "{}", said.stderr);
    })
    .await
    .unwrap();
    let asked = server.requests()[0].body.to_string();
    assert!(asked.len() < 20_000 && asked.contains("return a + b"), "{}", asked.len());
    assert!(asked.contains("more lines of long.txt are not shown]"));
}
