//! Makes the calls of a reply: side by side where that is safe, recorded in the order they were asked for.

use futures_util::StreamExt;
use futures_util::stream;

use super::{Ending, Next, Run, fail};
use crate::guard::{Outcome, Turn};
use crate::state::CallRecord;
use crate::store::StoreError;

impl Run {
    pub(super) async fn act(&self, calls: Vec<CallRecord>) -> Result<Next, StoreError> {
        for batch in self.batches(calls) {
            let turns = Turn::queue(batch.len());
            let calls = batch.into_iter().zip(turns).map(|(record, turn)| {
                self.agent.toolbox.call(self.services.pass(record.call, None, record.status, turn))
            });
            let most = self.services.journal.with_state(|state| state.limits.max_parallel.max(1));
            let outcomes: Vec<Outcome> = stream::iter(calls).buffered(most).collect().await;
            let mut waiting = None;
            for outcome in outcomes {
                match outcome {
                    Outcome::Done(_) | Outcome::Failed(_) => {}
                    Outcome::Suspended(suspension) => {
                        waiting.get_or_insert(suspension);
                    }
                    Outcome::Fatal(message) => return Ok(fail("TOOL_FATAL", message, None)),
                }
            }
            if let Some(suspension) = waiting {
                return Ok(Next::End(Ending::Suspended(suspension)));
            }
        }
        Ok(Next::Go)
    }

    /// Neighbours that may run side by side, together; every other call alone.
    fn batches(&self, calls: Vec<CallRecord>) -> Vec<Vec<CallRecord>> {
        let mut batches: Vec<Vec<CallRecord>> = Vec::new();
        let mut open = false;
        for record in calls {
            let parallel = self.agent.toolbox.is_parallel(&record.call);
            match batches.last_mut() {
                Some(batch) if open && parallel => batch.push(record),
                _ => batches.push(vec![record]),
            }
            open = parallel;
        }
        batches
    }
}
