//! Servers over HTTP that answer without end: a body, an event, a stream of the older way.

use std::sync::{Arc, Mutex};

use gimlet_mcp::config::ServerConfig;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use crate::support::{World, configured};

/// A server that speaks HTTP by hand, so that it can misbehave.
struct Http {
    /// To the one stream of the older way, once it is open.
    events: Mutex<Option<mpsc::Sender<String>>>,
}

impl Http {
    /// Starts it; its address.
    async fn start() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Arc::new(Http { events: Mutex::default() });
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = server.clone();
                // A client that went away is no matter.
                tokio::spawn(async move { server.serve(stream).await });
            }
        });
        format!("http://{address}")
    }

    async fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).await? == 0 {
                return Ok(());
            }
        }
        let length = head.to_lowercase().lines().find_map(|line| {
            line.strip_prefix("content-length:").and_then(|length| length.trim().parse().ok())
        });
        let mut body = vec![0; length.unwrap_or(0)];
        stream.read_exact(&mut body).await?;
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let stream = &mut stream;
        match head.split_whitespace().take(2).collect::<Vec<_>>().as_slice() {
            ["GET", "/sse"] => self.listen(stream).await,
            ["POST", "/post"] => {
                reply(stream, "202 Accepted", "text/plain", "").await?;
                self.say(&message).await
            }
            ["POST", "/mcp"] => respond(stream, &message).await,
            _ => reply(stream, "405 Method Not Allowed", "text/plain", "").await,
        }
    }

    /// The stream of the older way.
    async fn listen(&self, stream: &mut BufReader<TcpStream>) -> std::io::Result<()> {
        let (sender, mut events) = mpsc::channel(4);
        *self.events.lock().unwrap() = Some(sender);
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        stream.write_all(format!("{head}event: endpoint\ndata: /post\n\n").as_bytes()).await?;
        while let Some(event) = events.recv().await {
            stream.write_all(event.as_bytes()).await?;
        }
        Ok(())
    }

    async fn say(&self, message: &Value) -> std::io::Result<()> {
        let Some(events) = self.events.lock().unwrap().clone() else { return Ok(()) };
        if let Some(answer) = answer(message) {
            let _ = events.send(format!("data: {answer}\n\n")).await;
        } else if message["method"] == "tools/call" {
            let _ = events.send("data: ".into()).await;
            while events.send("x".repeat(1024 * 1024)).await.is_ok() {}
        }
        Ok(())
    }
}

/// What a well-behaved server would answer; none where this one floods, or nothing is to be answered.
fn answer(message: &Value) -> Option<Value> {
    let text = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let result = match message["method"].as_str()? {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "flood", "version": "1"},
        }),
        "tools/list" => {
            let tool = |name: &str| json!({"name": name, "inputSchema": text});
            json!({"tools": [tool("echo"), tool("body"), tool("length"), tool("event")]})
        }
        "tools/call" if message["params"]["name"] == "echo" => {
            json!({"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}]})
        }
        _ => return None,
    };
    Some(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

async fn respond(stream: &mut BufReader<TcpStream>, message: &Value) -> std::io::Result<()> {
    if let Some(answer) = answer(message) {
        return reply(stream, "200 OK", "application/json", &answer.to_string()).await;
    }
    let (kind, begin) = match message["params"]["name"].as_str() {
        Some("body") => {
            ("application/json", format!("{{\"jsonrpc\": \"2.0\", \"id\": {}, \"x\": \"", message["id"]))
        }
        Some("event") => ("text/event-stream", "data: ".into()),
        Some("length") => ("application/json\r\nContent-Length: 1000000000000", "{".into()),
        _ => return reply(stream, "202 Accepted", "text/plain", "").await,
    };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n{begin}");
    stream.write_all(head.as_bytes()).await?;
    let megabyte = vec![b'x'; 1024 * 1024];
    // Ends when the client has had enough.
    loop {
        stream.write_all(&megabyte).await?;
    }
}

async fn reply(
    stream: &mut BufReader<TcpStream>,
    status: &str,
    kind: &str,
    body: &str,
) -> std::io::Result<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n");
    stream.write_all(format!("{head}Connection: close\r\n\r\n{body}").as_bytes()).await
}

async fn server(path: &str, kind: &str) -> ServerConfig {
    let address = Http::start().await;
    let entry =
        format!("[mcp.far]\ntype = \"{kind}\"\nurl = \"{address}{path}\"\nprotocol = \"2025-11-25\"\n");
    configured(&entry).remove(0)
}

#[tokio::test]
async fn an_answer_without_end_costs_one_call() {
    let world = World::start(server("/mcp", "http").await).await;
    for tool in ["body", "length", "event"] {
        let cut = world.call(tool, json!({})).await;
        assert_eq!(cut["error"], "MCP_TOOL_FAILED", "{cut}");
        assert_eq!(
            cut["message"],
            "MCP server `far` was not heard out because it sent a message of more than 32 MB."
        );
        assert_eq!(cut["context"]["hint"], "Ask for less at a time, or go on without it.");
        assert_eq!(world.call("echo", json!({"text": "still here"})).await, "still here", "{tool}");
    }
}

#[tokio::test]
async fn a_stream_without_end_is_cut_off_and_opened_again() {
    let world = World::start(server("/sse", "sse").await).await;
    let cut = world.call("event", json!({})).await;
    assert_eq!(cut["error"], "MCP_SERVER_DIED", "{cut}");
    assert!(cut["message"].as_str().unwrap().contains("it sent a message of more than 32 MB"), "{cut}");
    assert_eq!(world.call("echo", json!({"text": "back"})).await, "back");
}
