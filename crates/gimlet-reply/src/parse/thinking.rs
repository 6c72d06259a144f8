//! Takes a model's reasoning out of its reply, so that nothing in it can ever be executed.
//!
//! A tag counts wherever it stands, except where it is content: in a string of a program or call, in a closed fence
//! that holds no program, or alone in quotes or backticks. When in doubt it is thinking.

use gimlet_event::event::ActionFormat;

use super::block::{Block, End, Finder, Kind, Language, has_prefix, is_mention};
use super::literal::Literals;
use super::{call, function, json, program};

const OPENERS: [&str; 5] = ["<think>", "<thinking>", "<thought>", "<reasoning>", "[THINK]"];
const CLOSERS: [&str; 5] = ["</think>", "</thinking>", "</thought>", "</reasoning>", "[/THINK]"];

#[derive(Clone, Copy)]
struct Tag {
    start: usize,
    end: usize,
    side: Side,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Opens,
    Closes,
}

/// Parts a reply into thinking, if there is any, and the rest.
pub(super) fn split(reply: &str, format: ActionFormat, known: &[&str]) -> (Option<String>, String) {
    if format == ActionFormat::Code && is_quoted(reply) && program::is_program(reply, known) {
        return (None, reply.to_owned());
    }
    let mut finder = Finder::new(reply, format);
    let (mut thinking, mut kept) = (Vec::new(), String::new());
    let (mut from, mut at) = (0, 0);
    let mut next = next_tag(reply, 0);
    while let Some(mut tag) = next {
        if let Some(block) = finder.next(at, tag.start) {
            let exposed = if block.outer.end <= tag.start { None } else { exposed_tag(reply, &block) };
            let Some(found) = exposed else {
                at = block.outer.end;
                next = if at <= tag.start { next } else { next_tag(reply, at) };
                continue;
            };
            finder.miss();
            tag = found;
        }
        match tag.side {
            Side::Opens => {
                kept.push_str(&reply[from..tag.start]);
                let close = std::iter::successors(next_tag(reply, tag.end), |tag| next_tag(reply, tag.end))
                    .find(|tag| tag.side == Side::Closes);
                let (end, after) = close.map_or((reply.len(), reply.len()), |close| (close.start, close.end));
                thinking.push(reply[tag.end..end].to_owned());
                at = after;
            }
            // Some templates write the opening tag into the prompt: all that came before was thinking.
            Side::Closes => {
                kept.push_str(&reply[from..tag.start]);
                thinking.push(std::mem::take(&mut kept));
                at = tag.end;
            }
        }
        from = at;
        next = next_tag(reply, at);
    }
    kept.push_str(&reply[from..]);
    let pieces: Vec<_> =
        thinking.iter().map(|piece| piece.trim()).filter(|piece| !piece.is_empty()).collect();
    ((!pieces.is_empty()).then(|| pieces.join("\n\n")), kept)
}

/// The first tag in a block that is not part of its content.
fn exposed_tag(reply: &str, block: &Block) -> Option<Tag> {
    let body = &reply[block.body.clone()];
    // From the opening mark on: a tag may stand behind the language of a fence.
    let offset = block.outer.start;
    let text = &reply[offset..block.body.end];
    let is_content = match block.kind {
        Kind::Json => json::read_one(body).is_ok(),
        Kind::CallTag if body.starts_with(function::OPEN) => {
            block.end == End::Closed && function::read(body).is_ok()
        }
        Kind::CallTag => call::in_marked(body, &[]).is_ok(),
        Kind::Fence(Language::Other) => block.end == End::Closed,
        Kind::Fence(Language::Python | Language::Unsaid) | Kind::CodeTag => false,
    };
    if is_content {
        return None;
    }
    let tag = match block.kind {
        Kind::Json | Kind::CallTag | Kind::Fence(Language::Other) => next_tag(text, 0),
        Kind::Fence(Language::Python | Language::Unsaid) | Kind::CodeTag => {
            Literals::new(text).find(0, |at, _| tag_at(text.as_bytes(), at))
        }
    }?;
    Some(Tag { start: tag.start + offset, end: tag.end + offset, side: tag.side })
}

/// Whether every tag stands in a string literal, if the reply is a program.
fn is_quoted(reply: &str) -> bool {
    Literals::new(reply).find(0, |at, _| tag_at(reply.as_bytes(), at)).is_none()
}

fn next_tag(text: &str, from: usize) -> Option<Tag> {
    let bytes = text.as_bytes();
    (from..bytes.len()).find_map(|at| tag_at(bytes, at))
}

fn tag_at(bytes: &[u8], start: usize) -> Option<Tag> {
    if !matches!(bytes[start], b'<' | b'[') {
        return None;
    }
    let find = |tags: &[&str], side| {
        let end = tags.iter().find_map(|tag| has_prefix(bytes, start, tag))?;
        (!is_mention(bytes, start..end)).then_some(Tag { start, end, side })
    };
    find(&OPENERS, Side::Opens).or_else(|| find(&CLOSERS, Side::Closes))
}
