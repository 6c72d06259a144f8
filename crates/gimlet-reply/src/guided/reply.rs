//! Reads the files and edits out of a model's reply. Tolerant of what small models write: the path in the fence's info
//! string, as a heading, in backticks or missing; prose around; markers of odd lengths; a fence that is never closed.

/// One thing a reply asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// The whole text of a file.
    Whole {
        /// The path the reply gives; none if it gives none.
        path: Option<String>,
        /// The language tag of the fence, in lower case; empty if it has none.
        language: String,
        /// The text, ending with a newline unless it is empty.
        text: String,
    },
    /// Lines to be replaced by others.
    Replace {
        /// The path the reply gives; none if it gives none.
        path: Option<String>,
        /// The lines to look for.
        search: String,
        /// The lines to put in their place.
        replace: String,
    },
    /// A file to be removed.
    Delete {
        /// Its path.
        path: String,
    },
}

/// A line that says `DELETE path` removes a file.
pub const DELETE: &str = "DELETE";

/// Reads a reply. `known` are the paths the model was asked about: a line of prose that names one of them counts as the
/// heading of the next block.
pub fn parse(text: &str, known: &[&str]) -> Vec<Block> {
    let lines: Vec<&str> = text.lines().collect();
    let mut blocks = Vec::new();
    let mut heading: Option<String> = None;
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        if let Some(fence) = Fence::open(line) {
            let path = fence.path(known).or_else(|| heading.take());
            let end = fence.end(&lines, at + 1, path.as_deref());
            read_body(&lines[at + 1..end], path, fence.language(), known, &mut blocks);
            heading = None;
            at = end + 1;
        } else if is_marker(line, '<') {
            let (block, next) = read_replace(&lines, at, heading.clone());
            blocks.extend(block);
            at = next;
        } else {
            if let Some(path) = deleted(line) {
                blocks.push(Block::Delete { path });
            } else if let Some(path) = path_in(line, known) {
                heading = Some(path);
            }
            at += 1;
        }
    }
    blocks
}

/// Joins a reply that was cut at the token limit with its continuation. A continuation that opens the fence again, or
/// repeats the last lines, is joined without them.
pub fn join(partial: &str, more: &str) -> String {
    let inside = is_inside_fence(partial);
    let mut more = more;
    if inside {
        let first = more.trim_start_matches(['\n', '\r']);
        if let Some((line, rest)) = first.split_once('\n')
            && Fence::open(line).is_some()
        {
            more = rest;
        }
    }
    // The last line may be cut in the middle: the continuation repeats it as a whole, or goes on inside it.
    let last_line = partial.rsplit('\n').next().unwrap_or_default();
    if !last_line.trim().is_empty() && more.starts_with(last_line) {
        return format!("{}{more}", &partial[..partial.len() - last_line.len()]);
    }
    let longest = more.len().min(partial.len()).min(4000);
    let overlap = (12..=longest)
        .rev()
        .filter(|size| partial.is_char_boundary(partial.len() - size) && more.is_char_boundary(*size))
        .find(|size| partial[partial.len() - size..] == more[..*size]);
    format!("{partial}{}", &more[overlap.unwrap_or(0)..])
}

/// Whether a text ends inside a fence.
pub fn is_inside_fence(text: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    while at < lines.len() {
        match Fence::open(lines[at]) {
            Some(fence) => {
                let end = fence.end(&lines, at + 1, None);
                if end >= lines.len() {
                    return true;
                }
                at = end + 1;
            }
            None => at += 1,
        }
    }
    false
}

/// The beginning of a fenced block.
struct Fence<'a> {
    mark: char,
    length: usize,
    info: &'a str,
}

impl<'a> Fence<'a> {
    fn open(line: &'a str) -> Option<Self> {
        let line = line.trim();
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let length = line.chars().take_while(|c| *c == mark).count();
        let info = line[length..].trim();
        // Backticks inside the info string are inline code, not a fence.
        (length >= 3 && !info.contains('`')).then_some(Fence { mark, length, info })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        Fence::open(line).is_some_and(|other| {
            other.mark == self.mark && other.length >= self.length && other.info.is_empty()
        })
    }

    /// The line that closes it, or the number of lines. Markdown may hold fences of its own.
    fn end(&self, lines: &[&str], from: usize, path: Option<&str>) -> usize {
        let is_markdown = matches!(self.language().as_str(), "markdown" | "md")
            || path.is_some_and(|path| path.ends_with(".md"));
        let mut nested = 0usize;
        for (at, line) in lines.iter().enumerate().skip(from) {
            if self.is_closed_by(line) {
                match nested {
                    0 => return at,
                    _ => nested -= 1,
                }
            } else if is_markdown && Fence::open(line).is_some_and(|inner| !inner.info.is_empty()) {
                nested += 1;
            }
        }
        lines.len()
    }

