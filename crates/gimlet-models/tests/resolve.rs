//! Model ids lead to the right protocol and address, and keys only to those who may have them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod raw_server;

use std::sync::Arc;

use gimlet::message::{Message, Usage};
use gimlet::model::{Model, Request};
use gimlet_models::providers::{Cost, Place, Price};
use gimlet_models::resolve::{Facts, ResolveError};
use gimlet_models::wire::{Extra, LengthField, Wire};
use gimlet_models::{Base, HttpModel, Keys, Providers, Resolved, Settings, resolve, resolve_embeddings};
use raw_server::{Act, Server, answer};

fn keys() -> Keys {
    [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GROQ_API_KEY",
        "OPENROUTER_API_KEY",
        "DEEPSEEK_API_KEY",
        "MISTRAL_API_KEY",
        "GEMINI_API_KEY",
    ]
    .into_iter()
    .map(|name| (name, format!("{name}-value")))
    .collect()
}

fn http(id: &str, settings: &Settings) -> (HttpModel, Facts) {
    match resolve(id, settings, &Providers::built_in().unwrap(), &keys()).unwrap() {
        Resolved::Http { model, facts } => (model, facts),
        Resolved::Scripted(_) => panic!("{id} is not a script"),
    }
}

fn user(base: &str) -> Settings {
    Settings { base: Some(Base::User(base.parse().unwrap())), ..Settings::default() }
}

fn project(base: &str) -> Settings {
    Settings { base: Some(Base::Project(base.parse().unwrap())), ..Settings::default() }
}

#[test]
fn every_documented_prefix_resolves() {
    for (id, wire, url, name, place) in [
        ("ollama_chat/qwen3:8b", Wire::Ollama, "http://localhost:11434/api/chat", "qwen3:8b", Place::Local),
        ("ollama/qwen3:8b", Wire::Ollama, "http://localhost:11434/api/chat", "qwen3:8b", Place::Local),
        ("qwen3:8b", Wire::Ollama, "http://localhost:11434/api/chat", "qwen3:8b", Place::Local),
        (
            "anthropic/claude-sonnet-4-20250514",
            Wire::Anthropic,
            "https://api.anthropic.com/v1/messages",
            "claude-sonnet-4-20250514",
            Place::Hosted,
        ),
        (
            "openai/gpt-4o",
            Wire::OpenAi,
            "https://api.openai.com/v1/chat/completions",
            "gpt-4o",
            Place::Hosted,
        ),
        (
            "groq/llama-3.3-70b",
            Wire::OpenAi,
            "https://api.groq.com/openai/v1/chat/completions",
            "llama-3.3-70b",
            Place::Hosted,
        ),
        (
            "openrouter/qwen/qwen3-8b",
            Wire::OpenAi,
            "https://openrouter.ai/api/v1/chat/completions",
            "qwen/qwen3-8b",
            Place::Hosted,
        ),
        (
            "deepseek/deepseek-chat",
            Wire::OpenAi,
            "https://api.deepseek.com/v1/chat/completions",
            "deepseek-chat",
            Place::Hosted,
        ),
        (
            "mistral/codestral",
            Wire::OpenAi,
            "https://api.mistral.ai/v1/chat/completions",
            "codestral",
            Place::Hosted,
        ),
        (
            "gemini/gemini-2.5-flash",
            Wire::OpenAi,
            "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
            "gemini-2.5-flash",
            Place::Hosted,
        ),
        ("lm_studio/x", Wire::OpenAi, "http://localhost:1234/v1/chat/completions", "x", Place::Local),
        (
            "hosted_vllm/Qwen/Q",
            Wire::OpenAi,
            "http://localhost:8000/v1/chat/completions",
            "Qwen/Q",
            Place::Local,
        ),
        ("llamacpp/x", Wire::OpenAi, "http://localhost:8080/v1/chat/completions", "x", Place::Local),
    ] {
        let (model, facts) = http(id, &Settings::default());
        assert_eq!((model.wire(), model.url().as_str(), facts.place), (wire, url, place), "{id}");
        assert_eq!((model.options().model.as_str(), model.id()), (name, id));
        assert_eq!(model.options().max_tokens, if place == Place::Local { 1024 } else { 4096 }, "{id}");
        assert!(model.options().context >= 8192, "{id}");
    }
}

