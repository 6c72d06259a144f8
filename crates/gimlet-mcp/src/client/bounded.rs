//! Watches what a server writes to its standard output: a line that never ends stops the connection with a reason
//! instead of filling the memory, and what is no message at all is kept for the error that will follow.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use crate::process::LastWords;

/// Largest message, in bytes.
pub(super) const LARGEST: usize = 32 * 1024 * 1024;

/// What is said of a larger one.
pub(super) fn too_large() -> String {
    format!("it sent a message of more than {} MB", LARGEST / 1024 / 1024)
}

/// A stream of lines with an upper bound.
pub(super) struct Bounded<R> {
    inner: R,
    /// Bytes of the current line so far.
    length: usize,
    /// Why the stream was ended, for the error that follows.
    verdict: Arc<OnceLock<String>>,
    /// Gets the beginning of lines that are no messages.
    words: LastWords,
}

impl<R> Bounded<R> {
    pub(super) fn new(inner: R, verdict: Arc<OnceLock<String>>, words: LastWords) -> Self {
        Bounded { inner, length: 0, verdict, words }
    }

    fn look_at(&mut self, mut bytes: &[u8]) -> std::io::Result<()> {
        while !bytes.is_empty() {
            if self.length == 0 && !matches!(bytes[0], b'{' | b'[' | b'\n' | b'\r' | b' ' | 0xEF) {
                let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
                self.words.add(b"(not a message) ");
                self.words.add(&line[..line.len().min(200)]);
                self.words.add(b"\n");
            }
            match bytes.iter().position(|byte| *byte == b'\n') {
                Some(at) => {
                    self.length = 0;
                    bytes = &bytes[at + 1..];
                }
                None => {
                    self.length += bytes.len();
                    bytes = &[];
                }
            }
            if self.length > LARGEST {
                let reason = too_large();
                let _ = self.verdict.set(reason.clone());
                return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, reason));
            }
        }
        Ok(())
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Bounded<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        let fresh = buffer.filled()[before..].to_vec();
        Poll::Ready(self.look_at(&fresh))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_end_is_refused_and_noise_is_noted() {
        let verdict = Arc::new(OnceLock::new());
        let mut lines = Bounded::new((), verdict.clone(), LastWords::default());
        lines.look_at(b"{\"a\": 1}\nHello, I am a server\n{}\n").unwrap();
        assert_eq!(lines.words.text(), "(not a message) Hello, I am a server");
        let chunk = vec![b'x'; 1024 * 1024];
        lines.look_at(b"{").unwrap();
        assert!((0..40).any(|_| lines.look_at(&chunk).is_err()));
        assert_eq!(verdict.get().unwrap(), "it sent a message of more than 32 MB");
    }
}
