//! Whole runs through the real binary: what ends how, and that nothing panics.

use crate::support::{Project, of_type};
use serde_json::{Value, json};

const TWO_STEPS: &str = r#"
order = "turns"
[[reply]]
text = "Let me read it."
calls = [{ name = "read_file", args = { path = "calc.py" } }]
usage = { input = 100, output = 20 }
[[reply]]
expect = ["return a - b"]
text = "`add` subtracts."
usage = { input = 150, output = 10 }
"#;

#[test]
fn two_steps_print_an_answer_and_nothing_else_on_stdout() {
    let said = Project::new().run(TWO_STEPS, &[]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "`add` subtracts.\n"), "{}", said.stderr);
    assert!(said.stderr.contains("read_file path=\"calc.py\""), "{}", said.stderr);
    assert!(said.stderr.contains("2 steps, 280 tokens"), "{}", said.stderr);
    let quiet = Project::new().run(TWO_STEPS, &["--quiet"]);
    assert_eq!(quiet.stdout, "`add` subtracts.\n");
}

#[test]
fn five_steps_complete() {
    let calls = [
        "repo_info|{}",
        "list_files|{ glob = \"**/*\" }",
        "read_file|{ path = \"calc.py\" }",
        "read_file|{ path = \"README.md\" }",
    ];
    let mut script = String::from("order = \"turns\"\n");
    for call in calls {
        let (name, args) = call.split_once('|').unwrap();
        script += &format!("[[reply]]\ncalls = [{{ name = \"{name}\", args = {args} }}]\n");
    }
    script += "[[reply]]\ntext = \"Five steps.\"\n";
    let (code, events) = Project::new().events(&script, &[]);
    assert_eq!(code, 0);
    let finished = of_type(&events, "run.finished")[0];
    assert_eq!(
        (&finished["steps"], &finished["answer"], &finished["state"]),
        (&json!(5), &json!("Five steps."), &json!("answered"))
    );
    assert!(of_type(&events, "tool.finished").iter().all(|event| event["ok"] == true), "{events:#?}");
}

#[test]
fn the_stream_is_the_log_and_every_line_has_its_frame() {
    let project = Project::new();
    let (_, events) = project.events(TWO_STEPS, &[]);
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], json!(index + 1));
        assert!(
            event["type"].is_string() && event["run"].is_string() && event["time"].is_string(),
            "{event}"
        );
    }
    let run = events[0]["run"].as_str().unwrap();
    let shown = project.say(&["runs", "show", run, "--json"]);
    assert_eq!(shown.events(), events);
    let message = of_type(&events, "model.message")[0];
    assert_eq!(message["text"], "Let me read it.");
    assert_eq!(message["tool_calls"][0]["name"], "read_file");
    assert_eq!(message["usage"]["input"], 100);
    let requested = of_type(&events, "tool.requested")[0];
    assert_eq!((&requested["tool"], &requested["args"]), (&json!("read_file"), &json!({"path": "calc.py"})));
    let started = of_type(&events, "tool.started")[0];
    assert_eq!(started["effects"], json!([{"kind": "read", "path": "calc.py"}]));
}

#[test]
fn malformed_calls_are_corrected_once_with_the_right_shape() {
    let script = r#"
    order = "turns"
    [[reply]]
    text = '<tool_call>{"name": "read_file", "arguments": {"path": </tool_call>'
    [[reply]]
    expect = ['"arguments"']
    text = '{"name": "read_file", "arguments": {"path": "calc.py"}}'
    [[reply]]
    expect = ["return a - b"]
    text = "done"
    "#;
    let (code, events) = Project::new().events(script, &[]);
    assert_eq!(code, 0, "{events:#?}");
    assert_eq!(of_type(&events, "feedback")[0]["reason"], "malformed");
    assert_eq!(of_type(&events, "tool.finished").len(), 1);
}

#[test]
fn an_empty_reply_is_asked_again() {
    let script =
        "order = \"turns\"\n[[reply]]\ntext = \"\"\n[[reply]]\nexpect = [\"empty\"]\ntext = \"here\"\n";
    let said = Project::new().run(script, &[]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "here\n"), "{}", said.stderr);
}

#[test]
fn a_reply_that_breaks_off_fails_the_run_and_can_be_resumed() {
    let project = Project::new();
    let half = "[[reply]]\ntext = \"Half a thou\"\nfault = { kind = \"drop\", after_bytes = 4 }\n";
    let once = format!("{half}[[reply]]\ntext = \"whole\"\n");
    let said = project.run(&once, &[]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "whole\n"), "the step begins again: {}", said.stderr);
    let said = project.run(&half.repeat(3), &[]);
    assert_eq!((said.code, said.stdout.as_str()), (1, ""));
    assert!(
        said.stderr.contains("MODEL_REPLY_CUT") && said.stderr.contains("hint: gimlet resume"),
        "{}",
        said.stderr
    );
    project.script("[[reply]]\ntext = \"whole now\"\n");
    let said = project.say(&["resume", "last"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "whole now\n"), "{}", said.stderr);
}

