//! What a cell may hand over, counted on this side of the pipe. Workers hold the code to the same limits and say kindly
//! what they cut; but code may speak in its worker's place, so nobody's word is taken for it.

use gimlet::cell::CellEnd;

use crate::limits::Limits;

/// Room for what a worker says about a cut itself.
const NOTE: usize = 100;
/// Most characters of an exception's name.
const KIND: usize = 200;

/// What one cell has handed over so far.
#[derive(Default)]
pub(crate) struct Spent {
    characters: usize,
    calls: u64,
}

impl Spent {
    /// Takes printed text into account; why the cell must end, if that is too much.
    pub(crate) fn print(&mut self, text: &str, limits: &Limits) -> Result<(), String> {
        // Nothing at all is a message too.
        self.characters = self.characters.saturating_add(text.chars().count().max(1));
        if self.characters > limits.output.saturating_add(NOTE) {
            let most = limits.output;
            return Err(format!("the code printed more than {most} characters in one cell and was stopped"));
        }
        Ok(())
    }

    /// Takes a call into account; why the cell must end, if that is one too many.
    pub(crate) fn call(&mut self, limits: &Limits) -> Result<(), String> {
        self.calls += 1;
        if self.calls > limits.calls {
            let most = limits.calls;
            return Err(format!("the code made more than {most} tool calls in one cell and was stopped"));
        }
        Ok(())
    }
}

/// How a cell ended, in no more words than it may use.
pub(crate) fn bounded(end: CellEnd, limits: &Limits) -> CellEnd {
    let most = limits.value.saturating_add(NOTE);
    match end {
        CellEnd::Done { value } => CellEnd::Done { value: value.map(|value| cut(value, most)) },
        CellEnd::Raised { kind, traceback } => {
            CellEnd::Raised { kind: cut(kind, KIND), traceback: cut(traceback, most) }
        }
        CellEnd::Limited { message } => CellEnd::Limited { message: cut(message, most) },
        CellEnd::Crashed { message } => CellEnd::Crashed { message: cut(message, most) },
        answer @ CellEnd::Answer { .. } => answer,
    }
}

fn cut(mut text: String, most: usize) -> String {
    if let Some((at, _)) = text.char_indices().nth(most) {
        text.truncate(at);
        text.push('…');
    }
    text
}
