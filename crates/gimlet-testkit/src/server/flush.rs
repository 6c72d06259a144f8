//! Knowing when everything written has left: a connection that is to break after so many bytes must first have
//! handed exactly those to the system, however slowly the client reads.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Counts the flushes of one connection; shared by its socket and its bodies.
#[derive(Debug, Default)]
pub(super) struct Flushes {
    count: AtomicU64,
    waiting: AtomicWaker,
}

impl Flushes {
    /// Waits for the next flush. The connection begins one whenever a body makes it wait, and reaches the socket
    /// with it only once nothing is left in its own buffer.
    pub(super) async fn next(&self) {
        let before = self.count.load(Ordering::Acquire);
        std::future::poll_fn(|cx| {
            self.waiting.register(cx.waker());
            if self.count.load(Ordering::Acquire) > before { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// A socket that counts its flushes.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) socket: TcpStream,
    pub(super) flushes: Arc<Flushes>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.socket).poll_flush(cx))?;
        self.flushes.count.fetch_add(1, Ordering::Release);
        self.flushes.waiting.wake();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