#[test]
fn an_address_makes_any_name_usable() {
    let (model, _) = http("Qwen/Qwen2.5-Coder", &user("http://127.0.0.1:9999"));
    assert_eq!((model.wire(), model.options().model.as_str()), (Wire::OpenAi, "Qwen/Qwen2.5-Coder"));
    assert_eq!(http("qwen3:8b", &user("http://192.168.1.5:11434")).0.wire(), Wire::Ollama);
    let (model, facts) = http("openai/local", &user("http://localhost:8080/v1"));
    assert_eq!(
        (model.url().as_str(), facts.place),
        ("http://localhost:8080/v1/chat/completions", Place::Local)
    );
}

#[test]
fn what_cannot_be_resolved_is_said() {
    let providers = Providers::built_in().unwrap();
    let fail =
        |id: &str, settings: &Settings| resolve(id, settings, &providers, &Keys::default()).err().unwrap();
    let error = fail("anthropic/claude", &Settings::default());
    assert_eq!(error.to_string(), "anthropic needs a key in ANTHROPIC_API_KEY");
    assert!(error.hint().unwrap().contains("environment"));
    assert!(fail("nope/x", &Settings::default()).to_string().contains("no provider is called `nope`"));
    assert!(matches!(fail("ollama/", &Settings::default()), ResolveError::NoName { .. }));
    assert!(matches!(fail("scripted//no/such/file", &Settings::default()), ResolveError::Script(_)));
    let error = fail("x", &user("ftp://name:secret@host/"));
    assert_eq!(error.to_string(), "ftp://host/ is not an http or https address");
}

#[test]
fn facts_come_from_the_longest_name() {
    let (model, facts) = http("openai/gpt-4o-mini-2024-07-18", &Settings::default());
    assert_eq!(facts.cost, Cost::Known(Price { input: 0.15, output: 0.6, cached: Some(0.075) }));
    for sibling in ["gpt-4o-mini-tts", "gpt-5.9", "gpt-5-pro", "o3"] {
        assert_eq!(
            http(&format!("openai/{sibling}"), &Settings::default()).1.cost,
            Cost::Unknown,
            "{sibling}"
        );
    }
    assert_eq!(http("ollama/qwen3:8b", &Settings::default()).1.cost, Cost::Free);
    assert_eq!(model.options().quirks.length, LengthField::MaxCompletionTokens);
    let (model, facts) = http("openai/gpt-5-nano", &Settings::default());
    assert_eq!(facts.context, 272_000);
    assert!(model.options().quirks.without.contains(Extra::Temperature));
    let usage = Usage { input: 1_000_000, output: 100_000, cached: 400_000, reasoning: 0 };
    let price = Price { input: 3.0, output: 15.0, cached: Some(0.3) };
    assert!((price.of(&usage) - (1.8 + 0.12 + 1.5)).abs() < 1e-9);
}

#[test]
fn users_add_and_replace_providers() {
    let providers = Providers::built_in()
        .unwrap()
        .with("user.toml", "[[provider]]\nprefix = \"work\"\nwire = \"anthropic\"\nbase = \"https://llm.work.example\"\nkeys = [\"WORK_KEY\"]\nplace = \"hosted\"\ncontext = 1000\n\n[[provider]]\nprefix = \"groq\"\nwire = \"open_ai\"\nbase = \"http://localhost:1\"\nplace = \"local\"\ncontext = 5")
        .unwrap();
    let keys: Keys = [("WORK_KEY", "k")].into_iter().collect();
    let Resolved::Http { model, .. } = resolve("work/m", &Settings::default(), &providers, &keys).unwrap()
    else {
        panic!("not a script")
    };
    assert_eq!(model.url().as_str(), "https://llm.work.example/v1/messages");
    assert_eq!(providers.find("groq").unwrap().base.as_str(), "http://localhost:1/");
    let error = Providers::default().with("mine.toml", "[[provider]]\nprefix = 1").err().unwrap();
    assert!(error.to_string().contains("mine.toml"), "{error}");
}

/// The key that a server got to see.
async fn key_seen(id: &str, settings: impl Fn(&str) -> Settings, keys: &Keys) -> Option<String> {
    let server = Server::start(vec![Act::Send(answer("500 No", &[], ""))]).await;
    let providers = Providers::built_in().unwrap();
    let model = resolve(id, &settings(&server.base), &providers, keys).unwrap().into_model();
    let request = Request { messages: vec![Arc::new(Message::user("Hi"))], ..Request::default() };
    assert!(model.stream(request).await.is_err());
    let head = server.asked().remove(0).head;
    let line =
        head.lines().find(|line| line.starts_with("authorization") || line.starts_with("x-api-key"))?;
    Some(line.to_owned())
}

