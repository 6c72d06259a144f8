//! JSON-RPC over two streams. A thread reads and another one writes, so an answer of the client arrives even while the
//! program is busy: a request to the client can be waited for anywhere, inside a handler as well.

use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Longest message.
const MAX_BYTES: u64 = 64 << 20;

/// What the client wants.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// It waits for an answer under this id.
    Request { id: Value, method: String, params: Value },
    /// It waits for nothing.
    Notification { method: String, params: Value },
}

/// An error as JSON-RPC has it.
#[derive(Debug, Clone)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

impl RpcError {
    /// There is no such method.
    pub(crate) const NO_METHOD: i64 = -32601;
    /// The parameters make no sense.
    pub(crate) const PARAMS: i64 = -32602;
    /// The program could not do it.
    pub(crate) const INTERNAL: i64 = -32603;
    /// There is no such session.
    pub(crate) const NOT_FOUND: i64 = -32002;

    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        RpcError { code, message: message.into(), data: None }
    }

    pub(crate) fn params(message: impl Into<String>) -> Self {
        RpcError::new(RpcError::PARAMS, message)
    }

    fn value(&self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        error
    }
}

impl From<anyhow::Error> for RpcError {
    /// What the person did wrong is an error of the parameters; its hint is part of the message and of the data.
    fn from(error: anyhow::Error) -> Self {
        let hint = gimlet_runtime::hint_of(&error);
        let usage = error.downcast_ref::<gimlet_runtime::UsageError>().is_some();
        let code = if usage { RpcError::PARAMS } else { RpcError::INTERNAL };
        let text = format!("{error:#}");
        let message = match &hint {
            Some(hint) => format!("{text} (hint: {hint})"),
            None => text.clone(),
        };
        let word = if usage { "WRONG_USAGE" } else { "FAILED" };
        let data = json!({ "error": word, "message": text, "hint": hint });
        RpcError { code, message, data: Some(data) }
    }
}

/// Why a request to the client came to nothing.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The client is gone.
    Closed,
    /// It answered with an error, which says this.
    Error(String),
}

type Answer = Result<Value, Unanswered>;
type Pending = HashMap<u64, Box<dyn FnOnce(Answer) + Send>>;

/// The client. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Peer {
    shared: Arc<Shared>,
}

struct Shared {
    /// Lines to write; the writing thread ends with the last sender.
    out: Mutex<Option<mpsc::Sender<String>>>,
    /// Requests to the client that have no answer yet.
    pending: Mutex<Pending>,
    next: AtomicU64,
    /// Cancelled when the client closes its end.
    closed: CancellationToken,
    /// The writing thread; joined at the end, so that the last line arrives.
    writer: Mutex<Option<std::thread::JoinHandle<()>>>,
}

/// Starts to read and to write.
pub(crate) fn connect(
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
) -> io::Result<(Peer, UnboundedReceiver<Incoming>)> {
    let (out, lines) = mpsc::channel::<String>();
    let writer = std::thread::Builder::new().name("acp-write".into()).spawn(move || write(output, &lines))?;
    let peer = Peer {
        shared: Arc::new(Shared {
            out: Mutex::new(Some(out)),
            pending: Mutex::default(),
            next: AtomicU64::new(1),
            closed: CancellationToken::new(),
            writer: Mutex::new(Some(writer)),
        }),
    };
    let (sender, incoming) = unbounded_channel();
    let reader = peer.clone();
    std::thread::Builder::new().name("acp-read".into()).spawn(move || {
        reader.read(input, &sender);
        reader.close();
    })?;
    Ok((peer, incoming))
}

fn write(mut output: impl Write, lines: &mpsc::Receiver<String>) {
    while let Ok(line) = lines.recv() {
        // A client that reads no more has closed its end, which the reader notices.
        if output.write_all(line.as_bytes()).and_then(|()| output.flush()).is_err() {
            return;
        }
    }
}

