//! Whole runs with a real small model: Qwen2.5-Coder-1.5B behind llama.cpp, on both of its wires and in both action
//! formats, in a small repository.
//!
//! The real server's address is in `GIMLET_TEST_QWEN`; everyday tests play tapes of what it said. `GIMLET_RECORD=1` with
//! the real server makes the tapes anew.

#![allow(clippy::print_stderr, reason = "what the model said is worth reading in the log of a real run")]

use std::path::PathBuf;

use gimlet_testkit::TapeServer;
use serde_json::Value;

use crate::support::{Project, Said, of_type};

const MODEL: &str = "qwen2.5-coder-1.5b-instruct-q4_k_m";

/// One run, and what is asked of it.
struct Scenario {
    name: &'static str,
    provider: &'static str,
    action: &'static str,
    task: &'static str,
}

const SCENARIOS: [Scenario; 4] = [
    Scenario {
        name: "tools_openai",
        provider: "llamacpp",
        action: "tools",
        task: "What does calc.py do? Read it.",
    },
    Scenario {
        name: "tools_anthropic",
        provider: "anthropic",
        action: "tools",
        task: "Which files are in this repository?",
    },
    Scenario {
        name: "code_openai",
        provider: "llamacpp",
        action: "code",
        task: "Print the text of calc.py.",
    },
    Scenario {
        name: "code_anthropic",
        provider: "anthropic",
        action: "code",
        task: "Which files are in this repository?",
    },
];

fn scenario(name: &str) -> &'static Scenario {
    SCENARIOS.iter().find(|scenario| scenario.name == name).unwrap()
}

fn tape(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cli/tapes").join(format!("{name}.jsonl"))
}

/// Runs it and checks what must hold whatever the model says: every reply was read, what it asked for was done, and the
/// run came to an end of its own or at its limit.
fn check(scenario: &Scenario, server: &TapeServer) -> Vec<Value> {
    let project = Project::new();
    let url = server.url();
    let id = format!("{}/{MODEL}", scenario.provider);
    let args = ["--json", "-m", &id, "--api-base", &url, "-a", scenario.action, "--temperature", "0"];
    let limits = ["--max-steps", "3", "--max-tokens", "160", "--timeout", "400", scenario.task];
    let said = Said::from(project.gimlet(&[&args[..], &limits[..]].concat()).output().unwrap());
    assert!(
        [0, 4].contains(&said.code),
        "{}: exit {}\n{}\n{}",
        scenario.name,
        said.code,
        said.stdout,
        said.stderr
    );
    let events = said.events();
    let messages = of_type(&events, "model.message");
    assert!(!messages.is_empty());
    let steps = messages.len() - usize::from(said.code == 4);
    // Held to the form until a call has told something, more than names, or is made once more; code is left free.
    let tells =
        |event: &Value| event["ok"] == true && event["tool"] != "list_files" && event["result"]["count"] != 0;
    let first = of_type(&events, "tool.finished").into_iter().find(|event| tells(event));
    let looked = first.map_or(u64::MAX, |event| event["seq"].as_u64().unwrap());
    assert_eq!(messages[0]["constrained"] == true, scenario.action == "tools", "{}", scenario.name);
    for message in &messages[..steps] {
        let held = message["constrained"] == true;
        let may = scenario.action == "tools" && message["seq"].as_u64().unwrap() < looked;
        assert!(may || !held, "{}: {message}", scenario.name);
        // llama.cpp takes a schema on its OpenAI wire only; elsewhere the model is corrected until it acts.
        if scenario.provider == "llamacpp" {
            assert!(message["problem"].is_null(), "{}: {message}", scenario.name);
        }
    }
    let done = match scenario.action {
        "tools" => of_type(&events, "tool.finished").iter().filter(|event| event["ok"] == true).count(),
        _ => of_type(&events, "cell.finished").len(),
    };
    assert!(done > 0, "{}: {}", scenario.name, said.stdout);
    events
}

fn live(name: &str) {
    let address = std::env::var("GIMLET_TEST_QWEN").unwrap_or_else(|_| panic!("GIMLET_TEST_QWEN is not set"));
    let recorder = TapeServer::record(&address);
    let events = check(scenario(name), &recorder);
    for message in of_type(&events, "model.message") {
        eprintln!("{name}: {}", message["text"]);
    }
    if std::env::var_os("GIMLET_RECORD").is_some() {
        recorder.save(&tape(name));
    }
}

fn played(name: &str) {
    let player = TapeServer::play(&tape(name));
    check(scenario(name), &player);
    assert_eq!(player.left(), 0, "everything on the tape was asked for");
    // What the task wants is asked beside the conversation, once a tape is over.
    let asked = player.asked();
    let mut conversation = asked.iter().filter(|body| !body.to_string().contains("Sort what a person says"));
    assert!(conversation.all(|body| body["max_tokens"] == 160), "asked as it was told");
}

macro_rules! runs {
    ($($name:ident)*) => {
        mod real {
            $(
                #[test]
                #[ignore = "needs llama.cpp with Qwen2.5-Coder-1.5B, its address in GIMLET_TEST_QWEN"]
                fn $name() {
                    super::live(stringify!($name));
                }
            )*
        }
        mod taped {
            $(
                #[test]
                fn $name() {
                    super::played(stringify!($name));
                }
            )*
        }
    };
}

runs! { tools_openai tools_anthropic code_openai code_anthropic }
