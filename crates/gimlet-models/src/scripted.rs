//! A model that replays a script: no server, no weights. The demo and many tests run on it.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use gimlet::message::{Message, ToolCall};
use gimlet::model::{Model, ModelError, ModelEvent, ModelStream, Request};

use crate::script::{Fault, Player, Script, ScriptReply, Turn};

/// Replays a script in this process.
pub struct ScriptedModel {
    id: String,
    player: Player,
}

impl ScriptedModel {
    /// A model at the start of a script.
    pub fn new(id: impl Into<String>, script: Script) -> Self {
        ScriptedModel { id: id.into(), player: Player::new(script) }
    }
}

impl Model for ScriptedModel {
    fn id(&self) -> &str {
        &self.id
    }

    fn stream(&self, request: Request) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        async move {
            let reply = self.player.next(turn(&request)).map_err(ModelError::Script)?;
            match &reply.fault {
                None => Ok(events(&reply, None)),
                Some(Fault::Drop { after_bytes } | Fault::Truncate { after_bytes }) => {
                    Ok(events(&reply, Some(*after_bytes)))
                }
                Some(Fault::Garbage { body }) => Err(ModelError::Protocol(body.chars().take(200).collect())),
                Some(Fault::Hang) => Ok(stream::pending().boxed()),
                Some(Fault::Status { status, retry_after, body, .. }) => {
                    Err(status_error(*status, *retry_after, body.clone().unwrap_or_default()))
                }
            }
        }
        .boxed()
    }
}

fn turn(request: &Request) -> Turn<'_> {
    let mut turn = Turn { system: "", task: "", last: "", replies: 0 };
    for message in &request.messages {
        match message.as_ref() {
            Message::System { text } => (turn.system, turn.last) = (text, text),
            Message::Tool { text, .. } => turn.last = text,
            Message::User { text } => {
                if turn.task.is_empty() {
                    turn.task = text;
                }
                turn.last = text;
            }
            Message::Assistant { text, .. } => {
                turn.replies += 1;
                turn.last = text;
            }
        }
    }
    turn
}

fn status_error(status: u16, retry_after: Option<u64>, message: String) -> ModelError {
    let retry_after = retry_after.map(Duration::from_secs);
    match status {
        401 | 403 => ModelError::Auth { message },
        429 => ModelError::RateLimited { message, retry_after },
        500.. => ModelError::Server { status, message, retry_after },
        _ => ModelError::Refused { status, message },
    }
}

/// The reply in pieces; with `cut`, only so many bytes of its text and then the end of the stream without `Done`.
fn events(reply: &ScriptReply, cut: Option<usize>) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
    let size = reply.chunk_bytes.unwrap_or(usize::MAX).max(1);
    let mut events = Vec::new();
    events.extend(pieces(&reply.thinking, size).map(ModelEvent::Thinking));
    let text = match cut {
        Some(bytes) => &reply.text[..floor_boundary(&reply.text, bytes)],
        None => &reply.text,
    };
    events.extend(pieces(text, size).map(ModelEvent::Text));
    if cut.is_none() {
        events.extend(reply.calls.iter().enumerate().map(|(index, call)| {
            let id = call.id.clone().unwrap_or_else(|| format!("scripted_{index}"));
            ModelEvent::Call(ToolCall { id, name: call.name.clone(), args: call.args.clone() })
        }));
        events.push(ModelEvent::Usage(reply.usage));
        events.push(ModelEvent::Done(reply.finish()));
    }
    let delay = reply.delay();
    stream::iter(events)
        .then(move |event| async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            Ok(event)
        })
        .boxed()
}

/// The text in pieces of at most `size` bytes, cut between characters.
fn pieces(text: &str, size: usize) -> impl Iterator<Item = String> + '_ {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let at = floor_boundary(rest, size).max(first.len_utf8());
        let (piece, tail) = rest.split_at(at);
        rest = tail;
        Some(piece.to_owned())
    })
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
