//! What a model is told and what it may write: prompts, signatures and schemas, the parser of its replies, the form of
//! its arguments and answers, and guided work, which leads small models by small questions. All of it is pure.
#![forbid(unsafe_code)]

pub mod answer;
pub mod arguments;
pub mod guided;
pub mod parse;
pub mod prompt;
pub mod schema;
pub mod sections;
pub mod signature;
