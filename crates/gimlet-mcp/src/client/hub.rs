//! What a server says of its own accord. Progress goes to the call it belongs to, log messages to whichever call is
//! open, and news about lists wakes the keeper of the connection. Everything is bounded: a server that talks without
//! end talks to nobody.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::ClientHandler;
#[expect(deprecated, reason = "servers still log")]
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, LoggingLevel, LoggingMessageNotificationParam,
    ProgressNotificationParam, ProgressToken, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RoleClient};
use serde_json::Value;
use tokio::sync::{Notify, mpsc};

use super::content::clip;

/// Messages one call hears at most.
const MOST: usize = 20;

/// Messages kept for the next call.
const KEPT: usize = 5;

/// Where a server's own messages come together. Lives as long as the server's configuration is in use, across
/// connections.
#[derive(Debug, Default)]
pub(super) struct Hub {
    inner: Mutex<Inner>,
    /// Wakes the keeper: tools came, went or changed.
    pub(super) tools_changed: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    ears: HashMap<ProgressToken, Ear>,
    /// What was said while nobody listened.
    missed: VecDeque<String>,
}

#[derive(Debug)]
struct Ear {
    sender: mpsc::Sender<String>,
    /// The last thing said about progress, so that it is not repeated.
    last: String,
}

/// Hears what is said during one call; ends when dropped.
pub(super) struct Listening {
    hub: Arc<Hub>,
    token: ProgressToken,
    pub(super) messages: mpsc::Receiver<String>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.hub.lock().ears.remove(&self.token);
    }
}

impl Hub {
    /// Listens for a call, beginning with what was missed.
    pub(super) fn listen(self: &Arc<Self>, token: ProgressToken) -> Listening {
        let (sender, messages) = mpsc::channel(MOST);
        let mut inner = self.lock();
        for missed in inner.missed.drain(..) {
            let _ = sender.try_send(missed);
        }
        inner.ears.insert(token.clone(), Ear { sender, last: String::new() });
        Listening { hub: self.clone(), token, messages }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self, token: &ProgressToken, text: String) {
        if let Some(ear) = self.lock().ears.get_mut(token)
            && ear.last != text
        {
            ear.last.clone_from(&text);
            // A full channel means that enough was said.
            let _ = ear.sender.try_send(text);
        }
    }

    fn log(&self, text: String) {
        let mut inner = self.lock();
        match inner.ears.values().next() {
            Some(ear) => {
                let _ = ear.sender.try_send(text);
            }
            None => {
                inner.missed.push_back(text);
                if inner.missed.len() > KEPT {
                    inner.missed.pop_front();
                }
            }
        }
    }
}

/// The client's side of a connection.
#[derive(Debug, Clone)]
pub(super) struct Handler {
    pub(super) hub: Arc<Hub>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        // No sampling, no elicitation, no roots: a server cannot spend the user's tokens or ask around the guard.
        let mut me = Implementation::new("gimlet", env!("CARGO_PKG_VERSION"));
        me.title = Some("Gimlet".into());
        ClientConfig::new(ClientCapabilities::default(), me)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        // Tens of percent are news; single ones are not.
        let done = match params.total {
            Some(total) if total > 0.0 => format!("{:.0}%", (params.progress / total * 10.0).floor() * 10.0),
            _ => String::new(),
        };
        let text = match params.message {
            Some(message) => format!("{done} {}", clip(&message, 200)),
            None => done,
        };
        if !text.trim().is_empty() {
            self.hub.progress(&params.progress_token, text.trim().to_owned());
        }
    }

    #[expect(deprecated, reason = "servers still log")]
    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        if matches!(params.level, LoggingLevel::Debug) {
            return;
        }
        let text = match params.data {
            Value::String(text) => text,
            other => other.to_string(),
        };
        self.hub.log(clip(&text, 300));
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.hub.tools_changed.notify_one();
    }
}
