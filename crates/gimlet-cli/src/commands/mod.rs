//! One module per command; each command is a function from its arguments to an exit status.

pub(crate) mod approvals;
pub(crate) mod demo;
pub(crate) mod models;
pub(crate) mod policy;
pub(crate) mod python;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod tools;
