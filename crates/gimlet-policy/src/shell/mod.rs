//! Shell text into [`Script`]: the grammar finds the commands, our own lexer reads their words.
//!
//! Only node kinds we know are taken at their word. Everything else is walked for the commands inside it, and noted
//! as opaque, so that it is never allowed without a person.

mod ast;
mod lexer;
mod lower;
mod quoting;
mod word;

pub use ast::{
    Assignment, Certainty, Channel, Direction, Function, Origin, Pipeline, Redirection, Script, Segment,
    Substitution, Word,
};
pub(crate) use lexer::Variables;
pub(crate) use lower::parse;

/// Which programs bring text from elsewhere; needed while reading, because such text taints variables.
pub(crate) trait Foreign {
    /// Whether this program's output is a download or something decoded.
    fn is_foreign(&self, program: &str) -> bool;
}
