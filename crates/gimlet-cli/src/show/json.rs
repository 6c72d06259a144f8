//! Every event as a line of JSON on standard output: the same objects as the log.

use std::io::Write;

use super::Show;
use gimlet::event::Event;

/// Writes events to standard output.
pub(crate) struct JsonLines;

impl Show for JsonLines {
    fn show(&self, event: &Event) {
        let mut stdout = std::io::stdout().lock();
        // A reader that went away does not stop the run; the log has everything.
        if serde_json::to_writer(&mut stdout, event).is_ok() {
            let _ = stdout.write_all(b"\n").and_then(|()| stdout.flush());
        }
    }
}
