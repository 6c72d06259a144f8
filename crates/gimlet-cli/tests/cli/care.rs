//! What a model of any size gets, through the real binary: few tools, its true window, long enough replies, and words
//! about what went wrong.

use gimlet_models::Script;
use gimlet_testkit::{ModelServer, Recorded, Rule, Windows};
use serde_json::{Value, json};

use crate::small::{say, server};
use crate::support::{Project, of_type};

/// The names of the tools that a request offers natively.
fn tools(request: &Recorded) -> Vec<String> {
    let names = request.body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    names.iter().filter_map(|tool| tool["function"]["name"].as_str().map(str::to_owned)).collect()
}

const ANSWER: &str = "order = \"turns\"\n[[reply]]\ntext = \"It subtracts.\"\n";

async fn serving(script: &str, model: &str, windows: Windows, context: u64) -> ModelServer {
    let script: Script = toml::from_str(script).unwrap();
    ModelServer::builder(script).models([model]).context(context).windows(windows).start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_model_has_ten_tools_and_a_short_first_request() {
    for (model, id) in [("qwen3:8b", "ollama_chat/qwen3:8b"), ("qwen3:8b", "llamacpp/qwen3:8b")] {
        let server = server(ANSWER, model, 8192).await;
        let url = server.url();
        let project = Project::new();
        let (project, said) = say(project, &["-m", id, "--api-base", &url, "What is wrong?"]).await;
        assert_eq!(said.code, 0, "{}", said.stderr);
        let first = &server.requests()[0];
        let names = tools(first);
        assert!(names.len() <= 10 && names.contains(&"edit_file".to_owned()), "{names:?}");
        assert!(!names.contains(&"propose_patch".to_owned()), "{names:?}");
        assert!(first.bytes <= 3 * 1024, "{id}: {} bytes:\n{:#}", first.bytes, first.body);
        // All of them by a word, some of them by their names.
        let (project, _) = say(project, &["-m", id, "--api-base", &url, "--tools", "all", "What?"]).await;
        let all = tools(server.requests().iter().rfind(|request| !request.asks_aim).unwrap());
        assert!(all.len() >= 18 && all.contains(&"propose_patch".to_owned()), "{all:?}");
        let args = ["-m", id, "--api-base", &url, "--tools", "read_file,propose_patch", "What?"];
        let (_, _) = say(project, &args).await;
        let some = tools(server.requests().iter().rfind(|request| !request.asks_aim).unwrap());
        assert_eq!(some, ["read_file", "propose_patch"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_window_is_the_servers_or_chosen_and_told() {
    let window = |server: &ModelServer| server.requests()[0].body["options"]["num_ctx"].clone();
    // Running with enough: taken as it is, and nothing is said.
    let running = serving(ANSWER, "qwen3:8b", Windows::Running(12_288), 40_960).await;
    let url = running.url();
    let args = ["-m", "ollama_chat/qwen3:8b", "--api-base", &url, "hello"];
    let (project, said) = say(Project::new(), &args).await;
    assert_eq!((said.code, window(&running)), (0, json!(12_288)), "{}", said.stderr);
    assert!(!said.stderr.contains("window:"), "{}", said.stderr);
    // A flag says otherwise.
    let mut flagged = args.to_vec();
    flagged.extend(["--context", "9000"]);
    let (project, said) = say(project, &flagged).await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(running.requests().last().unwrap().body["options"]["num_ctx"], 9000);
    // Nothing told: by the model's maximum and the memory, and said once.
    let untold = serving(ANSWER, "qwen3:8b", Windows::Untold, 40_960).await;
    let url = untold.url();
    let (project, said) = say(project, &["-m", "ollama_chat/qwen3:8b", "--api-base", &url, "hello"]).await;
    let chosen = window(&untold).as_u64().unwrap();
    assert!([8192, 16_384, 32_768, 40_960].contains(&chosen), "{chosen}");
    assert_eq!(said.stderr.matches("window: ").count(), 1, "{}", said.stderr);
    assert!(said.stderr.contains(&format!("window: {chosen} ")), "{}", said.stderr);
    // A setting is as good as a flag, and `config show` says whose it is.
    project.config("[model]\ncontext = 10000\n");
    let (project, said) = say(project, &["-m", "ollama_chat/qwen3:8b", "--api-base", &url, "hello"]).await;
    assert!(!said.stderr.contains("window:"), "{}", said.stderr);
    assert_eq!(untold.requests().last().unwrap().body["options"]["num_ctx"], 10_000);
    let shown = project.say(&["config", "show"]);
    let line = shown.stdout.lines().find(|line| line.contains("MODEL_CONTEXT")).unwrap().to_owned();
    assert!(line.contains("10000") && line.contains("config.toml"), "{line}");
    let refused = project.say(&["--context", "12", "hello"]);
    assert!(refused.code == 2 && refused.stderr.contains("2048 or more"), "{}", refused.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn lm_studio_tells_what_it_has_loaded() {
    // Long files fill the window it has loaded, though the model could take more.
    let mut script = String::from("order = \"turns\"\n");
    for n in 0..8 {
        script.push_str(&format!(
            "[[reply]]\ncalls = [{{ name = \"read_file\", args = {{ path = \"long{n}.txt\" }} }}]\n"
        ));
    }
    script.push_str("[[reply]]\ntext = \"done\"\n");
    let server = serving(&script, "qwen3-8b", Windows::Studio { loaded: 9216 }, 40_960).await;
    let project = Project::new();
    for n in 0..8 {
        project.file(&format!("long{n}.txt"), &format!("line of file {n}\n").repeat(140));
    }
    let url = server.url();
    let args = ["--json", "-m", "lmstudio/qwen3-8b", "--api-base", &url, "read all"];
    let (_, said) = say(project, &args).await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    let events = said.events();
    let pruned = of_type(&events, "context.pruned");
    assert!(!pruned.is_empty() && pruned[0]["window"] == 9216, "{pruned:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_the_server_cannot_read_is_asked_for_again_and_then_as_text() {
    let llama = r#"{"error":{"code":500,"message":"Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error at line 1","type":"server_error"}}"#;
    let ollama = r#"{"error":"error parsing tool call: raw='{\"path\":\"calc.py\"}]', err=invalid character ']' after top-level value"}"#;
    for (id, body) in [("llamacpp/qwen3:8b", llama), ("ollama_chat/qwen3:8b", ollama)] {
        let fault =
            format!("[[reply]]\nfault = {{ kind = \"status\", status = 500, body = '''{body}''' }}\n");
        let script = format!(
            r#"
order = "turns"
[[reply]]
calls = [{{ name = "read_file", args = {{ path = "README.md" }} }}, {{ name = "list_files" }}]
{fault}{fault}
[[reply]]
expect = ["as plain JSON in your reply"]
text = '{{"name": "read_file", "arguments": {{"path": "calc.py"}}}}'
[[reply]]
expect = ["return a - b"]
text = "It subtracts."
"#
        );
        let script: Script = toml::from_str(&script).unwrap();
        let builder = ModelServer::builder(script).models(["qwen3:8b"]);
        let server = builder.allow(Rule::Extends).allow(Rule::Tools).start().await.unwrap();
        let url = server.url();
        let args = ["--json", "-m", id, "--api-base", &url, "What is wrong?"];
        let (_, said) = say(Project::new(), &args).await;
        assert_eq!(said.code, 0, "{id}: {}\n{}", said.stderr, said.stdout);
        let events = said.events();
        assert_eq!(of_type(&events, "run.finished")[0]["answer"], "It subtracts.");
        let told = of_type(&events, "feedback");
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0]["text"].as_str().unwrap().contains("not valid JSON"), "{}", told[0]);
        let changed = of_type(&events, "action.changed");
        assert_eq!(
            (changed[0]["action"].as_str(), changed[0]["dialect"].as_str()),
            (Some("tools"), Some("text"))
        );
        let requests = server.requests();
        assert!(tools(&requests[1]).len() > 5 && tools(requests.last().unwrap()).is_empty());
        let last = requests.last().unwrap().messages().iter().map(Value::to_string).collect::<String>();
        assert!(!last.contains("\"role\":\"tool\"") && last.contains("Result of read_file:"), "{last}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_may_be_as_long_as_the_file_it_rewrites() {
    let script = r#"
order = "turns"
[[reply]]
calls = [{ name = "read_file", args = { path = "long.py" } }]
[[reply]]
text = "It is long."
"#;
    let long = "value = value + 1  # one more\n".repeat(140);
    let most = |request: &Recorded| request.body["options"]["num_predict"].as_u64().unwrap();
    for (flags, grows) in [(&[][..], true), (&["--max-tokens", "700"][..], false)] {
        let server = server(script, "qwen3:8b", 32_768).await;
        let url = server.url();
        let project = Project::new();
        project.file("long.py", &long);
        let mut args = vec!["-m", "ollama_chat/qwen3:8b", "--api-base", &url, "What is in long.py?"];
        args.extend(flags);
        let (_, said) = say(project, &args).await;
        assert_eq!(said.code, 0, "{}", said.stderr);
        let requests = server.requests();
        let requests: Vec<&Recorded> = requests.iter().filter(|request| !request.asks_aim).collect();
        if grows {
            assert_eq!(most(requests[0]), 1024);
            assert!(most(requests[1]) > 1200 && most(requests[1]) <= 8192, "{}", most(requests[1]));
        } else {
            assert_eq!((most(requests[0]), most(requests[1])), (700, 700), "what a person set is kept to");
        }
    }
}

#[test]
fn a_native_call_that_was_cut_is_told_as_cut() {
    let script = r#"
order = "turns"
[[reply]]
calls = [{ name = "edit_file", args = "{\"path\": \"calc.py\", \"old_text\": \"    ret" }]
finish = "length"
[[reply]]
expect = ["Your call of edit_file was cut off at the token limit, so nothing was done."]
text = "It subtracts."
"#;
    let (code, events) = Project::new().ungated().events(script, &[]);
    assert_eq!(code, 0, "{events:#?}");
    assert!(of_type(&events, "tool.requested").is_empty(), "{events:#?}");
    assert_eq!(of_type(&events, "feedback")[0]["reason"], "cut");
}

#[test]
fn a_call_inside_thinking_is_told_as_such() {
    let call = r#"{"name": "read_file", "arguments": {"path": "calc.py"}}"#;
    for reply in
        [format!("text = '''<think>I look. {call}</think>'''"), format!("thinking = '''I look. {call}'''")]
    {
        let script = format!(
            "order = \"turns\"\n[[reply]]\n{reply}\n[[reply]]\nexpect = [\"Your call of read_file was inside your thinking\"]\ntext = \"It subtracts.\"\n"
        );
        let (code, events) = Project::new().ungated().events(&script, &[]);
        assert_eq!(code, 0, "{reply}: {events:#?}");
        assert!(of_type(&events, "tool.requested").is_empty(), "nothing in thinking is executed");
    }
}

#[test]
fn a_new_syntax_error_is_told_at_once_in_every_format() {
    let edit = r#"edit_file(path="calc.py", old_text="    return a - b", new_text="    return (a + b")"#;
    let tools = r#"
order = "turns"
[[reply]]
calls = [{ name = "edit_file", args = { path = "calc.py", old_text = "    return a - b", new_text = "    return (a + b" } }]
[[reply]]
expect = ["new_syntax_errors", "calc.py: line 2"]
text = "I see."
"#;
    let code = format!(
        "order = \"turns\"\n[[reply]]\ntext = '''```python\nprint({edit})\n```'''\n[[reply]]\nexpect = [\"new_syntax_errors\", \"calc.py: line 2\"]\ntext = \"I see.\"\n"
    );
    for (action, script) in [("tools", tools), ("code", code.as_str())] {
        let args = ["--action", action, "--approve", "all"];
        let (code, events) = Project::new().ungated().events(script, &args);
        assert_eq!(code, 0, "{action}: {events:#?}");
    }
    let fine = r#"
order = "turns"
[[reply]]
calls = [{ name = "edit_file", args = { path = "calc.py", old_text = "    return a - b", new_text = "    return a + b" } }]
[[reply]]
text = "It adds."
"#;
    let (_, events) = Project::new().ungated().events(fine, &["--approve", "all"]);
    assert_eq!(of_type(&events, "tool.finished")[0]["result"]["new_syntax_errors"], Value::Null);
}

#[test]
fn a_change_of_prose_or_comments_needs_no_test_run() {
    let edit = |path: &str, old: &str, new: &str| {
        let args = json!({ "path": path, "old_text": old, "new_text": new });
        format!(
            "order = \"turns\"\naim = \"change\"\n[[reply]]\ncalls = [{{ name = \"read_file\", args = {{ path = \"{path}\" }} }}]\n[[reply]]\ncalls = [{{ name = \"edit_file\", args = {} }}]\n[[reply]]\ntext = \"Done.\"\n[[reply]]\ntext = \"Done.\"\n[[reply]]\ntext = \"Done.\"\n",
            toml::Value::try_from(&args).unwrap()
        )
    };
    for (path, old, new, refusals) in [
        ("README.md", "# Calc", "# Calculator", 0),
        ("calc.py", "    return a - b", "    # The sum.\n    return a - b", 0),
        ("calc.py", "    return a - b", "    return a + b  # The sum.", 2),
    ] {
        let (code, events) = Project::new().events(&edit(path, old, new), &["--approve", "all"]);
        assert_eq!(code, 0, "{events:#?}");
        assert_eq!(of_type(&events, "feedback").len(), refusals, "{path}: {new}: {events:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_of_some_size_is_mapped_in_the_first_request_where_the_window_allows_it() {
    for (context, action, mapped) in [(32_768, "tools", true), (32_768, "code", true), (8192, "tools", false)]
    {
        let server = server(ANSWER, "qwen3:8b", context).await;
        let url = server.url();
        let project = Project::new();
        for n in 0..12 {
            project.file(&format!("part{n}.py"), &format!("def part_{n}(x):\n    return x + {n}\n"));
        }
        let args = ["-m", "ollama_chat/qwen3:8b", "--api-base", &url, "-a", action, "What does part_7 do?"];
        let (_, said) = say(project, &args).await;
        assert_eq!(said.code, 0, "{}", said.stderr);
        let told = server.requests()[0].messages().iter().map(Value::to_string).collect::<String>();
        assert_eq!(told.contains("A map of this repository"), mapped, "{context} {action}: {told}");
        if mapped {
            let place = |name: &str| told.find(&format!("{name}.py\\n")).unwrap_or(usize::MAX);
            assert!(place("part7") < place("part3"), "what the task is about comes first: {told}");
            assert!(told.contains("def part_7(x)"), "{told}");
        }
    }
}

/// The rows of `gimlet models --json` by name.
async fn rows(project: Project, url: &str) -> (Project, Vec<Value>) {
    let (project, said) = say(project, &["models", "--json", "--api-base", url]).await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    (project, serde_json::from_str(&said.stdout).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_fails_its_probe_is_not_chosen_before_a_good_one() {
    let nothing = "[[reply]]\ntext = \"I would rather not.\"\n".repeat(15);
    let script: Script = toml::from_str(&nothing).unwrap();
    let models = ["qwen3:8b", "qwen2.5-coder:14b"];
    let server = ModelServer::builder(script).models(models).start().await.unwrap();
    let url = server.url();
    let chosen = |rows: &[Value]| {
        let row = rows.iter().find(|row| row["chosen"] == true).unwrap();
        (row["name"].as_str().unwrap().to_owned(), row["tier"].as_str().unwrap().to_owned())
    };
    let (project, before) = rows(Project::new(), &url).await;
    assert_eq!(chosen(&before), ("qwen3:8b".into(), "best".into()), "a best model before a good one");
    for row in &before {
        assert!(row["why"].is_string() && row["evidence"].is_string() && row["window"].is_string(), "{row}");
    }
    // The scripted server has one digest for all its models, so the grade is about both.
    let (project, said) =
        say(project, &["models", "probe", "ollama_chat/qwen3:8b", "--api-base", &url]).await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    let (project, said) = say(project, &["models", "--api-base", &url]).await;
    assert_eq!(said.code, 2, "nothing is left to choose: {}{}", said.stdout, said.stderr);
    let line = said.stdout.lines().find(|line| line.contains("qwen3:8b")).unwrap();
    assert!(line.contains("unfit") && line.contains("probe: 0 of 15 right"), "{line}");
    let (project, said) = say(project, &["models", "probe", "--reset"]).await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    let (_, after) = rows(project, &url).await;
    assert_eq!(chosen(&after).0, "qwen3:8b");
}
