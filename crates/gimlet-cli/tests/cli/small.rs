//! Care for small models, through the real binary: windows that fill, replies that keep no form, servers that tell what
//! they have, and grades that count.

use gimlet_models::Script;
use gimlet_testkit::{ModelServer, Recorded};
use serde_json::{Value, json};

use crate::support::{Project, Said, of_type};

/// Runs the binary while the server serves.
pub(crate) async fn say(project: Project, args: &[&str]) -> (Project, Said) {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    tokio::task::spawn_blocking(move || {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut command = project.gimlet(&args);
        command.env("OPENAI_API_KEY", "sk-test").env("ANTHROPIC_API_KEY", "sk-ant-test");
        let said = Said::from(command.output().unwrap());
        (project, said)
    })
    .await
    .unwrap()
}

pub(crate) async fn server(script: &str, model: &str, context: u64) -> ModelServer {
    let script: Script = toml::from_str(script).unwrap();
    ModelServer::builder(script).models([model]).context(context).start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_fills_is_pruned_before_it_overflows() {
    let mut script = String::from("order = \"turns\"\n");
    for n in 0..8 {
        script.push_str(&format!(
            "[[reply]]\ncalls = [{{ name = \"read_file\", args = {{ path = \"long{n}.txt\" }} }}]\n"
        ));
    }
    script.push_str("[[reply]]\ntext = \"done\"\n");
    let server = server(&script, "scripted", 8192).await;
    let project = Project::new();
    for n in 0..8 {
        project.file(&format!("long{n}.txt"), &format!("line of file {n}\n").repeat(140));
    }
    let url = server.url();
    let args = ["--json", "-m", "ollama_chat/scripted", "--api-base", &url, "read all"];
    let (_, said) = say(project, &args).await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    let events = said.events();
    let pruned = of_type(&events, "context.pruned");
    assert!(!pruned.is_empty(), "it was not pruned");
    assert_eq!(pruned[0]["window"], 8192);
    assert!(pruned[0]["elided"][0]["of"].as_str().unwrap().contains("read_file"), "{}", pruned[0]);
    // The server checks that nothing but an old observation changed, and got the window each time.
    server.assert_no_violations();
    for request in server.requests() {
        assert_eq!(request.body["options"]["num_ctx"], 8192);
        let size: usize = request.messages().iter().map(|message| message.to_string().len()).sum();
        assert!(size / 4 < 8192, "{size} bytes");
    }
}

/// The schema a request carries, wherever its wire has it.
fn schema(request: &Recorded) -> Option<&Value> {
    let body = &request.body;
    [
        &body["format"],
        &body["response_format"]["json_schema"]["schema"],
        &body["output_config"]["format"]["schema"],
    ]
    .into_iter()
    .find(|schema| schema.is_object())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_keeps_no_form_is_held_to_it() {
    let script = r#"
    order = "turns"
    [[reply]]
    text = '<tool_call>{"name": "read_file", "arguments": {"path": </tool_call>'
    [[reply]]
    text = '<tool_call>read_file calc.py</tool_call>'
    [[reply]]
    text = '{"name": "read_file", "arguments": {"path": "calc.py"}}'
    [[reply]]
    text = '{"name": "final_answer", "arguments": {"answer": "it subtracts"}}'
    "#;
    for model in ["ollama_chat/scripted", "openai/scripted", "anthropic/scripted"] {
        let server = server(script, "scripted", 32_768).await;
        let url = server.url();
        let (_, said) = say(Project::new(), &["-m", model, "--api-base", &url, "what is wrong?"]).await;
        assert_eq!((said.code, said.stdout.as_str()), (0, "it subtracts\n"), "{model}: {}", said.stderr);
        server.assert_no_violations();
        let held: Vec<bool> = server.requests().iter().map(|request| schema(request).is_some()).collect();
        assert_eq!(held, [false, false, true, true], "{model}");
        let requests = server.requests();
        let actions = schema(&requests[3]).unwrap()["oneOf"].as_array().unwrap();
        let names: Vec<&str> =
            actions.iter().filter_map(|action| action["properties"]["name"]["const"].as_str()).collect();
        assert!(names.contains(&"read_file") && names.last() == Some(&"final_answer"), "{model}: {names:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_files_is_asked_as_its_model_wants_it() {
    let script = "[[reply]]\ntext = '''```json\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"calc.py\"}}\n```'''\n[[reply]]\nexpect = ['return a - b']\ntext = \"it subtracts\"\n";
    let server = server(script, "/models/Qwen2.5-Coder-7B-Instruct-Q4_K_M.gguf", 32_768).await;
    let url = server.url();
    let name = "llamacpp/qwen2.5-coder-7b-instruct-q4_k_m";
    let (project, said) =
        say(Project::new(), &["-m", name, "-a", "tools", "--api-base", &url, "what is wrong?"]).await;
    assert_eq!((said.code, said.stdout.as_str()), (0, "it subtracts\n"), "{}", said.stderr);
    let requests = server.requests();
    assert!(requests[0].body.get("tools").is_none(), "this family prints its calls");
    assert!(requests[0].messages()[0]["content"].as_str().unwrap().contains("read_file("));
    assert!(requests[0].body["stop"].is_array());
    assert_eq!(
        requests[0].body["model"], "/models/Qwen2.5-Coder-7B-Instruct-Q4_K_M.gguf",
        "its exact name there"
    );

    let (_, said) = say(project, &["-m", "llamacpp/qwen3", "--api-base", &url, "hello"]).await;
    assert_eq!(said.code, 2, "{}", said.stderr);
    assert!(said.stderr.contains("not installed") && !said.stderr.contains("ollama pull"), "{}", said.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_very_small_model_is_shown_the_files_and_held_until_it_has_looked() {
    let script = r#"
    order = "turns"
    [[reply]]
    text = '{"name": "list_files", "arguments": {}}'
    [[reply]]
    text = '{"name": "read_file", "arguments": {"path": "calc.py"}}'
    [[reply]]
    text = "it subtracts"
    "#;
    let server = server(script, "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 8192).await;
    let url = server.url();
    let name = "llamacpp/qwen2.5-coder-1.5b-instruct-q4_k_m";
    let (_, said) =
        say(Project::new(), &["-m", name, "-a", "tools", "--api-base", &url, "what is wrong?"]).await;
    assert_eq!((said.code, said.stdout.as_str()), (0, "it subtracts\n"), "{}", said.stderr);
    let requests = server.requests();
    let held: Vec<bool> = requests.iter().map(|request| schema(request).is_some()).collect();
    assert_eq!(held, [true, true, false], "names of files tell it nothing");
    let messages = requests[0].messages();
    let files = messages[1]["content"].as_str().unwrap();
    assert!(files.starts_with("The files of this repository") && files.contains("\ncalc.py"), "{files}");
}

#[tokio::test(flavor = "multi_thread")]
async fn code_that_comes_to_nothing_is_told_what_to_write() {
    let script = r##"
    order = "turns"
    [[reply]]
    text = '''```python
# It multiplies.
```'''
    [[reply]]
    expect = ['only a comment. If it is your answer, reply with final_answer("It multiplies.")']
    text = '''```python
def list_files(glob="**", limit=100):
    return glob.glob('''
    finish = "length"
    [[reply]]
    expect = ["list_files is there already", "such as print(list_files())"]
    text = '''```python
import calc
```'''
    [[reply]]
    expect = ["print(read_file('calc.py'))"]
    text = '''```python
print(read_file('calc.py'))
```'''
    [[reply]]
    expect = ["return a - b"]
    text = "It subtracts."
    "##;
    let server = server(script, "scripted", 8192).await;
    let url = server.url();
    let args = ["-m", "ollama_chat/scripted", "--api-base", &url, "-a", "code", "what is wrong?"];
    let (_, said) = say(Project::new(), &args).await;
    assert_eq!((said.code, said.stdout.as_str()), (0, "It subtracts.\n"), "{}", said.stderr);
    server.assert_no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_very_small_model_changes_a_file_in_one_step_and_it_can_be_undone() {
    let script = r#"
    order = "turns"
    aim = "change"
    [[reply]]
    text = '{"name": "read_file", "arguments": {"path": "calc.py"}}'
    [[reply]]
    text = "It subtracts."
    [[reply]]
    expect = ["nothing was changed: call edit_file"]
    text = '{"name": "edit_file", "arguments": {"path": "calc.py", "old_text": "a - b", "new_text": "a + b"}}'
    [[reply]]
    expect = ["patch_"]
    text = '{"name": "run_cmd", "arguments": {"cmd": "cat calc.py"}}'
    [[reply]]
    text = "It adds now."
    "#;
    let server = server(script, "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 8192).await;
    let url = server.url();
    let name = "llamacpp/qwen2.5-coder-1.5b-instruct-q4_k_m";
    let task = "Fix the bug in calc.py.";
    let (project, said) =
        say(Project::new(), &["-m", name, "-a", "tools", "--api-base", &url, "--approve", "all", task]).await;
    assert_eq!((said.code, said.stdout.as_str()), (0, "It adds now.\n"), "{}", said.stderr);
    let requests = server.requests();
    let actions = schema(&requests[0]).unwrap()["oneOf"].as_array().unwrap();
    let names: Vec<&str> =
        actions.iter().filter_map(|action| action["properties"]["name"]["const"].as_str()).collect();
    assert!(names.contains(&"edit_file") && !names.contains(&"propose_patch"), "{names:?}");
    let calc = || std::fs::read_to_string(project.repo.path().join("calc.py")).unwrap();
    assert!(calc().contains("return a + b\n"), "{}", calc());
    assert_eq!(project.say(&["runs", "undo", "last"]).code, 0);
    assert!(calc().contains("return a - b\n"), "{}", calc());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grade_is_kept_and_decides() {
    // Never a call of its own, natively or as JSON, but good code: three rounds of five tasks.
    let round = r#"
    [[reply]]
    text = "I would add them."
    [[reply]]
    text = "The sum is known."
    [[reply]]
    text = "```python\nprint(2 + 3)\n```"
    [[reply]]
    text = "I would set it."
    [[reply]]
    text = "Sorry."
    "#;
    let answer = "[[reply]]\ntext = \"graded\"\n";
    let server = server(&format!("{}{answer}", round.repeat(3)), "qwen3:8b", 32_768).await;
    let url = server.url();
    let (project, said) =
        say(Project::new(), &["models", "probe", "ollama_chat/qwen3:8b", "--api-base", &url]).await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stdout.contains("code in a fence         ●●●"), "{}", said.stdout);
    assert!(said.stdout.contains("will be used with       --action code"), "{}", said.stdout);
    let (project, said) =
        say(project, &["--json", "-m", "ollama_chat/qwen3:8b", "--api-base", &url, "hello"]).await;
    let events = said.events();
    assert_eq!(of_type(&events, "run.started")[0]["action"], "code", "{}", said.stderr);
    let (project, said) = say(project, &["models", "--api-base", &url]).await;
    assert!(said.stdout.contains("failed its probe"), "{}", said.stdout);
    assert!(said.stderr.contains("it works with --action code: the probe saw Python"), "{}", said.stderr);
    let (project, said) = say(project, &["models", "probe", "--reset"]).await;
    assert!(said.code == 0 && said.stderr.contains("forgot 1 grade"), "{}", said.stderr);
    let (_, said) = say(project, &["models", "--api-base", &url]).await;
    assert!(said.stderr.contains("it works with --action tools: native tool calls"), "{}", said.stderr);
}

/// The configuration of a team that routes between hosted models, as they write it; only the address is a local one.
const TEAM: &str = r#"
[providers.anthropic]
wire = "anthropic"
base = "@"
keys = ["ANTHROPIC_API_KEY"]
place = "hosted"
context = 200000

[models.sonnet]
id = "anthropic/claude-sonnet-4-20250514"
temperature = 0.2
max_tokens = 4096
requests_per_minute = 60

[models.opus]
id = "anthropic/claude-opus-4-5-20251101"
temperature = 0.1
max_tokens = 4096

[models.haiku]
id = "anthropic/claude-3-haiku-20240307"
temperature = 0.3
max_tokens = 4096

[routers.claude-agent]
models = ["sonnet", "haiku"]
strategy = "simple-shuffle"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_teams_models_and_router_work_as_written() {
    let script: Script = toml::from_str("order = \"turns\"\n[[reply]]\ntext = \"hello\"\n").unwrap();
    let server = ModelServer::builder(script).start().await.unwrap();
    let mut project = Project::new();
    project.config(&TEAM.replace('@', &server.url()));
    let known = [
        ("claude-sonnet-4-20250514", 0.2),
        ("claude-opus-4-5-20251101", 0.1),
        ("claude-3-haiku-20240307", 0.3),
    ];
    for (name, models) in [("opus", 1..2), ("haiku", 2..3), ("sonnet", 0..1), ("claude-agent", 0..3)] {
        let (back, said) = say(project, &["-m", name, &format!("hello from {name}")]).await;
        project = back;
        assert_eq!((said.code, said.stdout.as_str()), (0, "hello\n"), "{name}: {}", said.stderr);
        let requests = server.requests();
        let body = &requests.last().unwrap().body;
        let (model, temperature) = known.into_iter().find(|(model, _)| body["model"] == *model).unwrap();
        assert!(known[models].iter().any(|(known, _)| *known == model), "{name} asked {model}");
        assert_eq!(body["temperature"].as_f64(), Some(temperature), "{name}");
        assert_eq!(body["max_tokens"], 4096);
        assert_eq!(requests.last().unwrap().header("x-api-key"), Some("sk-ant-test"));
    }
    server.assert_no_violations();
}

#[tokio::test(flavor = "multi_thread")]
async fn money_has_an_end_and_an_unknown_price_is_refused() {
    let script = "order = \"turns\"\n[[reply]]\ncalls = [{ name = \"repo_info\" }]\nusage = { input = 1000000, output = 0 }\n[[reply]]\ntext = \"paid\"\n";
    let script: Script = toml::from_str(script).unwrap();
    let server = ModelServer::builder(script).start().await.unwrap();
    let project = Project::new();
    let models = "[models.cheap]\nid = \"anthropic/claude-sonnet-4-20250514\"\nmax_dollars = 2.5\n\n[models.secret]\nid = \"anthropic/claude-next\"\nmax_dollars = 100\n";
    let facts = "model = [{ name = \"claude-sonnet-4\", price = { input = 3.0, output = 15.0 } }]\n";
    let provider = TEAM.split("[models.sonnet]").next().unwrap().replace('@', &server.url());
    project.config(&format!("{provider}{facts}\n{models}"));
    let (project, said) = say(project, &["-m", "cheap", "look"]).await;
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(said.stderr.contains("3.0000 of 2.5000 US dollars"), "{}", said.stderr);
    let (_, said) = say(project, &["-m", "secret", "look again"]).await;
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(said.stderr.contains("the price of anthropic/claude-next is not known"), "{}", said.stderr);
    assert_eq!(server.requests().len(), 1, "nothing was spent on it");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_recorded_plays_again_without_its_server() {
    let script = "order = \"turns\"\n[[reply]]\ncalls = [{ name = \"read_file\", args = { path = \"calc.py\" } }]\n[[reply]]\ntext = \"it subtracts\"\n";
    let server = server(script, "scripted", 32_768).await;
    let project = Project::new();
    let tape = project.home.path().join("replies.jsonl").display().to_string();
    let config = format!(
        "[models.kept]\nid = \"openai/scripted\"\napi_base = \"{}\"\nrecord = \"{tape}\"\n",
        server.url()
    );
    project.config(&config);
    let (project, said) = say(project, &["-m", "kept", "what is wrong?"]).await;
    assert_eq!((said.code, said.stdout.as_str()), (0, "it subtracts\n"), "{}", said.stderr);
    let (_, said) = say(project, &["-m", &format!("replay/{tape}"), "what is wrong?"]).await;
    assert_eq!((said.code, said.stdout.as_str()), (0, "it subtracts\n"), "{}", said.stderr);
    assert_eq!(server.requests().len(), 2, "the second time nobody was asked");
}

#[test]
fn words_in_the_place_of_a_program_are_no_answer() {
    let words = "[[reply]]\ntext = '{\"code\": \"The code is already correct.\"}'\n";
    let project = Project::new().ungated();
    let script = format!("order = \"turns\"\n{words}[[reply]]\ntext = \"It adds.\"\n");
    let (code, events) = project.events(&script, &["--action", "code"]);
    assert_eq!((code, &events.last().unwrap()["answer"]), (0, &json!("It adds.")), "{events:?}");
    let told = of_type(&events, "feedback")[0]["text"].to_string();
    assert!(told.contains("There is no Python in `code`, only words."), "{told}");
    let (code, events) =
        project.events(&format!("order = \"turns\"\n{}", words.repeat(3)), &["--action", "code"]);
    let answer = &events.last().unwrap()["answer"];
    assert_eq!((code, answer), (0, &json!("The code is already correct.")), "said three times it is meant");
}

/// What a very small model reads before its task: where it is, and which lines the task is about.
#[tokio::test(flavor = "multi_thread")]
async fn a_very_small_model_is_shown_the_lines_its_task_is_about() {
    let server = server("[[reply]]\ntext = \"done\"\n", "qwen2.5-coder-1.5b-instruct", 8192).await;
    let url = server.url();
    for (action, names) in [("tools", true), ("code", false)] {
        let project = Project::new().ungated();
        let args = [
            "-m",
            "llamacpp/qwen2.5-coder-1.5b-instruct",
            "--api-base",
            &url,
            "-a",
            action,
            "What does calc return?",
        ];
        say(project, &args).await;
        let request = server.requests().pop().unwrap();
        let told = request.messages().iter().map(Value::to_string).collect::<String>();
        assert!(
            told.contains(
                "Lines in which words of the task occur:\\nREADME.md:1: # Calc\\ncalc.py:2: return a - b"
            ),
            "{told}"
        );
        assert_eq!(told.contains("The files of this repository, by name only"), names, "{action}: {told}");
    }
    let (_, _) = say(
        Project::new().ungated(),
        &["-m", "llamacpp/qwen2.5-coder-1.5b-instruct", "--api-base", &url, "Say good morning."],
    )
    .await;
    let told = server.requests().pop().unwrap().messages().iter().map(Value::to_string).collect::<String>();
    assert!(!told.contains("words of the task"), "{told}");
}

/// A value that was shown has a name, and whoever looks for it by another is told.
#[test]
fn the_value_that_was_shown_can_be_had_again() {
    let script = r#"
order = "turns"
[[reply]]
text = "```python\nsorted(file for file in list_files()['files'])\n```"
[[reply]]
text = "```python\nfinal_answer(value)\n```"
[[reply]]
expect = ["name 'value' is not defined\nThe value that was shown before has the name _ here."]
text = "```python\nfinal_answer(_)\n```"
"#;
    let said = Project::new().ungated().run(script, &["--action", "code"]);
    assert_eq!((said.code, said.stdout.contains("README.md")), (0, true), "{}{}", said.stdout, said.stderr);
}