#[test]
fn a_server_that_goes_away_mid_run_fails_the_run() {
    let script = r#"
    [[reply]]
    calls = [{ name = "repo_info", args = {} }]
    [[reply]]
    fault = { kind = "status", status = 503, body = "gone" }
    "#;
    let (code, events) = Project::new().events(script, &[]);
    assert_eq!(code, 1);
    let last = events.last().unwrap();
    assert_eq!(
        (&last["type"], &last["error"]["error"]),
        (&json!("run.failed"), &json!("MODEL_SERVER_ERROR"))
    );
    assert_eq!(of_type(&events, "tool.finished").len(), 1, "what was done stays recorded");
}

/// A model that wants more steps than one, and is sure once it has them.
pub(crate) const WANTS_MORE: &str = r#"
order = "turns"
[[reply]]
calls = [{ name = "repo_info", args = {} }]
[[reply]]
expect = ["all your steps"]
text = "My best guess."
[[reply]]
expect = ["limit was raised"]
text = "Now I am sure."
"#;

#[test]
fn out_of_steps_is_exit_four_with_what_there_is() {
    let project = Project::new();
    let said = project.run(WANTS_MORE, &["--max-steps", "1"]);
    assert_eq!((said.code, said.stdout.as_str()), (4, "My best guess.\n"), "{}", said.stderr);
    assert!(said.stderr.contains("--max-steps"), "{}", said.stderr);
    for flags in [&[][..], &["--max-steps", "2"], &["--token-budget", "9999"]] {
        let said = project.say(&[&["resume", "last"], flags].concat());
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "no model is asked in vain: {}", said.stderr);
        assert!(said.stderr.contains("has reached the step limit"), "{}", said.stderr);
        assert!(said.stderr.contains(" --max-steps 4 carries on"), "{}", said.stderr);
    }
    let said = project.say(&["resume", "last", "--max-steps", "9"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "Now I am sure.\n"), "{}", said.stderr);
    let said = project.say(&["resume", "last"]);
    assert_eq!(said.code, 2, "{}", said.stderr);
    assert!(said.stderr.contains("finished"), "{}", said.stderr);
}

#[test]
fn out_of_tokens_is_exit_four() {
    let project = Project::new();
    let (code, events) = project.events(TWO_STEPS, &["--token-budget", "110"]);
    assert_eq!((code, &events.last().unwrap()["state"]), (4, &json!("token_budget")));
    let said = project.say(&["resume", "last"]);
    assert_eq!(said.code, 2, "{}", said.stderr);
    assert!(said.stderr.contains("has reached the token budget"), "{}", said.stderr);
}

#[test]
fn ten_calls_in_one_reply_are_answered_in_order() {
    let calls: Vec<String> = (0..10)
        .map(|i| {
            let path = if i == 3 { "missing.py" } else { "calc.py" };
            format!(
                "{{ id = \"same\", name = \"read_file\", args = {{ path = \"{path}\", start_line = {} }} }}",
                i % 2 + 1 + i / 9
            )
        })
        .collect();
    let script = format!("[[reply]]\ncalls = [{}]\n[[reply]]\ntext = \"ten\"\n", calls.join(", "));
    let (code, events) = Project::new().events(&script, &[]);
    assert_eq!(code, 0, "{events:#?}");
    let ids =
        |kind: &str| of_type(&events, kind).iter().map(|event| event["id"].clone()).collect::<Vec<Value>>();
    assert_eq!(ids("tool.requested"), ids("tool.finished"));
    assert_eq!(ids("tool.requested").len(), 10);
    let unique: std::collections::HashSet<String> =
        ids("tool.requested").iter().map(Value::to_string).collect();
    assert_eq!(unique.len(), 10);
    assert_eq!(of_type(&events, "tool.finished")[3]["result"]["error"], "FILE_NOT_FOUND");
}

#[test]
fn a_megabyte_of_result_is_cut_and_kept() {
    let project = Project::new();
    project.file("README.md", &"a line of a very long file\n".repeat(40_000));
    let script = "[[reply]]\ncalls = [{ name = \"git_diff\", args = {} }]\n[[reply]]\ntext = \"big\"\n";
    let (code, events) = project.events(script, &[]);
    assert_eq!(code, 0);
    let finished = of_type(&events, "tool.finished")[0];
    assert_eq!(finished["truncated"], true);
    assert!(finished["result"].to_string().len() < 6_000);
    let blob = finished["stored"][0].as_str().unwrap().strip_prefix("blob:").unwrap().to_owned();
    let kept = std::fs::read(project.home.path().join("blobs").join(&blob[..2]).join(&blob)).unwrap();
    assert!(kept.len() > 1_000_000, "{}", kept.len());
}

