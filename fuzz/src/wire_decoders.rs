//! Any bytes come to events or an error, and the same ones wherever they are cut.

use gimlet::model::ModelEvent;
use gimlet_models::wire::{Framing, Wire, WireOptions};

/// Decodes a server's reply whole and in two pieces. The first byte chooses the wire and its framing, the next two where
/// the rest is cut.
pub fn run(data: &[u8]) -> &'static str {
    let Some((&[choice, low, high], bytes)) = data.split_first_chunk() else { return "too short" };
    let wire = [Wire::Ollama, Wire::OpenAi, Wire::Anthropic][usize::from(choice % 3)];
    let framing = [Framing::Lines, Framing::Events, Framing::Whole][usize::from(choice / 3 % 3)];
    let cut = usize::from(u16::from_le_bytes([low, high])) % (bytes.len() + 1);
    let (head, tail) = bytes.split_at(cut);
    let (how, whole) = decode(wire, framing, &[bytes]);
    assert_eq!(decode(wire, framing, &[head, tail]).1, whole, "the cut changed something");
    how
}

fn decode(wire: Wire, framing: Framing, pieces: &[&[u8]]) -> (&'static str, String) {
    let mut decoder = wire.decoder(framing, &WireOptions::new("m"));
    let mut events = Vec::new();
    let mut result = Ok(());
    for piece in pieces {
        result = result.and_then(|()| decoder.push(piece, &mut events));
    }
    result = result.and_then(|()| decoder.end(&mut events));
    let done = events.iter().filter(|event| matches!(event, ModelEvent::Done(_))).count();
    assert_eq!(done, usize::from(result.is_ok()), "an end is said once, and only by a whole reply");
    let how = match (&result, events.is_empty()) {
        (Ok(()), _) => "a whole reply",
        (Err(_), false) => "the beginning of a reply",
        (Err(_), true) => "no reply",
    };
    (how, format!("{events:?} {:?}", result.map_err(|error| error.to_string())))
}
