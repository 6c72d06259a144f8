//! The files that the editor has open, asked for over the protocol.

use std::path::Path;
use std::time::Duration;

use gimlet_runtime::Buffers;
use serde_json::{Value, json};

use crate::params::FileSystem;
use crate::wire::Peer;

/// How long the editor may take. The program stands still meanwhile, because tools read files while they are judged.
const PATIENCE: Duration = Duration::from_secs(5);

/// The editor's side of a session's files.
pub(crate) struct EditorBuffers {
    pub(crate) peer: Peer,
    pub(crate) session: String,
    pub(crate) can: FileSystem,
}

impl EditorBuffers {
    /// What the editor offers; none where that is nothing.
    pub(crate) fn new(peer: &Peer, session: &str, can: FileSystem) -> Option<EditorBuffers> {
        let offers = can.read_text_file || can.write_text_file;
        offers.then(|| EditorBuffers { peer: peer.clone(), session: session.to_owned(), can })
    }
}

impl Buffers for EditorBuffers {
    fn text(&self, path: &Path) -> Option<String> {
        if !self.can.read_text_file {
            return None;
        }
        let params = json!({ "sessionId": self.session, "path": path });
        let answer = self.peer.request_blocking("fs/read_text_file", params, PATIENCE)?;
        answer.get("content").and_then(Value::as_str).map(str::to_owned)
    }

    fn written(&self, path: &Path, text: &str) {
        if self.can.write_text_file {
            let params = json!({ "sessionId": self.session, "path": path, "content": text });
            // Whether the file holds what it should is looked at afterwards, whatever the editor says.
            let _ = self.peer.request_blocking("fs/write_text_file", params, PATIENCE);
        }
    }
}
