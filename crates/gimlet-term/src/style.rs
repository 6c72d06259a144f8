//! The few styles used on a terminal. `anstream` drops them in pipes and under `NO_COLOR`.

use anstyle::{AnsiColor, Style};

/// Something went wrong.
pub const ERROR: Style = AnsiColor::Red.on_default().bold();
/// Something to look at.
pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// Something went well.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// A name.
pub const NAME: Style = AnsiColor::Cyan.on_default().bold();
/// What matters less.
pub const DIM: Style = Style::new().dimmed();
/// A heading.
pub const BOLD: Style = Style::new().bold();
