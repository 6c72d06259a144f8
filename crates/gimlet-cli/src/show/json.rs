//! Every event as a line of JSON on standard output: the same objects as the log.

use gimlet::event::Event;
use gimlet::journal::Observer;

use crate::out;

/// Writes events to standard output.
pub(crate) struct JsonLines;

impl Observer for JsonLines {
    fn observe(&self, event: &Event) {
        // A reader that went away does not stop the run; the log has everything.
        let _ = out::json(event);
    }
}
