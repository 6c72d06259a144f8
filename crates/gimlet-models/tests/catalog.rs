//! What servers tell about their models, which one is taken, and what people see.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod raw_server;

use std::time::Duration;

use gimlet_models::catalog::table::table;
use gimlet_models::catalog::{
    Action, Calls, ChooseError, Families, Installed, Scorecards, Server, Tier, choose, probe,
};
use gimlet_models::transport::{Timeouts, Transport};
use gimlet_models::wire::{Think, Wire};
use gimlet_models::{ScriptedModel, Settings};
use raw_server::{Act, answer};
use serde_json::json;

fn server(base: &str, wire: Wire) -> Server {
    let base: reqwest::Url = base.parse().unwrap();
    let timeouts =
        Timeouts { connect: Duration::from_secs(20), idle: Duration::from_secs(20), ..Timeouts::LOCAL };
    Server::new(wire, base.clone(), Transport::new(&base, timeouts, None, None).unwrap())
}

fn json_answer(value: serde_json::Value) -> Act {
    Act::Send(answer("200 OK", &[("content-type", "application/json")], value.to_string()))
}

#[tokio::test]
async fn ollama_tells_sizes_windows_and_abilities() {
    let tags = json!({"models": [{
        "name": "qwen3:8b", "model": "qwen3:8b", "modified_at": "2026-01-01T00:00:00Z", "size": 5_225_388_164_u64,
        "digest": "500a1f067a9f", "details": {"format": "gguf", "family": "qwen3", "families": ["qwen3"], "parameter_size": "8.2B", "quantization_level": "Q4_K_M"}
    }]});
    let show = json!({
        "parameters": "repeat_penalty 1\nnum_ctx                        32768\nstop \"<|im_end|>\"",
        "details": {"parameter_size": "8.2B", "quantization_level": "Q4_K_M"},
        "model_info": {"general.architecture": "qwen3", "general.parameter_count": 8_190_735_360_u64, "qwen3.context_length": 40960,
            "qwen3.block_count": 36, "qwen3.attention.head_count": 32, "qwen3.attention.head_count_kv": 8, "qwen3.attention.key_length": 128},
        "capabilities": ["completion", "tools", "thinking"]
    });
    let running = json!({"models": [{"name": "qwen3:8b", "model": "qwen3:8b", "size": 6_000_000_000_u64, "context_length": 4096}]});
    let raw =
        raw_server::Server::start(vec![json_answer(tags), json_answer(running), json_answer(show)]).await;
    let models = server(&raw.base, Wire::Ollama).list().await.unwrap();
    assert_eq!(
        models,
        [Installed {
            name: "qwen3:8b".into(),
            bytes: Some(5_225_388_164),
            parameters: Some(8_190_735_360),
            quantisation: Some("Q4_K_M".into()),
            context: Some(40960),
            set_context: Some(32768),
            loaded_context: Some(4096),
            token_bytes: Some(147_456),
            free_memory: None,
            tools: Some(true),
            thinks: Some(true),
            writes: Some(true),
            digest: Some("500a1f067a9f".into()),
        }]
    );
    let asked = raw.asked();
    assert!(asked[0].head.starts_with("GET /api/tags "), "{}", asked[0].head);
    assert!(asked[2].head.starts_with("POST /api/show ") && asked[2].body["model"] == "qwen3:8b");

    let profile = Families::built_in().unwrap().profile(&models[0]);
    assert_eq!((profile.tier, profile.calls, profile.window.tokens), (Tier::Best, Calls::Native, 32768));
    assert_eq!(profile.think, Think::Off);
}

