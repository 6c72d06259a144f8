//! What is kept of a run is enough: to show it again, to write it down, to fork it, and to go on with it elsewhere.

use crate::support::{Project, of_type};
use serde_json::{Value, json};

const THREE_STEPS: &str = r#"
order = "turns"
[[reply]]
text = "Let me read it."
calls = [{ name = "read_file", args = { path = "calc.py" } }]
usage = { input = 100, output = 20 }
[[reply]]
expect = ["return a - b"]
calls = [{ name = "read_file", args = { path = "README.md" } }]
usage = { input = 150, output = 10 }
[[reply]]
text = "`add` subtracts, and the README has `backticks` and ```fences```."
usage = { input = 200, output = 10 }
"#;

fn run_id(project: &Project) -> String {
    let runs: Vec<Value> = serde_json::from_str(&project.say(&["runs", "list", "--json"]).stdout).unwrap();
    runs[0]["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_replay_shows_what_was_seen_and_does_nothing_again() {
    let project = Project::new();
    let first = project.run(THREE_STEPS, &[]);
    std::fs::remove_file(project.repo.path().join("calc.py")).unwrap();
    let again = project.say(&["runs", "replay", "last", "--speed", "1000"]);
    assert_eq!((again.code, &again.stdout), (0, &first.stdout));
    assert_eq!(again.stderr, format!("› what is wrong?\n{}", first.stderr));
    let slower = std::time::Instant::now();
    assert_eq!(project.say(&["runs", "replay", "last", "--max-pause", "0"]).code, 0);
    assert!(slower.elapsed() < std::time::Duration::from_secs(30));
    assert_eq!(project.say(&["runs", "replay", "last", "--speed", "0"]).code, 2);
}

#[test]
fn a_run_is_written_as_markdown_and_as_json() {
    let project = Project::new();
    project.run(THREE_STEPS, &[]);
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(
        r"Run `[\w-]+`, \S+ \S+, `scripted/\S+` in `\S+`",
        "Run `[RUN]`, [TIME], `[MODEL]` in `[ROOT]`",
    );
    settings.add_filter(r"\d+\.\d s\*", "[SECONDS] s*");
    settings.bind(|| {
        insta::assert_snapshot!("export_markdown", project.say(&["runs", "export", "last"]).stdout);
    });
    let file = project.home.path().join("run.json");
    let said = project.say(&["runs", "export", "last", "--format", "json", "-o", file.to_str().unwrap()]);
    assert_eq!((said.code, said.stdout.as_str()), (0, ""), "{}", said.stderr);
    let exported: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let events = project.say(&["runs", "show", "last", "--json"]).events();
    assert_eq!(exported["run"], json!(run_id(&project)));
    assert_eq!(exported["events"].as_array().unwrap(), &events, "every event is there, word for word");
}

#[test]
fn a_fork_shares_the_steps_before_and_goes_another_way() {
    let project = Project::new();
    project.run(THREE_STEPS, &[]);
    let first = run_id(&project);
    project.run("[[reply]]\ntext = \"Later.\"\n", &[]);
    project.script(
        "order = \"turns\"\n[[reply]]\n[[reply]]\nexpect = [\"return a - b\", \"look no further\"]\ntext = \"Enough seen.\"\n"
            .replace("\"return a - b\", ", "")
            .as_str(),
    );
    let said = project.say(&["runs", "fork", &first, "--at", "2", "look no further"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let fork = said.stdout.trim().to_owned();
    assert_eq!(run_id(&project), fork, "a fork is the last run, whenever its origin began");
    assert!(fork != first && said.stderr.contains(&format!("gimlet resume {fork}")), "{}", said.stderr);
    let resumed = project.say(&["resume", &fork]);
    assert_eq!((resumed.code, resumed.stdout.as_str()), (0, "Enough seen.\n"), "{}", resumed.stderr);

    let events = project.say(&["runs", "show", &fork, "--json"]).events();
    assert!(events.iter().all(|event| event["run"] == json!(fork)));
    assert!(events.iter().enumerate().all(|(at, event)| event["seq"] == json!(at + 1)));
    assert_eq!(of_type(&events, "run.started")[0]["origin"], json!(first));
    assert_eq!(of_type(&events, "tool.finished").len(), 1, "only the first step is shared");
    assert_eq!(of_type(&events, "run.finished")[0]["steps"], json!(2));

    let said = project.say(&["runs", "fork", &first, "--at", "9"]);
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("has 3 steps"), "{}", said.stderr);
    assert_eq!(project.say(&["runs", "fork", &first, "--at", "0"]).code, 2);
}

#[test]
fn a_fork_of_code_replays_with_the_seed_of_its_origin() {
    let project = Project::new();
    let cell = |code: &str| format!("[[reply]]\ntext = '''\n```python\n{code}\n```\n'''\n");
    let script = format!(
        "order = \"turns\"\n{}{}",
        cell("import random\ndrawn = random.random()\nprint(drawn)\nread_file(\"calc.py\")"),
        cell("final_answer(str(drawn))"),
    );
    let first = project.run(&script, &["--action", "code"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let fork = project.say(&["runs", "fork", "last", "--at", "2"]).stdout.trim().to_owned();
    let second = project.say(&["resume", &fork]);
    assert_eq!((second.code, &second.stdout), (0, &first.stdout), "{}", second.stderr);
}

#[test]
fn a_run_is_resumed_in_its_own_folder_unless_another_is_named() {
    let project = Project::new();
    let script = "[[reply]]\ntext = \"Half\"\nfault = { kind = \"drop\", after_bytes = 1 }\n";
    assert_eq!(project.run(script, &[]).code, 1);
    let reading = "order = \"turns\"\n[[reply]]\ncalls = [{ name = \"read_file\", args = { path = \"calc.py\" } }]\n[[reply]]\ntext = \"Read.\"\n";
    project.script(reading);
    let elsewhere = tempfile::tempdir().unwrap();
    let listed: Value = serde_json::from_str(&project.say(&["runs", "--json"]).stdout).unwrap();
    let id = listed[0]["id"].as_str().unwrap();
    let mut command = project.gimlet(&["resume", id]);
    let said = crate::support::Said::from(command.current_dir(elsewhere.path()).output().unwrap());
    assert_eq!((said.code, said.stdout.as_str()), (0, "Read.\n"), "{}", said.stderr);
    let root = project.repo.path().canonicalize().unwrap();
    assert!(said.stderr.contains(&format!("in {}", root.display())), "where is said: {}", said.stderr);

    let project = Project::new();
    assert_eq!(project.run(script, &[]).code, 1);
    project.script(reading);
    let (code, events) = {
        let path = elsewhere.path().to_str().unwrap().to_owned();
        let said = project.say(&["resume", "last", "--json", "--root", &path]);
        (said.code, said.events())
    };
    assert_eq!(code, 0);
    let warned = of_type(&events, "warning");
    assert!(
        warned.iter().any(|event| event["message"].as_str().unwrap().contains("the run began in")),
        "another folder is said: {warned:?}"
    );
    assert_eq!(of_type(&events, "tool.finished")[0]["result"]["error"], "FILE_NOT_FOUND");

    let project = Project::new();
    assert_eq!(project.run(script, &[]).code, 1);
    project.script(reading);
    let path = elsewhere.path().canonicalize().unwrap().display().to_string();
    let said = project.say(&["resume", "last", "--quiet", "--root", &path]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let expected = format!("warning: the run began in {} and goes on in {path}\n", project.root());
    assert_eq!(said.stderr, expected, "it matters too much to be counted only");
}

#[test]
fn a_run_of_another_version_is_told_so() {
    let project = Project::new();
    let script = "[[reply]]\ntext = \"Half\"\nfault = { kind = \"drop\", after_bytes = 1 }\n";
    assert_eq!(project.run(script, &[]).code, 1);
    let log = project.home.path().join("runs").join(run_id(&project)).join("log.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(text.contains(&version), "{text}");
    std::fs::write(&log, text.replace(&version, "\"version\":\"0.0.1\"")).unwrap();
    project.script("[[reply]]\ntext = \"Half\"\nfault = { kind = \"drop\", after_bytes = 1 }\n");
    let said = project.say(&["resume", "last"]);
    let warning =
        format!("warning: the run began with version 0.0.1 and goes on with {}\n", env!("CARGO_PKG_VERSION"));
    assert!(said.stderr.contains(&warning), "{}", said.stderr);
    project.script("[[reply]]\ntext = \"Whole.\"\n");
    assert!(!project.say(&["resume", "last"]).stderr.contains("0.0.1"), "it is said once");
    let events = project.say(&["runs", "show", "last", "--json"]).events();
    let warned = of_type(&events, "warning");
    assert!(
        warned.iter().any(|event| event["message"].as_str().unwrap().contains("began with version 0.0.1")),
        "{warned:?}"
    );
}

#[test]
fn what_is_piped_in_beside_a_task_is_attached_and_capped() {
    use std::io::Write;
    let project = Project::new();
    let model = project.script("[[reply]]\nexpect = [\"review this\", \"+a new line\"]\ntext = \"Fine.\"\n");
    let pipe = |text: &str| {
        let mut child = project
            .gimlet(&["-m", &model, "--json", "review this"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        crate::support::Said::from(child.wait_with_output().unwrap())
    };
    let events = pipe("+a new line\n").events();
    assert_eq!(of_type(&events, "run.finished")[0]["answer"], "Fine.");
    assert_eq!(
        of_type(&events, "run.started")[0]["task"],
        "review this\n\nstandard input:\n```\n+a new line\n```"
    );

    let long = format!("+a new line\n{}", "x".repeat(500_000));
    let events = pipe(&long).events();
    let task = of_type(&events, "run.started")[0]["task"].as_str().unwrap();
    assert!(task.len() < 30_000, "{} bytes", task.len());
    let blob = task.split("kept as blob:").nth(1).unwrap().split(']').next().unwrap();
    let kept = project.home.path().join("blobs").join(&blob[..2]).join(blob);
    assert_eq!(std::fs::read_to_string(kept).unwrap(), long);
}

#[test]
fn quiet_prints_the_answer_alone() {
    let said = Project::new().run(THREE_STEPS, &["--quiet"]);
    assert!(said.stdout.starts_with("`add` subtracts"));
    assert_eq!(said.stderr, "");
}

#[test]
fn debug_tells_every_step() {
    let said = Project::new().run(THREE_STEPS, &["--debug"]);
    for told in ["step 1", "tokens in", "read_file path=\"calc.py\"", "\"start\": 1", " ms"] {
        assert!(said.stderr.contains(told), "{told}: {}", said.stderr);
    }
}
