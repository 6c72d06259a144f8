//! File work off the async threads, ended with the call.

use gimlet::tool::{ToolError, code};
use tokio_util::sync::CancellationToken;

/// Runs `work` on a blocking thread. Its token ends when the call is cancelled or its future is dropped, so a timed-out
/// search does not keep a core busy.
pub(crate) async fn blocking<T, F>(cancel: &CancellationToken, work: F) -> Result<T, ToolError>
where
    T: Send + 'static,
    F: FnOnce(&CancellationToken) -> Result<T, ToolError> + Send + 'static,
{
    let token = cancel.child_token();
    let _ends_with_the_future = token.clone().drop_guard();
    match tokio::task::spawn_blocking(move || work(&token)).await {
        Ok(result) => result,
        Err(error) => Err(ToolError::failed(code::TOOL_EXCEPTION, format!("the tool broke: {error}"))),
    }
}

/// The failure of a call that was stopped.
pub(crate) fn cancelled() -> ToolError {
    ToolError::failed(code::CANCELLED, "stopped before it was done")
}
