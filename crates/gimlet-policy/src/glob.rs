//! Patterns over names, as the list of path rules in the core uses them.

pub(crate) use gimlet::paths::glob::{could_match, is_pattern, matches};
