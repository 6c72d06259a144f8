//! A person who answers from a list.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;
use gimlet::approval::{ApprovalRequest, Approver, Decision};

/// Answers with the next decision of a list, and remembers what it was asked. When the list is over it says no.
#[derive(Debug, Default)]
pub struct ScriptedApprover {
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    decisions: VecDeque<Decision>,
    asked: Vec<ApprovalRequest>,
}

impl ScriptedApprover {
    /// Someone who will say this, in this order.
    pub fn new(decisions: impl IntoIterator<Item = Decision>) -> Self {
        let book = Book { decisions: decisions.into_iter().collect(), asked: Vec::new() };
        ScriptedApprover { book: Mutex::new(book) }
    }

    /// Everything asked so far.
    pub fn asked(&self) -> Vec<ApprovalRequest> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner).asked.clone()
    }

    /// Decisions nobody asked for yet.
    pub fn left(&self) -> usize {
        self.book.lock().unwrap_or_else(PoisonError::into_inner).decisions.len()
    }
}

impl Approver for ScriptedApprover {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, Decision> {
        let mut book = self.book.lock().unwrap_or_else(PoisonError::into_inner);
        book.asked.push(request);
        let decision = book.decisions.pop_front().unwrap_or_else(|| Decision::Deny {
            feedback: Some("the scripted approver has no further decision".into()),
        });
        Box::pin(std::future::ready(decision))
    }
}