#[tokio::test]
async fn llama_cpp_tells_its_real_window() {
    let models = json!({"object": "list", "data": [{"id": "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "object": "model", "owned_by": "llamacpp",
        "meta": {"vocab_type": 2, "n_vocab": 151_936, "n_ctx_train": 32768, "n_embd": 1536, "n_params": 1_543_714_304_u64, "size": 1_111_376_896_u64}}]});
    let props = json!({"default_generation_settings": {"id": 0, "n_ctx": 4096, "params": {}}, "total_slots": 1,
        "model_path": "/m/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "chat_template": "…"});
    let raw = raw_server::Server::start(vec![json_answer(models), json_answer(props)]).await;
    let found = server(&format!("{}/v1", raw.base), Wire::OpenAi).list().await.unwrap();
    assert_eq!((found[0].context, found[0].set_context), (Some(32768), Some(4096)));
    assert_eq!(found[0].quantisation.as_deref(), Some("Q4_K_M"));
    let paths: Vec<_> =
        raw.asked().iter().map(|asked| asked.head.lines().next().unwrap().to_owned()).collect();
    assert_eq!(paths, ["GET /v1/models HTTP/1.1", "GET /props HTTP/1.1"]);
    let profile = Families::built_in().unwrap().profile(&found[0]);
    assert_eq!(
        (profile.family.as_deref(), profile.calls, profile.window.tokens),
        (Some("qwen2.5-coder"), Calls::Text, 4096)
    );
}

#[tokio::test]
async fn other_servers_tell_what_they_tell() {
    let models = json!({"data": [{"id": "Qwen/Qwen3-8B", "max_model_len": 32768}, {"id": "plain"}]});
    let nothing = Act::Send(answer("404 Not Found", &[], "Not Found"));
    let raw = raw_server::Server::start(vec![json_answer(models), nothing]).await;
    let found = server(&raw.base, Wire::OpenAi).list().await.unwrap();
    assert_eq!((found[0].set_context, found[1].clone()), (Some(32768), Installed::named("plain")));
}

#[tokio::test]
async fn a_dead_server_is_not_an_empty_one() {
    let base = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    assert_eq!(server(&base, Wire::Ollama).list().await.unwrap_err().code(), "MODEL_UNREACHABLE");

    let raw = raw_server::Server::start(vec![json_answer(json!({"models": []}))]).await;
    assert_eq!(server(&raw.base, Wire::Ollama).list().await.unwrap(), []);
    let raw = raw_server::Server::start(vec![Act::Send(answer("200 OK", &[], "<html>router</html>"))]).await;
    assert_eq!(server(&raw.base, Wire::Ollama).list().await.unwrap_err().code(), "MODEL_PROTOCOL");
}

fn installed(names: &[&str]) -> Vec<Installed> {
    names.iter().map(|name| Installed::named(*name)).collect()
}

fn pick(wanted: Option<&str>, names: &[&str]) -> Result<String, ChooseError> {
    let families = Families::built_in().unwrap();
    let profile = |model: &Installed| families.profile(model);
    let choice =
        choose(wanted, &installed(names), &families, profile, Wire::Ollama, "http://localhost:11434")?;
    Ok(choice.model.name)
}

#[test]
fn the_best_installed_model_is_taken_by_its_exact_name() {
    for (names, chosen) in [
        (&["qwen3:8b"][..], "qwen3:8b"),
        // A preference decides among equals: a good model is not taken before a best one.
        (&["gemma2:9b", "qwen2.5-coder:14b", "qwen3:8b"], "qwen3:8b"),
        (&["qwen2.5:14b", "mistral-small:24b", "qwen2.5-coder:14b"], "qwen2.5-coder:14b"),
        (&["llama3.1:8b", "qwen2.5-coder:14b-instruct-q4_K_M"], "qwen2.5-coder:14b-instruct-q4_K_M"),
        (&["qwen2.5-coder:7b", "qwen3:8b"], "qwen3:8b"),
        (&["qwen3:8b", "qwen3:14b", "qwen3:32b", "qwen3:0.6b"], "qwen3:14b"),
        (&["qwen3:235b", "qwen3:32b"], "qwen3:32b"),
        (&["phi3:mini", "llama3.1:8b"], "llama3.1:8b"),
        (&["my-own-model:latest"], "my-own-model:latest"),
        (&["deepseek-r1:8b", "my-own-model:latest"], "my-own-model:latest"),
        (&["deepseek-r1:8b", "llama3.2:1b"], "deepseek-r1:8b"),
    ] {
        assert_eq!(pick(None, names).unwrap(), chosen, "{names:?}");
    }
}

#[test]
fn a_named_model_is_taken_exactly_or_not_at_all() {
    assert_eq!(pick(Some("qwen3:8b"), &["qwen3:8b", "qwen3:14b"]).unwrap(), "qwen3:8b");
    assert_eq!(pick(Some("qwen3"), &["qwen3:8b"]).unwrap(), "qwen3:8b", "never a phantom qwen3:latest");
    assert_eq!(pick(Some("qwen3"), &["qwen3:8b", "qwen3:latest"]).unwrap(), "qwen3:latest");
    assert_eq!(pick(Some("llama3.2:1b"), &["llama3.2:1b"]).unwrap(), "llama3.2:1b", "the user decides");

    let error = pick(Some("qwen3:14b"), &["gemma2:9b", "qwen3:8b"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the model `qwen3:14b` is not installed at http://localhost:11434; the nearest is `qwen3:8b`"
    );
    assert_eq!(
        error.hint().unwrap(),
        "get it with `ollama pull qwen3:14b`, or name an installed model with --model"
    );
    assert!(matches!(pick(Some("qwen3:latest"), &["qwen3:8b"]), Err(ChooseError::Absent { .. })));
    assert!(matches!(pick(Some("qwen3"), &["qwen3:8b", "qwen3:14b"]), Err(ChooseError::Ambiguous { .. })));
}

#[test]
fn nothing_to_take_is_said_with_its_reason() {
    let error = pick(None, &[]).unwrap_err();
    assert_eq!(error.to_string(), "the server at http://localhost:11434 runs, but has no models");
    assert_eq!(error.hint().unwrap(), "get one with `ollama pull qwen2.5-coder:14b`");
    let error = pick(None, &["llama3.2:1b", "nomic-embed-text:latest"]).unwrap_err();
    assert!(
        error.to_string().contains("llama3.2:1b: calls a tool even when no tool is needed, too small"),
        "{error}"
    );
}

#[test]
fn a_server_that_says_no_tools_is_believed() {
    let families = Families::built_in().unwrap();
    let model = |tools, writes| Installed { tools, writes, ..Installed::named("qwen3:8b") };
    assert_eq!(families.profile(&model(Some(false), None)).calls, Calls::Text);
    assert_eq!(families.profile(&model(None, None)).calls, Calls::Native);
    assert_eq!(families.profile(&model(None, Some(false))).tier, Tier::Unfit);
    let coder = Installed { tools: Some(true), ..Installed::named("qwen2.5-coder:14b") };
    assert_eq!(families.profile(&coder).calls, Calls::Text, "it prints its calls whatever the server claims");
    assert_eq!(families.profile(&Installed::named("new")).window.tokens, 8192);
    let huge = Installed { context: Some(131_072), ..Installed::named("llama3.1:8b") };
    assert_eq!(families.profile(&huge).window.tokens, 32_768);
}

#[test]
fn users_correct_the_list() {
    let families = Families::built_in()
        .unwrap()
        .with(
            "mine.toml",
            "preferred = [\"mine\"]\n[[family]]\nname = \"mine\"\ntier = \"best\"\ncalls = \"native\"\n",
        )
        .unwrap();
    assert_eq!(families.preferred(), ["mine"]);
    assert_eq!(families.profile(&Installed::named("mine:7b")).tier, Tier::Best);
    assert!(families.with("bad.toml", "[[family]]\nname = 1").unwrap_err().to_string().contains("bad.toml"));
}

#[test]
fn the_table_is_worth_reading() {
    let model = |name: &str, gb: f64, context, tools| Installed {
        bytes: Some((gb * 1e9) as u64),
        quantisation: Some("Q4_K_M".into()),
        context: Some(context),
        tools: Some(tools),
        ..Installed::named(name)
    };
    let models = [
        model("gemma2:9b", 5.4, 8192, false),
        model("qwen2.5-coder:14b", 9.0, 32768, true),
        model("qwen3:8b", 5.2, 40960, true),
        model("llama3.2:1b", 1.3, 131_072, true),
        Installed::named("my-own-model:latest"),
    ];
    let families = Families::built_in().unwrap();
    insta::assert_snapshot!(table(&models, |model| families.profile(model), Some("qwen2.5-coder:14b")));
}

#[test]
fn a_profile_fills_what_was_not_asked_for() {
    let profile = Families::built_in().unwrap().profile(&Installed::named("deepseek-r1:8b"));
    let settings = Settings { context: Some(4096), ..Settings::default() }.or_profile(&profile);
    assert_eq!((settings.context, settings.max_tokens, settings.temperature), (Some(4096), Some(4096), None));
}

const ACE: &str = r#"
[[reply]]
calls = [{ name = "add", args = { a = 2, b = 3 } }]
[[reply]]
text = "```json\n{\"tool\": \"add\", \"arguments\": {\"a\": 2, \"b\": \"3\"}}\n```"
[[reply]]
text = "Here:\n```python\nprint(2 + 3)\n```"
[[reply]]
text = "limit.py\n```python\nLIMIT = 32\n\n\ndef fits(n):\n    return n <= LIMIT\n```"
[[reply]]
text = "{\"tool\": \"add\", \"arguments\": {\"a\": 3, \"b\": 2}}"
"#;

const CODER: &str = r#"
[[reply]]
text = "{\"name\": \"add\"}"
[[reply]]
text = "I would add 2 and 3."
[[reply]]
text = "```python\nprint(5)\n```"
[[reply]]
text = "I would set it to 32."
[[reply]]
text = "} {"
"#;

const EDIT: &str = r"limit.py\n```python\nLIMIT = 32\n\n\ndef fits(n):\n    return n <= LIMIT\n```";

const REFUSES_TOOLS: &str = "[[reply]]\nfault = { kind = \"status\", status = 400 }\n";

fn scripted(script: &str) -> ScriptedModel {
    ScriptedModel::new("ollama_chat/m", toml::from_str(script).unwrap())
}

#[tokio::test]
async fn a_model_is_graded_by_what_it_does() {
    let ace = probe(&scripted(ACE), 1).await.unwrap();
    assert_eq!((ace.action(Action::Guided).0, ace.calls()), (Action::Tools, Calls::Native));
    insta::assert_snapshot!(ace.render());

    let coder = probe(&scripted(CODER), 1).await.unwrap();
    assert_eq!((coder.action(Action::Tools).0, coder.calls()), (Action::Code, Calls::Text));
    let profile = Families::built_in().unwrap().profile(&Installed::named("qwen3:8b")).corrected(&coder);
    assert_eq!((profile.action, profile.calls), (Action::Code, Calls::Text), "doing counts more than fame");
    assert_eq!(profile.tier, Tier::Usable, "a failed probe lowers the tier");
    let writer = probe(&scripted(&CODER.replace("I would set it to 32.", EDIT)), 1).await.unwrap();
    assert_eq!(writer.action(Action::Guided).0, Action::Guided);

    let nothing = probe(&scripted(&"[[reply]]\ntext = \"?\"\n".repeat(5)), 1).await.unwrap();
    let profile = Families::built_in().unwrap().profile(&Installed::named("qwen3:8b")).corrected(&nothing);
    assert_eq!(profile.tier, Tier::Unfit, "nothing right is not the best");
    assert!(profile.defects.iter().any(|defect| defect == "failed its probe"));

    let rest = CODER.splitn(3, "[[reply]]").nth(2).unwrap();
    let refused = probe(&scripted(&format!("{REFUSES_TOOLS}[[reply]]{rest}")), 1).await.unwrap();
    assert_eq!((refused.native.right, refused.native.of), (0, 1));
    let broken = REFUSES_TOOLS.replace("400", "500");
    assert_eq!(probe(&scripted(&broken), 1).await.unwrap_err().code(), "MODEL_SERVER_ERROR");
}

#[tokio::test]
async fn a_card_is_kept_by_the_digest_of_the_weights() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cards.json");
    let card = probe(&scripted(ACE), 1).await.unwrap();
    Scorecards::load(&path).unwrap().insert("500a", card.clone()).unwrap();
    let cards = Scorecards::load(&path).unwrap();
    assert_eq!((cards.get("500a"), cards.get("other")), (Some(&card), None));
    std::fs::write(&path, "not json").unwrap();
    assert!(Scorecards::load(&path).unwrap().get("500a").is_none(), "graded again, not a failure");
    assert!(Scorecards::load(dir.path()).is_err());
}
