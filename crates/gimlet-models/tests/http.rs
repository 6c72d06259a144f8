//! Every way a server can fail ends in the documented result, and what it refuses is learned once.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod raw_server;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use gimlet::message::Message;
use gimlet::model::{Model, ModelError, ModelEvent, Request, Sampling};
use gimlet_models::HttpModel;
use gimlet_models::transport::{KeyHeader, Timeouts, Transport};
use gimlet_models::wire::{Caching, Wire, WireOptions};
use raw_server::{Act, Server, answer, open_stream};
use secrecy::SecretString;
use serde_json::json;

const QUICK: Timeouts = Timeouts {
    connect: Duration::from_millis(300),
    idle: Duration::from_millis(200),
    overall: Duration::from_secs(20),
    loading: Duration::from_millis(200),
    poll: Duration::from_millis(5),
};
const PATIENT: Timeouts =
    Timeouts { idle: Duration::from_secs(20), loading: Duration::from_secs(20), ..QUICK };

fn model(base: &str, wire: Wire, timeouts: Timeouts) -> HttpModel {
    let base = base.parse().unwrap();
    let header = if wire == Wire::Anthropic { KeyHeader::ApiKey } else { KeyHeader::Bearer };
    let key = SecretString::from("sk-very-secret-key");
    let transport = Transport::new(&base, timeouts, Some((header, key)), None).unwrap();
    HttpModel::new(
        "test/m",
        wire,
        &base,
        transport,
        WireOptions { caching: Caching::Marked, ..WireOptions::new("m") },
    )
}

fn hello() -> Request {
    Request { messages: vec![Arc::new(Message::user("Hi"))], ..Request::default() }
}

/// Everything the model said, and how it ended.
async fn ask(model: &HttpModel, request: Request) -> (Vec<ModelEvent>, Option<ModelError>) {
    let mut events = Vec::new();
    let mut stream = match model.stream(request).await {
        Ok(stream) => stream,
        Err(error) => return (events, Some(error)),
    };
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => events.push(event),
            Err(error) => return (events, Some(error)),
        }
    }
    (events, None)
}

fn fixture(path: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/fixtures/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn good(wire: Wire) -> Vec<u8> {
    match wire {
        Wire::Ollama => open_stream("application/x-ndjson", fixture("ollama/text.ndjson")),
        Wire::OpenAi => open_stream("text/event-stream; charset=utf-8", fixture("openai/text.sse")),
        Wire::Anthropic => open_stream("text/event-stream", fixture("anthropic/text.sse")),
    }
}

fn stream_type(wire: Wire) -> &'static str {
    if wire == Wire::Ollama { "application/x-ndjson" } else { "text/event-stream" }
}

