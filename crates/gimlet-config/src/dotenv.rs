//! Reads a `.env` file as what it is: untrusted text. Lines are `NAME=value`; nothing in a value is ever replaced by
//! something from the environment, so a file cannot make a secret part of a setting. Values never leave this process.

/// A line of the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) value: String,
    /// Counted from 1.
    pub(crate) number: usize,
}

/// All lines that set something. What is no such line belongs to other programs and is passed over.
pub(crate) fn read(text: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    while let Some((number, line)) = lines.next() {
        let line = line.trim_start().trim_start_matches('\u{feff}');
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, rest)) = line.split_once('=') else { continue };
        let name = name.trim();
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            continue;
        }
        let rest = rest.trim();
        let value = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                // A quoted value may go on over lines, which then are no lines of their own.
                let mut body = rest[1..].to_owned();
                while close(&body, quote).is_none() {
                    let Some((_, more)) = lines.next() else { break };
                    body.push('\n');
                    body.push_str(more);
                }
                let end = close(&body, quote).unwrap_or(body.len());
                body.truncate(end);
                if quote == '"' { unescape(&body) } else { body }
            }
            _ => rest.split(" #").next().unwrap_or_default().trim_end().to_owned(),
        };
        found.push(Line { name: name.to_owned(), value, number });
    }
    found
}

/// Where a quoted value ends.
fn close(body: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            c if c == quote => return Some(at),
            _ => {}
        }
    }
    None
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String, usize)> {
        read(text).into_iter().map(|line| (line.name, line.value, line.number)).collect()
    }

    #[test]
    fn lines_are_read_as_people_write_them() {
        let text = "# a comment\nMODEL_ID=ollama/x\n export A = 'b # c' \n\nB=two words # why\nC=\"q\\\"uote\"\nno line\nD=\n";
        let expected = [
            ("MODEL_ID", "ollama/x", 2),
            ("A", "b # c", 3),
            ("B", "two words", 5),
            ("C", "q\"uote", 6),
            ("D", "", 8),
        ];
        let expected: Vec<_> =
            expected.iter().map(|(name, value, at)| ((*name).to_owned(), (*value).to_owned(), *at)).collect();
        assert_eq!(pairs(text), expected);
    }

    #[test]
    fn nothing_is_substituted() {
        assert_eq!(pairs("A=${HOME}/$USER\nB=\"$(id)`id`\"")[0].1, "${HOME}/$USER");
        assert_eq!(pairs("B=\"$(id)`id`\"")[0].1, "$(id)`id`");
    }

    #[test]
    fn a_value_over_lines_hides_what_looks_like_a_setting() {
        let read = pairs("KEY=\"-----\nMODEL_ID=evil\n-----\"\nMODEL_ID=good\n");
        assert_eq!(read.len(), 2);
        assert_eq!((read[1].1.as_str(), read[1].2), ("good", 4));
    }

    #[test]
    fn an_open_quote_at_the_end_is_no_panic() {
        assert_eq!(pairs("A=\"ä\\")[0].1, "ä\\");
    }
}
