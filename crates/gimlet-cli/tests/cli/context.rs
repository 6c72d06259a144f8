//! Long runs in small windows, through the real binary: what gives way, what stays, and what takes over when a model's
//! code cannot be read.

use gimlet_models::Script;
use gimlet_testkit::{ModelServer, Recorded, Rule};
use serde_json::Value;

use crate::small::{say, server};
use crate::support::{Project, of_type};

/// Reads so many files, saying what it found in the third, and then answers.
fn reading(steps: usize) -> String {
    let mut script = String::new();
    for n in 0..steps {
        let words = if n == 3 { "text = \"The port is 8471.\"\n" } else { "" };
        let name = format!("part{}.txt", n % 20);
        script += &format!(
            "[[reply]]\n{words}calls = [{{ name = \"read_file\", args = {{ path = \"{name}\", start_line = {}, end_line = 140 }} }}]\n",
            n / 20 + 1
        );
    }
    script + "[[reply]]\ntext = \"done\"\n"
}

fn parts() -> Project {
    let project = Project::new();
    for n in 0..20 {
        let fact = if n == 2 { "port = 8471\n" } else { "" };
        project
            .file(&format!("part{n}.txt"), &format!("{fact}{}", format!("line of part {n}\n").repeat(140)));
    }
    project
}

/// What gave way when, for whoever reads a failure.
fn relief(events: &[Value]) -> String {
    let line = |event: &Value| {
        format!(
            "{} {} → {} of {}, kept {}",
            event["type"], event["before"], event["after"], event["window"], event["kept_steps"]
        )
    };
    let told = events.iter().filter(|event| {
        event["type"].as_str().is_some_and(|kind| kind.starts_with("context") || kind.starts_with("run.f"))
    });
    told.map(line).collect::<Vec<_>>().join("\n")
}

