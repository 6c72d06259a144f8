//! The few styles used on a terminal. `anstream` drops them in pipes and under `NO_COLOR`.

use anstyle::{AnsiColor, Style};

/// Something went wrong.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// Something to look at.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// Something went well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// A name.
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default().bold();
/// What matters less.
pub(crate) const DIM: Style = Style::new().dimmed();
/// A heading.
pub(crate) const BOLD: Style = Style::new().bold();
