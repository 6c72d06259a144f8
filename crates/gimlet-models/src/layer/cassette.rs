//! Real replies, kept and played again: what a model once said to a request, it says to the same request.
//!
//! A cassette is a file of JSON lines, one for each request: its digest, a word about it for people, and the events.
//! The same request asked twice has two lines, played in order.

use std::collections::{HashMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use gimlet::context::Window;
use gimlet::digest::digest_json;
use gimlet::message::{Finish, Message, ToolCall, Usage};
use gimlet::model::{Model, ModelError, ModelEvent, ModelStream, Request};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// One request and its reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Take {
    request: String,
    /// The end of the last message, for people who look into the file.
    about: String,
    events: Vec<Said>,
}

/// A piece of a reply, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Text(String),
    Thinking(String),
    Signature(String),
    Call(ToolCall),
    Usage(Usage),
    Notice(String),
    Done(Finish),
}

impl From<ModelEvent> for Said {
    fn from(event: ModelEvent) -> Self {
        match event {
            ModelEvent::Text(text) => Said::Text(text),
            ModelEvent::Thinking(text) => Said::Thinking(text),
            ModelEvent::Signature(text) => Said::Signature(text),
            ModelEvent::Call(call) => Said::Call(call),
            ModelEvent::Usage(usage) => Said::Usage(usage),
            ModelEvent::Notice(text) => Said::Notice(text),
            ModelEvent::Done(finish) => Said::Done(finish),
        }
    }
}

impl From<Said> for ModelEvent {
    fn from(said: Said) -> Self {
        match said {
            Said::Text(text) => ModelEvent::Text(text),
            Said::Thinking(text) => ModelEvent::Thinking(text),
            Said::Signature(text) => ModelEvent::Signature(text),
            Said::Call(call) => ModelEvent::Call(call),
            Said::Usage(usage) => ModelEvent::Usage(usage),
            Said::Notice(text) => ModelEvent::Notice(text),
            Said::Done(finish) => ModelEvent::Done(finish),
        }
    }
}

/// Why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// The file cannot be read or written.
    #[error("cannot use the cassette {path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A line is not a take.
    #[error("line {line} of the cassette {path} is not valid: {source}")]
    Line {
        /// The file.
        path: PathBuf,
        /// Which line.
        line: usize,
        /// What is wrong.
        source: serde_json::Error,
    },
}

fn key(request: &Request) -> String {
    let tools: Vec<_> =
        request.tools.iter().map(|tool| json!([tool.name, tool.description, tool.input])).collect();
    digest_json(&json!({ "messages": request.messages, "tools": tools, "sampling": request.sampling }))
}

fn about(request: &Request) -> String {
    let text = match request.messages.last().map(AsRef::as_ref) {
        None => "",
        Some(
            Message::System { text }
            | Message::User { text }
            | Message::Assistant { text, .. }
            | Message::Tool { text, .. },
        ) => text,
    };
    text.chars().take(120).collect()
}

/// Passes a model's replies on and keeps those that came to their end.
pub struct Recorder {
    inner: Arc<dyn Model>,
    /// Appended to, one whole line at a time.
    file: Arc<Mutex<File>>,
    path: PathBuf,
}

impl Recorder {
    /// Records a model into a file, after what is already in it.
    pub fn new(inner: Arc<dyn Model>, path: &Path) -> Result<Self, CassetteError> {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map_err(|source| CassetteError::File { path: path.to_owned(), source })?;
        Ok(Recorder { inner, file: Arc::new(Mutex::new(file)), path: path.to_owned() })
    }
}

impl Model for Recorder {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn window(&self) -> Option<Window> {
        self.inner.window()
    }

    fn stream(&self, request: Request) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        async move {
            let mut take = Take { request: key(&request), about: about(&request), events: Vec::new() };
            let reply = self.inner.stream(request).await?;
            let (file, path) = (Arc::clone(&self.file), self.path.clone());
            Ok(reply
                .map(move |event| {
                    let event = event?;
                    take.events.push(event.clone().into());
                    if matches!(event, ModelEvent::Done(_)) {
                        keep(&file, &take).map_err(|error| {
                            ModelError::Script(format!(
                                "cannot write the cassette {}: {error}",
                                path.display()
                            ))
                        })?;
                    }
                    Ok(event)
                })
                .boxed())
        }
        .boxed()
    }
}

fn keep(file: &Mutex<File>, take: &Take) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(take)?;
    line.push(b'\n');
    file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line)
}

/// A model that only says what was recorded.
pub struct Replayer {
    id: String,
    path: PathBuf,
    /// Replies not yet played, by request.
    takes: Mutex<HashMap<String, VecDeque<Take>>>,
}

impl Replayer {
    /// Plays a cassette as the model `id`.
    pub fn load(id: impl Into<String>, path: &Path) -> Result<Self, CassetteError> {
        let failed = |source| CassetteError::File { path: path.to_owned(), source };
        let mut takes: HashMap<String, VecDeque<Take>> = HashMap::new();
        for (index, line) in BufReader::new(File::open(path).map_err(failed)?).lines().enumerate() {
            let take: Take = serde_json::from_str(&line.map_err(failed)?)
                .map_err(|source| CassetteError::Line { path: path.to_owned(), line: index + 1, source })?;
            takes.entry(take.request.clone()).or_default().push_back(take);
        }
        Ok(Replayer { id: id.into(), path: path.to_owned(), takes: Mutex::new(takes) })
    }
}

impl Model for Replayer {
    fn id(&self) -> &str {
        &self.id
    }

    fn stream(&self, request: Request) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        let take = {
            let mut takes = self.takes.lock().unwrap_or_else(PoisonError::into_inner);
            takes.get_mut(&key(&request)).and_then(VecDeque::pop_front)
        };
        async move {
            let take = take.ok_or_else(|| {
                ModelError::Script(format!(
                    "the cassette {} has no (further) reply to this request, which ends with {:?}; record it again",
                    self.path.display(),
                    about(&request)
                ))
            })?;
            Ok(stream::iter(take.events.into_iter().map(|said| Ok(said.into()))).boxed())
        }
        .boxed()
    }
}
