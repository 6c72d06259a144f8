//! How a reply leaves: cut into pieces, delayed, ended early or broken off.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use gimlet_models::script::{Fault, ScriptReply};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};

use super::flush::Flushes;
use crate::wire::Answer;

/// The body of every answer.
pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// A body in one piece.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// A reply as it will leave.
#[derive(Debug)]
pub(crate) struct Delivery {
    pieces: Vec<Bytes>,
    delay: Duration,
    end: End,
    /// What the length is said to be.
    pub(crate) length: usize,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Clean,
    Broken,
}

impl Delivery {
    /// Cuts an answer as the script wants it.
    pub(crate) fn new(answer: Answer, reply: &ScriptReply) -> Self {
        let mut events = answer.events;
        let (cut, end) = match &reply.fault {
            Some(Fault::Garbage { body }) => {
                events = vec![body.clone().into_bytes()];
                (usize::MAX, End::Clean)
            }
            Some(Fault::Drop { after_bytes }) => (*after_bytes, End::Broken),
            Some(Fault::Truncate { after_bytes }) => (*after_bytes, End::Clean),
            Some(Fault::Status { .. } | Fault::Hang) | None => (usize::MAX, End::Clean),
        };
        let promised = events.iter().map(Vec::len).sum();
        let events = take(events, cut);
        let length = match end {
            End::Broken => promised,
            End::Clean => events.iter().map(Vec::len).sum(),
        };
        let pieces = match reply.chunk_bytes {
            None => events.into_iter().map(Bytes::from).collect(),
            Some(size) => events.concat().chunks(size.max(1)).map(Bytes::copy_from_slice).collect(),
        };
        Delivery { pieces, delay: reply.delay(), end, length }
    }

    /// The body that does it, on the connection whose flushes these are.
    pub(super) fn body(self, flushes: Arc<Flushes>) -> Body {
        let delay = self.delay;
        let pieces = stream::iter(self.pieces).then(move |piece| async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            Ok(Frame::data(piece))
        });
        let end = self.end;
        let end = stream::once(async move {
            match end {
                End::Clean => None,
                End::Broken => {
                    // Without this, bytes that were to be sent first could be lost with the connection.
                    flushes.next().await;
                    Some(Err(io::Error::other("the script breaks the connection here")))
                }
            }
        });
        StreamBody::new(pieces.chain(end.filter_map(std::future::ready))).boxed_unsync()
    }
}

/// The first `cut` bytes of some events.
fn take(events: Vec<Vec<u8>>, cut: usize) -> Vec<Vec<u8>> {
    let mut left = cut;
    let mut kept = Vec::new();
    for mut event in events {
        event.truncate(left);
        left -= event.len();
        if !event.is_empty() {
            kept.push(event);
        }
    }
    kept
}