#[tokio::test]
async fn keys_go_only_where_the_user_sends_them() {
    let seen = key_seen("openai/gpt-4o", user, &keys()).await;
    assert_eq!(seen.as_deref(), Some("authorization: Bearer OPENAI_API_KEY-value"));
    let seen = key_seen("anthropic/claude", user, &keys()).await;
    assert_eq!(seen.as_deref(), Some("x-api-key: ANTHROPIC_API_KEY-value"));
    let any: Keys = [(Keys::ANY, "any")].into_iter().collect();
    assert_eq!(key_seen("whatever", user, &any).await.as_deref(), Some("authorization: Bearer any"));

    for id in ["openai/gpt-4o", "anthropic/claude", "whatever"] {
        let all: Keys =
            [("OPENAI_API_KEY", "a"), ("ANTHROPIC_API_KEY", "b"), (Keys::ANY, "c")].into_iter().collect();
        assert_eq!(key_seen(id, project, &all).await, None, "{id}");
    }
    assert!(
        http("openai/x", &project("http://evil.example")).1.key_withheld.unwrap().contains("evil.example")
    );
    assert!(http("openai/x", &project("https://api.openai.com/v1")).1.key_withheld.is_none());
}

#[test]
fn keys_never_show_themselves() {
    assert!(!format!("{:?}", keys()).contains("-value"));
}

#[cfg(unix)]
#[test]
fn a_key_file_is_read_only_when_nobody_else_can() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("keys.toml");
    let write = |text: &str, mode| {
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let providers = Providers::built_in().unwrap();
    write("GROQ_API_KEY = \"from-file\"\n", 0o600);
    let mut keys = Keys::default();
    keys.add_file(&path).unwrap();
    assert!(resolve("groq/x", &Settings::default(), &providers, &keys).is_ok());
    assert_eq!(keys.secrets().count(), 1);

    write("GROQ_API_KEY = \"from-file\"\n", 0o644);
    let error = Keys::default().add_file(&path).unwrap_err();
    assert!(
        error.to_string().contains("mode 644") && error.hint().unwrap().starts_with("chmod 600"),
        "{error}"
    );

    write("A = \"ok\"\nGROQ_API_KEY = sk-secret-without-quotes\n", 0o600);
    let error = Keys::default().add_file(&path).unwrap_err();
    assert!(
        error.to_string().contains("line 2") && !format!("{error} {error:?}").contains("secret"),
        "{error:?}"
    );
    assert!(Keys::default().add_file(&dir.path().join("none")).is_err());
}

#[tokio::test]
async fn vectors_come_in_order_from_where_the_model_is_and_keys_stay_with_the_user() {
    let providers = Providers::built_in().unwrap();
    let texts = ["one".to_owned(), "two".to_owned()];
    let ollama = r#"{"embeddings": [[1, 0], [0, 1]]}"#;
    let openai = r#"{"data": [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}]}"#;
    for (id, path, said, base, settings, key) in [
        ("ollama/e", "/api/embed", ollama, "", user as fn(&str) -> Settings, false),
        ("openai/e", "/v1/embeddings", openai, "", user, true),
        ("openai/e", "/v2/embeddings", openai, "/v2/", user, true),
        ("openai/e", "/v1/embeddings", openai, "", project, false),
    ] {
        let server =
            Server::start(vec![Act::Send(answer("200 OK", &[("content-type", "application/json")], said))])
                .await;
        let settings = settings(&format!("{}{base}", server.base));
        let model = resolve_embeddings(id, &settings, &providers, &keys()).unwrap();
        assert_eq!(model.embed(&texts).await.unwrap(), [[1.0, 0.0], [0.0, 1.0]], "{id}");
        let asked = server.asked().remove(0);
        assert!(asked.head.starts_with(&format!("POST {path} ")), "{}", asked.head);
        assert_eq!(asked.head.contains("OPENAI_API_KEY-value"), key, "{id} {path}: {}", asked.head);
        assert_eq!(asked.body, serde_json::json!({"model": "e", "input": texts}));
    }
    for id in ["anthropic/claude", "scripted/x.toml"] {
        let error = resolve_embeddings(id, &Settings::default(), &providers, &keys()).unwrap_err();
        assert!(matches!(error, ResolveError::NoEmbeddings { .. }), "{error}");
        assert!(error.hint().unwrap().contains("embedding model"));
    }
}
