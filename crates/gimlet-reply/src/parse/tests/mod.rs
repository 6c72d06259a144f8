//! Tests through the one entry point.

mod table;
