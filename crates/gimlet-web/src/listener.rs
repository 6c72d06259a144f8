//! Where connections come in: plain on loopback, TLS anywhere. How many there are at a time is bounded, and nobody who is
//! slow to greet holds up the others.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use gimlet_runtime::UsageError;
use tokio::io::{self, AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// Most connections at a time.
const MOST_CONNECTIONS: usize = 4096;
/// How long a client may take to greet.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait after the system refused a connection, as when there are no more files to open.
const PAUSE: Duration = Duration::from_millis(200);

/// A certificate and its key, in PEM files.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The certificate, and those above it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl Tls {
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, UsageError> {
        let refused = |path: &Path, error: &dyn std::fmt::Display| {
            UsageError::new(format!("cannot use {} for TLS: {error}", path.display()))
        };
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&self.certificate)
            .and_then(Iterator::collect)
            .map_err(|error| refused(&self.certificate, &error))?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| refused(&self.key, &error))?;
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| refused(&self.certificate, &error))?;
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Takes connections until it is dropped.
pub(crate) struct Doors {
    ready: mpsc::Receiver<(Connection, SocketAddr)>,
    address: SocketAddr,
    /// Ends the task that accepts.
    accepting: tokio::task::JoinHandle<()>,
}

impl Doors {
    pub(crate) fn open(listener: TcpListener, tls: Option<TlsAcceptor>) -> io::Result<Doors> {
        let address = listener.local_addr()?;
        let (sender, ready) = mpsc::channel(64);
        let accepting = tokio::spawn(accept(listener, tls, sender));
        Ok(Doors { ready, address, accepting })
    }
}

impl Drop for Doors {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    ready: mpsc::Sender<(Connection, SocketAddr)>,
) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    while let Ok(place) = places.clone().acquire_owned().await {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // What is small should not wait for more; a system that cannot do it serves all the same.
        let _ = stream.set_nodelay(true);
        let (tls, ready) = (tls.clone(), ready.clone());
        let greet = async move {
            let stream = match tls {
                None => Stream::Plain(stream),
                Some(tls) => match tokio::time::timeout(PATIENCE, tls.accept(stream)).await {
                    Ok(Ok(stream)) => Stream::Tls(Box::new(stream)),
                    Ok(Err(_)) | Err(_) => return,
                },
            };
            // Nobody takes it when the server has ended.
            let _ = ready.send((Connection { stream, _place: place }, peer)).await;
        };
        tokio::spawn(greet);
    }
}

impl axum::serve::Listener for Doors {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        match self.ready.recv().await {
            Some(next) => next,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection and its place among them.
pub(crate) struct Connection {
    stream: Stream,
    _place: OwnedSemaphorePermit,
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
