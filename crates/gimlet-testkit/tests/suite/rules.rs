//! Each rule has a request that breaks it, on every wire.

use gimlet_testkit::{ModelServer, Rule, Wire};
use serde_json::{Value, json};

use crate::client::{WIRES, assistant, calls, hello, path, post, request, results, script, tools, user};

async fn server() -> ModelServer {
    ModelServer::start(script("order = 'turns'\n[[reply]]\ntext = 'one'\n[[reply]]\ntext = 'two'")).await
}

/// Sends a request that must be refused for this rule, and only this one.
async fn breaks(wire: Wire, rule: Rule, body: &Value) {
    let server = server().await;
    let response = post(&server, wire, body).send().await.unwrap();
    let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
    assert_eq!(status, 400, "{wire:?} {rule:?}: {text}");
    assert!(text.contains(&format!("rule `{}` is broken", rule.word())), "{wire:?} {rule:?}: {text}");
    let found: Vec<Rule> = server.violations().iter().map(|violation| violation.rule).collect();
    assert!(!found.is_empty() && found.iter().all(|one| *one == rule), "{wire:?} {rule:?}: {found:?}");
    assert_eq!(server.requests()[0].body, *body, "it is kept as it came");
}

#[tokio::test]
async fn proper_requests_pass() {
    for wire in WIRES {
        let server = server().await;
        let mut messages = vec![user("do it"), calls(wire, &[("a", "read_file"), ("b", "list_files")])];
        messages.extend(results(wire, &[("b", "2"), ("a", "1")]));
        for body in [hello(wire, "do it"), request(wire, messages)] {
            let response = post(&server, wire, &body).send().await.unwrap();
            assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
        }
        server.assert_no_violations();
    }
}

#[tokio::test]
async fn shape() {
    for wire in WIRES {
        let list = if wire == Wire::Responses { "input" } else { "messages" };
        let broken = |change: &dyn Fn(&mut Value)| {
            let mut body = hello(wire, "x");
            change(&mut body);
            body
        };
        breaks(wire, Rule::Shape, &json!([1, 2])).await;
        breaks(wire, Rule::Shape, &json!("text")).await;
        breaks(wire, Rule::Shape, &broken(&|body| body[list] = json!("hello"))).await;
        breaks(wire, Rule::Shape, &broken(&|body| body[list][0]["role"] = json!("robot"))).await;
        breaks(wire, Rule::Shape, &broken(&|body| body[list][0]["content"] = json!(7))).await;
        breaks(wire, Rule::Shape, &broken(&|body| body["stream"] = json!("yes"))).await;
        breaks(wire, Rule::Shape, &broken(&|body| body["tools"] = json!({}))).await;
        breaks(wire, Rule::Shape, &broken(&|body| body["tools"][0] = body["tools"][1].clone())).await;
        breaks(wire, Rule::Shape, &broken(&|body| body["tools"][0] = json!({ "name": "no schema" }))).await;
    }
}

#[tokio::test]
async fn arguments_have_the_wires_own_form() {
    let call = |arguments: Value| json!({ "id": "a", "type": "function", "function": { "name": "x", "arguments": arguments } });
    let with = |wire, call: Value| {
        let mut messages =
            vec![user("x"), json!({ "role": "assistant", "content": "", "tool_calls": [call] })];
        messages.extend(results(wire, &[("a", "1")]));
        request(wire, messages)
    };
    breaks(Wire::OpenAi, Rule::Shape, &with(Wire::OpenAi, call(json!({})))).await;
    breaks(Wire::Ollama, Rule::Shape, &with(Wire::Ollama, call(json!("{}")))).await;
    let block = json!({ "type": "tool_use", "id": "a", "name": "x", "input": "{}" });
    let body = request(Wire::Anthropic, vec![user("x"), json!({ "role": "assistant", "content": [block] })]);
    breaks(Wire::Anthropic, Rule::Shape, &body).await;
}

#[tokio::test]
async fn an_assistant_says_or_calls_something() {
    let silent = request(Wire::OpenAi, vec![user("x"), json!({ "role": "assistant" }), user("y")]);
    breaks(Wire::OpenAi, Rule::Shape, &silent).await;
    let empty = json!({ "role": "assistant", "content": "hm", "tool_calls": [] });
    breaks(Wire::OpenAi, Rule::Shape, &request(Wire::OpenAi, vec![user("x"), empty, user("y")])).await;
    let mut whole = hello(Wire::OpenAi, "x");
    whole["stream"] = json!(false);
    breaks(Wire::OpenAi, Rule::Shape, &whole).await;
}

#[tokio::test]
async fn not_even_json() {
    for wire in WIRES {
        let server = server().await;
        let client = reqwest::Client::new().post(format!("{}{}", server.url(), path(wire)));
        let response = client.body("{\"model\": \"x\", \"mess").send().await.unwrap();
        assert_eq!(response.status(), 400);
        assert!(response.text().await.unwrap().contains("the body is not JSON"));
        assert_eq!(server.violations()[0].rule, Rule::Shape);
        assert_eq!(server.requests()[0].body, json!("{\"model\": \"x\", \"mess"));
    }
}

