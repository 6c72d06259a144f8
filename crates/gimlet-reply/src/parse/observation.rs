//! Finds where a model begins to make up the result of its own action.

use super::literal::Literals;

/// Where in `text` a made-up observation begins, looking at whole lines from `from` on.
pub(super) fn find(text: &str, from: usize) -> Option<usize> {
    let mut at = from;
    text[from..].split_inclusive('\n').find_map(|line| {
        let start = at;
        at += line.len();
        is_observation(line).then_some(start)
    })
}

/// Where in a program one begins, string literals aside.
pub(super) fn find_in_code(code: &str) -> Option<usize> {
    let bytes = code.as_bytes();
    Literals::new(code).find(0, |at, _| {
        let starts_line = at == 0 || bytes[at - 1] == b'\n';
        (starts_line && is_observation(code[at..].split('\n').next().unwrap_or_default())).then_some(at)
    })
}

fn is_observation(line: &str) -> bool {
    let line = line.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '#' | '>' | '_'));
    if line.starts_with("<tool_response>") || line.starts_with("Execution logs:") {
        return true;
    }
    // How results are shown where tools are called in text; `Result of the tests:` is prose.
    if let Some(tool) = line.trim_end().strip_prefix("Result of ").and_then(|rest| rest.strip_suffix(':')) {
        return !tool.is_empty() && tool.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    }
    let Some(word) = line.get(.."observation".len()) else { return false };
    let rest =
        line[word.len()..].trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ' ' | '*' | '_'));
    word.eq_ignore_ascii_case("observation") && rest.starts_with(':')
}
