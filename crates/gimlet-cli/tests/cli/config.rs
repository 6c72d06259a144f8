//! Settings: who wins, what is refused and how it is said, and that each one does what it says.

use crate::support::{Project, Said, named_model};
use gimlet_models::Script;
use gimlet_testkit::ModelServer;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

/// A setting: its variable, its place in a file, its flag, and values by layer (flag, environment, .env, project, user).
type Case = (&'static str, &'static str, Option<&'static str>, [&'static str; 5]);

const KEYS: &[Case] = &[
    ("MODEL_ID", "model.id", Some("--model"), ["'a/1'", "'a/2'", "'a/3'", "'a/4'", "'a/5'"]),
    (
        "MODEL_API_BASE",
        "model.api_base",
        Some("--api-base"),
        [
            "'http://localhost:1'",
            "'http://localhost:2'",
            "'http://localhost:3'",
            "'https://x.test'",
            "'http://[::1]:5'",
        ],
    ),
    ("MODEL_TEMPERATURE", "model.temperature", Some("--temperature"), ["0.1", "0.2", "0.3", "1.5", "2.0"]),
    ("MODEL_MAX_TOKENS", "model.max_tokens", Some("--max-tokens"), ["1", "2", "3", "4", "5"]),
    ("MODEL_CONTEXT", "model.context", Some("--context"), ["2048", "4096", "8192", "16384", "32768"]),
    ("MODEL_REQUESTS_PER_MINUTE", "model.requests_per_minute", None, ["", "2", "3", "4", "5"]),
    ("AGENT_MAX_STEPS", "agent.max_steps", Some("--max-steps"), ["1", "2", "3", "4", "5"]),
    // An untrusted project can only tighten these: the values shrink with the layer's strength.
    ("AGENT_MAX_DEPTH", "agent.max_depth", None, ["", "1", "2", "3", "4"]),
    ("AGENT_MAX_AGENTS", "agent.max_agents", None, ["", "2", "3", "4", "5"]),
    ("AGENT_PLAN", "agent.plan", None, ["", "4", "true", "false", "3"]),
    ("AGENT_INSTRUCTIONS", "agent.instructions", None, ["", "true", "false", "true", "false"]),
    ("AGENT_APPROVE", "agent.approve", None, ["", "'plan'", "'never'", "'ask'", "'edits'"]),
    ("MEMORY_ENABLED", "memory.enabled", None, ["", "true", "false", "true", "false"]),
    ("MEMORY_EMBEDDINGS", "memory.embeddings", None, ["", "'a:2'", "'a:3'", "'a:4'", "'a:5'"]),
    ("GATE_ENABLED", "gate.enabled", None, ["", "false", "true", "false", "false"]),
    ("PHOENIX_ENABLED", "trace.enabled", None, ["", "true", "false", "true", "false"]),
    (
        "PHOENIX_ENDPOINT",
        "trace.endpoint",
        None,
        [
            "",
            "'http://localhost:2/v1'",
            "'http://localhost:3/v1'",
            "'http://localhost:4/v1'",
            "'https://y.test/v1'",
        ],
    ),
    ("VALIDATION_MAX_CHARS", "validation.max_chars", None, ["", "2", "3", "4", "5"]),
    ("VALIDATION_MAX_LINES", "validation.max_lines", None, ["", "2", "3", "4", "5"]),
    ("VALIDATION_MAX_LINE_RANGE", "validation.max_line_range", None, ["", "2", "3", "4", "5"]),
    ("TRUNCATION_MAX_CHARS", "truncation.max_chars", None, ["", "2", "3", "4", "5"]),
    ("TRUNCATION_MAX_LINES", "truncation.max_lines", None, ["", "2", "3", "4", "5"]),
    ("TRUNCATION_MAX_LIST_ITEMS", "truncation.max_list_items", None, ["", "2", "3", "4", "5"]),
    ("SANDBOX_IMAGE", "sandbox.image", None, ["", "'i:2'", "'i:3'", "'i:4'", "'i:5'"]),
    ("SANDBOX_TIMEOUT", "sandbox.timeout", None, ["", "2", "0.5", "4", "5"]),
    ("SANDBOX_PYTHON", "sandbox.python", None, ["", "'p/2'", "'p/3'", "'p/4'", "'p/5'"]),
    ("SANDBOX_PYTHON_WRITES", "sandbox.python_writes", None, ["", "true", "false", "true", "false"]),
    (
        "SANDBOX_TESTS",
        "sandbox.tests",
        Some("--validation-tests"),
        ["'t 1'", "'t 2'", "'t 3'", "'t 4'", "'t 5'"],
    ),
    ("LOG_LEVEL", "log_level", None, ["", "'ERROR'", "'WARNING'", "'INFO'", "'OFF'"]),
    ("SUPPRESS_WARNINGS", "suppress_warnings", None, ["", "false", "true", "false", "true"]),
    ("TERMINAL_NOTIFY", "terminal.notify", None, ["", "true", "false", "true", "false"]),
    ("TERMINAL_VI", "terminal.vi", None, ["", "true", "false", "true", "false"]),
];

