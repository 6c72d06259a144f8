use gimlet_testkit::{ModelServer, Wire};
use serde_json::{Value, json};

use crate::client::{EVERYTHING, events, hello, post, results, script};

/// The chunks of a stream, after checking that it ends as it must.
async fn chunks(server: &ModelServer, body: &Value) -> Vec<Value> {
    let response = post(server, Wire::OpenAi, body).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut events = events(&response.text().await.unwrap());
    assert_eq!(events.pop().unwrap().1, "[DONE]");
    events.iter().map(|(_, data)| serde_json::from_str(data).unwrap()).collect()
}

fn joined(chunks: &[Value], key: &str) -> String {
    let pointer = format!("/choices/0/delta/{key}");
    chunks.iter().filter_map(|chunk| chunk.pointer(&pointer).and_then(Value::as_str)).collect()
}

#[tokio::test]
async fn a_stream_carries_everything_and_the_answer_goes_on() {
    let server = ModelServer::start(script(EVERYTHING)).await;
    let chunks = chunks(&server, &hello(Wire::OpenAi, "look")).await;
    assert!(
        chunks.iter().all(|chunk| chunk["object"] == "chat.completion.chunk" && chunk["id"] == "chatcmpl-0")
    );
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(joined(&chunks, "reasoning_content"), "Zuerst überlege ich: was steht in der Datei?");
    assert_eq!(joined(&chunks, "content"), "Let me look at naïve.py – 日本語 🦀 \"quoted\"\n and more.");

    let deltas: Vec<&Value> =
        chunks.iter().filter_map(|chunk| chunk.pointer("/choices/0/delta/tool_calls/0")).collect();
    let first: Vec<&&Value> = deltas.iter().filter(|delta| delta["index"] == 0).collect();
    assert_eq!((&first[0]["id"], &first[0]["type"]), (&json!("call_0_0"), &json!("function")));
    assert!(first.len() > 3, "arguments come in pieces");
    assert!(first[1..].iter().all(|delta| delta.get("id").is_none()));
    let arguments: String =
        first.iter().filter_map(|delta| delta["function"]["arguments"].as_str()).collect();
    assert_eq!(
        serde_json::from_str::<Value>(&arguments).unwrap(),
        json!({ "path": "src/naïve.py", "lines": [1, 20] })
    );
    assert!(deltas.iter().any(|delta| delta["index"] == 1 && delta["id"] == "mine"));

    let (usage, rest) = chunks.split_last().unwrap();
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(usage["usage"]["prompt_tokens_details"]["cached_tokens"], 100);
    assert_eq!(usage["usage"]["completion_tokens_details"]["reasoning_tokens"], 7);
    assert_eq!(usage["usage"]["total_tokens"], 165);
    assert!(rest.iter().all(|chunk| chunk["usage"].is_null()));
    assert_eq!(rest.last().unwrap()["choices"][0]["finish_reason"], "tool_calls");

    let mut next = hello(Wire::OpenAi, "look");
    let call =
        |id: &str| json!({ "id": id, "type": "function", "function": { "name": "x", "arguments": "{" } });
    let messages = next["messages"].as_array_mut().unwrap();
    messages.push(
        json!({ "role": "assistant", "content": null, "tool_calls": [call("call_0_0"), call("mine")] }),
    );
    messages.extend(results(Wire::OpenAi, &[("call_0_0", "text"), ("mine", "a.py")]));
    assert_eq!(post(&server, Wire::OpenAi, &next).send().await.unwrap().status(), 200);
    server.assert_no_violations();
}

#[tokio::test]
async fn usage_is_only_told_when_asked_for() {
    let server = ModelServer::start(script("[[reply]]\ntext = 'ok'")).await;
    let mut body = hello(Wire::OpenAi, "x");
    body.as_object_mut().unwrap().remove("stream_options");
    let chunks = chunks(&server, &body).await;
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none() && chunk["choices"] != json!([])));
}

#[tokio::test]
async fn one_object_carries_everything() {
    let server = ModelServer::start(script(EVERYTHING)).await;
    let mut body = hello(Wire::OpenAi, "look");
    body.as_object_mut().unwrap().remove("stream_options");
    body["stream"] = json!(false);
    let reply: Value = post(&server, Wire::OpenAi, &body).send().await.unwrap().json().await.unwrap();
    insta::assert_json_snapshot!(reply);
}

#[tokio::test]
async fn every_finish_has_its_word() {
    for (finish, word) in [("stop", "stop"), ("length", "length"), ("filtered", "content_filter")] {
        let server = ModelServer::start(script(&format!("[[reply]]\ntext = 'x'\nfinish = '{finish}'"))).await;
        let mut body = hello(Wire::OpenAi, "x");
        body.as_object_mut().unwrap().remove("stream_options");
        let chunks = chunks(&server, &body).await;
        assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], word);
    }
}

#[tokio::test]
async fn arguments_that_are_no_json_are_sent_as_they_are() {
    let server =
        ModelServer::start(script(r#"reply = [{ calls = [{ id = "", name = "x", args = '{"a": ' }] }]"#))
            .await;
    let mut body = hello(Wire::OpenAi, "x");
    body.as_object_mut().unwrap().remove("stream_options");
    body["stream"] = json!(false);
    let reply: Value = post(&server, Wire::OpenAi, &body).send().await.unwrap().json().await.unwrap();
    let call = &reply["choices"][0]["message"]["tool_calls"][0];
    assert_eq!((&call["id"], &call["function"]["arguments"]), (&json!(""), &json!("{\"a\": ")));
}
