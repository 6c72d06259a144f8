//! `gimlet serve`: one page for people and one HTTP interface for programs, both on `gimlet-runtime`.
//!
//! Runs live in the store, so those of every process are shown, and a question can be answered here whoever asked it. The
//! server works on the runs that were started or resumed through it.
#![forbid(unsafe_code)]

mod answers;
mod api;
mod colour;
mod desk;
mod diff;
mod gate;
mod keys;
mod listener;
mod login;
mod notes;
mod page;
mod problem;
mod prose;
mod server;
mod story;
mod task;
mod text;
mod value;
mod vitals;

pub use listener::Tls;
pub use server::{Config, Server};
