//! What a shell command would do, and whether it may.
//!
//! Text is parsed into simple commands, each is unwrapped until the program that really runs is found, and rules,
//! which are data, say allow, ask or deny. The worst of all counts. Pure: no files, no clock, no environment.
#![forbid(unsafe_code)]

mod context;
mod glob;
mod judge;
mod paths;
mod policy;
mod report;
mod rules;
pub mod shell;

pub use context::{Context, Jail};
pub use paths::{PathRules, Secrecy};
pub use policy::{CommandPolicy, Policy};
pub use report::{Report, SegmentReport};
pub use rules::{Author, ExampleFailure, Operands, Rule, RulesError, Say};
