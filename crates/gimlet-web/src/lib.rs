//! `gimlet serve`: one page for people and one HTTP interface for programs, both on `gimlet-runtime`.
//!
//! Runs live in the store, so those of every process are shown, and a question can be answered here whoever asked it. The
//! server works on the runs that were started or resumed through it.
#![forbid(unsafe_code)]

mod api;
mod desk;
mod diff;
mod gate;
mod pages;
mod problem;
mod server;
mod story;

pub use server::{Config, Server};
