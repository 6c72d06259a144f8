//! Small helpers for texts that people read.

use gimlet::text::Printable;

/// A text cut to so many characters, on one line, with everything in it visible.
pub fn clip(text: &str, most: usize) -> String {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let line = Printable::line(&words.join(" ")).into_string();
    if line.chars().count() <= most {
        return line;
    }
    let mut cut: String = line.chars().take(most.saturating_sub(1)).collect();
    cut.push('…');
    cut
}
