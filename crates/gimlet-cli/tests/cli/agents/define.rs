//! `[agents.NAME]`, `gimlet agents` and `--agent`: what is defined, what is refused and how it is said.

use super::{ask, events, team, write_agents};
use crate::support::{Project, of_type};
use serde_json::Value;

const TEAM: &str = r#"
[agents.lead]
action = "code"
max_steps = 10
agents = ["reader", "writer"]
instructions = "Plan first."

[agents.reader]
description = "Reads code."
action = "tools"
model = "ollama_chat/qwen3:8b"
temperature = 0.3
max_tokens = 512
max_steps = 3
timeout = 60
token_budget = 5000
tools = ["read_file", "git_*"]
output = { type = "object", properties = { file = { type = "string" } }, required = ["file"] }

[agents.writer]
description = "Changes files."
approve = "ask"
summary = true
imports = ["statistics", "-random"]
action = "code"
executor = "python"
agents = ["reader"]
"#;

fn shown(project: &Project, args: &[&str]) -> String {
    let said = project.say(args);
    assert_eq!(said.code, 0, "{}", said.stderr);
    said.stdout.replace(&project.home.path().display().to_string(), "[HOME]")
}

#[test]
fn agents_are_listed_and_shown() {
    let project = team(TEAM);
    insta::assert_snapshot!("agents_list", shown(&project, &["agents"]));
    insta::assert_snapshot!("agents_show", shown(&project, &["agents", "show", "lead"]));
    let list: Value = serde_json::from_str(&shown(&project, &["agents", "list", "--json"])).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 3);
    let reader: Value =
        serde_json::from_str(&shown(&project, &["agents", "show", "reader", "--json"])).unwrap();
    assert_eq!(list[1], reader);
    assert_eq!(reader["line"], 10, "{reader}");
    assert_eq!((&reader["temperature"], &reader["tools"][1]), (&Value::from(0.3), &Value::from("git_*")));
    assert!(shown(&project, &["config"]).contains("agents: lead, reader, writer"));
    let doctor = project.say(&["doctor", "--quick"]).stdout;
    assert!(doctor.contains("lead, reader, writer"), "{doctor}");

    let none = Project::new().say(&["agents"]);
    assert_eq!((none.code, none.stdout.as_str()), (0, ""));
    assert!(none.stderr.contains("hint: add [agents.NAME]"), "{}", none.stderr);
}

#[test]
fn what_is_wrong_with_an_agent_is_named_with_its_line() {
    let mistakes: &[&str] = &[
        "[agents.a]\ntools = [\n  \"read_file\",\n  \"raed_file\",\n]\n",
        "[agents.a]\ntools = [\"web_search\"]\n",
        "[agents.a]\ntools = [\"read_file\", \"read_file\"]\n",
        "[agents.a]\nmodel = \"smal\"\n[models.small]\nid = \"ollama_chat/qwen3:8b\"\n",
        "[agents.a]\nmodel = \"nobody/x\"\n",
        "[agents.a]\nagents = [\"b\"]\n",
        "[agents.a]\nagents = [\"b\"]\n[agents.b]\nmax_steps = 3\n",
        "[agents.a]\ndescription = \"A\"\nagents = [\"b\"]\n[agents.b]\ndescription = \"B\"\nagents = [\"c\"]\n\
         [agents.c]\ndescription = \"C\"\nagents = [\"a\"]\n",
        "[agents.a]\ndescription = \"A\"\nagents = [\"a\"]\n",
        "[agents.a]\n[agents.a]\n",
        "[agents.\"code-reader\"]\n",
        "[agents.class]\n",
        "[agents.gimlet]\n",
        "[agents.read_file]\n",
        "[agents.a]\nmax_stepz = 3\n",
        "[agents.a]\nmax_steps = 0\n",
        "[agents.a]\ntimeout = -1\n",
        "[agents.a]\ntemperature = 3.0\n",
        "[agents.a]\naction = \"prose\"\n",
        "[agents.a]\napprove = \"all\"\n",
        "[agents.a]\naction = \"tools\"\nexecutor = \"docker\"\n",
        "[agents.a]\naction = \"tools\"\nimports = [\"json\"]\n",
        "[agents.a]\nimports = [\"a b\"]\n",
        "[agents.a]\noutput = { type = \"nonsense\" }\n",
        "[agents.a]\noutput = \"missing.json\"\n",
        "agents = 3\n",
    ];
    let project = Project::new();
    let mut told = String::new();
    for text in mistakes {
        std::fs::write(project.home.path().join("config.toml"), text).unwrap();
        let said = project.say(&["agents"]);
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{text}{}", said.stderr);
        let stderr = said.stderr.replace(&format!("{}/", project.home.path().display()), "");
        assert!(stderr.contains("config.toml line "), "{text}{stderr}");
        told += &format!("{text}→ {stderr}\n");
    }
    insta::assert_snapshot!("agents_mistakes", told);
}

