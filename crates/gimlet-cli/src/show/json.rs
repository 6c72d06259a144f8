//! Every event as a line of JSON on standard output: the same objects as the log.

use super::Show;
use gimlet::event::Event;

use crate::out;

/// Writes events to standard output.
pub(crate) struct JsonLines;

impl Show for JsonLines {
    fn show(&self, event: &Event) {
        // A reader that went away does not stop the run; the log has everything.
        let _ = out::json(event);
    }
}