#[tokio::test]
async fn model() {
    for wire in WIRES {
        for model in [json!(null), json!(""), json!("  ")] {
            let mut body = hello(wire, "x");
            body["model"] = model;
            breaks(wire, Rule::Model, &body).await;
        }
    }
}

#[tokio::test]
async fn system() {
    let system = json!({ "role": "system", "content": "Also be kind." });
    for wire in [Wire::Ollama, Wire::OpenAi, Wire::Responses] {
        breaks(wire, Rule::System, &request(wire, vec![system.clone(), user("x")])).await;
        breaks(
            wire,
            Rule::System,
            &request(wire, vec![user("x"), assistant("y"), user("z"), system.clone()]),
        )
        .await;
    }
    // Here a system prompt among the messages is not even a message.
    breaks(Wire::Anthropic, Rule::Shape, &request(Wire::Anthropic, vec![user("x"), system])).await;
}

#[tokio::test]
async fn roles() {
    for wire in WIRES {
        breaks(wire, Rule::Roles, &request(wire, vec![user("x"), user("y")])).await;
        breaks(wire, Rule::Roles, &request(wire, vec![user("x"), assistant("y")])).await;
        breaks(wire, Rule::Roles, &request(wire, vec![assistant("x"), user("y")])).await;
        breaks(wire, Rule::Roles, &request(wire, vec![user("x"), assistant("y"), assistant("z"), user("w")]))
            .await;
    }
    breaks(Wire::OpenAi, Rule::Roles, &request(Wire::OpenAi, vec![])).await;
    breaks(Wire::Anthropic, Rule::Roles, &request(Wire::Anthropic, vec![])).await;
}

#[tokio::test]
async fn calls_answered() {
    for wire in WIRES {
        let both = calls(wire, &[("a", "read_file"), ("b", "list_files")]);
        // Never, not all, and not directly after.
        breaks(wire, Rule::CallsAnswered, &request(wire, vec![user("x"), both.clone(), user("y")])).await;
        let mut some = vec![user("x"), both.clone()];
        some.extend(results(wire, &[("a", "1")]));
        breaks(wire, Rule::CallsAnswered, &request(wire, some)).await;

        let server = server().await;
        let mut late = vec![user("x"), both, user("wait")];
        late.extend(results(wire, &[("a", "1"), ("b", "2")]));
        assert_eq!(post(&server, wire, &request(wire, late)).send().await.unwrap().status(), 400);
        let found = server.violations();
        assert!(found.iter().any(|violation| violation.rule == Rule::CallsAnswered));
        assert!(found.iter().any(|violation| violation.rule == Rule::ResultsAsked));
    }
}

#[tokio::test]
async fn results_asked() {
    for wire in WIRES {
        let after = |first: Value, answers: &[(&str, &str)]| {
            let mut messages = vec![user("x"), first];
            messages.extend(results(wire, answers));
            request(wire, messages)
        };
        breaks(wire, Rule::ResultsAsked, &after(assistant("no calls"), &[("a", "1")])).await;
        let twice = after(calls(wire, &[("a", "read_file")]), &[("a", "1"), ("a", "again")]);
        breaks(wire, Rule::ResultsAsked, &twice).await;
    }
}

#[tokio::test]
async fn call_ids() {
    for wire in WIRES {
        let with = |first: &str, second: &str| {
            let mut messages = vec![user("x"), calls(wire, &[(first, "read_file")])];
            messages.extend(results(wire, &[(first, "1")]));
            messages.push(calls(wire, &[(second, "read_file")]));
            messages.extend(results(wire, &[(second, "2")]));
            request(wire, messages)
        };
        breaks(wire, Rule::CallIds, &with("a", "a")).await;
        breaks(wire, Rule::CallIds, &with("", "b")).await;
    }
}

#[tokio::test]
async fn a_lenient_server_answers_and_keeps_what_was_broken() {
    for wire in WIRES {
        let server =
            ModelServer::builder(script("[[reply]]\ntext = 'all the same'")).lenient().start().await.unwrap();
        let response = post(&server, wire, &request(wire, vec![user("x"), user("y")])).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(response.text().await.unwrap().contains("all the sam"));
        assert_eq!(server.violations().len(), 1);
    }
}

#[tokio::test]
async fn a_rule_can_be_left_out() {
    let script = script("[[reply]]\ntext = 'x'");
    let server = ModelServer::builder(script).allow(Rule::Roles).start().await.unwrap();
    let body = request(Wire::OpenAi, vec![user("x"), user("y")]);
    assert_eq!(post(&server, Wire::OpenAi, &body).send().await.unwrap().status(), 200);
    let body = json!({ "messages": [user("other"), user("y")], "tools": tools(Wire::OpenAi) });
    assert_eq!(post(&server, Wire::OpenAi, &body).send().await.unwrap().status(), 400);
    assert_eq!(server.violations().iter().map(|violation| violation.rule).collect::<Vec<_>>(), [Rule::Model]);
}

#[tokio::test]
#[should_panic(expected = "rule `model` is broken: the request names no model")]
async fn a_test_can_end_with_an_assertion() {
    let server = server().await;
    let body = json!({ "messages": [user("x")] });
    post(&server, Wire::OpenAi, &body).send().await.unwrap();
    server.assert_no_violations();
}
