//! Where an executor's workers come from when they are not its own child processes, such as a container. A worker
//! speaks the executor's protocol on its standard streams; who launches it need not know that protocol.

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::cell::ExecutorError;

/// Launches workers.
pub trait Launcher: Send + Sync {
    /// What kind of place its workers live in; a run that is taken up needs the same.
    fn kind(&self) -> &'static str;

    /// What a model must know of that place.
    fn told(&self) -> &'static str {
        ""
    }

    /// A fresh worker that waits for its first message.
    fn launch(&self) -> BoxFuture<'_, Result<Launched, ExecutorError>>;
}

/// A worker and its streams. Dropping it ends the worker.
pub struct Launched {
    /// Its standard input.
    pub input: Box<dyn AsyncWrite + Send + Sync + Unpin>,
    /// Its standard output.
    pub output: Box<dyn AsyncRead + Send + Sync + Unpin>,
    /// What it says on standard error; its end tells why it died.
    pub errors: Box<dyn AsyncRead + Send + Sync + Unpin>,
    /// The handle that ends it.
    pub life: Box<dyn WorkerLife>,
}

/// Power over a worker's life.
pub trait WorkerLife: Send + Sync {
    /// Ends it without waiting. Its streams close soon after.
    fn kill(&mut self);
}