const SOURCES: [&str; 5] = ["flag", "environment", ".env", "project", "user"];

/// The settings by name, as `config show --json` tells them.
fn shown(said: &Said) -> Vec<Value> {
    assert_eq!(said.code, 0, "{}", said.stderr);
    let all: Value = serde_json::from_str(&said.stdout).unwrap();
    all["settings"].as_array().unwrap().clone()
}

#[test]
fn the_table_of_keys_is_whole() {
    let rows = shown(&Project::new().say(&["config", "show", "--json"]));
    let told: Vec<_> =
        rows.iter().map(|row| (row["key"].as_str().unwrap(), row["path"].as_str().unwrap())).collect();
    let known: Vec<_> = KEYS.iter().map(|(variable, path, ..)| (*variable, *path)).collect();
    assert_eq!(told, known);
    let example =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.env.example")).unwrap();
    let guide =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md")).unwrap();
    let in_example: Vec<_> = example
        .lines()
        .filter_map(|line| line.strip_prefix("# ")?.split_once('=').map(|(name, _)| name))
        .collect();
    assert_eq!(in_example, KEYS.iter().map(|(variable, ..)| *variable).collect::<Vec<_>>());
    for (variable, path, ..) in KEYS {
        assert!(
            guide.contains(&format!("`{variable}`")) && guide.contains(&format!("`{path}`")),
            "{variable}"
        );
    }
}

/// For every key at once: whoever says something wins over everyone below, whoever else speaks.
#[test]
fn the_strongest_word_counts_for_every_key() {
    let mut runner = TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
    let project = Project::new();
    let masks = proptest::collection::vec(0_u8..32, KEYS.len());
    let result = runner.run(&masks, |masks| {
        let (mut args, mut env) = (vec!["config", "show", "--json"], Vec::new());
        let (mut dotenv, mut files) = (String::new(), [String::new(), String::new()]);
        // Keys without a table come first in a file.
        let mut order: Vec<usize> = (0..KEYS.len()).collect();
        order.sort_by_key(|at| KEYS[*at].1.contains('.'));
        for at in order {
            let (variable, path, flag, values) = &KEYS[at];
            let said = |layer: usize| masks[at] >> layer & 1 == 1;
            if let (Some(flag), true) = (flag, said(0)) {
                args.extend([*flag, values[0].trim_matches('\'')]);
            }
            if said(1) {
                env.push((*variable, values[1].trim_matches('\'')));
            }
            if said(2) {
                dotenv += &format!("{variable}={}\n", values[2]);
            }
            for (layer, file) in [(3, 0), (4, 1)] {
                if said(layer) {
                    files[file] += &format!("{path} = {}\n", values[layer]);
                }
            }
        }
        project.file(".env", &dotenv);
        project.file("gimlet.toml", &files[0]);
        project.config(&files[1]);
        let rows = shown(&Said::from(project.gimlet(&args).envs(env).output().unwrap()));
        for (at, (variable, _, flag, values)) in KEYS.iter().enumerate() {
            let winner = (0..5).find(|layer| masks[at] >> layer & 1 == 1 && (*layer > 0 || flag.is_some()));
            let row = &rows[at];
            match winner {
                Some(layer) => {
                    prop_assert_eq!(&row["source"], SOURCES[layer], "{} {}", variable, row);
                    let value = values[layer].trim_matches('\'');
                    let told = row["value"].as_str().map_or_else(|| row["value"].to_string(), str::to_owned);
                    prop_assert!(
                        told == value
                            || told.parse::<f64>().ok() == value.parse().ok() && value.parse::<f64>().is_ok(),
                        "{} is {} and not {}",
                        variable,
                        told,
                        value
                    );
                }
                None => prop_assert_eq!(&row["source"], "default", "{} {}", variable, row),
            }
        }
        Ok(())
    });
    result.unwrap();
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let files: &[&str] = &[
        "[model]\n\ntemperature = \"hot\"\n",
        "[model]\ntemperatur = 0.1\n",
        "[modell]\nid = \"x\"\n",
        "[model]\napi_key = \"sk-secret\"\n",
        "[agent]\nmax_steps = 0\n",
        "max_steps = 3\n",
        "[trace]\nendpoint = \"nowhere\"\n",
        "model = 3\n",
        "log_level = \"LOUD\"\n",
        "[sandbox]\ntimeout = -1\n",
        "[model\n",
        "[models.a]\nid = \"x\"\ntemprature = 1\n",
        "[models.a]\nid = \"x\"\nmax_tokens = \"many\"\n",
        "[providers.x]\nwire = \"open_ai\"\n",
        "[zebra]\n",
    ];
    let project = Project::new();
    let mut told = String::new();
    for text in files {
        project.file("gimlet.toml", text);
        let said = project.say(&["config", "show"]);
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{text}");
        assert!(!said.stderr.contains("sk-secret"));
        told += &format!("{text}→ {}\n", said.stderr);
    }
    std::fs::remove_file(project.repo.path().join("gimlet.toml")).unwrap();
    project.file(".env", "# mine\nMODEL_MAX_TOKENS=lots\n");
    let said = project.say(&["config", "show"]);
    assert_eq!(said.code, 2);
    told += &format!(".env MODEL_MAX_TOKENS=lots\n→ {}\n", said.stderr);
    std::fs::remove_file(project.repo.path().join(".env")).unwrap();
    let said = Said::from(project.gimlet(&["config"]).env("SUPPRESS_WARNINGS", "maybe").output().unwrap());
    assert_eq!(said.code, 2);
    told += &format!("SUPPRESS_WARNINGS=maybe\n→ {}", said.stderr);
    insta::assert_snapshot!("config_mistakes", told);
}

