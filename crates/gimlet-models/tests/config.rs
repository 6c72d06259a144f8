//! The configuration of a team that routes between hosted models works as it is written.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod raw_server;

use std::sync::Arc;

use futures_util::StreamExt;
use gimlet::message::Message;
use gimlet::model::{Model, ModelEvent, Request};
use gimlet_models::config::{ConfigError, ModelsConfig, Workshop};
use gimlet_models::layer::{Ledger, Limits};
use gimlet_models::{Keys, Providers, Settings};
use raw_server::{Act, Server, open_stream};

const TEAM: &str = r#"
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

fn fixture(path: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/fixtures/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

async fn say(model: &dyn Model, task: &str) -> String {
    let request = Request { messages: vec![Arc::new(Message::user(task))], ..Request::default() };
    let mut stream = model.stream(request).await.unwrap();
    let mut said = String::new();
    while let Some(event) = stream.next().await {
        if let ModelEvent::Text(text) = event.unwrap() {
            said.push_str(&text);
        }
    }
    said
}

fn workshop<'a>(config: &'a ModelsConfig, providers: &'a Providers, keys: &'a Keys) -> Workshop<'a> {
    Workshop { config, providers, keys, settings: Settings::default(), ledger: None, seed: 3 }
}

#[tokio::test]
async fn the_team_configuration_works_as_written() {
    let server =
        Server::start(vec![Act::Send(open_stream("text/event-stream", fixture("anthropic/text.sse")))]).await;
    let provider = format!(
        "[[provider]]\nprefix = \"anthropic\"\nwire = \"anthropic\"\nbase = \"{}\"\nkeys = [\"ANTHROPIC_API_KEY\"]\nplace = \"hosted\"\ncontext = 200000\n",
        server.base
    );
    let providers = Providers::built_in().unwrap().with("user.toml", &provider).unwrap();
    let keys: Keys = [("ANTHROPIC_API_KEY", "k")].into_iter().collect();
    let config: ModelsConfig = toml::from_str(TEAM).unwrap();
    let ledger = Ledger::new(Limits::default());
    let workshop = Workshop { ledger: Some(Arc::clone(&ledger)), ..workshop(&config, &providers, &keys) };
    let router = workshop.build("claude-agent").unwrap();
    assert_eq!(router.id(), "claude-agent");
    // Different conversations reach both; f32 temperatures arrive as they were written.
    let mut asked = Vec::new();
    for task in 0..6 {
        if asked.len() == 2 {
            break;
        }
        assert_eq!(say(router.as_ref(), &format!("task {task}")).await, "Grüße 🦀!");
        asked = server.asked().iter().map(|asked| asked.body["model"].as_str().unwrap().to_owned()).collect();
        asked.sort();
        asked.dedup();
    }
    assert_eq!(asked, ["claude-3-haiku-20240307", "claude-sonnet-4-20250514"]);
    for asked in server.asked() {
        let expected = if asked.body["model"] == "claude-3-haiku-20240307" { "0.3" } else { "0.2" };
        assert_eq!(asked.body["temperature"].to_string(), expected);
        assert_eq!(asked.body["max_tokens"], 4096);
    }
    assert!(ledger.spent().usage.input >= 50);

    assert_eq!(say(workshop.build("opus").unwrap().as_ref(), "x").await, "Grüße 🦀!");
    assert_eq!(server.asked().last().unwrap().body["temperature"].to_string(), "0.1");
}

#[test]
fn mistakes_are_named() {
    let providers = Providers::built_in().unwrap();
    let keys = Keys::default();
    let fail = |text: &str, name: &str| {
        let config: ModelsConfig = toml::from_str(text).unwrap();
        workshop(&config, &providers, &keys).build(name).err().unwrap()
    };
    assert!(matches!(fail("[routers.r]\nmodels = []", "r"), ConfigError::EmptyRouter { .. }));
    assert!(matches!(fail("[routers.r]\nmodels = [\"r\"]", "r"), ConfigError::NestedRouter { .. }));
    let error = fail("[models.m]\nid = \"ollama/x\"\napi_base = \"not an address\"", "m");
    assert!(error.to_string().contains("not an address"), "{error}");
    let error = fail(TEAM, "sonnet");
    assert_eq!(
        error.to_string(),
        "the model `sonnet` cannot be used: anthropic needs a key in ANTHROPIC_API_KEY"
    );
    assert!(
        toml::from_str::<ModelsConfig>("[models.m]\nidd = \"x\"").is_err(),
        "a typing error is not ignored"
    );
}
