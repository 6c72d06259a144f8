//! Foreign text and numbers, made fit for people.

use gimlet::text::Printable;
use jiff::Timestamp;

/// Text of several lines.
pub(crate) fn block(text: &str) -> String {
    Printable::block(text).into_string()
}

/// Text of one line.
pub(crate) fn line(text: &str) -> String {
    Printable::line(text).into_string()
}

/// The beginning of a text, on one line.
pub(crate) fn clip(text: &str, most: usize) -> String {
    let text = line(text.trim());
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text,
    }
}

/// The first line of a task, which may have files attached below it.
pub(crate) fn title(task: &str, most: usize) -> String {
    clip(task.trim().lines().next().unwrap_or_default(), most)
}

/// A number of tokens: `950`, `12.3k`.
pub(crate) fn count(number: u64) -> String {
    match number {
        0..=9_999 => number.to_string(),
        10_000..=999_999 => format!("{:.1}k", number as f64 / 1e3),
        _ => format!("{:.1}M", number as f64 / 1e6),
    }
}

/// A duration: `0.4 s`, `2 min 5 s`, `3 h 2 min`.
pub(crate) fn seconds(seconds: f64) -> String {
    // A sum over nothing is a negative zero.
    let seconds = seconds.max(0.0) + 0.0;
    let whole = seconds as u64;
    match whole {
        0..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// How long ago something was.
pub(crate) fn ago(then: Timestamp, now: Timestamp) -> String {
    let passed = now.duration_since(then).as_secs().max(0);
    match passed {
        0..60 => "just now".into(),
        60..3600 => format!("{} min ago", passed / 60),
        3600..86_400 => format!("{} h ago", passed / 3600),
        86_400..172_800 => "yesterday".into(),
        _ => format!("{} days ago", passed / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            (count(9_999), count(12_345), count(2_500_000)),
            ("9999".into(), "12.3k".into(), "2.5M".into())
        );
        assert_eq!(
            (seconds(0.44), seconds(125.0), seconds(11_000.0)),
            ("0.4 s".into(), "2 min 5 s".into(), "3 h 3 min".into())
        );
        assert_eq!(clip("  one\ntwo ", 5), "one⏎t…");
    }
}
