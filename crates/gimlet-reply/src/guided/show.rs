//! How files are shown to the model: whole where they fit the budget, else the lines around the words of the task.

/// Longest file that is asked for as a whole; of a longer one a model forgets lines, and the reply costs too much.
const WHOLE_LINES: usize = 150;
/// The same in bytes.
const WHOLE_BYTES: usize = 8000;
/// Lines around a line that holds a word of the task.
const AROUND: usize = 12;
/// Lines of the beginning that are always shown: imports and definitions.
const BEGINNING: usize = 20;
/// What stands for lines that are left out.
pub const GAP: &str = "[lines left out]";

/// How the model writes its edit of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditForm {
    /// All lines of the file.
    Whole,
    /// SEARCH/REPLACE blocks.
    Blocks,
}

/// How an edit of this text is asked for.
pub fn form(text: &str) -> EditForm {
    if text.lines().count() <= WHOLE_LINES && text.len() <= WHOLE_BYTES {
        EditForm::Whole
    } else {
        EditForm::Blocks
    }
}

/// A text within a budget of bytes.
pub fn within(text: &str, task: &str, budget: usize) -> String {
    if text.len() <= budget {
        return text.to_owned();
    }
    let lines: Vec<&str> = text.lines().collect();
    let words: Vec<String> = task
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| word.chars().count() >= 4)
        .map(str::to_lowercase)
        .collect();
    let mut shown = vec![false; lines.len()];
    let mut left = budget;
    let mut show = |range: std::ops::Range<usize>, shown: &mut Vec<bool>| {
        for at in range {
            let cost = lines[at].len() + 1;
            if !shown[at] && cost <= left {
                left -= cost;
                shown[at] = true;
            }
        }
    };
    show(0..BEGINNING.min(lines.len()), &mut shown);
    let mut ranked: Vec<(usize, usize)> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| {
            let line = line.to_lowercase();
            (words.iter().filter(|word| line.contains(word.as_str())).count(), at)
        })
        .filter(|(hits, _)| *hits > 0)
        .collect();
    ranked.sort_by_key(|(hits, at)| (std::cmp::Reverse(*hits), *at));
    for (_, at) in ranked {
        show(at.saturating_sub(AROUND)..(at + AROUND + 1).min(lines.len()), &mut shown);
    }
    show(0..lines.len(), &mut shown);
    joined(&lines, &shown)
}

fn joined(lines: &[&str], shown: &[bool]) -> String {
    let mut text = String::new();
    let mut in_gap = false;
    for (line, shown) in lines.iter().zip(shown) {
        if *shown {
            text.push_str(line);
            text.push('\n');
        } else if !in_gap {
            text.push_str(GAP);
            text.push('\n');
        }
        in_gap = !*shown;
    }
    text
}

/// A file as the model reads it: its path, and its text in a fence that the text cannot close.
pub fn fenced(path: &str, text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{path}\n{fence}{}\n{text}{gap}{fence}", language(path))
}

/// The language tag for a path.
pub fn language(path: &str) -> &str {
    match path.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "py" | "pyi" => "python",
        "rs" => "rust",
        "js" | "mjs" | "cjs" | "jsx" => "javascript",
        "ts" | "tsx" => "typescript",
        "rb" => "ruby",
        "md" => "markdown",
        "sh" => "bash",
        "h" | "c" => "c",
        "cc" | "cpp" | "cxx" | "hpp" => "cpp",
        ending @ ("go" | "java" | "toml" | "json" | "yaml" | "html" | "css" | "sql") => ending,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_to_what_the_task_is_about() {
        let text: String = (0..400)
            .map(|n| if n == 300 { "def parse_port():\n".into() } else { format!("line {n}\n") })
            .collect();
        let cut = within(&text, "fix parse_port", 700);
        assert!(cut.len() <= 700 + 3 * (GAP.len() + 1), "{}", cut.len());
        assert!(
            cut.starts_with("line 0\n") && cut.contains("line 299\ndef parse_port():\nline 301\n"),
            "{cut}"
        );
        assert!(cut.contains(GAP) && within("short\n", "x", 100) == "short\n");
    }

    #[test]
    fn a_fence_is_longer_than_those_inside() {
        assert_eq!(fenced("a.py", "x"), "a.py\n```python\nx\n```");
        assert_eq!(fenced("a.md", "```\nx\n```\n"), "a.md\n````markdown\n```\nx\n```\n````");
    }
}
