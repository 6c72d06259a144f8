use gimlet_testkit::{ModelServer, Rule, Wire};
use serde_json::{Value, json};

use crate::client::{EVERYTHING, events, hello, post, results, script, user};

async fn stream(server: &ModelServer, body: &Value) -> Vec<Value> {
    let response = post(server, Wire::Anthropic, body).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
    let read = |(name, data): &(String, String)| {
        let data: Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["type"], name.as_str(), "an event is named as its data says");
        data
    };
    events(&response.text().await.unwrap()).iter().map(read).collect()
}

fn joined(events: &[Value], index: usize, key: &str) -> String {
    let deltas =
        events.iter().filter(|event| event["type"] == "content_block_delta" && event["index"] == index);
    deltas.filter_map(|event| event["delta"][key].as_str()).collect()
}

#[tokio::test]
async fn a_stream_carries_everything_and_the_answer_goes_on() {
    let server = ModelServer::start(script(EVERYTHING)).await;
    let events = stream(&server, &hello(Wire::Anthropic, "look")).await;
    let start = &events[0]["message"];
    assert_eq!(events[0]["type"], "message_start");
    assert_eq!((&start["content"], &start["stop_reason"]), (&json!([]), &Value::Null));
    assert_eq!(
        (&start["usage"]["input_tokens"], &start["usage"]["cache_read_input_tokens"]),
        (&json!(20), &json!(100))
    );
    assert!(events.iter().any(|event| event["type"] == "ping"));

    let thinking = joined(&events, 0, "thinking");
    let signature = joined(&events, 0, "signature");
    assert_eq!(thinking, "Zuerst überlege ich: was steht in der Datei?");
    assert!(!signature.is_empty());
    assert_eq!(joined(&events, 1, "text"), "Let me look at naïve.py – 日本語 🦀 \"quoted\"\n and more.");
    let input: Value = serde_json::from_str(&joined(&events, 2, "partial_json")).unwrap();
    assert_eq!(input, json!({ "path": "src/naïve.py", "lines": [1, 20] }));
    let starts: Vec<&Value> =
        events.iter().filter(|e| e["type"] == "content_block_start").map(|e| &e["content_block"]).collect();
    assert_eq!(
        starts[2],
        &json!({ "type": "tool_use", "id": "toolu_0_0", "name": "read_file", "input": {} })
    );
    assert_eq!(starts[3]["id"], "mine");
    assert_eq!(events.iter().filter(|e| e["type"] == "content_block_stop").count(), 4);
    let end = &events[events.len() - 2];
    assert_eq!((&end["type"], &end["delta"]["stop_reason"]), (&json!("message_delta"), &json!("tool_use")));
    assert_eq!(end["usage"]["output_tokens"], 45);
    assert_eq!(events.last().unwrap()["type"], "message_stop");

    // The next request moves its cache marker and writes text as blocks: no change of what was said.
    let mut next = hello(Wire::Anthropic, "look");
    next["messages"][0]["content"] = json!([{ "type": "text", "text": "look" }]);
    next["system"] =
        json!([{ "type": "text", "text": "Be brief.", "cache_control": { "type": "ephemeral" } }]);
    let messages = next["messages"].as_array_mut().unwrap();
    messages.push(json!({ "role": "assistant", "content": [
        { "type": "thinking", "thinking": thinking, "signature": signature },
        { "type": "tool_use", "id": "toolu_0_0", "name": "read_file", "input": input },
        { "type": "tool_use", "id": "mine", "name": "list_files", "input": {} },
    ] }));
    messages.extend(results(Wire::Anthropic, &[("toolu_0_0", "text"), ("mine", "a.py")]));
    let response = post(&server, Wire::Anthropic, &next).send().await.unwrap();
    assert_eq!(response.status(), 200);
    server.assert_no_violations();
}

#[tokio::test]
async fn one_object_carries_everything() {
    let server = ModelServer::start(script(EVERYTHING)).await;
    let mut body = hello(Wire::Anthropic, "look");
    body["stream"] = json!(false);
    let reply: Value = post(&server, Wire::Anthropic, &body).send().await.unwrap().json().await.unwrap();
    insta::assert_json_snapshot!(reply);
}

#[tokio::test]
async fn every_finish_has_its_word() {
    for (finish, word) in [("stop", "end_turn"), ("length", "max_tokens"), ("filtered", "refusal")] {
        let server = ModelServer::start(script(&format!("[[reply]]\ntext = 'x'\nfinish = '{finish}'"))).await;
        let events = stream(&server, &hello(Wire::Anthropic, "x")).await;
        assert_eq!(events[events.len() - 2]["delta"]["stop_reason"], word);
    }
}

/// What only this provider refuses.
#[tokio::test]
async fn its_own_rules() {
    let server = ModelServer::start(script("[[reply]]\ntext = 'x'")).await;
    let refused = async |change: &dyn Fn(&mut Value), rule: Rule, holds: &str| {
        let mut body = hello(Wire::Anthropic, "x");
        change(&mut body);
        let response = post(&server, Wire::Anthropic, &body).send().await.unwrap();
        assert_eq!(response.status(), 400);
        let error: Value = response.json().await.unwrap();
        assert_eq!(
            (&error["type"], &error["error"]["type"]),
            (&json!("error"), &json!("invalid_request_error"))
        );
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(rule.word()) && message.contains(holds), "{message}");
        assert_eq!(server.violations().last().unwrap().rule, rule);
    };
    let says = |body: &mut Value, content: Value| {
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(json!({ "role": "assistant", "content": content }));
        messages.push(user("go on"));
    };
    refused(&|body| drop(body.as_object_mut().unwrap().remove("max_tokens")), Rule::Shape, "max_tokens")
        .await;
    refused(&|body| body["messages"][0]["content"] = json!(""), Rule::Shape, "must not be empty").await;
    refused(&|body| body["messages"][0]["role"] = json!("system"), Rule::Shape, "unknown variant").await;
    refused(
        &|body| says(body, json!([{ "type": "thinking", "thinking": "hm", "signature": "forged" }])),
        Rule::Thinking,
        "signature",
    )
    .await;
    refused(
        &|body| says(body, json!([{ "type": "tool_use", "id": "a b", "name": "x", "input": {} }])),
        Rule::Shape,
        "`a b`",
    )
    .await;
    refused(
        &|body| {
            body["messages"][0]["content"] = json!([
                { "type": "text", "text": "first" },
                { "type": "tool_result", "tool_use_id": "a", "content": "late" },
            ]);
        },
        Rule::Shape,
        "before text",
    )
    .await;

    let bare = reqwest::Client::new().post(format!("{}/v1/messages", server.url()));
    let response = bare.json(&hello(Wire::Anthropic, "x")).send().await.unwrap();
    assert_eq!(response.status(), 400);
    assert!(response.text().await.unwrap().contains("anthropic-version"));
}
