//! How fast each wire decodes and encodes, and what a streamed token costs over the bare socket.

#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use futures_util::StreamExt;
use gimlet::message::Message;
use gimlet::model::{Model, Request};
use gimlet_models::HttpModel;
use gimlet_models::transport::{Timeouts, Transport};
use gimlet_models::wire::{Wire, WireOptions};

fn main() {
    divan::main();
}

const WIRES: [Wire; 3] = [Wire::Ollama, Wire::OpenAi, Wire::Anthropic];
const TOKENS: usize = 2000;

/// A reply of many small pieces, as models write them.
fn reply(wire: Wire) -> Vec<u8> {
    let mut body = String::new();
    for n in 0..TOKENS {
        body.push_str(&match wire {
            Wire::Ollama => format!("{{\"model\":\"qwen3:8b\",\"created_at\":\"2026-01-05T10:00:00.123456Z\",\"message\":{{\"role\":\"assistant\",\"content\":\" word{n}\"}},\"done\":false}}\n"),
            Wire::OpenAi => format!("data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1767607200,\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\" word{n}\"}},\"finish_reason\":null}}]}}\n\n"),
            Wire::Anthropic => format!("event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\" word{n}\"}}}}\n\n"),
        });
    }
    body.push_str(match wire {
        Wire::Ollama => "{\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\",\"prompt_eval_count\":26,\"eval_count\":2000}\n",
        Wire::OpenAi => "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        Wire::Anthropic => "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    });
    body.into_bytes()
}

#[divan::bench(args = WIRES)]
fn decode(bencher: Bencher<'_, '_>, wire: Wire) {
    let body = reply(wire);
    let options = WireOptions::new("m");
    bencher.counter(BytesCount::new(body.len())).counter(ItemsCount::new(TOKENS)).bench(|| {
        let mut decoder = wire.decoder(wire.framing(), &options);
        let mut events = Vec::with_capacity(TOKENS + 8);
        // As a socket hands it out.
        for piece in body.chunks(1400) {
            decoder.push(piece, &mut events).unwrap();
        }
        black_box(events)
    });
}

#[divan::bench(args = WIRES)]
fn encode(bencher: Bencher<'_, '_>, wire: Wire) {
    let text = "fn main() {\n    println!(\"hello\");\n}\n".repeat(80);
    let messages = (0..100).map(|_| Arc::new(Message::user(text.clone()))).collect();
    let request = Request { messages, ..Request::default() };
    let options = WireOptions::new("m");
    let size = wire.encode(&request, &options).unwrap().len();
    bencher.counter(BytesCount::new(size)).bench(|| wire.encode(black_box(&request), &options).unwrap());
}

/// Serves the reply to everyone who asks.
fn serve(wire: Wire) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let kind = if wire == Wire::Ollama { "application/x-ndjson" } else { "text/event-stream" };
    let mut answer =
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: {kind}\r\n\r\n").into_bytes();
    answer.extend(reply(wire));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut request = [0; 65536];
            let _asked = stream.read(&mut request);
            let _gone = stream.write_all(&answer);
        }
    });
    address
}

#[divan::bench(args = WIRES)]
fn whole_reply_over_http(bencher: Bencher<'_, '_>, wire: Wire) {
    let base = format!("http://{}", serve(wire)).parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let transport = Transport::new(&base, Timeouts::LOCAL, None, None).unwrap();
    let model = HttpModel::new("m", wire, &base, transport, WireOptions::new("m"));
    bencher.counter(ItemsCount::new(TOKENS)).bench(|| {
        runtime.block_on(async {
            let request = Request { messages: vec![Arc::new(Message::user("Hi"))], ..Request::default() };
            model.stream(request).await.unwrap().count().await
        })
    });
}

#[divan::bench(args = WIRES)]
fn same_bytes_over_the_bare_socket(bencher: Bencher<'_, '_>, wire: Wire) {
    let address = serve(wire);
    bencher.counter(ItemsCount::new(TOKENS)).bench(|| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes.len()
    });
}
