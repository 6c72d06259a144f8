//! Every recorded reply decodes to the same events wherever its bytes are cut, and nothing makes a decoder panic.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use gimlet::model::ModelEvent;
use gimlet_models::wire::{Framing, Wire, WireOptions};
use proptest::prelude::*;

const WIRES: [(&str, Wire); 3] =
    [("ollama", Wire::Ollama), ("openai", Wire::OpenAi), ("anthropic", Wire::Anthropic)];

fn fixtures(wire: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(wire);
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 10);
    files
}

fn framing(wire: Wire, file: &Path) -> Framing {
    if file.extension().unwrap() == "json" { Framing::Whole } else { wire.framing() }
}

/// What a person would note down about a decoded reply.
fn decode<'a>(wire: Wire, framing: Framing, pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut decoder = wire.decoder(framing, &WireOptions::new("m"));
    let mut events = Vec::new();
    let mut result = Ok(());
    for piece in pieces {
        result = result.and_then(|()| decoder.push(piece, &mut events));
    }
    result = result.and_then(|()| decoder.end(&mut events));
    let mut noted = String::new();
    for event in &events {
        writeln!(noted, "{event:?}").unwrap();
    }
    if let Err(error) = result {
        writeln!(noted, "{}: {error}", error.code()).unwrap();
    }
    noted
}

#[test]
fn recorded_replies_decode_as_noted() {
    for (name, wire) in WIRES {
        for file in fixtures(name) {
            let bytes = std::fs::read(&file).unwrap();
            let noted = decode(wire, framing(wire, &file), [bytes.as_slice()]);
            let stem = file.file_name().unwrap().to_str().unwrap();
            insta::assert_snapshot!(format!("{name}__{stem}"), noted);
        }
    }
}

/// A server that never ends: text, thinking and arguments of a call, in frames of a megabyte.
#[test]
fn finding_11_a_reply_far_longer_than_asked_for_is_stopped() {
    let long = "x".repeat(1 << 20);
    let call = r#"{"index":0,"id":"1","function":{"name":"f","arguments":"LONG"}}"#;
    let frames = [
        (Wire::OpenAi, r#"data: {"choices":[{"delta":{"content":"LONG"}}]}"#.to_owned()),
        (Wire::OpenAi, r#"data: {"choices":[{"delta":{"reasoning_content":"LONG"}}]}"#.to_owned()),
        (Wire::OpenAi, format!(r#"data: {{"choices":[{{"delta":{{"tool_calls":[{call}]}}}}]}}"#)),
        (Wire::Ollama, r#"{"message":{"role":"assistant","content":"LONG"},"done":false}"#.to_owned()),
    ];
    for (wire, frame) in frames {
        let frame = frame.replace("LONG", &long) + "\n\n";
        let mut decoder = wire.decoder(wire.framing(), &WireOptions::new("m"));
        let (mut kept, mut last, mut pushed) = (0, None, 0);
        while !decoder.is_over() {
            let mut events = Vec::new();
            decoder.push(frame.as_bytes(), &mut events).unwrap();
            for event in events {
                if let ModelEvent::Text(text) | ModelEvent::Thinking(text) = &event {
                    kept += text.len();
                }
                last = Some(event);
            }
            pushed += 1;
            assert!(pushed < 1000, "it is read without end");
        }
        assert_eq!(last, Some(ModelEvent::Done(gimlet::message::Finish::Length)), "{wire:?}");
        assert!(kept <= 64 << 20, "{kept}");
    }
}

#[test]
fn cuts_at_every_offset_change_nothing() {
    for (name, wire) in WIRES {
        for file in fixtures(name) {
            let bytes = std::fs::read(&file).unwrap();
            let framing = framing(wire, &file);
            let whole = decode(wire, framing, [bytes.as_slice()]);
            for at in 0..=bytes.len() {
                let (head, tail) = bytes.split_at(at);
                assert_eq!(decode(wire, framing, [head, tail]), whole, "{} cut at {at}", file.display());
            }
            assert_eq!(decode(wire, framing, bytes.chunks(1)), whole, "{} byte by byte", file.display());
        }
    }
}

#[test]
fn a_reply_that_stops_anywhere_is_never_taken_for_a_whole_one() {
    for (name, wire) in WIRES {
        for file in fixtures(name) {
            let bytes = std::fs::read(&file).unwrap();
            let framing = framing(wire, &file);
            let mut decoder = wire.decoder(framing, &WireOptions::new("m"));
            let mut whole = Vec::new();
            let complete = decoder.push(&bytes, &mut whole).and_then(|()| decoder.end(&mut whole)).is_ok();
            for at in 0..bytes.len() {
                let mut decoder = wire.decoder(framing, &WireOptions::new("m"));
                let mut events = Vec::new();
                let ended = decoder.push(&bytes[..at], &mut events).and_then(|()| decoder.end(&mut events));
                let done = events.iter().filter(|event| matches!(event, ModelEvent::Done(_))).count();
                assert_eq!(done, usize::from(ended.is_ok()), "{} stopped at {at}", file.display());
                let said = |events: &[ModelEvent]| {
                    let text = |event: &ModelEvent| match event {
                        ModelEvent::Text(text) => Some(text.clone()),
                        _ => None,
                    };
                    events.iter().filter_map(text).collect::<String>()
                };
                if ended.is_ok() && complete {
                    assert_eq!(said(&events), said(&whole), "{} stopped at {at}", file.display());
                }
            }
        }
    }
}

fn any_wire() -> impl Strategy<Value = (Wire, Framing)> {
    (
        prop_oneof![Just(Wire::Ollama), Just(Wire::OpenAi), Just(Wire::Anthropic)],
        prop_oneof![Just(Framing::Lines), Just(Framing::Events), Just(Framing::Whole)],
    )
}

/// Bytes that look enough like a reply to get deep into a decoder.
fn nearly_a_reply() -> impl Strategy<Value = Vec<u8>> {
    let words = prop_oneof![
        Just(b"data: ".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\n\n".to_vec()),
        Just(b"[DONE]".to_vec()),
        Just(br#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{"}}]}}]}"#.to_vec()),
        Just(br#"{"choices":[{"delta":{"tool_calls":[{"id":"x","function":{"arguments":{}}}]},"finish_reason":"stop"}]}"#.to_vec()),
        Just(br#"{"message":{"content":"a","tool_calls":[{"function":{}}]},"done":false}"#.to_vec()),
        Just(br#"{"done":true,"prompt_eval_count":18446744073709551615}"#.to_vec()),
        Just(br#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use"}}"#.to_vec()),
        Just(br#"{"type":"content_block_delta","index":9,"delta":{"type":"input_json_delta","partial_json":"}"}}"#.to_vec()),
        Just(br#"{"type":"message_start","message":{"usage":{"input_tokens":18446744073709551615,"cache_read_input_tokens":5}}}"#.to_vec()),
        Just(br#"{"error":{"code":99999999,"message":null}}"#.to_vec()),
        proptest::collection::vec(any::<u8>(), 0..20),
    ];
    proptest::collection::vec(words, 0..24).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn decoders_never_panic_and_never_care_about_cuts(
        (wire, framing) in any_wire(),
        bytes in nearly_a_reply(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let whole = decode(wire, framing, [bytes.as_slice()]);
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(decode(wire, framing, pieces), whole);
    }
}
