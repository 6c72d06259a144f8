//! Ctrl-C and requests to stop.

use tokio_util::sync::CancellationToken;

use crate::{app, keys};

/// Ctrl-C, or the system asking the program to stop. Both are signals that would end the program at once; from when this
/// is made they do not.
pub(crate) struct Interrupts {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 2],
}

impl Interrupts {
    #[cfg(unix)]
    pub(crate) fn listen() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Interrupts { signals: [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?] })
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> anyhow::Result<Self> {
        Ok(Interrupts {})
    }

    /// Waits for the next one.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) {
        let [interrupt, terminate] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }

    /// Waits for the next one.
    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) {
        // Without signals there is nothing to wait for.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Does what comes before a run: servers are started, a model is looked for. Ctrl-C meanwhile ends the program, and what it
/// has started.
pub(crate) async fn starting<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let mut interrupts = Interrupts::listen()?;
    tokio::select! {
        biased;
        () = interrupts.next() => {
            keys::restore();
            app::kill_all();
            std::process::exit(130);
        }
        done = work => done,
    }
}

/// Ends when the person presses Ctrl-C or the system asks the program to stop; a second time ends the program at once.
pub(crate) fn interruptible() -> anyhow::Result<CancellationToken> {
    // Listening begins here, not when the task is first polled.
    let mut interrupts = Interrupts::listen()?;
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    tokio::spawn(async move {
        interrupts.next().await;
        stop.cancel();
        interrupts.next().await;
        keys::restore();
        app::kill_all();
        std::process::exit(130);
    });
    Ok(cancel)
}