    fn words(&self) -> impl Iterator<Item = &'a str> {
        self.info.split([' ', '\t', ':', '=', ',', '{', '}', '"', '\'']).filter(|word| !word.is_empty())
    }

    fn language(&self) -> String {
        let first = self.words().next().filter(|word| !looks_like_path(word));
        first.unwrap_or_default().to_ascii_lowercase()
    }

    fn path(&self, known: &[&str]) -> Option<String> {
        self.words().find(|word| known.contains(word) || looks_like_path(word)).map(clean_path)
    }
}

/// What a fence holds: edits by search and replace, or a whole file.
fn read_body(body: &[&str], path: Option<String>, language: String, known: &[&str], blocks: &mut Vec<Block>) {
    if !body.iter().any(|line| is_marker(line, '<')) {
        let (path, body) = match (path, body.split_first()) {
            // The path as the first line of the block, without a comment mark, is no part of the file.
            (path, Some((first, rest))) if known.contains(&first.trim()) && !rest.is_empty() => {
                (path.or_else(|| Some(clean_path(first.trim()))), rest)
            }
            (None, Some((first, _))) => (commented_path(first, known), body),
            (path, _) => (path, body),
        };
        let mut text = body.join("\n");
        if !text.is_empty() {
            text.push('\n');
        }
        blocks.push(Block::Whole { path, language, text });
        return;
    }
    let mut path = path;
    let mut at = 0;
    while at < body.len() {
        if is_marker(body[at], '<') {
            let (block, next) = read_replace(body, at, path.clone());
            blocks.extend(block);
            at = next;
        } else {
            path = path_in(body[at], known).or(path);
            at += 1;
        }
    }
}

/// Reads one SEARCH/REPLACE block that begins at a line; returns it and the line after it. A block without its middle
/// mark is none.
fn read_replace(lines: &[&str], from: usize, path: Option<String>) -> (Option<Block>, usize) {
    let middle =
        lines.iter().enumerate().skip(from + 1).find(|(_, line)| is_marker(line, '=')).map(|(at, _)| at);
    let Some(middle) = middle else { return (None, lines.len()) };
    let ends = |line: &str| is_marker(line, '>') || is_marker(line, '<') || line.trim() == "```";
    let end = lines.iter().enumerate().skip(middle + 1).find(|(_, line)| ends(line)).map(|(at, _)| at);
    let end = end.unwrap_or(lines.len());
    let text = |part: &[&str]| part.iter().map(|line| format!("{line}\n")).collect::<String>();
    let block = Block::Replace {
        path,
        search: text(&lines[from + 1..middle]),
        replace: text(&lines[middle + 1..end]),
    };
    // Only the closing mark belongs to the block; what begins another one is read again.
    let next = if lines.get(end).is_some_and(|line| is_marker(line, '>')) { end + 1 } else { end };
    (Some(block), next)
}

/// Whether a line is a mark of a SEARCH/REPLACE block: five to nine of the character, and at most one word.
fn is_marker(line: &str, mark: char) -> bool {
    let line = line.trim();
    let length = line.chars().take_while(|c| *c == mark).count();
    let rest = line[length..].trim();
    (5..=9).contains(&length)
        && match mark {
            '=' => rest.is_empty(),
            '<' => ["SEARCH", "ORIGINAL", "HEAD", "OLD"].contains(&rest.trim_end_matches(':')),
            _ => rest.is_empty() || ["REPLACE", "UPDATED", "NEW"].contains(&rest.trim_end_matches(':')),
        }
}

/// The path of a line `DELETE path`.
fn deleted(line: &str) -> Option<String> {
    let line = line.trim().trim_matches(['`', '*']);
    let rest = line.strip_prefix(DELETE)?.trim_start_matches(':').trim().trim_matches('`');
    looks_like_path(rest).then(|| clean_path(rest))
}

/// The path a line of prose names: one that was asked about, or a line that is a path and nothing else.
fn path_in(line: &str, known: &[&str]) -> Option<String> {
    let decoration =
        |c: char| matches!(c, '#' | '*' | '`' | ':' | '"' | '\'' | '(' | ')' | '[' | ']' | '<' | '>' | ',');
    let words: Vec<&str> = line
        .split_whitespace()
        .map(|word| word.trim_matches(decoration))
        .filter(|word| !word.is_empty())
        .collect();
    let trimmed = |word: &&str| word.trim_end_matches('.').trim_start_matches("./").to_owned();
    if let Some(word) = words.iter().map(trimmed).find(|word| known.contains(&word.as_str())) {
        return Some(word);
    }
    let rest: &[&str] = match words.split_first() {
        Some((first, rest))
            if ["file", "path", "filename", "-"].contains(&first.to_ascii_lowercase().as_str()) =>
        {
            rest
        }
        _ => &words,
    };
    match rest {
        [only] if looks_like_path(only) => Some(clean_path(only)),
        _ => None,
    }
}

