//! Examples of Gimlet as a library. Run one with `cargo run -p gimlet-examples --example custom_tool --ignore-rust-version`.
#![forbid(unsafe_code)]
