//! Planning through the real binary: asked for, shown, kept, and never made twice.

use gimlet_models::Script;
use gimlet_testkit::ModelServer;

use crate::pty::{Look, Pty};
use crate::small::say;
use crate::support::{Project, Said, of_type};

pub(crate) const PLANNED: &str = r#"
order = "turns"
[[reply]]
text = "Facts known:\n- add is wrong\nFacts to find:\n- how\nSteps:\n1. read calc.py\n2. say what is wrong"
usage = { input = 30, output = 10 }
[[reply]]
calls = [{ name = "read_file", args = { path = "calc.py" } }]
usage = { input = 60, output = 5 }
[[reply]]
expect = ["Stop and plan anew"]
text = "I know enough now."
usage = { input = 90, output = 5 }
[[reply]]
expect = ["act on the plan"]
text = "It subtracts."
usage = { input = 120, output = 5 }
"#;

#[test]
fn a_plan_is_shown_kept_and_counted() {
    let project = Project::new();
    let said = project.run(PLANNED, &["--plan=1"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "It subtracts.\n"), "{}", said.stderr);
    let first = "plan\n  known: add is wrong\n  to find: how\n  1. read calc.py\n  2. say what is wrong\n";
    let again = "plan after step 1\n  I know enough now.\n";
    let told = |text: &str| text.contains(first) && text.contains(again);
    assert!(told(&said.stderr) && said.stderr.contains("2 steps, 325 tokens"), "{}", said.stderr);
    let shown = project.say(&["runs", "show", "last"]).stdout;
    assert!(told(&shown), "{shown}");
    let replayed = project.say(&["runs", "replay", "last", "--max-pause", "0"]);
    assert!(told(&replayed.stderr), "{}", replayed.stderr);
    let exported = project.say(&["runs", "export", "last"]).stdout;
    assert!(
        exported.contains("### Plan\n\n- Known: add is wrong\n- To find: how\n\n1. read calc.py\n"),
        "{exported}"
    );
    assert!(exported.contains("### Plan\n\nI know enough now.\n"), "{exported}");
    let events = project.say(&["runs", "show", "last", "--json"]).events();
    let plans = of_type(&events, "plan");
    assert_eq!((plans.len(), &plans[0]["steps"][0]), (2, &serde_json::json!("read calc.py")));
    assert_eq!(of_type(&events, "run.started")[0]["plan"], 1);

    let (_, events) = project.events("[[reply]]\ntext = \"It subtracts.\"\n", &[]);
    assert!(of_type(&events, "plan").is_empty(), "nobody plans unasked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_killed_while_it_plans_goes_on_and_plans_once() {
    let script = "[[reply]]\nfault = { kind = \"hang\" }\n[[reply]]\ntext = \"Steps:\\n1. look\"\n[[reply]]\ncalls = [{ name = \"read_file\", args = { path = \"calc.py\" } }]\n[[reply]]\ntext = \"It subtracts.\"\n";
    let script: Script = toml::from_str(script).unwrap();
    let server = ModelServer::builder(script).models(["scripted"]).start().await.unwrap();
    let (project, url) = (Project::new(), server.url());
    let args = ["-m", "ollama_chat/scripted", "--api-base", &url, "--plan=5", "what is wrong?"];
    let mut child = project.gimlet(&args).stderr(std::process::Stdio::null()).spawn().unwrap();
    while !server.visits().iter().any(|visit| visit.contains("/api/chat")) {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (project, said) = say(project, &["resume", "last", "--api-base", &url]).await;
    assert_eq!((said.code, said.stdout.as_str()), (0, "It subtracts.\n"), "{}", said.stderr);
    let events = project.say(&["runs", "show", "last", "--json"]).events();
    let asked = of_type(&events, "model.asked").into_iter().filter(|event| event["purpose"] == "plan");
    assert_eq!(asked.count(), 2, "asked, killed, asked again");
    assert_eq!(of_type(&events, "plan").len(), 1);
    assert_eq!(of_type(&events, "run.resumed")[0]["plan"], 5, "it goes on to plan");
    server.assert_no_violations();
}

#[test]
fn a_session_shows_the_plan_and_asks_for_one() {
    let project = Project::new();
    let script = r#"
    order = "turns"
    [[reply]]
    text = "It subtracts."
    [[reply]]
    expect = ["and the tests?", "Before you act, plan."]
    text = "Steps:\n1. look for tests"
    [[reply]]
    text = "There are none."
    "#;
    let model = project.script(script);
    let mut pty = Pty::start(&project, &["--model", &model], Look::default());
    pty.wait_for_prompt();
    for (line, answer) in [
        ("/plan", "nothing was said yet"),
        ("what is wrong?", "It subtracts."),
        ("/plan", "there is no plan; /plan now asks for one"),
        ("/plan later", "is nothing /plan knows"),
        ("/plan now", "the next task begins with a plan"),
        ("and the tests?", "There are none."),
    ] {
        pty.enter(line);
        pty.wait_for(answer);
        pty.wait_for_prompt();
    }
    pty.enter("/plan");
    // As it was made, and when asked for.
    pty.wait_until("the plan", |shown| shown.matches("1. look for tests").count() == 2);
    pty.wait_for_prompt();
    pty.press("\u{4}");
    assert_eq!(pty.end(), 0);
}

#[test]
fn what_is_no_number_of_steps_is_refused() {
    let project = Project::new();
    let said = project.say(&["--plan=0", "hello"]);
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("a number of steps"), "{}", said.stderr);
    let said = Said::from(project.gimlet(&["hello"]).env("AGENT_PLAN", "often").output().unwrap());
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("true, false or a number of steps"), "{}", said.stderr);
}