/// The path in a comment on the first line of a block, which stays part of the file.
fn commented_path(line: &str, known: &[&str]) -> Option<String> {
    let line = line.trim();
    let comment = ["#", "//", "--", ";", "/*", "<!--"].iter().find_map(|mark| line.strip_prefix(mark))?;
    let word = comment.trim_end_matches("*/").trim_end_matches("-->").trim();
    let word = word.strip_prefix("File:").or_else(|| word.strip_prefix("file:")).unwrap_or(word).trim();
    (known.contains(&word) || (word.contains('/') && looks_like_path(word))).then(|| clean_path(word))
}

/// Whether a word looks like the path of a file: plain characters, and an ending.
fn looks_like_path(word: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+' | '@');
    let name = word.rsplit('/').next().unwrap_or(word);
    let ending = name.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).map(|(_, ending)| ending);
    word.len() <= 200
        && word.chars().all(plain)
        && (ending.is_some_and(|ending| {
            (1..=10).contains(&ending.len()) && ending.chars().any(char::is_alphabetic)
        }) || matches!(name, "Makefile" | "Dockerfile" | "Justfile" | "justfile"))
}

fn clean_path(word: &str) -> String {
    word.trim_start_matches("./").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(path: Option<&str>, language: &str, text: &str) -> Block {
        Block::Whole { path: path.map(Into::into), language: language.into(), text: text.into() }
    }

    #[test]
    fn a_whole_file_is_read_however_its_path_is_written() {
        let file = |path| vec![whole(path, "python", "x = 1\n")];
        for (reply, path) in [
            ("a.py\n```python\nx = 1\n```", Some("a.py")),
            ("### `src/a.py`\n\n```python\nx = 1\n```\nThat is all.", Some("src/a.py")),
            ("**File: src/a.py**\n```python\nx = 1\n```", Some("src/a.py")),
            ("Here is the new a.py:\n```python\nx = 1\n```", Some("a.py")),
            ("```python a.py\nx = 1\n```", Some("a.py")),
            ("```python:./a.py\nx = 1\n```", Some("a.py")),
            ("```python title=\"a.py\"\nx = 1\n```", Some("a.py")),
            ("```python\na.py\nx = 1\n```", Some("a.py")),
            ("Sure!\n```python\nx = 1\n```", None),
            ("```python\nx = 1", None),
            ("~~~python\nx = 1\n~~~", None),
        ] {
            assert_eq!(parse(reply, &["a.py"]), file(path), "{reply}");
        }
        assert_eq!(parse("```a.py\nx = 1\n```", &[]), [whole(Some("a.py"), "", "x = 1\n")]);
        let commented = parse("```js\n// src/b.js\nlet x;\n```", &[]);
        assert_eq!(commented, [whole(Some("src/b.js"), "js", "// src/b.js\nlet x;\n")]);
        assert_eq!(parse("I cannot do that.", &["a.py"]), []);
    }

    #[test]
    fn several_files_and_deletions_are_read_in_order() {
        let reply = "a.py\n```\nx\n```\nand\n`b/c.py`:\n```py\ny\n```\nDELETE old.py\n";
        let blocks = parse(reply, &[]);
        let deleted = Block::Delete { path: "old.py".into() };
        assert_eq!(blocks, [whole(Some("a.py"), "", "x\n"), whole(Some("b/c.py"), "py", "y\n"), deleted]);
    }

    #[test]
    fn markdown_keeps_its_own_fences() {
        let blocks = parse("README.md\n```markdown\n# A\n```sh\nls\n```\nend\n```\n", &[]);
        assert_eq!(blocks, [whole(Some("README.md"), "markdown", "# A\n```sh\nls\n```\nend\n")]);
    }

    #[test]
    fn replacements_are_read_with_and_without_fences() {
        let edit = "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE";
        let block = |path: Option<&str>| Block::Replace {
            path: path.map(Into::into),
            search: "old\n".into(),
            replace: "new\n".into(),
        };
        assert_eq!(parse(&format!("a.py\n```python\n{edit}\n```"), &[]), [block(Some("a.py"))]);
        assert_eq!(parse(&format!("```\na.py\n{edit}\n```"), &[]), [block(Some("a.py"))]);
        assert_eq!(parse(&format!("a.py\n{edit}\n{edit}"), &[]), [block(Some("a.py")), block(Some("a.py"))]);
        assert_eq!(parse(edit, &[]), [block(None)]);
        let unclosed = "```\n<<<<<<< SEARCH\nold\n=======\nnew\n```";
        assert_eq!(parse(unclosed, &[]), [block(None)]);
        assert_eq!(parse("<<<<<<< SEARCH\nold\n", &[]), []);
    }

    #[test]
    fn a_cut_reply_goes_on_where_it_stopped() {
        let cut = "a.py\n```python\ndef f():\n    return 1\n\ndef g():\n    ret";
        for more in [
            "urn 2\n```\n",
            "    return 2\n```\n",
            "```python\n    return 2\n```\n",
            "def g():\n    return 2\n```\n",
        ] {
            let joined = join(cut, more);
            let expected = "def f():\n    return 1\n\ndef g():\n    return 2\n";
            assert_eq!(parse(&joined, &[]), [whole(Some("a.py"), "python", expected)], "{more:?}: {joined}");
        }
    }
}