fn size(request: &Recorded) -> usize {
    request.messages().iter().map(|message| message.to_string().len()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn forty_steps_fit_a_window_of_eight_thousand_tokens() {
    let summary = "[[conversation]]\nmatch = \"Sum up this run\"\n[[conversation.reply]]\ntext = \"Goal:\\n- read all\\nDecisions:\\n- noted the first time\\n- the port is 8471\"\n[[conversation.reply]]\ntext = \"I would rather not.\"\n[[conversation.reply]]\nfault = { kind = \"status\", status = 400 }\n[[conversation.reply]]\ntext = \"Goal:\\n- read all\"\n";
    let server = server(&format!("{}{summary}", reading(40)), "scripted", 8192).await;
    let url = server.url();
    let task = "read all, and call it Zebra";
    let args = [
        "--json",
        "-m",
        "ollama_chat/scripted",
        "--api-base",
        &url,
        "--max-steps",
        "50",
        "--tools",
        "all",
        task,
    ];
    let (project, said) = say(parts(), &args).await;
    assert_eq!(said.code, 0, "{}{}", said.stderr, relief(&said.events()));
    let events = said.events();
    let made = of_type(&events, "context.compacted");
    assert!((2..=4).contains(&made.len()), "{}", relief(&events));
    assert_eq!(
        (&made[0]["by"], &made[1]["by"]),
        (&Value::from("model"), &Value::from("code")),
        "in words is none"
    );
    for made in &made {
        assert!(made["text"].as_str().unwrap().starts_with(task), "{made}");
        assert!(made["after"].as_u64() < made["before"].as_u64());
    }
    let requests = server.requests();
    for request in &requests {
        assert!(size(request) / 4 < 8192 - 1024, "{} bytes", size(request));
    }
    let questions: Vec<&str> = requests
        .iter()
        .map(|request| request.task.as_str())
        .filter(|task| task.starts_with("Sum up"))
        .collect();
    assert!(questions.iter().all(|question| question.contains("The port is 8471.")), "it is in the log");
    assert!(
        !questions.iter().any(|question| question.contains("noted the first time")),
        "never from a summary"
    );
    let last = requests.last().unwrap();
    assert!(last.body.to_string().contains("call it Zebra"), "the person's words stay");
    server.assert_no_violations();
    let exported = project.say(&["runs", "export", "last"]).stdout;
    assert!(exported.contains("*Old steps were summed up to make room:*"), "{exported}");

    // A run that is taken up again sends what it would have sent.
    let (_, said) = say(project, &["resume", "last", "--json", "--api-base", &url, "and now?"]).await;
    assert_eq!(said.code, 1, "the script is over: {}", said.stderr);
    let again = server.requests();
    let (before, after) = (last.messages(), again.last().unwrap().messages());
    assert_eq!(before, &after[..before.len()]);
}

/// A file of source code as it is read in one go, of about 2500 characters.
fn module(n: usize) -> String {
    let setting = if n == 2 { "PORT = 8471\n" } else { "" };
    let functions = (0..14).map(|at| {
        format!(
            "\n\ndef step_{n}_{at}(records, limit=None):\n    \"\"\"Part {at} of stage {n}.\"\"\"\n    \
             kept = [r for r in records if r.stage == {n}]\n    return kept[:limit] if limit else kept\n"
        )
    });
    format!("import logging\n{setting}{}", functions.collect::<String>())
}

/// Has an agent read ten files and look up a fact of the third one; returns the requests of it.
async fn ten_steps(script: &str, more: &[&str], window: u64) -> Vec<Recorded> {
    let server = server(script, "scripted", window).await;
    let project = Project::new().ungated();
    project.config(
        "[gate]\nenabled = false\n[agents.reader]\ntools = [\"read_file\", \"rg_search\", \"git_*\"]\n",
    );
    for n in 0..9 {
        project.file(&format!("stage{n}.py"), &module(n));
    }
    let url = server.url();
    let args = ["--json", "-m", "ollama_chat/scripted", "--api-base", &url, "read all, and call it Zebra"];
    let (_, said) = say(project, &[&args, more].concat()).await;
    assert_eq!(said.code, 0, "{}{}", said.stderr, relief(&said.events()));
    server.assert_no_violations();
    let requests = server.requests();
    assert_eq!(requests.len(), 11, "ten steps and an answer, and nothing to sum up");
    let pruned = of_type(&said.events(), "context.pruned").len();
    assert_eq!(
        (1..=3).contains(&pruned),
        window == 8192,
        "seldom, since it costs the server its cache: {pruned}"
    );
    for request in &requests {
        let observations: Vec<&Value> =
            request.messages()[2..].iter().filter(|message| message["role"] != "assistant").collect();
        let kept = observations.len().min(3);
        let last = &observations[observations.len() - kept..];
        assert!(
            last.iter().all(|message| !message.to_string().contains("elided to save room")),
            "the last three steps stay word for word"
        );
    }
    requests
}

/// Everything that is sent: the tools, the instructions and the conversation.
fn sent(requests: &[Recorded]) -> usize {
    let tools = |request: &Recorded| request.body.get("tools").map_or(0, |tools| tools.to_string().len());
    requests.iter().map(|request| size(request) + tools(request)).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_steps_lose_a_third_and_no_fact() {
    let read = |n: usize| {
        let words = if n == 3 { "text = \"The port is 8471.\"\n" } else { "" };
        format!(
            "[[reply]]\n{words}calls = [{{ name = \"read_file\", args = {{ path = \"stage{n}.py\" }} }}]\n"
        )
    };
    let calls = (0..9).map(read).collect::<String>()
        + "[[reply]]\ncalls = [{ name = \"read_file\", args = { path = \"stage2.py\", end_line = 60 } }]\n"
        + "[[reply]]\nexpect = [\"PORT = 8471\"]\ntext = \"done\"\n";
    let cell = |code: String| format!("[[reply]]\ntext = '''\n```python\n{code}\n```\n'''\n");
    let code = (0..9)
        .map(|n| cell(format!("text{n} = read_file(\"stage{n}.py\")[\"lines\"]\nprint(text{n})")))
        .collect::<String>()
        + &cell("print(text2.splitlines()[1])".into())
        + "[[reply]]\nexpect = [\"PORT = 8471\"]\ntext = \"done\"\n";
    // The description of all tools is two fifths of what is sent, and cannot give way.
    for (script, more, stays) in [
        (&code, ["--action", "code"], 70),
        (&calls, ["--agent", "reader"], 70),
        (&calls, ["--action", "tools"], 81),
    ] {
        let whole = ten_steps(script, &more, 131_072).await;
        let pruned = ten_steps(script, &more, 8192).await;
        let (before, after) = (sent(&whole), sent(&pruned));
        assert!(after * 100 <= before * stays, "{more:?}: {after} of {before} bytes");
        let (long, short) = (size(&whole[9]), size(&pruned[9]));
        assert!(
            short * 10 <= long * 7,
            "{more:?}: the conversation after ten steps, {short} of {long} bytes"
        );
        let last = pruned[9].body["messages"].to_string();
        assert!(last.contains("call it Zebra") && last.contains(" in step 3, "), "{last}");
        assert!(last.contains("The port is 8471.") || last.contains("text2 (str, "), "{last}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_code_holds_is_named_when_what_it_printed_is_gone() {
    let mut script = String::new();
    for n in 0..13 {
        script += &format!(
            "[[reply]]\ntext = '''\n```python\ntext{n} = read_file(\"part{n}.txt\")[\"lines\"]\nprint(text{n})\n```\n'''\n"
        );
    }
    script += "[[reply]]\ntext = '''\n```python\nprint(text2.splitlines()[0], len(text2))\n```\n'''\n[[reply]]\nexpect = [\"port = 8471\"]\ntext = \"8471\"\n";
    let server = server(&script, "scripted", 8192).await;
    let url = server.url();
    let args = ["--json", "-a", "code", "-m", "ollama_chat/scripted", "--api-base", &url, "find the port"];
    let (_, said) = say(parts(), &args).await;
    assert_eq!(said.code, 0, "{}{}", said.stderr, relief(&said.events()));
    server.assert_no_violations();
    let events = said.events();
    assert!(!of_type(&events, "context.pruned").is_empty());
    let cells = of_type(&events, "cell.finished");
    assert_eq!(cells[0]["variables"][0]["name"], "text0");
    assert_eq!(cells[0]["variables"][0]["type"], "str");
    assert!(cells[0]["variables"][0]["size"].as_u64() > Some(1000), "{}", cells[0]);
    let requests = server.requests();
    let body = requests.last().unwrap().body.to_string();
    assert_eq!(body.matches("Variables that still hold their values: ").count(), 1, "one list, the latest");
    assert!(body.contains("text2 (str, "), "{body}");
    assert!(
        !requests[1].body.to_string().contains("still hold their values"),
        "only where something is gone"
    );
}

const UNREADABLE: &str = r#"
[[reply]]
text = '''
```python
print("a
```
'''
[[reply]]
text = '''
```python
print("b
```
'''
[[reply]]
text = '{"code": "print(("}'
[[reply]]
calls = [{ name = "read_file", args = { path = "calc.py" } }]
[[reply]]
text = "I was looking."
[[reply]]
calls = [{ name = "read_file", args = { path = "README.md" } }]
[[reply]]
text = "It subtracts."
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_writes_no_readable_code_calls_tools() {
    let script: Script = toml::from_str(UNREADABLE).unwrap();
    let server = ModelServer::builder(script)
        .models(["scripted"])
        .allow(Rule::Extends)
        .allow(Rule::Tools)
        .start()
        .await
        .unwrap();
    let url = server.url();
    let args = [
        "-a",
        "code",
        "-m",
        "ollama_chat/scripted",
        "--api-base",
        &url,
        "--max-steps",
        "4",
        "what is wrong?",
    ];
    let (project, said) = say(Project::new(), &args).await;
    assert_eq!((said.code, said.stdout.as_str()), (4, "I was looking.\n"), "{}", said.stderr);
    let reason =
        "warning: the model's code could not be read three times in a row; it calls tools from here on";
    assert!(
        said.stderr.contains(reason) && said.stderr.contains("fell back from code to tool calls"),
        "{}",
        said.stderr
    );
    let requests = server.requests();
    let held: Vec<bool> = requests.iter().map(|request| request.body["format"].is_object()).collect();
    assert_eq!(held[..3], [false, false, true], "a schema comes before the last attempt");
    let system = |request: &Recorded| request.messages()[0]["content"].as_str().unwrap().to_owned();
    assert!(system(&requests[2]).contains("python") && requests[2].body.get("tools").is_none());
    assert!(!system(&requests[3]).contains("python") && requests[3].body["tools"].is_array());
    let told = requests[3].messages().last().unwrap()["content"].to_string();
    assert!(told.contains("Write no code from here on"), "{told}");

    let (project, said) = say(project, &["resume", "last", "--api-base", &url, "--max-steps", "9"]).await;
    assert_eq!((said.code, said.stdout.as_str()), (0, "It subtracts.\n"), "{}", said.stderr);
    let requests = server.requests();
    assert_eq!(system(requests.last().unwrap()), system(&requests[3]), "it goes on with tools");
    let events = project.say(&["runs", "show", "last", "--json"]).events();
    assert_eq!(of_type(&events, "action.changed")[0]["action"], "tools");
    assert_eq!(of_type(&events, "run.finished").last().unwrap()["work"]["fallbacks"], 1);
    assert_eq!(of_type(&events, "tool.finished").len(), 2);
    assert!(server.violations().is_empty());
}
