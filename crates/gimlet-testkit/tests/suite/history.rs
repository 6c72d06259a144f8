//! The rules between the requests of a conversation.

use gimlet_testkit::{ModelServer, Rule, Wire};
use serde_json::{Value, json};

use crate::client::{WIRES, assistant, hello, post, request, script, user};

async fn server() -> ModelServer {
    let replies = "[[reply]]\ntext = 'ok'\n".repeat(8);
    ModelServer::start(script(&format!("order = 'sequence'\n{replies}"))).await
}

async fn send(server: &ModelServer, wire: Wire, body: &Value) -> u16 {
    post(server, wire, body).send().await.unwrap().status().as_u16()
}

fn last_rule(server: &ModelServer) -> Option<Rule> {
    server.requests().last().and_then(|request| request.violations.first().map(|violation| violation.rule))
}

#[tokio::test]
async fn a_conversation_only_grows() {
    for wire in WIRES {
        let server = server().await;
        let grown =
            |first: &str, reply: &str| request(wire, vec![user(first), assistant(reply), user("more")]);
        assert_eq!(send(&server, wire, &hello(wire, "task")).await, 200);
        assert_eq!(send(&server, wire, &hello(wire, "task")).await, 200, "the same again is a retry");
        assert_eq!(send(&server, wire, &grown("task", "ok")).await, 200);
        // Another task is another conversation, another run of the same task begins with nothing but it.
        assert_eq!(send(&server, wire, &grown("other", "ok")).await, 200);
        assert_eq!(send(&server, wire, &hello(wire, "task")).await, 200);
        assert_eq!(send(&server, wire, &grown("task", "ok")).await, 200);
        server.assert_no_violations();

        assert_eq!(send(&server, wire, &grown("task", "changed")).await, 400);
        assert_eq!(last_rule(&server), Some(Rule::Extends));
        let forgot = request(wire, vec![user("task"), assistant("summary"), user("go on")]);
        assert_eq!(send(&server, wire, &forgot).await, 400);
        let mut other_system = grown("task", "ok");
        match wire {
            Wire::Anthropic => other_system["system"] = json!("Be long."),
            Wire::Responses => other_system["instructions"] = json!("Be long."),
            Wire::Ollama | Wire::OpenAi => other_system["messages"][0]["content"] = json!("Be long."),
        }
        assert_eq!(send(&server, wire, &other_system).await, 400);
        assert_eq!(server.violations().len(), 3);
        // A refused request changes nothing: the proper one still passes.
        assert_eq!(send(&server, wire, &grown("task", "ok")).await, 200);
    }
}

#[tokio::test]
async fn a_shorter_request_does_not_extend_a_longer_one() {
    for wire in WIRES {
        let server = server().await;
        let turns = |count: usize| {
            let mut messages = vec![user("task")];
            for _ in 0..count {
                messages.extend([assistant("ok"), user("more")]);
            }
            request(wire, messages)
        };
        assert_eq!(send(&server, wire, &turns(2)).await, 200, "a resumed run begins in the middle");
        assert_eq!(send(&server, wire, &turns(1)).await, 400);
        assert!(server.violations()[0].detail.contains("messages, this one has"));
    }
}

#[tokio::test]
async fn a_user_may_add_to_a_message_nobody_has_answered() {
    for wire in WIRES {
        let server = server().await;
        let ask = |text: &str, rest: Vec<Value>| {
            let mut messages = vec![user("task"), assistant("ok"), user(text)];
            messages.extend(rest);
            request(wire, messages)
        };
        assert_eq!(send(&server, wire, &ask("more", vec![])).await, 200);
        let grown = match wire {
            Wire::Ollama | Wire::OpenAi | Wire::Responses => ask("more and more", vec![]),
            Wire::Anthropic => {
                let mut body = ask("more", vec![]);
                body["messages"][2]["content"] =
                    json!([{ "type": "text", "text": "more" }, { "type": "text", "text": "and more" }]);
                body
            }
        };
        assert_eq!(send(&server, wire, &grown).await, 200);
        server.assert_no_violations();
        // Once it has been answered it stands.
        let rewritten = ask("more and more, much more", vec![assistant("ok"), user("next")]);
        assert_eq!(send(&server, wire, &rewritten).await, 400);
        assert_eq!(last_rule(&server), Some(Rule::Extends));
    }
}

#[tokio::test]
async fn tools_stay_the_same() {
    for wire in WIRES {
        let server = server().await;
        assert_eq!(send(&server, wire, &hello(wire, "task")).await, 200);
        let mut next = request(wire, vec![user("task"), assistant("ok"), user("more")]);
        next["tools"].as_array_mut().unwrap().reverse();
        assert_eq!(send(&server, wire, &next).await, 400);
        assert_eq!(last_rule(&server), Some(Rule::Tools));
        assert!(server.violations()[0].detail.contains("[read_file, list_files]"));
        next.as_object_mut().unwrap().remove("tools");
        assert_eq!(send(&server, wire, &next).await, 400);
        // Another conversation may have others, such as a sub-agent's.
        let mut other = hello(wire, "other");
        other["tools"].as_array_mut().unwrap().pop();
        assert_eq!(send(&server, wire, &other).await, 200);
    }
}

#[tokio::test]
async fn announced_compaction_begins_anew() {
    for wire in WIRES {
        let server = server().await;
        let long = request(wire, vec![user("task"), assistant("a"), user("b"), assistant("c"), user("d")]);
        let short = request(wire, vec![user("task"), assistant("in short"), user("d")]);
        assert_eq!(send(&server, wire, &long).await, 200);
        assert_eq!(send(&server, wire, &short).await, 400);

        let by_header = post(&server, wire, &short).header("x-gimlet-compacted", "1").send().await.unwrap();
        assert_eq!(by_header.status(), 200);
        assert_eq!(send(&server, wire, &short).await, 200, "from there on it goes on as ever");
        assert_eq!(send(&server, wire, &long).await, 400);

        server.announce_compaction("task");
        assert_eq!(send(&server, wire, &long).await, 200);
        assert_eq!(send(&server, wire, &short).await, 400, "an announcement is for one request");
    }
}

#[tokio::test]
async fn conversations_of_a_script_are_told_apart() {
    let script = script(
        "conversation = [
            { match = 'cats', reply = [{ text = 'meow' }] },
            { match = 'dogs', reply = [{ text = 'woof', expect = ['dogs'] }] },
        ]",
    );
    let server = ModelServer::start(script).await;
    for (task, word) in [("about dogs", "woof"), ("about cats", "meow")] {
        let response = post(&server, Wire::OpenAi, &hello(Wire::OpenAi, task)).send().await.unwrap();
        assert!(response.text().await.unwrap().contains(word));
    }
    assert_eq!(server.conversation("cats").len(), 1);
    assert_eq!(server.conversation("dogs")[0].task, "about dogs");
    assert_eq!(server.conversation("dogs")[0].header("Anthropic-Version"), Some("2023-06-01"));
}
