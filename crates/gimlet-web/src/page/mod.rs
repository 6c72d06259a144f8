//! The page. It works without scripts but for what is live: forms are plain forms.

pub(crate) mod about;
pub(crate) mod compare;
pub(crate) mod evaluations;
pub(crate) mod list;
pub(crate) mod new;
pub(crate) mod questions;
pub(crate) mod run;
mod shell;

pub(crate) use shell::{Shown, go_to, is_part, log_in, logged_in, page};