#[test]
fn a_run_refuses_an_agent_that_is_wrong_or_not_there() {
    let project = team(TEAM);
    let said = ask(&project, "raeder", "", &[]);
    assert_eq!(said.code, 2);
    assert!(
        said.stderr.contains("there is no agent `raeder`\nhint: did you mean `reader`?"),
        "{}",
        said.stderr
    );
    write_agents(&project, "[agents.a]\ntools = [\"nothing_like_it\"]\n");
    let said = ask(&project, "a", "", &[]);
    assert!(said.stderr.contains("config.toml line 4: agent `a`: there is no tool"), "{}", said.stderr);
}

#[test]
fn agents_of_a_project_are_off_until_its_file_is_trusted() {
    let project = Project::new();
    project.file("gimlet.toml", "[agents.lead]\nmax_steps = 2\n");
    let script = "[[reply]]\ntext = \"Hello.\"\n";
    let said = ask(&project, "lead", script, &[]);
    assert_eq!(said.code, 2);
    assert!(
        said.stderr.contains("gimlet.toml line 1 defines the agent `lead`, and is not trusted"),
        "{}",
        said.stderr
    );
    assert!(project.say(&["agents"]).stdout.contains("off: gimlet.toml is not trusted"));

    let trusted = project.say(&["trust", "gimlet.toml", "--yes"]);
    assert!(trusted.stderr.contains("line 1 defines the agent `lead`: max_steps = 2"), "{}", trusted.stderr);
    assert_eq!(ask(&project, "lead", script, &[]).stdout, "Hello.\n");
    project.file("gimlet.toml", "[agents.lead]\nmax_steps = 3\n");
    assert_eq!(ask(&project, "lead", script, &[]).code, 2, "a changed file asks again");
}

#[test]
fn a_schema_in_a_file_of_a_project_needs_trust_of_its_own() {
    let project = Project::new();
    project.file("gimlet.toml", "[agents.lead]\noutput = \"form.json\"\n");
    project.file("form.json", r#"{"type": "integer"}"#);
    assert_eq!(project.say(&["trust", "gimlet.toml", "--yes"]).code, 0);
    let said = project.say(&["agents"]);
    assert!(said.stderr.contains("form.json belongs to the project and is not trusted"), "{}", said.stderr);
    assert_eq!(project.say(&["trust", "form.json", "--yes"]).code, 0);
    let script = "[[reply]]\ntext = \"The answer is: 7\"\n[[reply]]\ntext = \"7\"\n";
    assert_eq!(ask(&project, "lead", script, &[]).stdout, "7\n");
}

#[test]
fn flags_are_about_the_agent_that_leads() {
    let project = team(
        "[agents.lead]\naction = \"code\"\nmax_steps = 7\ntoken_budget = 900\ntools = [\"read_file\"]\n",
    );
    let script = "[[reply]]\ntext = \"Hello.\"\n";
    let (code, told) = events(&project, "lead", script, &[]);
    let started = of_type(&told, "run.started")[0];
    assert_eq!(code, 0);
    assert_eq!((&started["agent"], &started["action"]), (&"lead".into(), &"code".into()));
    assert_eq!((&started["limits"]["max_steps"], &started["limits"]["max_tokens"]), (&7.into(), &900.into()));
    assert_eq!(started["tools"], serde_json::json!(["read_file"]));
    let (_, told) =
        events(&project, "lead", script, &["-a", "tools", "--max-steps", "2", "--token-budget", "50"]);
    let started = of_type(&told, "run.started")[0];
    assert_eq!((&started["action"], &started["limits"]["max_steps"]), (&"tools".into(), &2.into()));
    assert_eq!(started["limits"]["max_tokens"], 50);
    let shown = project.say(&["runs", "show", "last"]).stdout;
    assert!(shown.contains("· agent lead ·"), "{shown}");
}