#[test]
fn everything_is_shown_with_its_source_and_nothing_secret() {
    let project = Project::new();
    project
        .file(".env", "MODEL_ID=ollama_chat/qwen3:8b\nMODEL_API_BASE=http://me:pw@localhost:1/?token=t0p\n");
    project.file("gimlet.toml", "[agent]\nmax_steps = 9\n[models.small]\nid = \"ollama_chat/qwen3:8b\"\n");
    project.config("[models.big]\nid = \"anthropic/claude-x\"\n");
    let keys = project.home.path().join("keys.toml");
    std::fs::write(&keys, "GROQ_API_KEY = \"gsk-hidden\"\n").unwrap();
    set_mode(&keys, 0o600);
    let mut command = project.gimlet(&["config", "show", "--temperature", "0.2"]);
    let said = Said::from(
        command.env("OPENAI_API_KEY", "sk-hidden").env("SANDBOX_TIMEOUT", "2.5").output().unwrap(),
    );
    assert_eq!(said.code, 0, "{}", said.stderr);
    for secret in ["hidden", "pw@", "t0p"] {
        assert!(!said.stdout.contains(secret), "{secret}: {}", said.stdout);
    }
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(&regex_of(project.home.path()), "[HOME]");
    settings.add_filter(" +", " ");
    settings.bind(|| insta::assert_snapshot!("config_show", said.stdout));
}

/// Paths have no characters that mean something in a pattern but the dot.
fn regex_of(path: &std::path::Path) -> String {
    path.display().to_string().replace('.', "\\.")
}

#[cfg(unix)]
fn set_mode(path: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(unix)]
#[test]
fn a_key_file_others_can_read_is_refused() {
    let project = Project::new();
    let keys = project.home.path().join("keys.toml");
    std::fs::write(&keys, "OPENAI_API_KEY = \"sk-hidden\"\n").unwrap();
    set_mode(&keys, 0o644);
    let said = project.say(&["-m", "openai/x", "hello"]);
    assert_eq!(said.code, 2, "{}", said.stderr);
    assert!(said.stderr.contains("hint: chmod 600") && !said.stderr.contains("hidden"), "{}", said.stderr);
}