impl Peer {
    fn read(&self, mut input: impl BufRead, sender: &UnboundedSender<Incoming>) {
        let mut line = Vec::new();
        loop {
            line.clear();
            match Read::take(&mut input, MAX_BYTES).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            if !line.ends_with(b"\n") && line.len() as u64 >= MAX_BYTES {
                self.send(&failed(&Value::Null, &RpcError::new(-32600, "the message is too long")));
                return;
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match serde_json::from_slice::<Value>(&line) {
                Ok(message) => self.take(message, sender),
                Err(error) => {
                    let error = RpcError::new(-32700, format!("this is no JSON: {error}"));
                    self.send(&failed(&Value::Null, &error));
                }
            }
        }
    }

    /// Answers reach whoever waits for them from here; the rest is the server's.
    fn take(&self, mut message: Value, sender: &UnboundedSender<Incoming>) {
        let params = message["params"].take();
        let id = message.get("id").cloned();
        match (message["method"].as_str().map(str::to_owned), id) {
            (Some(method), Some(id)) => drop(sender.send(Incoming::Request { id, method, params })),
            (Some(method), None) => drop(sender.send(Incoming::Notification { method, params })),
            (None, Some(id)) => {
                let waiting = id.as_u64().and_then(|id| lock(&self.shared.pending).remove(&id));
                let answer = match message.get("error").filter(|error| !error.is_null()) {
                    Some(error) => {
                        let text = error["message"].as_str().unwrap_or("the client gave no reason");
                        Err(Unanswered::Error(text.to_owned()))
                    }
                    None => Ok(message["result"].take()),
                };
                if let Some(waiting) = waiting {
                    waiting(answer);
                }
            }
            (None, None) => {
                let error = RpcError::new(-32600, "this is neither a request nor an answer");
                self.send(&failed(&Value::Null, &error));
            }
        }
    }

    fn close(&self) {
        let pending = std::mem::take(&mut *lock(&self.shared.pending));
        self.shared.closed.cancel();
        for (_, waiting) in pending {
            waiting(Err(Unanswered::Closed));
        }
    }

    /// Cancelled when the client closes its end.
    pub(crate) fn closed(&self) -> &CancellationToken {
        &self.shared.closed
    }

    /// Writes what is left, and nothing afterwards.
    pub(crate) fn finish(&self) {
        drop(lock(&self.shared.out).take());
        let writer = lock(&self.shared.writer).take();
        if let Some(writer) = writer {
            // A writer that broke has nothing more to say.
            let _ = writer.join();
        }
    }

    fn send(&self, message: &Value) {
        if let Some(out) = &*lock(&self.shared.out) {
            // Without a writer there is nobody to tell.
            let _ = out.send(format!("{message}\n"));
        }
    }

    /// Answers a request.
    pub(crate) fn answer(&self, id: &Value, answer: Result<Value, RpcError>) {
        self.send(&match answer {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => failed(id, &error),
        });
    }

    /// Tells the client something.
    pub(crate) fn notify(&self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn ask(&self, method: &str, params: Value, then: Box<dyn FnOnce(Answer) + Send>) -> u64 {
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.shared.pending).insert(id, then);
        if self.shared.closed.is_cancelled() {
            // It may have closed before this was pending.
            self.close();
        } else {
            self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        }
        id
    }

    /// Asks the client. Dropping the future withdraws the request.
    pub(crate) async fn request(&self, method: &str, params: Value) -> Answer {
        let (sender, answer) = oneshot::channel();
        let id = self.ask(method, params, Box::new(move |answer| drop(sender.send(answer))));
        let _withdraw = Withdraw { peer: self, id };
        answer.await.unwrap_or(Err(Unanswered::Closed))
    }

    /// Asks the client and blocks this thread until it answers, or for so long.
    pub(crate) fn request_blocking(&self, method: &str, params: Value, patience: Duration) -> Option<Value> {
        let (sender, answer) = mpsc::channel();
        let id = self.ask(method, params, Box::new(move |answer| drop(sender.send(answer))));
        let _withdraw = Withdraw { peer: self, id };
        answer.recv_timeout(patience).ok()?.ok()
    }
}

/// Forgets a request that nobody waits for any more.
struct Withdraw<'a> {
    peer: &'a Peer,
    id: u64,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        lock(&self.peer.shared.pending).remove(&self.id);
    }
}

fn failed(id: &Value, error: &RpcError) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": error.value() })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
