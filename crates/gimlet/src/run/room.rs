//! Makes room in the conversation before a request, and when the server says that it does not fit.

use tracing::Instrument;

use super::aside::Aside;
use super::{Ending, Run, failed};
use crate::context::summary::{self, Author, conversation, written};
use crate::context::{self, Compacted, Compaction, Relief};
use crate::event::{EventKind, Pruned, Purpose, Suspension};
use crate::model::Request;
use crate::store::StoreError;
use crate::telemetry;

/// Whether something gave way.
pub(super) enum Gave {
    /// It did.
    Way,
    /// There is nothing left that could.
    Nothing,
    /// The run ends.
    Up(Ending),
}

impl Run {
    /// Lets old observations, then old steps give way until the next request fits. `extra` bytes go with it beside the
    /// conversation and the tools. Returns how the run ends where that is impossible.
    pub(super) async fn make_room(&self, extra: usize) -> Result<Option<Ending>, StoreError> {
        let Some(window) = self.window() else { return Ok(None) };
        let extra = extra + context::tool_bytes(self.native_tools());
        loop {
            let relief = self.services.journal.with_state(|state| context::next_relief(state, window, extra));
            match relief {
                Relief::Fits => return Ok(None),
                Relief::Prune(pruned) => self.prune(pruned).await?,
                Relief::Compact(compaction) => {
                    if let Some(ending) = self.compact(compaction, extra).await? {
                        return Ok(Some(ending));
                    }
                }
                Relief::Hopeless { tokens, room } => {
                    let message = format!(
                        "the conversation needs about {tokens} tokens, and the model's window has room for {room}; \
                         nothing can give way any more"
                    );
                    let hint = "use a model with a larger window, fewer tools or a shorter task";
                    return Ok(Some(failed("CONTEXT_LENGTH", message, Some(hint))));
                }
            }
        }
    }

    /// Gives the server less after it said that the conversation does not fit: it knows its window best.
    pub(super) async fn give_way(&self) -> Result<Gave, StoreError> {
        let known = self.agent.model.window();
        let (pruned, compaction) = self.services.journal.with_state(|state| {
            let window = known.unwrap_or_else(|| context::guessed(state));
            (context::everything(state, known), context::compaction(state, window, 0))
        });
        match (pruned, compaction) {
            (Some(pruned), _) => self.prune(pruned).await?,
            (None, Some(compaction)) => {
                if let Some(ending) = self.compact(compaction, 0).await? {
                    return Ok(Gave::Up(ending));
                }
            }
            (None, None) => return Ok(Gave::Nothing),
        }
        Ok(Gave::Way)
    }

    /// Lets everything give way that may, full window or not.
    pub(super) async fn clear_out(&self) -> Result<bool, StoreError> {
        let known = self.agent.model.window();
        let journal = &self.services.journal;
        let pruned = journal.with_state(|state| context::everything(state, known));
        let mut gave = pruned.is_some();
        if let Some(pruned) = pruned {
            self.prune(pruned).await?;
        }
        let compaction = journal.with_state(|state| {
            context::compaction(state, known.unwrap_or_else(|| context::guessed(state)), 0)
                .filter(|compaction| compaction.is_worthwhile(state))
        });
        if let Some(compaction) = compaction {
            gave |= self.compact(compaction, 0).await?.is_none();
        }
        Ok(gave)
    }

    async fn prune(&self, pruned: Pruned) -> Result<(), StoreError> {
        // What gave way is worth looking at again.
        self.services.forget_repeats();
        self.services.journal.append(EventKind::ContextPruned(pruned)).await
    }

    /// Sums old steps up: by the model, else by code.
    pub(super) async fn compact(
        &self,
        compaction: Compaction,
        extra: usize,
    ) -> Result<Option<Ending>, StoreError> {
        self.services.forget_repeats();
        let span = telemetry::compact_span();
        let journal = &self.services.journal;
        let question = journal.with_state(|state| context::question(state, &compaction));
        let messages = conversation(&question);
        let sampling = self.agent.sampling.clone();
        let request = Request { messages, tools: Default::default(), sampling };
        let asked = self.ask_aside(Purpose::Summary, question, request).instrument(span.clone()).await?;
        let mut compacted = match asked {
            Aside::Interrupted => return Ok(Some(Ending::Suspended(Suspension::Interrupted))),
            Aside::Replied(reply, seconds) => Compacted {
                reply: reply.text,
                usage: reply.usage,
                finish: reply.finish,
                seconds,
                ..Compacted::default()
            },
            Aside::Failed(failure, seconds) => {
                Compacted { failure: Some(failure), seconds, ..Compacted::default() }
            }
        };
        journal.with_state(|state| {
            let read = summary::read(&compacted.reply, state);
            compacted.by = if read.is_some() { Author::Model } else { Author::Code };
            compacted.summary = read.unwrap_or_else(|| summary::by_code(state));
            compacted.text = written(state, compaction.until, &compacted.summary, compaction.most);
            compacted.until = compaction.until;
            compacted.step = state.step;
            compacted.before = compaction.before;
            compacted.after = context::after(state, &compaction, &compacted.text, extra);
            compacted.window = compaction.window.tokens;
        });
        telemetry::record_compacted(&span, &compacted, &self.services.payload());
        journal.append(EventKind::ContextCompacted(Box::new(compacted))).await?;
        Ok(None)
    }
}
