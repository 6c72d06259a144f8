//! A client that knows nothing of the server: JSON in, bytes out.

use gimlet_models::Script;
use gimlet_testkit::{ModelServer, Wire};
use serde_json::{Value, json};

pub(crate) const WIRES: [Wire; 4] = [Wire::Ollama, Wire::OpenAi, Wire::Anthropic, Wire::Responses];

pub(crate) fn script(toml: &str) -> Script {
    toml::from_str(toml).unwrap()
}

/// A reply with everything in it.
pub(crate) const EVERYTHING: &str = r#"
    [[reply]]
    thinking = "Zuerst überlege ich: was steht in der Datei?"
    text = "Let me look at naïve.py – 日本語 🦀 \"quoted\"\n and more."
    usage = { input = 120, output = 45, cached = 100, reasoning = 7 }
    calls = [
        { name = "read_file", args = { lines = [1, 20], path = "src/naïve.py" } },
        { id = "mine", name = "list_files" },
    ]
    [[reply]]
    text = "Done."
    usage = { input = 150, output = 3 }
"#;

pub(crate) fn path(wire: Wire) -> &'static str {
    match wire {
        Wire::Ollama => "/api/chat",
        Wire::OpenAi => "/v1/chat/completions",
        Wire::Anthropic => "/v1/messages",
        Wire::Responses => "/v1/responses",
    }
}

pub(crate) fn post(server: &ModelServer, wire: Wire, body: &Value) -> reqwest::RequestBuilder {
    // A connection each: a broken one must not be found in a pool by the next request.
    let client = reqwest::Client::builder().pool_max_idle_per_host(0).build().unwrap();
    client
        .post(format!("{}{}", server.url(), path(wire)))
        .header("anthropic-version", "2023-06-01")
        .json(body)
}

/// A proper request that begins a conversation.
pub(crate) fn hello(wire: Wire, task: &str) -> Value {
    request(wire, vec![json!({ "role": "user", "content": task })])
}

/// A proper request with these messages.
pub(crate) fn request(wire: Wire, messages: Vec<Value>) -> Value {
    match wire {
        Wire::Ollama | Wire::OpenAi => {
            let mut all = vec![json!({ "role": "system", "content": "Be brief." })];
            all.extend(messages);
            let mut body =
                json!({ "model": "scripted", "messages": all, "stream": true, "tools": tools(wire) });
            if wire == Wire::OpenAi {
                body["stream_options"] = json!({ "include_usage": true });
            }
            body
        }
        Wire::Anthropic => json!({
            "model": "scripted",
            "max_tokens": 1024,
            "system": "Be brief.",
            "messages": messages,
            "stream": true,
            "tools": tools(wire),
        }),
        Wire::Responses => {
            // Several calls of one reply are several items.
            let items = messages.into_iter().flat_map(|message| match message {
                Value::Array(items) => items,
                item => vec![item],
            });
            json!({
                "model": "scripted",
                "instructions": "Be brief.",
                "input": items.collect::<Vec<_>>(),
                "stream": true,
                "tools": tools(wire),
            })
        }
    }
}

pub(crate) fn tools(wire: Wire) -> Value {
    let schema = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let tool = |name: &str| match wire {
        Wire::Ollama | Wire::OpenAi => {
            json!({ "type": "function", "function": { "name": name, "description": "…", "parameters": schema } })
        }
        Wire::Anthropic => json!({ "name": name, "description": "…", "input_schema": schema }),
        Wire::Responses => {
            json!({ "type": "function", "name": name, "description": "…", "parameters": schema })
        }
    };
    json!([tool("read_file"), tool("list_files")])
}

/// An assistant's message with calls, as `(id, name)`.
pub(crate) fn calls(wire: Wire, calls: &[(&str, &str)]) -> Value {
    let calls = calls.iter().map(|(id, name)| match wire {
        Wire::Ollama => json!({ "id": id, "function": { "name": name, "arguments": {} } }),
        Wire::OpenAi => {
            json!({ "id": id, "type": "function", "function": { "name": name, "arguments": "{}" } })
        }
        Wire::Anthropic => json!({ "type": "tool_use", "id": id, "name": name, "input": {} }),
        Wire::Responses => {
            json!({ "type": "function_call", "call_id": id, "name": name, "arguments": "{}" })
        }
    });
    let calls: Vec<Value> = calls.collect();
    match wire {
        Wire::Ollama => json!({ "role": "assistant", "content": "", "tool_calls": calls }),
        Wire::OpenAi => json!({ "role": "assistant", "content": null, "tool_calls": calls }),
        Wire::Anthropic => json!({ "role": "assistant", "content": calls }),
        Wire::Responses => calls.into(),
    }
}

/// The results of calls, as `(id, text)`.
pub(crate) fn results(wire: Wire, results: &[(&str, &str)]) -> Vec<Value> {
    match wire {
        Wire::Ollama | Wire::OpenAi => results
            .iter()
            .map(|(id, text)| json!({ "role": "tool", "tool_call_id": id, "content": text }))
            .collect(),
        Wire::Anthropic => {
            let blocks = results
                .iter()
                .map(|(id, text)| json!({ "type": "tool_result", "tool_use_id": id, "content": text }));
            vec![json!({ "role": "user", "content": blocks.collect::<Vec<_>>() })]
        }
        Wire::Responses => results
            .iter()
            .map(|(id, text)| json!({ "type": "function_call_output", "call_id": id, "output": text }))
            .collect(),
    }
}

pub(crate) fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

pub(crate) fn assistant(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}

/// The `data` of each server-sent event, with its name.
pub(crate) fn events(body: &str) -> Vec<(String, String)> {
    use eventsource_stream::Eventsource;
    use futures_util::StreamExt;
    let bytes = futures_util::stream::iter([Ok::<_, std::io::Error>(body.as_bytes().to_vec())]);
    let events = bytes.eventsource().map(|event| event.map(|event| (event.event, event.data)).unwrap());
    futures_util::FutureExt::now_or_never(events.collect()).unwrap()
}
