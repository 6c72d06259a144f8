//! Everything that can go wrong with a reply, on every wire.

use futures_util::{FutureExt, StreamExt};
use gimlet_testkit::{ModelServer, Wire};
use serde_json::{Value, json};

use crate::client::{WIRES, hello, path, post, script};

async fn server(reply: &str) -> ModelServer {
    ModelServer::start(script(&format!("[[reply]]\n{reply}\n[[reply]]\ntext = 'after'"))).await
}

/// Bytes until the end or the break, and whether it ended well.
async fn read(response: reqwest::Response) -> (Vec<u8>, bool) {
    let mut stream = response.bytes_stream();
    let mut bytes = Vec::new();
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(piece) => bytes.extend_from_slice(&piece),
            Err(_) => return (bytes, false),
        }
    }
    (bytes, true)
}

async fn whole(wire: Wire) -> Vec<u8> {
    let server = server("text = 'a long enough text'").await;
    let (bytes, ended) = read(post(&server, wire, &hello(wire, "x")).send().await.unwrap()).await;
    assert!(ended);
    bytes
}

#[tokio::test]
async fn a_status_with_retry_after() {
    for wire in WIRES {
        let server = server("fault = { kind = 'status', status = 429, retry_after = 7 }").await;
        let response = post(&server, wire, &hello(wire, "x")).send().await.unwrap();
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["retry-after"], "7");
        let error: Value = response.json().await.unwrap();
        match wire {
            Wire::Ollama => assert!(error["error"].is_string()),
            Wire::OpenAi | Wire::Responses => assert_eq!(error["error"]["code"], "rate_limit_exceeded"),
            Wire::Anthropic => assert_eq!(error["error"]["type"], "rate_limit_error"),
        }
        // The attempt used the reply up; the same request again meets the next one.
        let again = post(&server, wire, &hello(wire, "x")).send().await.unwrap();
        assert!(again.text().await.unwrap().contains("after"));
        server.assert_no_violations();
    }
}

#[tokio::test]
async fn a_status_with_a_page_of_its_own() {
    let server = server(
        "fault = { kind = 'status', status = 502, body = '<h1>bad</h1>', content_type = 'text/html' }",
    )
    .await;
    let response = post(&server, Wire::OpenAi, &hello(Wire::OpenAi, "x")).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (502, &"text/html".parse().unwrap())
    );
    assert_eq!(response.text().await.unwrap(), "<h1>bad</h1>");
}

#[tokio::test]
async fn a_connection_that_breaks_has_sent_exactly_what_it_should() {
    for wire in WIRES {
        let full = whole(wire).await;
        for after in [0, 1, 40, full.len() - 1, full.len()] {
            let fault =
                format!("text = 'a long enough text'\nfault = {{ kind = 'drop', after_bytes = {after} }}");
            let server = server(&fault).await;
            let (bytes, ended) = read(post(&server, wire, &hello(wire, "x")).send().await.unwrap()).await;
            assert!(!ended, "{wire:?} {after}: the break must be seen");
            assert_eq!(bytes, full[..after]);
        }
    }
}

/// A client with the smallest of buffers that reads late: what the server still holds must not be lost.
#[tokio::test]
async fn a_large_reply_breaks_as_exactly_as_a_small_one() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let text = "long ".repeat(3_000_000);
    let mut script = script("[[reply]]\nfault = { kind = 'drop', after_bytes = 14000000 }");
    script.reply[0].text = text;
    script.reply[0].chunk_bytes = Some(30_000);
    let server = ModelServer::start(script).await;
    let mut body = hello(Wire::Ollama, "x");
    body["stream"] = json!(false);
    let body = body.to_string();
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let address = server.url().strip_prefix("http://").unwrap().parse().unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let head = format!("POST /api/chat HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end_of_head = answer.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    assert_eq!(answer.len() - end_of_head, 14_000_000);
}

#[tokio::test]
async fn a_plain_reply_that_breaks_is_shorter_than_it_says() {
    let server = server("text = 'a long enough text'\nfault = { kind = 'drop', after_bytes = 10 }").await;
    let mut body = hello(Wire::Ollama, "x");
    body["stream"] = json!(false);
    let response = post(&server, Wire::Ollama, &body).send().await.unwrap();
    assert!(response.content_length().unwrap() > 10);
    assert!(response.bytes().await.is_err());
}

#[tokio::test]
async fn a_truncated_reply_ends_well_but_early() {
    for wire in WIRES {
        let full = whole(wire).await;
        for after in [0, 33, full.len() - 1] {
            let fault = format!(
                "text = 'a long enough text'\nfault = {{ kind = 'truncate', after_bytes = {after} }}"
            );
            let server = server(&fault).await;
            let (bytes, ended) = read(post(&server, wire, &hello(wire, "x")).send().await.unwrap()).await;
            assert!(ended);
            assert_eq!(bytes, full[..after]);
        }
    }
}

#[tokio::test]
async fn garbage_is_sent_as_it_is() {
    for wire in WIRES {
        let server =
            server("fault = { kind = 'garbage', body = '}{ not a protocol' }\nchunk_bytes = 3").await;
        let response = post(&server, wire, &hello(wire, "x")).send().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), response.text().await.unwrap().as_str()),
            (200, "}{ not a protocol")
        );
    }
}

#[tokio::test]
async fn a_hanging_server_sends_nothing_until_it_is_stopped() {
    let mut server = server("fault = { kind = 'hang' }").await;
    let mut reply = std::pin::pin!(post(&server, Wire::Ollama, &hello(Wire::Ollama, "x")).send());
    // Drive the request until the server has it: from then on only the end of the server can end it.
    while server.requests().is_empty() {
        assert!((&mut reply).now_or_never().is_none());
        tokio::task::yield_now().await;
    }
    server.stop().await;
    assert!(reply.await.is_err());
    assert_eq!(server.requests().len(), 1, "what it saw can still be asked");
}

#[tokio::test]
async fn a_server_that_is_gone_refuses_connections() {
    let mut server = server("text = 'x'").await;
    server.stop().await;
    let error = post(&server, Wire::Ollama, &hello(Wire::Ollama, "x")).send().await.unwrap_err();
    assert!(error.is_connect());
}

#[tokio::test]
async fn dropping_it_ends_it() {
    let server = server("fault = { kind = 'hang' }").await;
    let reply = post(&server, Wire::Ollama, &hello(Wire::Ollama, "x"));
    let reply = tokio::spawn(reply.send());
    while server.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    drop(server);
    assert!(reply.await.unwrap().is_err());
}

#[tokio::test]
async fn unknown_paths_and_methods_are_refused() {
    let server = server("text = 'x'").await;
    let get =
        async |path: &str| reqwest::get(format!("{}{path}", server.url())).await.unwrap().status().as_u16();
    assert_eq!(get("/api/generate").await, 404);
    for wire in WIRES {
        assert_eq!(get(path(wire)).await, 405);
    }
    assert_eq!(get("/api/show").await, 405);
}

#[tokio::test]
async fn a_script_that_is_over_says_so_and_is_kept() {
    let server = ModelServer::start(script("")).await;
    let response = post(&server, Wire::OpenAi, &hello(Wire::OpenAi, "x")).send().await.unwrap();
    assert_eq!(response.status(), 400);
    assert!(response.text().await.unwrap().contains("rule `script` is broken: the script has no reply 1"));
    assert_eq!(server.violations().len(), 1);
}
