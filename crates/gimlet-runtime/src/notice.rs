//! What a runtime has to tell whoever opened it, beside the events of its runs.

use std::sync::Arc;

/// Something worth telling. It is text for people; nothing depends on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Something is wrong and was worked around.
    Warning(String),
    /// Something about a run that is taken up.
    Note(String),
    /// How something was chosen, for whoever wants to know.
    Detail(String),
    /// An MCP server wrote this to its standard error or to its log.
    Server(String),
}

/// Takes notices. It must not block.
pub type Notify = Arc<dyn Fn(Notice) + Send + Sync>;

/// Drops every notice.
pub fn silent() -> Notify {
    Arc::new(|_| {})
}
