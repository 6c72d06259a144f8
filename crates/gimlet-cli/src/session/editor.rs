//! The line that is typed into: history, several lines, completion.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reedline::{
    Color, ColumnarMenu, EditCommand, Emacs, FileBackedHistory, Highlighter, KeyCode, KeyModifiers,
    MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch, Reedline, ReedlineEvent, ReedlineMenu, Signal,
    StyledText, ValidationResult, Validator, Vi, default_emacs_keybindings, default_vi_insert_keybindings,
    default_vi_normal_keybindings, default_vi_visual_keybindings,
};

use gimlet_runtime::options::{ApproveMode, Choice};
use gimlet_runtime::parts::tools::Root;

use super::complete::{Customs, Models, Words};
use crate::app;

/// Lines that are remembered.
const HISTORY: usize = 2000;
const MENU: &str = "completions";
/// What the key for another mode is called between the line editor and its reader.
const MODE: &str = "mode";

/// What came of asking for a line.
pub(super) enum Entered {
    Line(String),
    /// Ctrl-C that threw away what was typed.
    Cleared,
    /// Ctrl-C with nothing typed.
    Interrupted,
    /// Shift-Tab: another approval mode. What was typed stays on the line.
    Mode,
    /// Ctrl-D, or the terminal went away.
    End,
}

/// The line editor. It lives as long as the session.
pub(super) struct Editor {
    /// Taken while a line is read, on a thread that may wait.
    line: Option<Reedline>,
    /// Whether something was typed on the line at hand.
    typed: Arc<AtomicBool>,
}

impl Editor {
    /// An editor that completes files of this folder, these models and these commands.
    pub(super) fn new(root: Root, models: Models, customs: Customs, vi: bool) -> Self {
        let colour = crate::out::is_coloured();
        let mut keys = if vi { default_vi_insert_keybindings() } else { default_emacs_keybindings() };
        let complete =
            ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.into()), ReedlineEvent::MenuNext]);
        keys.add_binding(KeyModifiers::NONE, KeyCode::Tab, complete);
        for modifier in [KeyModifiers::NONE, KeyModifiers::SHIFT] {
            keys.add_binding(modifier, KeyCode::BackTab, ReedlineEvent::ExecuteHostCommand(MODE.into()));
        }
        for modifier in [KeyModifiers::ALT, KeyModifiers::SHIFT] {
            let new_line = ReedlineEvent::Edit(vec![EditCommand::InsertNewline]);
            keys.add_binding(modifier, KeyCode::Enter, new_line);
        }
        let menu = ColumnarMenu::default().with_name(MENU).with_marker(ARROW);
        let typed = Arc::new(AtomicBool::new(false));
        let mut line = Reedline::create()
            .with_completer(Box::new(Words { root, models, customs }))
            .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
            .with_quick_completions(true)
            .with_edit_mode(match vi {
                true => {
                    Box::new(Vi::new(keys, default_vi_normal_keybindings(), default_vi_visual_keybindings()))
                }
                false => Box::new(Emacs::new(keys)),
            })
            .with_highlighter(Box::new(Marks { typed: typed.clone() }))
            .with_validator(Box::new(Continued))
            .with_history_exclusion_prefix(Some(" ".into()))
            .with_ansi_colors(colour)
            .use_bracketed_paste(true);
        if let Some(history) = history() {
            line = line.with_history(Box::new(history));
        }
        Editor { line: Some(line), typed }
    }

    /// Asks for a line in an approval mode; `begun` is typed already.
    pub(super) async fn read(&mut self, begun: &str, mode: ApproveMode) -> anyhow::Result<Entered> {
        let Some(mut line) = self.line.take() else { return Ok(Entered::End) };
        if !begun.is_empty() {
            line.run_edit_commands(&[EditCommand::InsertString(begun.to_owned())]);
        }
        self.typed.store(false, Ordering::Relaxed);
        let read = tokio::task::spawn_blocking(move || {
            let signal = line.read_line(&Arrow(mode));
            // A history that cannot be written costs no task.
            let _ = line.sync_history();
            (line, signal)
        });
        let (line, signal) = read.await?;
        self.line = Some(line);
        Ok(match signal? {
            Signal::Success(text) => Entered::Line(joined(&text)),
            Signal::CtrlC if self.typed.load(Ordering::Relaxed) => Entered::Cleared,
            Signal::CtrlC => Entered::Interrupted,
            Signal::CtrlD => Entered::End,
            Signal::HostCommand(word) if word == MODE => Entered::Mode,
            Signal::HostCommand(_) | Signal::ExternalBreak(_) => Entered::Line(String::new()),
            _ => Entered::Line(String::new()),
        })
    }
}

/// What was typed before, in a file of the user's own. None where it cannot be kept.
fn history() -> Option<FileBackedHistory> {
    let path = app::process().ok()?.home()?.path().join("history.txt");
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&path).ok()?;
    FileBackedHistory::with_file(HISTORY, path).ok()
}

/// A backslash at the end of a line asks for another one.
struct Continued;

impl Validator for Continued {
    fn validate(&self, line: &str) -> ValidationResult {
        if line.ends_with('\\') { ValidationResult::Incomplete } else { ValidationResult::Complete }
    }
}

fn joined(text: &str) -> String {
    text.replace("\\\n", "\n")
}

/// Names commands and files by colour, and sees whether anything is typed at all.
struct Marks {
    typed: Arc<AtomicBool>,
}

impl Highlighter for Marks {
    fn highlight(&self, line: &str, _cursor: usize) -> StyledText {
        self.typed.fetch_or(!line.is_empty(), Ordering::Relaxed);
        let mut styled = StyledText::new();
        for (at, word) in line.split_inclusive(char::is_whitespace).enumerate() {
            let named = word.starts_with('@') || (at == 0 && word.starts_with('/'));
            styled.push((if named { Color::Cyan.normal() } else { Default::default() }, word.to_owned()));
        }
        styled
    }
}

const ARROW: &str = "› ";

/// The prompt: the approval mode, where it is not the usual one, and an arrow.
struct Arrow(ApproveMode);

impl Prompt for Arrow {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        match self.0 {
            ApproveMode::Ask => "".into(),
            mode => format!("{} ", mode.name()).into(),
        }
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        ARROW.into()
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        "  ".into()
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        format!("(search: {}) ", search.term).into()
    }
}
