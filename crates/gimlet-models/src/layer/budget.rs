//! An end to spending: tokens and money, counted over every model that shares the ledger.
//!
//! What a server does not report is estimated, so that a silent one is not free; a model whose price nobody knows is
//! refused where money is limited.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};
use gimlet::context::Window;
use gimlet::message::{Message, Usage};
use gimlet::model::{Model, ModelError, ModelEvent, ModelStream, Request};

use crate::providers::Cost;

/// How much may be spent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Limits {
    /// Tokens, read and written.
    pub tokens: Option<u64>,
    /// US dollars.
    pub dollars: Option<f64>,
}

/// What was spent. Shared by everything that spends from it.
#[derive(Debug, Default)]
pub struct Ledger {
    limits: Limits,
    spent: Mutex<Spent>,
}

/// What was spent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// Tokens.
    pub usage: Usage,
    /// US dollars, as far as prices are known.
    pub dollars: f64,
}

impl Ledger {
    /// A ledger with limits.
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Ledger { limits, spent: Mutex::default() })
    }

    /// What was spent so far.
    pub fn spent(&self) -> Spent {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, model: &str, cost: Cost) -> Result<(), ModelError> {
        if self.limits.dollars.is_some() && cost == Cost::Unknown {
            return Err(ModelError::Budget(format!(
                "money is limited and the price of {model} is not known; add it to the providers, or limit tokens"
            )));
        }
        let spent = self.spent();
        if let Some(limit) = self.limits.tokens
            && spent.usage.total() >= limit
        {
            return Err(ModelError::Budget(format!("{} of {limit} tokens", spent.usage.total())));
        }
        if let Some(limit) = self.limits.dollars
            && spent.dollars >= limit
        {
            return Err(ModelError::Budget(format!("{:.4} of {limit:.4} US dollars", spent.dollars)));
        }
        Ok(())
    }

    fn add(&self, usage: Usage, cost: Cost) {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent.usage += usage;
        spent.dollars += match cost {
            Cost::Known(price) => price.of(&usage),
            Cost::Free | Cost::Unknown => 0.0,
        };
    }
}

/// Spends from a ledger, and refuses when it is empty.
pub struct Budget {
    inner: Arc<dyn Model>,
    ledger: Arc<Ledger>,
    cost: Cost,
}

impl Budget {
    /// Counts a model's use in a ledger.
    pub fn new(inner: Arc<dyn Model>, ledger: Arc<Ledger>, cost: Cost) -> Self {
        Budget { inner, ledger, cost }
    }
}

impl Model for Budget {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn window(&self) -> Option<Window> {
        self.inner.window()
    }

    fn stream(&self, request: Request) -> BoxFuture<'_, Result<ModelStream, ModelError>> {
        async move {
            self.ledger.check(self.inner.id(), self.cost)?;
            let mut bill = Bill {
                ledger: Arc::clone(&self.ledger),
                cost: self.cost,
                reported: None,
                estimated: Usage { input: estimate(&request), ..Usage::default() },
                written: 0,
            };
            let reply =
                self.inner.stream(request).await.inspect_err(|_| bill.estimated = Usage::default())?;
            Ok(reply
                .inspect(move |event| {
                    if let Ok(event) = event {
                        bill.note(event);
                    }
                })
                .boxed())
        }
        .boxed()
    }
}

/// Paid when the reply is over, however it ends.
struct Bill {
    ledger: Arc<Ledger>,
    cost: Cost,
    reported: Option<Usage>,
    estimated: Usage,
    written: usize,
}

impl Bill {
    fn note(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Text(text) | ModelEvent::Thinking(text) => self.written += text.len(),
            ModelEvent::Call(call) => self.written += call.name.len() + call.args.to_string().len(),
            ModelEvent::Usage(usage) if usage.total() > 0 => self.reported = Some(*usage),
            ModelEvent::Usage(_) | ModelEvent::Signature(_) | ModelEvent::Notice(_) | ModelEvent::Done(_) => {
            }
        }
    }
}

impl Drop for Bill {
    fn drop(&mut self) {
        let usage = self.reported.unwrap_or(Usage { output: tokens(self.written), ..self.estimated });
        self.ledger.add(usage, self.cost);
    }
}

/// About how many tokens a request is.
pub(super) fn estimate(request: &Request) -> u64 {
    let texts: usize = request
        .messages
        .iter()
        .map(|message| match message.as_ref() {
            Message::System { text } | Message::User { text } | Message::Tool { text, .. } => text.len(),
            Message::Assistant { text, calls, .. } => {
                text.len() + calls.iter().map(|call| call.args.to_string().len()).sum::<usize>()
            }
        })
        .sum();
    let tools: usize =
        request.tools.iter().map(|tool| tool.description.len() + tool.input.to_string().len()).sum();
    tokens(texts + tools)
}

/// About how many tokens so many bytes are.
fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}
