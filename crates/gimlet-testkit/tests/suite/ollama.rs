use gimlet_testkit::{ModelServer, Wire};
use serde_json::{Value, json};

use crate::client::{EVERYTHING, hello, post, results, script, user};

fn lines(body: &str) -> Vec<Value> {
    assert!(body.ends_with('\n'));
    body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn joined(lines: &[Value], pointer: &str) -> String {
    lines.iter().filter_map(|line| line.pointer(pointer).and_then(Value::as_str)).collect()
}

#[tokio::test]
async fn a_stream_carries_everything_and_the_answer_goes_on() {
    let server = ModelServer::start(script(EVERYTHING)).await;
    let response = post(&server, Wire::Ollama, &hello(Wire::Ollama, "look")).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let lines = lines(&response.text().await.unwrap());

    assert_eq!(joined(&lines, "/message/thinking"), "Zuerst überlege ich: was steht in der Datei?");
    assert_eq!(
        joined(&lines, "/message/content"),
        "Let me look at naïve.py – 日本語 🦀 \"quoted\"\n and more."
    );
    assert!(
        lines.iter().filter(|line| line["message"]["content"] != "").count() > 3,
        "the text comes in pieces"
    );
    let calls: Vec<&Value> = lines.iter().filter_map(|line| line.pointer("/message/tool_calls/0")).collect();
    assert_eq!(
        calls,
        [
            &json!({ "id": "call_0_0", "function": {
                "index": 0, "name": "read_file", "arguments": { "path": "src/naïve.py", "lines": [1, 20] } } }),
            &json!({ "id": "mine", "function": { "index": 1, "name": "list_files", "arguments": {} } }),
        ]
    );
    let (last, before) = lines.split_last().unwrap();
    assert!(before.iter().all(|line| line["done"] == false && line["model"] == "scripted"));
    assert_eq!((&last["done"], &last["done_reason"]), (&json!(true), &json!("stop")));
    assert_eq!((&last["prompt_eval_count"], &last["eval_count"]), (&json!(120), &json!(45)));

    let mut next = hello(Wire::Ollama, "look");
    let messages = next["messages"].as_array_mut().unwrap();
    messages.push(json!({ "role": "assistant", "content": "Let me look", "tool_calls": calls }));
    messages.extend(results(Wire::Ollama, &[("mine", "a.py"), ("call_0_0", "text")]));
    let response = post(&server, Wire::Ollama, &next).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.text().await.unwrap().contains("Done."));
    server.assert_no_violations();
    assert_eq!(server.conversation("look").len(), 2);
    assert_eq!(server.requests()[1].messages().len(), 5);
}

#[tokio::test]
async fn one_object_carries_everything() {
    let server = ModelServer::start(script(EVERYTHING)).await;
    let mut body = hello(Wire::Ollama, "look");
    body["stream"] = json!(false);
    let reply: Value = post(&server, Wire::Ollama, &body).send().await.unwrap().json().await.unwrap();
    insta::assert_json_snapshot!(reply);
}

#[tokio::test]
async fn calls_without_ids_are_answered_by_name() {
    let server = ModelServer::start(script("[[reply]]\ntext = 'ok'")).await;
    let mut body = hello(Wire::Ollama, "look");
    let call = |name: &str| json!({ "function": { "name": name, "arguments": {} } });
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({ "role": "assistant", "tool_calls": [call("read_file"), call("list_files")] }));
    messages.push(json!({ "role": "tool", "tool_name": "read_file", "content": "text" }));
    messages.push(json!({ "role": "tool", "tool_name": "list_files", "content": "a.py" }));
    assert_eq!(post(&server, Wire::Ollama, &body).send().await.unwrap().status(), 200);
    server.assert_no_violations();
}

#[tokio::test]
async fn length_is_told() {
    let server = ModelServer::start(script("[[reply]]\ntext = 'ok'\nfinish = 'length'")).await;
    let body =
        post(&server, Wire::Ollama, &hello(Wire::Ollama, "x")).send().await.unwrap().text().await.unwrap();
    assert_eq!(lines(&body).last().unwrap()["done_reason"], "length");
}

#[tokio::test]
async fn an_empty_conversation_loads_the_model_and_uses_no_reply() {
    let server = ModelServer::start(script("[[reply]]\ntext = 'ok'")).await;
    let load = json!({ "model": "scripted", "messages": [] });
    let reply: Value = post(&server, Wire::Ollama, &load).send().await.unwrap().json().await.unwrap();
    assert_eq!(reply["done_reason"], "load");
    let reply = post(&server, Wire::Ollama, &json!({ "model": "scripted", "messages": [user("x")] }));
    assert_eq!(reply.send().await.unwrap().status(), 200);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn models_are_described() {
    let server = ModelServer::builder(script(""))
        .models(["qwen:7b", "phi:latest"])
        .context(8192)
        .start()
        .await
        .unwrap();
    let get = async |path: &str| {
        let response = reqwest::get(format!("{}{path}", server.url())).await.unwrap();
        response.json::<Value>().await.unwrap()
    };
    assert!(get("/api/version").await["version"].is_string());
    let tags = get("/api/tags").await;
    assert_eq!(tags["models"][0]["name"], "qwen:7b");
    assert_eq!(tags["models"][1]["model"], "phi:latest");
    assert_eq!(get("/v1/models").await["data"][0]["id"], "qwen:7b");

    let show = async |model: &str| {
        let client = reqwest::Client::new();
        client
            .post(format!("{}/api/show", server.url()))
            .json(&json!({ "model": model }))
            .send()
            .await
            .unwrap()
    };
    let described: Value = show("phi").await.json().await.unwrap();
    assert_eq!(described["model_info"]["scripted.context_length"], 8192);
    assert_eq!(described["capabilities"], json!(["completion", "tools", "thinking"]));
    assert_eq!(show("other").await.status(), 404);

    let mut body = hello(Wire::Ollama, "x");
    body["model"] = json!("other");
    let refused = post(&server, Wire::Ollama, &body).send().await.unwrap();
    assert_eq!(refused.status(), 404);
    assert_eq!(refused.json::<Value>().await.unwrap(), json!({ "error": "model 'other' not found" }));
    assert_eq!(server.visits()[0], "GET /api/version");
}
