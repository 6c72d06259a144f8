//! A server of a few lines: answers each connection with prepared bytes and remembers what it was asked.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What to do with one request.
#[derive(Clone)]
pub(crate) enum Act {
    /// Send these bytes and close.
    Send(Vec<u8>),
    /// Send these bytes and keep the connection open without another word.
    Stall(Vec<u8>),
    /// Close at once.
    Hangup,
}

/// A running server; ends with the test's runtime.
pub(crate) struct Server {
    pub(crate) base: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) head: String,
    pub(crate) body: serde_json::Value,
}

impl Server {
    /// Answers the requests in order; the last act is repeated.
    pub(crate) async fn start(acts: Vec<Act>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        tokio::spawn(async move {
            let mut acts = acts.into_iter().peekable();
            let mut last = Act::Hangup;
            while let Ok((stream, _)) = listener.accept().await {
                if let Some(act) = acts.next() {
                    last = act;
                }
                tokio::spawn(serve(stream, last.clone(), Arc::clone(&log)));
            }
        });
        Server { base, asked }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, act: Act, log: Arc<Mutex<Vec<Asked>>>) {
    let mut bytes = Vec::new();
    let (head, length) = loop {
        let mut buffer = [0; 4096];
        let Ok(n @ 1..) = stream.read(&mut buffer).await else { return };
        bytes.extend_from_slice(&buffer[..n]);
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:").map(str::to_owned))
                .map_or(0, |length| length.trim().parse().unwrap());
            bytes.drain(..end + 4);
            break (head, length);
        }
    };
    while bytes.len() < length {
        let mut buffer = [0; 4096];
        let Ok(n @ 1..) = stream.read(&mut buffer).await else { return };
        bytes.extend_from_slice(&buffer[..n]);
    }
    let body = serde_json::from_slice(&bytes).unwrap_or_default();
    log.lock().unwrap().push(Asked { head, body });
    match act {
        Act::Hangup => {}
        Act::Send(answer) => {
            let _gone = stream.write_all(&answer).await;
            let _gone = stream.shutdown().await;
        }
        Act::Stall(answer) => {
            let _gone = stream.write_all(&answer).await;
            std::future::pending::<()>().await;
        }
    }
}

/// A whole answer.
pub(crate) fn answer(status: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut bytes = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        bytes.push_str(&format!("{name}: {value}\r\n"));
    }
    bytes.push_str("\r\n");
    let mut bytes = bytes.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// A good stream without a length, so that it may end anywhere.
pub(crate) fn open_stream(content_type: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: {content_type}\r\n\r\n").into_bytes();
    bytes.extend_from_slice(body.as_ref());
    bytes
}
