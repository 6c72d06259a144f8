//! Markdown as a terminal shows it, line by line as it is written: wrapped to its width, with bold, lists, tables and
//! coloured code.

use std::sync::OnceLock;

use gimlet::text::Printable;
use termimad::MadSkin;
use termimad::crossterm::style::{Attribute, Color};

use super::syntax::{Language, highlighted};

/// Wider lines than this are hard to read.
const WIDEST: usize = 100;

/// The text as it looks on a terminal of so many columns, without a line end.
pub(crate) fn markdown(text: &str, columns: usize) -> String {
    let mut page = Markdown::default();
    let mut lines: Vec<String> = text.trim().lines().filter_map(|line| page.line(line, columns)).collect();
    lines.extend(page.end(columns));
    lines.join("\n")
}

/// A text that is shown line by line. Blank lines are shown with what follows them, and the lines of a table together.
#[derive(Debug, Default)]
pub(crate) struct Markdown {
    /// The fence that is open: its marks, and the language in it.
    fence: Option<(String, Language)>,
    /// Lines of a table that is not complete.
    table: Vec<String>,
    /// Whether a blank line is to be shown before the next one.
    gap: bool,
    /// Whether anything was shown.
    begun: bool,
}

impl Markdown {
    /// Takes the next line; returns what is to be shown now.
    pub(crate) fn line(&mut self, line: &str, columns: usize) -> Option<String> {
        if let Some((marks, language)) = &self.fence {
            let words = line.trim();
            if words.starts_with(marks.as_str()) && words.chars().all(|c| marks.starts_with(c)) {
                self.fence = None;
                return None;
            }
            let code = match line.trim_end() {
                "" => String::new(),
                code => format!("  {}", highlighted(Printable::block(code).as_str(), *language)),
            };
            return Some(self.after_gap(code));
        }
        if line.trim_start().starts_with('|') {
            self.table.push(line.to_owned());
            return None;
        }
        let table = self.end(columns);
        if line.trim().is_empty() {
            self.gap = self.begun;
            return table;
        }
        let shown = match opening(line.trim_start()) {
            Some(fence) => {
                self.fence = Some(fence);
                None
            }
            None => Some(rendered(line, columns)).map(|text| self.after_gap(text)),
        };
        match (table, shown) {
            (Some(table), Some(shown)) => Some(format!("{table}\n{shown}")),
            (table, shown) => table.or(shown),
        }
    }

    /// What is left to be shown when no line follows.
    pub(crate) fn end(&mut self, columns: usize) -> Option<String> {
        let table = std::mem::take(&mut self.table);
        (!table.is_empty()).then(|| self.after_gap(rendered(&table.join("\n"), columns)))
    }

    /// Whether anything was shown.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    fn after_gap(&mut self, text: String) -> String {
        self.begun = true;
        if std::mem::take(&mut self.gap) { format!("\n{text}") } else { text }
    }
}

/// The marks and the language of a line that opens a fence.
fn opening(line: &str) -> Option<(String, Language)> {
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let marks: String = line.chars().take_while(|c| *c == mark).collect();
    let name = &line[marks.len()..];
    (marks.len() >= 3 && !name.contains('`')).then(|| (marks, Language::named(name)))
}

fn rendered(text: &str, columns: usize) -> String {
    let width = columns.saturating_sub(1).clamp(20, WIDEST);
    let rendered = skin().text(Printable::prose(text).as_str(), Some(width)).to_string();
    rendered.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// No background anywhere: a terminal's own is the only one that surely fits.
fn skin() -> &'static MadSkin {
    static SKIN: OnceLock<MadSkin> = OnceLock::new();
    SKIN.get_or_init(|| {
        let mut skin = MadSkin::no_style();
        skin.bold.add_attr(Attribute::Bold);
        skin.italic.add_attr(Attribute::Italic);
        skin.strikeout.add_attr(Attribute::CrossedOut);
        skin.inline_code.set_fg(Color::Cyan);
        skin.code_block.compound_style.set_fg(Color::Cyan);
        skin.code_block.left_margin = 2;
        for header in &mut skin.headers {
            header.compound_style.add_attr(Attribute::Bold);
            header.align = termimad::Alignment::Left;
        }
        skin
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, columns: usize) -> String {
        anstream::adapter::strip_str(&markdown(text, columns)).to_string()
    }

    #[test]
    fn lines_lists_fences_and_tables() {
        let text = "# Title\n\nOne **two**.\n\n\n- a\n- b\n\n```python\ndef f():\n\n    return 1\n```\nEnd.";
        assert_eq!(plain(text, 80), "Title\n\nOne two.\n\n• a\n• b\n\n  def f():\n\n      return 1\nEnd.");
        let table = plain("| a | b |\n|---|---|\n| 1 | 2 |\n\nafter", 80);
        assert!(table.contains('1') && table.ends_with("\n\nafter"), "{table}");
        assert_eq!(
            plain("````md\n```\nx\n```\n````", 80),
            "  ```\n  x\n  ```",
            "a fence inside a longer one"
        );
    }

    #[test]
    fn long_lines_are_wrapped_and_code_is_not() {
        let words = "word ".repeat(30);
        assert!(plain(&words, 60).lines().all(|line| line.chars().count() < 60));
        let code = format!("```\n{words}\n```");
        assert_eq!(plain(&code, 60).lines().count(), 1);
    }
}