#[test]
fn a_missing_file_comes_back_with_a_hint_that_is_not_followed() {
    let script = "[[reply]]\ncalls = [{ name = \"read_file\", args = { path = \"src/calc.py\" } }]\n[[reply]]\ntext = \"gone\"\n";
    let (_, events) = Project::new().events(script, &[]);
    let result = &of_type(&events, "tool.finished")[0]["result"];
    assert_eq!(result["error"], "FILE_NOT_FOUND");
    assert_eq!(result["tool"], "read_file");
    assert_eq!(
        result["recovery_suggestion"]["tool_call"],
        json!({"name": "list_files", "arguments": {"glob": "**/calc.py", "limit": 50}})
    );
    assert_eq!(of_type(&events, "tool.requested").len(), 1);
}

#[test]
fn the_task_can_come_from_stdin() {
    let project = Project::new();
    let model = project.script("[[reply]]\ntext = \"read\"\nexpect = [\"from a pipe\"]\n");
    let mut child = project
        .gimlet(&["-m", &model, "-"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"from a pipe").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"read\n");
}

#[test]
fn wrong_usage_is_exit_two_with_a_hint() {
    let project = Project::new();
    let cases: &[(&[&str], &str)] = &[
        (&["-m", "scripted/nowhere.toml", "do it"], "cannot read the script"),
        (&["-m", "scripted/x", "-r", "/no/such/folder", "do it"], "cannot work in"),
        (&["--max-steps", "0", "do it"], "--max-steps"),
        (&["--no-such-flag"], "--no-such-flag"),
        (&["resume", "nothing"], "nothing"),
        (&["approve", "ap_nothing"], "ap_nothing"),
        (&["tools", "call", "read_file", "{not json"], "not JSON"),
        (&["tools", "show", "nothing"], "no tool `nothing`"),
        (&[], "no task"),
    ];
    for (args, words) in cases {
        let said = project.say(args);
        assert_eq!(said.code, 2, "{args:?}: {}", said.stderr);
        assert!(said.stderr.contains(words) && said.stdout.is_empty(), "{args:?}: {}", said.stderr);
    }
}

#[test]
fn tools_are_called_through_the_guard() {
    let project = Project::new();
    let said = project.say(&[
        "tools",
        "call",
        "read_file",
        r#"{"path": "calc.py", "start_line": "2", "end_line": null}"#,
    ]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(said.events()[0]["lines"], "    return a - b\n");
    let said = project.say(&["tools", "call", "read_file", r#"{"path": "nope"}"#]);
    assert_eq!((said.code, &said.events()[0]["error"]), (1, &json!("FILE_NOT_FOUND")));
    let said = project.say(&["tools", "call", "read_flie", "{}"]);
    assert_eq!((said.code, &said.events()[0]["error"]), (1, &json!("UNKNOWN_TOOL")));
    assert!(said.stdout.contains("did you mean `read_file`?"));
    let said = project.say(&["tools", "call", "read_file", r#"{"file": "calc.py"}"#]);
    assert_eq!(said.events()[0]["error"], "VALIDATION_FAILED");
    assert!(project.say(&["runs"]).stderr.contains("no runs yet"), "a call by hand is nobody's run");
}

#[test]
fn runs_are_listed_and_told() {
    let project = Project::new();
    project.run(TWO_STEPS, &[]);
    project.run("[[reply]]\nfault = { kind = \"status\", status = 500 }\n", &[]);
    let said = project.say(&["runs"]);
    assert!(
        said.stdout.contains("answered")
            && said.stdout.contains("failed")
            && said.stdout.contains("what is wrong?")
    );
    let listed: Vec<Value> = serde_json::from_str(&project.say(&["runs", "list", "--json"]).stdout).unwrap();
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0]["status"], "failed", "newest first");
    let id = listed[1]["id"].as_str().unwrap();
    let told = project.say(&["runs", "show", &id[id.len() - 6..]]);
    assert!(told.stdout.contains("`add` subtracts.") && told.stdout.contains("read_file"), "{}", told.stdout);
}

#[cfg(unix)]
#[test]
fn ctrl_c_leaves_a_run_that_can_be_resumed() {
    let project = Project::new();
    let model = project.script("[[reply]]\nfault = { kind = \"hang\" }\n");
    let mut child = project
        .gimlet(&["--json", "-m", &model, "wait"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    while !lines.next().unwrap().unwrap().contains("step.started") {}
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let last = lines.map(Result::unwrap).last().unwrap();
    assert!(last.contains("run.suspended") && last.contains("interrupted"), "{last}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    project.script("[[reply]]\ntext = \"back\"\n");
    assert_eq!(project.say(&["resume", "last"]).stdout, "back\n");
}
