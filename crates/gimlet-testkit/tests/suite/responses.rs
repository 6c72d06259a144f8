use gimlet_testkit::{ModelServer, Wire};
use serde_json::{Value, json};

use crate::client::{EVERYTHING, events, hello, post, results, script};

/// The events of a stream, after checking that each is named and numbered as it must be.
async fn stream(server: &ModelServer, body: &Value) -> Vec<Value> {
    let response = post(server, Wire::Responses, body).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let events =
        events(&response.text().await.unwrap()).into_iter().enumerate().map(|(number, (name, data))| {
            let event: Value = serde_json::from_str(&data).unwrap();
            assert_eq!((&event["type"], &event["sequence_number"]), (&json!(name), &json!(number)));
            event
        });
    events.collect()
}

fn joined(events: &[Value], kind: &str, index: usize) -> String {
    let of_kind = events.iter().filter(|event| event["type"] == kind && event["output_index"] == index);
    of_kind.filter_map(|event| event["delta"].as_str()).collect()
}

#[tokio::test]
async fn a_stream_carries_everything_and_the_answer_goes_on() {
    let server = ModelServer::start(script(EVERYTHING)).await;
    let events = stream(&server, &hello(Wire::Responses, "look")).await;
    assert_eq!(events[0]["type"], "response.created");
    let last = &events.last().unwrap()["response"];
    assert_eq!((&last["status"], &last["usage"]["total_tokens"]), (&json!("completed"), &json!(165)));
    let done = events.iter().filter(|event| event["type"] == "response.output_item.done");
    let items: Vec<Value> = done.map(|event| event["item"].clone()).collect();
    assert_eq!(json!(items), last["output"], "the end repeats what came in pieces");
    let kinds: Vec<&str> = items.iter().filter_map(|item| item["type"].as_str()).collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call", "function_call"]);
    assert_eq!(joined(&events, "response.output_text.delta", 1), items[1]["content"][0]["text"]);
    let arguments = joined(&events, "response.function_call_arguments.delta", 2);
    assert_eq!(
        serde_json::from_str::<Value>(&arguments).unwrap(),
        json!({ "path": "src/naïve.py", "lines": [1, 20] })
    );
    assert_eq!((&items[2]["call_id"], &items[3]["call_id"]), (&json!("call_0_0"), &json!("mine")));

    let mut next = hello(Wire::Responses, "look");
    let input = next["input"].as_array_mut().unwrap();
    input.extend(items);
    input.extend(results(Wire::Responses, &[("call_0_0", "text"), ("mine", "a.py")]));
    let events = stream(&server, &next).await;
    assert_eq!(events.last().unwrap()["response"]["id"], "resp_1", "four items are one reply");
    server.assert_no_violations();
}

#[tokio::test]
async fn one_object_carries_everything() {
    let server = ModelServer::start(script(EVERYTHING)).await;
    let mut body = hello(Wire::Responses, "look");
    body["stream"] = json!(false);
    let reply: Value = post(&server, Wire::Responses, &body).send().await.unwrap().json().await.unwrap();
    insta::assert_json_snapshot!(reply);
}

#[tokio::test]
async fn a_reply_that_was_cut_is_incomplete() {
    for (finish, reason) in [("length", "max_output_tokens"), ("filtered", "content_filter")] {
        let server = ModelServer::start(script(&format!("[[reply]]\ntext = 'x'\nfinish = '{finish}'"))).await;
        let events = stream(&server, &hello(Wire::Responses, "x")).await;
        let last = events.last().unwrap();
        assert_eq!(last["type"], "response.incomplete");
        assert_eq!(last["response"]["incomplete_details"]["reason"], reason);
    }
}

#[tokio::test]
async fn tools_the_provider_runs_itself_are_let_through() {
    let server = ModelServer::start(script("[[reply]]\ntext = 'ok'")).await;
    let mut body = hello(Wire::Responses, "x");
    body["tools"].as_array_mut().unwrap().push(json!({ "type": "web_search" }));
    assert_eq!(post(&server, Wire::Responses, &body).send().await.unwrap().status(), 200);
}
