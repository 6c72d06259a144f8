//! Wherever the body is cut, the bytes are the same.

use futures_util::StreamExt;
use gimlet_testkit::{ModelServer, Wire};

use crate::client::{EVERYTHING, WIRES, hello, post, script};

/// Short, since it is cut at each of its bytes; it has characters of two, three and four bytes.
const SMALL: &str =
    r#"reply = [{ thinking = "ü", text = "– 🦀", calls = [{ name = "x", args = { a = "é" } }] }]"#;

/// The pieces in which a reply arrives. HTTP's own chunks keep the cuts apart, however TCP joins them.
async fn pieces(wire: Wire, chunk_bytes: Option<usize>) -> Vec<Vec<u8>> {
    let mut script = script(EVERYTHING);
    script.reply[0].chunk_bytes = chunk_bytes;
    let server = ModelServer::start(script).await;
    let response = post(&server, wire, &hello(wire, "look")).send().await.unwrap();
    response.bytes_stream().map(|piece| piece.unwrap().to_vec()).collect().await
}

#[tokio::test]
async fn a_cut_at_every_byte_delivers_the_same() {
    for wire in WIRES {
        let mut script = script(SMALL);
        let server = ModelServer::start(script.clone()).await;
        let request = post(&server, wire, &hello(wire, "look"));
        let full = request.send().await.unwrap().bytes().await.unwrap();
        // One server and one client for all sizes: the same conversation is begun again and again.
        script.reply = (1..=full.len())
            .map(|size| {
                let mut reply = script.reply[0].clone();
                reply.chunk_bytes = Some(size);
                reply
            })
            .collect();
        let server = ModelServer::start(script).await;
        let client = reqwest::Client::new();
        let request = post(&server, wire, &hello(wire, "look")).build().unwrap();
        for size in 1..=full.len() {
            let response = client.execute(request.try_clone().unwrap()).await.unwrap();
            let pieces: Vec<_> = response.bytes_stream().map(|piece| piece.unwrap()).collect().await;
            assert_eq!(pieces.concat(), full, "{wire:?} in pieces of {size}");
        }
        server.assert_no_violations();
    }
}

#[tokio::test]
async fn cuts_fall_inside_characters_and_inside_json() {
    for wire in WIRES {
        let pieces = pieces(wire, Some(1)).await;
        assert!(pieces.iter().any(|piece| std::str::from_utf8(piece).is_err()), "{wire:?}");
        assert!(pieces.len() > 100, "the pieces arrive as pieces, not as {}", pieces.len());
    }
}

#[tokio::test]
async fn without_a_size_each_event_is_a_piece() {
    for wire in WIRES {
        let pieces = pieces(wire, None).await;
        assert!(pieces.len() > 5);
        assert!(pieces.iter().all(|piece| piece.ends_with(b"\n")));
    }
}

#[tokio::test]
async fn a_delay_comes_before_each_piece_and_loses_nothing() {
    let mut script = script(EVERYTHING);
    script.reply[0].delay_ms = 1;
    script.reply[0].chunk_bytes = Some(100);
    let server = ModelServer::start(script).await;
    let response = post(&server, Wire::Ollama, &hello(Wire::Ollama, "look")).send().await.unwrap();
    assert_eq!(response.bytes().await.unwrap(), pieces(Wire::Ollama, None).await.concat());
}

#[tokio::test]
async fn a_megabyte_stays_a_moderate_number_of_events() {
    let mut script = script(EVERYTHING);
    script.reply[0].text = "é".repeat(500_000);
    let server = ModelServer::start(script).await;
    let response = post(&server, Wire::OpenAi, &hello(Wire::OpenAi, "look")).send().await.unwrap();
    let text = response.text().await.unwrap();
    assert_eq!(text.matches('é').count(), 500_000);
    assert!(text.matches("data: ").count() < 200);
}