#[test]
fn the_file_that_init_writes_changes_nothing_and_is_written_once() {
    let project = Project::new();
    let before = shown(&project.say(&["config", "show", "--json"]));
    let said = project.say(&["config", "init"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(project.say(&["config", "init", "--user"]).code, 0);
    assert_eq!(shown(&project.say(&["config", "show", "--json"])), before);
    let again = project.say(&["config", "init"]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("gimlet.toml is there already"), "{}", again.stderr);
    let text = std::fs::read_to_string(project.repo.path().join("gimlet.toml")).unwrap();
    insta::assert_snapshot!("config_init", text);
    // Every line in it is right once it is not a comment any more.
    let live: String = text
        .lines()
        .map(|line| line.strip_prefix("# ").unwrap_or(line))
        .filter(|line| line.starts_with('[') || line.contains(" = ") || line.is_empty())
        .map(|line| format!("{line}\n"))
        .collect();
    project.config(&live);
    let said = project.say(&["config", "show"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stdout.contains("models by name: sonnet, team"), "{}", said.stdout);
}

#[test]
fn keys_and_the_data_directory_never_come_from_dotenv() {
    let project = Project::new();
    project.file(".env", "OPENAI_API_KEY=sk-fromfile\nGIMLET_HOME=/nowhere\nMODEL_TEMPRATURE=1\nOTHER=x\n");
    let said = project.say(&["-m", "openai/x", "hello"]);
    assert_eq!(said.code, 2, "{}", said.stderr);
    insta::assert_snapshot!("dotenv_warnings", said.stderr);
    let said = Said::from(project.gimlet(&["config", "show"]).env("LOG_LEVEL", "ERROR").output().unwrap());
    assert_eq!(said.stderr, "", "diagnostics below the level are not shown");
}

#[test]
fn dotenv_never_reaches_a_child() {
    let project = Project::new();
    project.file(".env", "MODEL_ID=ollama_chat/from-dotenv\nFOO=from-dotenv\n");
    let said = project.say(&["tools", "call", "run_cmd", r#"{"cmd": "env"}"#, "--approve", "all"]);
    assert!(!said.stdout.contains("from-dotenv"), "{}", said.stdout);
}

#[test]
fn limits_of_results_take_effect() {
    let project = Project::new();
    let lines: String = (1..=400).map(|n| format!("line {n}\n")).collect();
    project.file("long.txt", &lines);
    let read = |args: &str| {
        let said = project.say(&["tools", "call", "read_file", args]);
        serde_json::from_str::<Value>(&said.stdout).unwrap()
    };
    assert_eq!(read(r#"{"path": "long.txt"}"#)["end"], 150);
    project.file(
        "gimlet.toml",
        "[truncation]\nmax_lines = 7\nmax_list_items = 2\n[validation]\nmax_line_range = 5\n",
    );
    assert_eq!(read(r#"{"path": "long.txt"}"#)["end"], 7);
    let refused = read(r#"{"path": "long.txt", "start_line": 1, "end_line": 6}"#);
    assert_eq!(refused["error"], "INVALID_LINE_RANGE");
    assert_eq!(read(r#"{"path": "long.txt", "start_line": 1, "end_line": 5}"#)["end"], 5);
    for n in 0..5 {
        project.file(&format!("f{n}.txt"), "x");
    }
    let said = project.say(&["tools", "call", "list_files", r#"{"glob": "*.txt"}"#]);
    let listed: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(listed["truncated"], true, "{listed}");
}

#[test]
fn the_step_limit_of_a_file_stops_a_run_and_the_flag_wins() {
    let script = "order = \"turns\"\n[[reply]]\ncalls = [{ name = \"repo_info\", args = {} }]\n[[reply]]\ntext = \"so far\"\n";
    let project = Project::new();
    project.file("gimlet.toml", "[agent]\nmax_steps = 1\n");
    let (code, events) = project.events(script, &[]);
    assert_eq!((code, &events[0]["limits"]["max_steps"]), (4, &json!(1)));
    let (_, events) = project.events(script, &["--max-steps", "2"]);
    assert_eq!(events[0]["limits"]["max_steps"], 2);
}

/// A script that ends at once, on a server of its own.
async fn server() -> ModelServer {
    let script: Script = toml::from_str("[[reply]]\ntext = \"done\"\n").unwrap();
    ModelServer::builder(script).models(["small", "big"]).start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_file_says_about_the_model_is_what_the_server_gets() {
    let server = server().await;
    let url = server.url();
    tokio::task::spawn_blocking(move || {
        let project = Project::new();
        project.file(
            "gimlet.toml",
            &format!(
                "[model]\nid = \"openai/small\"\napi_base = \"{url}\"\ntemperature = 0.7\nmax_tokens = 77\n"
            ),
        );
        let said = Said::from(project.gimlet(&["hello"]).env("OPENAI_API_KEY", "sk-mine").output().unwrap());
        assert_eq!((said.code, said.stdout.as_str()), (0, "done\n"), "{}", said.stderr);
        assert!(said.stderr.contains("the key for openai is not sent to 127.0.0.1"), "{}", said.stderr);
    })
    .await
    .unwrap();
    let asked = server.requests();
    assert_eq!(asked[0].body["model"], "small");
    assert_eq!(asked[0].body["temperature"].to_string(), "0.7");
    assert!(asked[0].body.to_string().contains("77"), "{}", asked[0].body);
    assert_eq!(asked[0].header("authorization"), None, "a key goes nowhere only a project names");
}

/// The configuration of a team, as it is written.
const TEAM: &str = r#"
[models.sonnet]
id = "anthropic/claude-sonnet-4-20250514"
temperature = 0.2
max_tokens = 4096
requests_per_minute = 60

[models.opus]
id = "anthropic/claude-opus-4-5-20251101"
temperature = 0.1

[models.haiku]
id = "anthropic/claude-3-haiku-20240307"
temperature = 0.3

[routers.claude-agent]
models = ["sonnet", "haiku"]
strategy = "simple-shuffle"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn named_models_routers_and_providers_of_the_users_file() {
    let script: Script = toml::from_str("order = \"turns\"\n[[reply]]\ntext = \"done\"\n").unwrap();
    let server = ModelServer::builder(script).start().await.unwrap();
    let url = server.url();
    tokio::task::spawn_blocking(move || {
        let project = Project::new();
        let provider = format!(
            "[providers.anthropic]\nwire = \"anthropic\"\nbase = \"{url}\"\nkeys = [\"ANTHROPIC_API_KEY\"]\nplace = \"hosted\"\ncontext = 200000\n"
        );
        project.config(&format!("{provider}{TEAM}"));
        // An address meant for another model is not theirs.
        project.file(".env", "MODEL_API_BASE=http://127.0.0.1:9\n");
        for name in ["claude-agent", "opus"] {
            let mut command = project.gimlet(&["-m", name, "hello"]);
            let said = Said::from(command.env("ANTHROPIC_API_KEY", "sk-ant-mine").output().unwrap());
            assert_eq!((said.code, said.stdout.as_str()), (0, "done\n"), "{}", said.stderr);
        }
    })
    .await
    .unwrap();
    let asked = server.requests();
    let temperature = |model: &str| match model {
        "claude-sonnet-4-20250514" => "0.2",
        "claude-3-haiku-20240307" => "0.3",
        "claude-opus-4-5-20251101" => "0.1",
        other => panic!("{other}"),
    };
    assert_eq!(asked.len(), 2);
    for asked in &asked {
        assert_eq!(asked.body["temperature"].to_string(), temperature(asked.body["model"].as_str().unwrap()));
        assert_eq!(asked.body["max_tokens"], 4096);
        assert_eq!(asked.header("x-api-key"), Some("sk-ant-mine"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_taken_up_asks_the_named_model_as_its_name_says() {
    let script = "order = \"turns\"\n[[reply]]\ncalls = [{ name = \"run_cmd\", args = { cmd = \"touch made\" } }]\n[[reply]]\ntext = \"Done.\"\n";
    let server = ModelServer::builder(toml::from_str::<Script>(script).unwrap()).start().await.unwrap();
    let entry = named_model("cool", &server.url(), "temperature = 0.7\n");
    tokio::task::spawn_blocking(move || {
        let project = Project::new();
        project.config(&entry);
        assert_eq!(project.say(&["-m", "cool", "make it"]).code, 3);
        let waiting: Vec<Value> =
            serde_json::from_str(&project.say(&["approvals", "--json"]).stdout).unwrap();
        assert_eq!(project.say(&["approve", waiting[0]["request"]["id"].as_str().unwrap()]).code, 0);
        let said = project.say(&["resume", "last"]);
        assert_eq!((said.code, said.stdout.as_str()), (0, "Done.\n"), "{}", said.stderr);

        assert_eq!(project.say(&["runs", "fork", "last", "--at", "2"]).code, 0);
        project.config(&entry.replace("openai/small", "openai/other"));
        let said = project.say(&["resume", "last"]);
        let changed = "note: `cool` was openai/small when the run began and is openai/other now\n";
        assert!(said.stderr.contains(changed), "{}", said.stderr);
    })
    .await
    .unwrap();
    let asked = server.requests();
    let temperatures: Vec<String> =
        asked.iter().map(|request| request.body["temperature"].to_string()).collect();
    assert_eq!(temperatures, ["0.7", "0.7", "0.7"]);
    assert_eq!(asked[2].body["model"], "other");
}