fn text(events: &[ModelEvent]) -> String {
    let text = |event: &ModelEvent| match event {
        ModelEvent::Text(text) => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

fn notices(events: &[ModelEvent]) -> Vec<&str> {
    let mut said = Vec::new();
    for event in events {
        if let ModelEvent::Notice(text) = event {
            said.push(text.as_str());
        }
    }
    said
}

#[tokio::test]
async fn a_good_reply_is_asked_for_as_documented() {
    for wire in [Wire::Ollama, Wire::OpenAi, Wire::Anthropic] {
        let server = Server::start(vec![Act::Send(good(wire))]).await;
        let (events, error) = ask(&model(&server.base, wire, PATIENT), hello()).await;
        assert!(error.is_none(), "{wire:?}: {error:?}");
        assert!(text(&events).starts_with("Grüße 🦀"));
        assert!(matches!(events.last(), Some(ModelEvent::Done(_))));
        let asked = server.asked().remove(0);
        let (path, key) = match wire {
            Wire::Ollama => ("POST /api/chat ", "authorization: Bearer sk-very-secret-key"),
            Wire::OpenAi => ("POST /v1/chat/completions ", "authorization: Bearer sk-very-secret-key"),
            Wire::Anthropic => ("POST /v1/messages ", "x-api-key: sk-very-secret-key"),
        };
        assert!(asked.head.starts_with(path), "{}", asked.head);
        assert!(asked.head.contains(key), "{}", asked.head);
        assert!(asked.head.contains("content-type: application/json"));
        assert_eq!(asked.head.contains("anthropic-version: 2023-06-01"), wire == Wire::Anthropic);
        assert_eq!(asked.body["stream"], true);
    }
}

#[tokio::test]
async fn every_failure_ends_in_the_documented_result() {
    let json = [("content-type", "application/json")];
    let page = "<html><head><title>Sign in</title></head><body>to the hotel network</body></html>";
    for wire in [Wire::Ollama, Wire::OpenAi, Wire::Anthropic] {
        let stream = stream_type(wire);
        let mut half = good(wire);
        half.truncate(half.len() / 2);
        for (name, act, code) in [
            ("connection dropped", Act::Hangup, "MODEL_UNREACHABLE"),
            (
                "rate limit",
                Act::Send(answer("429 Too Many Requests", &[("retry-after", "7")], "{}")),
                "MODEL_RATE_LIMITED",
            ),
            (
                "server error",
                Act::Send(answer("500 Oops", &json, r#"{"error":"boom"}"#)),
                "MODEL_SERVER_ERROR",
            ),
            (
                "bad key",
                Act::Send(answer("401 No", &json, r#"{"error":{"message":"bad key"}}"#)),
                "MODEL_AUTH",
            ),
            ("garbage", Act::Send(open_stream(stream, "data: }{\n\n")), "MODEL_PROTOCOL"),
            ("half a reply", Act::Send(half), "MODEL_REPLY_CUT"),
            ("web page", Act::Send(open_stream("text/html", page)), "MODEL_PROTOCOL"),
            (
                "error page",
                Act::Send(answer("502 Bad Gateway", &[("content-type", "text/html")], page)),
                "MODEL_SERVER_ERROR",
            ),
            ("empty body", Act::Send(open_stream(stream, "")), "MODEL_REPLY_CUT"),
            (
                "invalid UTF-8",
                Act::Send(open_stream(
                    stream,
                    b"data: {\"message\":{\"content\":\"\xff\"},\"done\":false}\n\n",
                )),
                "MODEL_PROTOCOL",
            ),
            ("silence", Act::Stall(Vec::new()), "MODEL_TIMEOUT"),
            ("silence after the head", Act::Stall(open_stream(stream, "")), "MODEL_TIMEOUT"),
            (
                "redirect",
                Act::Send(answer("307 Moved", &[("location", "http://evil.example/")], "")),
                "MODEL_REFUSED_REQUEST",
            ),
            (
                "no such model",
                Act::Send(answer("404 No", &json, r#"{"error":"model 'm' not found"}"#)),
                "MODEL_NOT_FOUND",
            ),
            (
                "too long",
                Act::Send(answer("400 No", &json, r#"{"error":{"message":"prompt is too long"}}"#)),
                "CONTEXT_LENGTH",
            ),
        ] {
            let server = Server::start(vec![act]).await;
            let timeouts = if name.starts_with("silence") { QUICK } else { PATIENT };
            let (_, error) = ask(&model(&server.base, wire, timeouts), hello()).await;
            let error = error.unwrap_or_else(|| panic!("{wire:?}, {name}: no error"));
            assert_eq!(error.code(), code, "{wire:?}, {name}: {error}");
            assert_eq!(server.asked().len(), 1, "{wire:?}, {name}: asked again");
            if name == "rate limit" {
                assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
            }
            if name == "web page" {
                assert!(error.to_string().contains("Sign in"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn a_wrong_content_type_is_judged_by_the_body() {
    for wire in [Wire::Ollama, Wire::OpenAi, Wire::Anthropic] {
        let body = match wire {
            Wire::Ollama => fixture("ollama/text.ndjson"),
            Wire::OpenAi => fixture("openai/text.sse"),
            Wire::Anthropic => fixture("anthropic/text.sse"),
        };
        let server = Server::start(vec![
            Act::Send(open_stream("text/plain", body)),
            Act::Send(open_stream("application/octet-stream", b"\x7fELF\x02\x01")),
        ])
        .await;
        let model = model(&server.base, wire, PATIENT);
        let (events, error) = ask(&model, hello()).await;
        assert!(error.is_none() && text(&events).starts_with("Grüße 🦀"), "{wire:?}: {events:?} {error:?}");
        let (_, error) = ask(&model, hello()).await;
        assert_eq!(error.unwrap().code(), "MODEL_PROTOCOL", "{wire:?}");
    }
}

#[tokio::test]
async fn a_slow_reply_is_waited_for_as_long_as_it_moves() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut stream, _) = listener.accept().await.unwrap();
        let _asked = stream.read(&mut [0; 4096]).await;
        for byte in good(Wire::OpenAi).chunks(7) {
            stream.write_all(byte).await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    let (events, error) = ask(&model(&base, Wire::OpenAi, PATIENT), hello()).await;
    assert!(error.is_none() && text(&events).starts_with("Grüße 🦀"), "{events:?} {error:?}");
}

#[tokio::test]
async fn nobody_there_is_said_with_the_address() {
    let base = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let (_, error) = ask(&model(&base, Wire::Ollama, PATIENT), hello()).await;
    let error = error.unwrap();
    assert_eq!(error.code(), "MODEL_UNREACHABLE");
    assert!(error.to_string().contains(&base), "{error}");
    assert!(error.to_string().to_lowercase().contains("refused"), "{error}");
}

#[tokio::test]
async fn a_stream_that_goes_silent_keeps_what_it_said() {
    let half = [
        open_stream("text/event-stream", ""),
        b"data: {\"choices\":[{\"delta\":{\"content\":\"so far\"}}]}\n\n".to_vec(),
    ]
    .concat();
    let server = Server::start(vec![Act::Stall(half)]).await;
    let (events, error) = ask(&model(&server.base, Wire::OpenAi, QUICK), hello()).await;
    assert_eq!(text(&events), "so far");
    assert_eq!(error.unwrap().code(), "MODEL_TIMEOUT");
}

#[tokio::test]
async fn an_endless_stream_ends_at_the_overall_limit() {
    // A server that never pauses for long but never ends: each idle wait is short, the whole is not.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut stream, _) = listener.accept().await.unwrap();
        let _asked = stream.read(&mut [0; 4096]).await;
        let _gone = stream.write_all(&open_stream("text/event-stream", "")).await;
        while stream.write_all(b": still here\n\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let timeouts = Timeouts { overall: Duration::from_millis(300), ..PATIENT };
    let (_, error) = ask(&model(&base, Wire::OpenAi, timeouts), hello()).await;
    assert!(
        matches!(error, Some(ModelError::Timeout { after, .. }) if after == timeouts.overall),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_model_that_loads_is_waited_for_and_said() {
    let loading = answer(
        "503 Busy",
        &[],
        r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
    );
    let older = answer("500 Busy", &[], r#"{"error":"unexpected server status: llm server loading model"}"#);
    let server =
        Server::start(vec![Act::Send(loading.clone()), Act::Send(older), Act::Send(good(Wire::Ollama))])
            .await;
    let (events, error) = ask(&model(&server.base, Wire::Ollama, PATIENT), hello()).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(server.asked().len(), 3);
    assert_eq!(notices(&events).len(), 1);
    assert!(notices(&events)[0].contains("loading m"), "{events:?}");
    assert!(matches!(events[0], ModelEvent::Notice(_)), "said while waiting, not after: {events:?}");

    let server = Server::start(vec![Act::Send(loading)]).await;
    let (_, error) = ask(&model(&server.base, Wire::Ollama, QUICK), hello()).await;
    assert_eq!(error.unwrap().code(), "MODEL_SERVER_ERROR", "not waited for without end");
}

#[tokio::test]
async fn refused_fields_are_dropped_once_remembered_and_said() {
    let refuse = |message: &str| {
        let body = json!({"error": {"message": message, "type": "invalid_request_error"}}).to_string();
        Act::Send(answer("400 Bad Request", &[("content-type", "application/json")], body))
    };
    let server = Server::start(vec![
        refuse("Unrecognized request argument supplied: stream_options"),
        refuse("Unsupported parameter: 'stop' is not supported with this model."),
        refuse("Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."),
        refuse("Unsupported value: 'temperature' does not support 0.1 with this model."),
        Act::Send(good(Wire::OpenAi)),
    ])
    .await;
    let model = model(&server.base, Wire::OpenAi, PATIENT);
    let request = Request { sampling: Sampling { stop: vec!["X".into()], ..Sampling::default() }, ..hello() };
    let (events, error) = ask(&model, request.clone()).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(notices(&events).len(), 4, "{events:?}");
    assert!(notices(&events)[1].contains("`stop`"), "{events:?}");

    let (events, error) = ask(&model, request).await;
    assert!(error.is_none() && notices(&events).is_empty(), "{events:?} {error:?}");
    let asked = server.asked();
    assert_eq!(asked.len(), 6, "remembered: the second question is asked once");
    assert!(asked[0].body.get("stream_options").is_some() && asked[0].body.get("stop").is_some());
    for field in ["stream_options", "stop", "temperature", "max_tokens"] {
        assert!(asked[5].body.get(field).is_none(), "{field} in {}", asked[5].body);
    }
    assert_eq!(asked[5].body["max_completion_tokens"], 1024);
}

#[tokio::test]
async fn a_schema_or_a_choice_of_tools_that_is_refused_is_left_out() {
    let refuse = |message: &str| {
        let body = json!({"error": {"message": message}}).to_string();
        Act::Send(answer("400 Bad Request", &[("content-type", "application/json")], body))
    };
    let server = Server::start(vec![
        refuse("extra fields not permitted [loc: body.tool_choice]"),
        refuse("Cannot use custom grammar constraints with tools."),
        Act::Send(good(Wire::OpenAi)),
    ])
    .await;
    let tool = gimlet::tool::ToolSpec {
        name: "look".into(),
        description: String::new(),
        input: json!({"type": "object"}),
        output: None,
        manner: gimlet::tool::Manner::default(),
    };
    let sampling = Sampling { schema: Some(Arc::new(json!({"type": "object"}))), ..Sampling::default() };
    let request = Request { tools: Arc::new([Arc::new(tool)]), sampling, ..hello() };
    let (events, error) = ask(&model(&server.base, Wire::OpenAi, PATIENT), request).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(notices(&events).len(), 2, "{events:?}");
    assert!(notices(&events)[1].contains("replies are not held to a schema"), "{events:?}");
    let asked = server.asked();
    assert!(asked[0].body.get("tool_choice").is_some() && asked[0].body.get("response_format").is_some());
    assert!(asked[2].body.get("tool_choice").is_none() && asked[2].body.get("response_format").is_none());
    assert!(asked[2].body.get("tools").is_some(), "the tools themselves stay");
}

#[tokio::test]
async fn a_refusal_that_teaches_nothing_is_the_end() {
    let refusal = answer("400 Bad Request", &[], r#"{"error":{"message":"'stop' is not supported"}}"#);
    let server = Server::start(vec![Act::Send(refusal)]).await;
    // No stop was sent, so leaving it out cannot help.
    let (_, error) = ask(&model(&server.base, Wire::OpenAi, PATIENT), hello()).await;
    assert_eq!(error.unwrap().code(), "MODEL_REFUSED_REQUEST");
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn a_key_the_server_echoes_is_hidden() {
    let echo = answer("401 No", &[], r#"{"error":{"message":"Incorrect API key: sk-very-secret-key"}}"#);
    let server = Server::start(vec![Act::Send(echo)]).await;
    let model = model(&server.base, Wire::OpenAi, PATIENT);
    let (_, error) = ask(&model, hello()).await;
    let error = error.unwrap();
    assert!(!format!("{error} {error:?}").contains("very-secret"), "{error}");
    assert!(error.to_string().contains("[key]"));
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    for (wire, file) in [(Wire::OpenAi, "openai/whole.json"), (Wire::Anthropic, "anthropic/whole.json")] {
        let server = Server::start(vec![Act::Send(open_stream("application/json", fixture(file)))]).await;
        let (events, error) = ask(&model(&server.base, wire, PATIENT), hello()).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(text(&events), "All at once.");
        assert!(events.iter().any(|event| matches!(event, ModelEvent::Call(_))));
    }
}

#[tokio::test]
async fn a_stop_text_the_server_refuses_is_minded_here() {
    let refusal =
        answer("400 No", &[], r#"{"error":{"message":"Unsupported parameter: 'stop'","param":"stop"}}"#);
    let said = "data: {\"choices\":[{\"delta\":{\"content\":\"done. Obser\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"vation: made up\"}}]}\n\n";
    let server =
        Server::start(vec![Act::Send(refusal), Act::Stall(open_stream("text/event-stream", said))]).await;
    let request = Request {
        sampling: Sampling { stop: vec!["Observation:".into()], ..Sampling::default() },
        ..hello()
    };
    let (events, error) = ask(&model(&server.base, Wire::OpenAi, PATIENT), request).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(text(&events), "done. ");
    assert!(matches!(events.last(), Some(ModelEvent::Done(_))), "{events:?}");
}

/// A good answer after which the connection stays.
fn kept() -> Vec<u8> {
    let body = fixture("openai/text.sse");
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), &body].concat()
}

#[tokio::test]
async fn a_connection_is_used_again() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        // One connection only: a second one would never be answered.
        let (mut stream, _) = listener.accept().await.unwrap();
        for _ in 0..2 {
            let _asked = stream.read(&mut [0; 8192]).await.unwrap();
            stream.write_all(&kept()).await.unwrap();
        }
    });
    let model = model(&base, Wire::OpenAi, PATIENT);
    for _ in 0..2 {
        let (events, error) = ask(&model, hello()).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(text(&events), "Grüße 🦀");
    }
    serving.await.unwrap();
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_is_replaced_without_a_word() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        for more in [true, false] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _asked = stream.read(&mut [0; 8192]).await.unwrap();
            stream.write_all(&kept()).await.unwrap();
            if more {
                let _asked_in_vain = stream.read(&mut [0; 8192]).await.unwrap();
            }
        }
    });
    let model = model(&base, Wire::OpenAi, PATIENT);
    for _ in 0..2 {
        let (events, error) = ask(&model, hello()).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!((text(&events).as_str(), notices(&events).len()), ("Grüße 🦀", 0));
    }
    serving.await.unwrap();
}
