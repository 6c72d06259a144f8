//! Text: what may be printed, what must not be told, what a long one is cut to, and hashes.
#![forbid(unsafe_code)]

pub mod digest;
mod encodings;
pub mod printable;
pub mod redact;
mod shapes;

/// A text cut to so many characters.
pub fn clip(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}
