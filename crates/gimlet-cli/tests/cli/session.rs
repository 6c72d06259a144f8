//! The interactive session and runs on a terminal, typed at and read like a person does.

use crate::pty::{Look, Pty};
use crate::run::WANTS_MORE;
use crate::support::Project;
use gimlet_models::Script;
use gimlet_testkit::ModelServer;
use serde_json::Value;

const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

/// A session with a script, at its first prompt.
fn session(project: &Project, script: &str, more: &[&str]) -> Pty {
    let model = project.script(script);
    let mut args = vec!["--model", &model];
    args.extend(more);
    let pty = Pty::start(project, &args, Look::default());
    pty.wait_for_prompt();
    pty
}

fn runs(project: &Project) -> Vec<Value> {
    serde_json::from_str(&project.say(&["runs", "list", "--json"]).stdout).unwrap()
}

fn calc(project: &Project) -> String {
    std::fs::read_to_string(project.repo.path().join("calc.py")).unwrap()
}

/// A script whose first reply proposes and whose second applies a patch.
fn patching(project: &Project, after: &str) -> String {
    crate::approvals::fix(project).replace("[[reply]]\ntext = \"Fixed.\"\n", after)
}

#[test]
fn a_conversation_goes_on_from_task_to_task_and_comes_back() {
    let project = Project::new();
    let script = r#"
    order = "turns"
    [[reply]]
    calls = [{ name = "read_file", args = { path = "calc.py" } }]
    [[reply]]
    expect = ["return a - b"]
    text = "`add` subtracts."
    [[reply]]
    expect = ["are you sure"]
    text = "Quite **sure**."
    [[reply]]
    expect = ["one more"]
    text = "And again."
    "#;
    let mut pty = session(&project, script, &[]);
    pty.enter("what is wrong?");
    pty.wait_for("subtracts.");
    pty.wait_for_prompt();
    pty.enter("are you sure?");
    pty.wait_for("Quite sure.");
    pty.wait_for_prompt();
    pty.enter("/cost");
    pty.wait_for("3 steps");
    pty.wait_for_prompt();
    pty.press(CTRL_D);
    assert_eq!(pty.end(), 0);
    pty.wait_for("comes back to it");
    let runs = runs(&project);
    assert_eq!(runs.len(), 1, "one conversation is one run");
    assert_eq!(runs[0]["status"], "answered");

    let said = project.say(&["resume", "last"]);
    assert_eq!(said.code, 2, "an answered run needs something new to be said");
    let said = project.say(&["resume", "last", "one more"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "And again.\n"), "{}", said.stderr);
}

#[test]
fn a_patch_is_shown_and_approved_by_one_key() {
    let project = Project::new();
    let script = patching(&project, "[[reply]]\ntext = \"Fixed.\"\n");
    let mut pty = session(&project, &script, &[]);
    pty.enter("fix it");
    pty.wait_for("[q]uit");
    assert!(pty.shown().contains("+    return a + b"), "{}", pty.shown());
    pty.press("y");
    pty.wait_for("Fixed.");
    pty.wait_for_prompt();
    assert!(calc(&project).contains("a + b"));
    pty.enter("/diff");
    pty.wait_until("the diff", |shown| shown.matches("+    return a + b").count() == 2);
    pty.wait_for_prompt();
    pty.enter("exit");
    assert_eq!(pty.end(), 0);
}

