//! Markdown as a terminal shows it: wrapped to its width, with bold, lists, tables and code set apart.

use std::sync::OnceLock;

use gimlet::text::Printable;
use termimad::MadSkin;
use termimad::crossterm::style::{Attribute, Color};

/// Wider lines than this are hard to read.
const WIDEST: usize = 100;

/// The text as it looks on a terminal of so many columns, without a line end.
pub(crate) fn markdown(text: &str, columns: usize) -> String {
    let width = columns.saturating_sub(1).clamp(20, WIDEST);
    let rendered = skin().text(Printable::prose(text.trim()).as_str(), Some(width)).to_string();
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