#[test]
fn patches_are_taken_back_and_the_model_learns_of_it() {
    let project = Project::new();
    let script = patching(
        &project,
        "[[reply]]\ntext = \"Fixed.\"\n[[reply]]\nexpect = [\"I took back patch_\", \"restored calc.py\", \"and now?\"]\ntext = \"Gone again.\"\n",
    );
    let mut pty = session(&project, &script, &["--approve", "all"]);
    pty.enter("/undo");
    pty.wait_for("nothing was said yet");
    pty.wait_for_prompt();
    pty.enter("fix it");
    pty.wait_for("Fixed.");
    pty.wait_for_prompt();
    assert!(calc(&project).contains("a + b"));
    pty.enter("/undo patch_none");
    pty.wait_for("patch `patch_none` is not applied");
    pty.wait_for_prompt();
    pty.enter("/undo");
    pty.wait_for("restored calc.py");
    pty.wait_for_prompt();
    assert!(calc(&project).contains("a - b"));
    pty.enter("/undo");
    pty.wait_for("has no applied patch");
    pty.wait_for_prompt();
    pty.enter("and now?");
    pty.wait_for("Gone again.");
    pty.wait_for_prompt();
    pty.enter("/state");
    pty.wait_for("taken back: ");
    pty.wait_for_prompt();
    pty.press(CTRL_D);
    assert_eq!(pty.end(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn old_results_give_way_when_asked() {
    let script = r#"
    order = "turns"
    [[reply]]
    calls = [{ name = "read_file", args = { path = "long.txt" } }]
    [[reply]]
    expect = ["nothing much"]
    text = "Read."
    [[reply]]
    text = "Still there."
    [[reply]]
    text = "It is short now."
    "#;
    let script: Script = toml::from_str(script).unwrap();
    let server = ModelServer::builder(script).models(["scripted"]).start().await.unwrap();
    let (url, project) = (server.url(), Project::new());
    project.file("long.txt", &"a long line of nothing much\n".repeat(60));
    let args = ["--model", "ollama_chat/scripted", "--api-base", &url];
    let mut pty = Pty::start(&project, &args, Look::default());
    pty.wait_for_prompt();
    for (line, answer) in [
        ("read it", "Read."),
        ("/compact", "nothing can give way"),
        ("is it there?", "Still there."),
        ("/compact", "1 old result gives way: the conversation shrinks from about"),
        ("and now?", "It is short now."),
    ] {
        if answer.starts_with("1 old") {
            server.announce_compaction("read it");
        }
        pty.enter(line);
        pty.wait_for(answer);
        pty.wait_for_prompt();
    }
    pty.press(CTRL_D);
    assert_eq!(pty.end(), 0);
    assert_eq!(runs(&project)[0]["status"], "answered");
    let asked: Vec<String> = server.requests().iter().map(|request| request.body.to_string()).collect();
    assert!(asked[2].contains("nothing much") && !asked[3].contains("nothing much"), "{}", asked[3]);
    assert!(asked[3].contains("elided to save room: the result of read_file(path="), "{}", asked[3]);
    server.assert_no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn old_tasks_are_summed_up_when_asked() {
    let summary = "Goal:\\n- to talk\\nDecisions:\\n- the name is Zebra";
    let mut script = format!(
        "[[conversation]]\nmatch = \"Sum up this run\"\n[[conversation.reply]]\ntext = \"{summary}\"\n"
    );
    for answer in ["one", "two", "three", "four", "five", "six"] {
        script = format!("[[reply]]\ntext = \"{} {answer}.\"\n{script}", "many words ".repeat(200));
    }
    let script: Script = toml::from_str(&script).unwrap();
    let server = ModelServer::builder(script).models(["scripted"]).start().await.unwrap();
    let (url, project) = (server.url(), Project::new());
    let args = ["--model", "ollama_chat/scripted", "--api-base", &url];
    let mut pty = Pty::start(&project, &args, Look::default());
    pty.wait_for_prompt();
    for (line, answer) in [
        ("first: call it Zebra", "six."),
        ("second", "five."),
        ("third", "four."),
        ("fourth", "three."),
        ("fifth", "two."),
        ("/compact", "old steps were summed up by the model"),
        ("sixth", "one."),
    ] {
        pty.enter(line);
        pty.wait_for(answer);
        pty.wait_for_prompt();
    }
    pty.press(CTRL_D);
    assert_eq!(pty.end(), 0);
    let requests = server.requests();
    let last = requests.last().unwrap();
    let first = last.messages()[1]["content"].as_str().unwrap();
    let kept =
        first.starts_with("first: call it Zebra\n\nsecond\n\n") && first.contains("- the name is Zebra");
    assert!(kept, "{first}");
    assert_eq!(last.messages().len(), 8, "instructions, summary, three steps and what was said then");
    server.assert_no_violations();
}

#[test]
fn a_refusal_carries_its_reason_to_the_model() {
    let project = Project::new();
    let script = patching(&project, "[[reply]]\nexpect = [\"use subtraction\"]\ntext = \"As you wish.\"\n");
    let mut pty = session(&project, &script, &[]);
    pty.enter("fix it");
    pty.wait_for("[q]uit");
    pty.press("n");
    pty.wait_for("What should it do instead?");
    pty.press("use addition\u{15}use subtraction\r");
    pty.wait_for("As you wish.");
    pty.wait_for_prompt();
    assert!(calc(&project).contains("a - b"));
    pty.enter("q");
    assert_eq!(pty.end(), 0);
}

#[test]
fn ctrl_c_stops_a_task_and_it_can_be_carried_on_here_or_later() {
    let project = Project::new();
    let script = r#"
    [[reply]]
    fault = { kind = "hang" }
    [[reply]]
    fault = { kind = "hang" }
    [[reply]]
    expect = ["something else"]
    text = "Something else it is."
    "#;
    let mut pty = session(&project, script, &[]);
    pty.enter("think hard");
    pty.wait_for("thinking");
    pty.press(CTRL_C);
    pty.wait_for("stopped;");
    pty.wait_for_prompt();
    pty.enter("/resume");
    pty.wait_for("thinking");
    pty.press(CTRL_C);
    pty.wait_until("a second stop", |shown| shown.matches("stopped;").count() == 2);
    pty.wait_for_prompt();
    pty.enter("something else");
    pty.wait_for("Something else it is.");
    pty.wait_for_prompt();
    // With nothing running, the first one warns and the second ends.
    pty.press(CTRL_C);
    pty.wait_for("Ctrl-C once more");
    pty.wait_for_prompt();
    pty.press(CTRL_C);
    assert_eq!(pty.end(), 0);
}

#[test]
fn a_second_ctrl_c_after_a_stop_ends_the_session_and_leaves_a_run_to_resume() {
    let project = Project::new();
    let mut pty = session(&project, "[[reply]]\nfault = { kind = \"hang\" }\n", &[]);
    pty.enter("think hard");
    pty.wait_for("thinking");
    pty.press(CTRL_C);
    pty.wait_for("stopped;");
    pty.wait_for_prompt();
    pty.press(CTRL_C);
    assert_eq!(pty.end(), 0);
    assert_eq!(runs(&project)[0]["status"], "interrupted");
    project.script("[[reply]]\nexpect = [\"think hard\"]\ntext = \"Thought.\"\n");
    assert_eq!(project.say(&["resume", "last"]).stdout, "Thought.\n");
}

#[test]
fn what_is_typed_while_a_task_runs_steers_it() {
    let project = Project::new();
    let script = r#"
    order = "turns"
    [[reply]]
    text = "I look around first, which takes a moment."
    calls = [{ name = "repo_info", args = {} }]
    chunk_bytes = 2
    delay_ms = 100
    [[reply]]
    expect = ["read the manual"]
    text = "I read it."
    "#;
    let mut pty = session(&project, script, &[]);
    pty.enter("what is this?");
    pty.wait_for("step 1");
    pty.press("read the mam\u{7f}nual\r");
    pty.wait_for("› read the manual");
    pty.wait_for("I read it.");
    pty.wait_for_prompt();
    pty.enter("quit");
    assert_eq!(pty.end(), 0);
}

#[test]
fn a_question_that_was_left_open_is_answered_by_command_or_by_saying_something_else() {
    let project = Project::new();
    let script = patching(
        &project,
        "[[reply]]\nexpect = [\"leave it\"]\ntext = \"Left.\"\n[[reply]]\ncalls = [{ name = \"apply_patch\", args = { patch_id = \"PATCH\" } }]\n[[reply]]\ntext = \"Now it is fixed.\"\n",
    );
    let id = script.split("patch_id = \"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let pty = session(&project, &script.replace("PATCH", &id), &[]);
    pty.enter("fix it");
    pty.wait_for("[q]uit");
    pty.press("q");
    pty.wait_for("stopped;");
    pty.wait_for_prompt();
    pty.enter("/state");
    pty.wait_for("/approve or /deny");
    pty.wait_for_prompt();
    pty.enter("leave it");
    pty.wait_for("Left.");
    pty.wait_for_prompt();
    assert!(calc(&project).contains("a - b"));
    pty.enter("do it after all");
    pty.wait_until("the question again", |shown| shown.matches("[q]uit").count() == 2);
    pty.press(CTRL_C);
    pty.wait_until("another stop", |shown| shown.matches("stopped;").count() == 2);
    pty.wait_for_prompt();
    pty.enter("/approve");
    pty.wait_for("Now it is fixed.");
    pty.wait_for_prompt();
    assert!(calc(&project).contains("a + b"));
    pty.enter("/approve");
    pty.wait_for("no question is open");
}

#[test]
fn files_are_attached_completed_and_jailed() {
    let project = Project::new();
    let script = r#"
    order = "turns"
    [[reply]]
    expect = ["calc.py, lines 2-2 of 2", "return a - b"]
    text = "Seen."
    [[reply]]
    expect = ["and @../secret"]
    text = "That is outside."
    "#;
    let pty = session(&project, script, &[]);
    pty.press("look at @cal\t");
    pty.wait_for("@calc.py");
    pty.press("\u{8}:2-2\r");
    pty.wait_for("attached calc.py:2-2");
    pty.wait_for("Seen.");
    pty.wait_for_prompt();
    pty.enter("and @../secret");
    pty.wait_for("@../secret is no file of this folder; it stays as text");
    pty.wait_for("That is outside.");
    pty.wait_for_prompt();
    pty.press("/hel\t\r");
    pty.wait_for("attaches a file or lines of it");
    pty.wait_for_prompt();
    pty.enter("/nonsense");
    pty.wait_for("see /help");
    pty.wait_for_prompt();
    pty.enter("/save story.md");
    pty.wait_for("written to story.md");
    let story = std::fs::read_to_string(project.repo.path().join("story.md")).unwrap();
    assert!(story.contains("## Answer") && story.contains("Seen."), "{story}");
    pty.wait_for_prompt();
    pty.enter("/clear");
    pty.wait_for("a new conversation");
    pty.wait_for_prompt();
    pty.enter("/state");
    pty.wait_for("nothing was said yet");
}

#[test]
fn a_named_session_is_found_again() {
    let project = Project::new();
    let script = r#"
    order = "turns"
    [[reply]]
    text = "One."
    [[reply]]
    expect = ["and then?"]
    text = "Two."
    "#;
    let model = project.script(script);
    let said = project.say(&["-m", &model, "--session", "count", "begin"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "One.\n"), "{}", said.stderr);
    let mut pty = session(&project, script, &["--session", "count"]);
    pty.wait_for("going on with run");
    pty.enter("and then?");
    pty.wait_for("Two.");
    pty.wait_for_prompt();
    pty.press(CTRL_D);
    assert_eq!(pty.end(), 0);
    pty.wait_for("gimlet --session count");
    assert_eq!(runs(&project).len(), 1);
    assert_eq!(project.say(&["--session", "../up", "x"]).code, 2, "a name is no path");
}

#[test]
fn several_lines_are_one_task() {
    let project = Project::new();
    let script =
        "order = \"turns\"\n[[reply]]\nexpect = [\"first\\nsecond\\nthird\"]\ntext = \"All three.\"\n";
    let mut pty = session(&project, script, &[]);
    pty.press("first\\\rsecond\u{1b}\rthird\r");
    pty.wait_for("All three.");
    pty.wait_for_prompt();
    pty.press(CTRL_D);
    assert_eq!(pty.end(), 0);
    let history = std::fs::read_to_string(project.home.path().join("history.txt")).unwrap();
    assert!(history.contains("third"), "{history}");
}

#[test]
fn what_is_said_after_a_limit_may_take_as_much_again() {
    let project = Project::new();
    let mut pty = session(&project, WANTS_MORE, &["--max-steps", "1"]);
    pty.press("look\r");
    pty.wait_for("hint: say `go on`");
    pty.wait_for_prompt();
    pty.press("/resume\r");
    pty.wait_for("has reached the step limit");
    pty.wait_for_prompt();
    pty.press("go on\r");
    pty.wait_for("Now I am sure.");
    pty.wait_for_prompt();
    pty.press(CTRL_D);
    assert_eq!(pty.end(), 0);
}

#[test]
fn a_single_task_is_stopped_at_once_also_at_a_question() {
    let project = Project::new().ungated();
    let model = project.script(&patching(&project, "[[reply]]\ntext = \"Fixed.\"\n"));
    let mut pty = Pty::start(&project, &["-m", &model, "fix it"], Look::default());
    pty.wait_for("[q]uit");
    pty.press(CTRL_C);
    assert_eq!(pty.end(), 130);
    pty.wait_for("carries on");
    assert!(calc(&project).contains("a - b"));

    let mut pty = Pty::start(&project, &["resume", "last"], Look::default());
    pty.wait_for("[q]uit");
    pty.press("y");
    pty.wait_for("Fixed.");
    assert_eq!(pty.end(), 0);
    assert!(calc(&project).contains("a + b"));
}

const STORY: &str = r#"
order = "turns"
[[reply]]
text = "I read the file, and then I look for everything that calls the function in it."
calls = [
    { name = "read_file", args = { path = "calc.py" } },
    { name = "rg_search", args = { pattern = "a rather long pattern that nobody would ever find anywhere" } },
]
usage = { input = 1100, output = 60 }
[[reply]]
calls = [{ name = "propose_patch", args = { intent = "Add", file_path = "calc.py", original_content = "    return a - b\n", new_content = "    return a + b\n" } }]
usage = { input = 1300, output = 80 }
[[reply]]
calls = [{ name = "apply_patch", args = { patch_id = "PATCH" } }]
[[reply]]
text = """
# Done

`add` **subtracted**; it adds now. What to know about it, in words enough to need a second line on a narrow terminal:

- one line of `calc.py` changed
- nothing calls it yet

```python
def add(a, b):
    return a + b
```

| call | result |
|---|---|
| add(1, 2) | 3 |
"""
chunk_bytes = 16
usage = { input = 1500, output = 120 }
"#;

#[test]
fn a_whole_run_as_a_person_sees_it() {
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"\d+\.\d s · run [\w-]+", "[SECONDS] s · run [RUN]");
    for columns in [60, 120] {
        for colour in [false, true] {
            let project = Project::new().ungated();
            let fix = crate::approvals::fix(&project);
            let id = fix.split("patch_id = \"").nth(1).unwrap().split('"').next().unwrap();
            let model = project.script(&STORY.replace("PATCH", id));
            let look = Look { columns, colour };
            let mut pty = Pty::start(&project, &["-m", &model, "fix add"], look);
            pty.wait_for("[q]uit");
            pty.press("y");
            assert_eq!(pty.end(), 0, "{}", pty.shown());
            pty.wait_for("· run");
            let shown = if colour { pty.shown_in_colour() } else { pty.shown() };
            let name = format!("run_{columns}_{}", if colour { "colour" } else { "plain" });
            settings.bind(|| insta::assert_snapshot!(name, shown));
        }
    }
}

#[test]
fn fault_08_tab_behind_model_offers_models_and_replaces_nothing() {
    let project = Project::new();
    project.config(
        "[models.alpha]\nid = \"openai/a\"\napi_base = \"http://127.0.0.1:1/v1\"\n[models.alto]\nid = \"openai/b\"\napi_base = \"http://127.0.0.1:1/v1\"\n",
    );
    let mut pty = session(&project, "[[reply]]\ntext = \"Hello.\"\n", &[]);
    pty.press("/model nothing\t");
    pty.wait_for("/model nothing");
    pty.press(" \u{15}/model al\t");
    pty.wait_until("both names", |shown| {
        let shown = shown.to_lowercase();
        shown.contains("alpha") && shown.contains("alto")
    });
    assert!(!pty.shown().contains("NO RECORDS"), "{}", pty.shown());
    pty.press("\u{1b}\u{15}");
    pty.press("\u{3}");
    pty.wait_for_prompt();
    pty.press(CTRL_D);
    assert_eq!(pty.end(), 0);
}

#[test]
fn fault_12_a_new_conversation_has_spent_nothing() {
    let project = Project::new();
    let script = r#"
    [[reply]]
    usage = { input = 4000, output = 321 }
    text = "One."
    [[reply]]
    fault = { kind = "hang" }
    "#;
    let mut pty = session(&project, script, &[]);
    pty.enter("one");
    pty.wait_for("4321 tokens");
    pty.wait_for_prompt();
    project.script("[[reply]]\nfault = { kind = \"hang\" }\n");
    pty.enter("/clear");
    pty.wait_for("a new conversation");
    pty.wait_for_prompt();
    pty.enter("two");
    pty.wait_for("thinking");
    let shown = pty.shown();
    assert!(!shown.lines().any(|line| line.contains("thinking") && line.contains("tokens")), "{shown}");
    pty.press(CTRL_C);
    pty.wait_for("stopped;");
    pty.wait_for_prompt();
    pty.press(CTRL_D);
    assert_eq!(pty.end(), 0);
}

#[test]
fn fault_13_and_16_what_was_said_before_a_stop_is_seen_and_told_to_the_model() {
    let project = Project::new();
    let lines: String = (1..=3000).map(|n| format!("line {n}\n")).collect();
    let script = format!(
        "[[reply]]\nchunk_bytes = 16\ndelay_ms = 50\ntext = '''\n{lines}'''\n\
         [[reply]]\nexpect = [\"I interrupted you\", \"You had said: line 1\", \"stop counting\"]\ntext = \"All right.\"\n"
    );
    let mut pty = session(&project, &script, &[]);
    pty.enter("count");
    pty.wait_for("line 3");
    pty.press(CTRL_C);
    pty.wait_for("stopped;");
    pty.wait_for_prompt();
    pty.enter("stop counting");
    pty.wait_for("All right.");
    pty.wait_for_prompt();
    pty.press(CTRL_D);
    assert_eq!(pty.end(), 0);
}

#[test]
fn an_answer_is_shown_line_by_line_and_a_call_written_as_text_is_not() {
    let project = Project::new();
    let script = r##"
    order = "turns"
    [[reply]]
    chunk_bytes = 7
    text = "I look.\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"calc.py\"}}"
    [[reply]]
    chunk_bytes = 7
    delay_ms = 20
    text = "# Found\n\n- **first** point\n- second\n\n```python\ndef add(a, b):\n    return a + b  # mended\n```\n\nDone."
    "##;
    let pty = session(&project, script, &[]);
    pty.enter("what is wrong?");
    pty.wait_for("• first point");
    pty.wait_for("Done.");
    pty.wait_for_prompt();
    let shown = pty.shown();
    assert!(shown.contains("I look.") && shown.contains("      return a + b  # mended"), "{shown}");
    assert!(!shown.contains("arguments") && !shown.contains("```"), "{shown}");
    assert_eq!(shown.matches("def add").count(), 1, "nothing is shown twice: {shown}");
}

#[test]
fn a_command_of_the_persons_own_goes_through_policy_and_jail_and_the_model_reads_it() {
    let project = Project::new();
    let script = r#"
    [[reply]]
    expect = ["I ran `grep return calc.py` (exit 0)", "return a - b", "what does it do?"]
    text = "It subtracts."
    "#;
    let mut pty = session(&project, script, &[]);
    pty.enter("!grep return calc.py");
    pty.wait_for("    return a - b");
    pty.wait_for_prompt();
    pty.enter("!rm -rf /");
    pty.wait_for("no approval can allow it");
    pty.wait_for_prompt();
    pty.enter("!sh -c 'touch owned'");
    pty.wait_for("[q]uit");
    pty.press("n");
    pty.wait_for("instead?");
    pty.press("\r");
    pty.wait_for("refused this");
    pty.wait_for_prompt();
    assert!(!project.repo.path().join("owned").exists());
    pty.enter("what does it do?");
    pty.wait_for("It subtracts.");
    pty.wait_for_prompt();
    pty.press(CTRL_D);
    assert_eq!(pty.end(), 0);
}

#[test]
fn context_is_told_and_the_answer_is_copied() {
    let project = Project::new();
    let script = r#"
    order = "turns"
    [[reply]]
    usage = { input = 1234, output = 5 }
    calls = [{ name = "read_file", args = { path = "calc.py" } }]
    [[reply]]
    text = "foob"
    "#;
    let mut pty = session(&project, script, &[]);
    pty.enter("/copy");
    pty.wait_for("there is no answer yet");
    pty.wait_for_prompt();
    pty.enter("what is wrong?");
    pty.wait_for("2 steps");
    pty.wait_for_prompt();
    pty.enter("/context");
    pty.wait_for("the server counted 1234 for the last request");
    pty.wait_for_prompt();
    for part in ["instructions", "you and the project", "the model", "results", "window is not known"] {
        assert!(pty.shown().contains(part), "{part}: {}", pty.shown());
    }
    pty.enter("/copy");
    pty.wait_for("4 characters sent");
    assert!(pty.written().contains("\u{1b}]52;c;Zm9vYg==\u{7}"));
    pty.wait_for_prompt();
    pty.enter("/export out.md");
    pty.wait_for("written to out.md");
    pty.wait_for_prompt();
    pty.press(CTRL_D);
    assert_eq!(pty.end(), 0);
}

#[test]
fn a_question_rings_where_the_person_wants_it_and_lines_take_the_keys_of_vi() {
    let project = Project::new();
    project.config("[terminal]\nnotify = true\nvi = true\n");
    let script = patching(&project, "[[reply]]\ntext = \"Fixed.\"\n");
    let mut pty = session(&project, &script, &[]);
    // Typed, left, and taken back letter by letter with `x`.
    pty.press("fix itzz");
    pty.wait_for("fix itzz");
    let before = pty.cursor();
    pty.press("\u{1b}");
    pty.wait_until("the cursor on the last letter", |_| pty.cursor() != before);
    pty.press("xx");
    pty.wait_until("the line without its end", |shown| shown.trim_end().ends_with("› fix it"));
    pty.press("\r");
    pty.wait_for("[q]uit");
    assert!(pty.written().contains("\u{1b}]9;gimlet: a question waits\u{7}"));
    pty.press("q");
    pty.wait_for("stopped;");
    pty.wait_for_prompt();
    pty.press(CTRL_D);
    assert_eq!(pty.end(), 0);
}
