//! Single keys from the terminal: without waiting for Enter and without echo, while Ctrl-C stays a signal and output
//! stays as it is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};
use termimad::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;

/// How the terminal was before this program touched it, for the ways out that drop nothing.
static BEFORE: OnceLock<Termios> = OnceLock::new();

/// How often the listening thread looks whether it is still wanted.
const GLANCE: Duration = Duration::from_millis(50);

/// A key that means something to a running task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    Backspace,
    /// Throw away what was typed.
    Clear,
    /// Shift-Tab: another approval mode.
    Mode,
    /// Ctrl-C that was pressed when the terminal did not make a signal of it.
    Interrupt,
}

/// A terminal in another mode, for as long as this lives.
pub(crate) struct Mode {
    /// How it was.
    before: Termios,
}

impl Mode {
    /// Nothing that is typed shows up between the lines of a run. None where standard input is no terminal.
    pub(crate) fn silent() -> Option<Mode> {
        Mode::without(LocalModes::ECHO)
    }

    /// As the terminal was before this program touched it, for another program. None where there is no terminal.
    pub(crate) fn as_before() -> Option<Mode> {
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin).ok()?;
        tcsetattr(&stdin, OptionalActions::Now, BEFORE.get()?).ok()?;
        Some(Mode { before })
    }

    fn without(modes: LocalModes) -> Option<Mode> {
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin).ok()?;
        let _ = BEFORE.set(before.clone());
        let mut changed = before.clone();
        changed.local_modes.remove(modes);
        tcsetattr(&stdin, OptionalActions::Now, &changed).ok()?;
        Some(Mode { before })
    }
}

impl Drop for Mode {
    fn drop(&mut self) {
        // A terminal that went away needs nothing.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Keys as they are pressed, for as long as this lives; then the terminal is as it was.
pub(crate) struct Keys {
    pressed: mpsc::UnboundedReceiver<Key>,
    /// Tells the thread to end; it is joined when this is dropped.
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _mode: Mode,
}

impl Keys {
    /// Begins to listen. None where standard input is no terminal.
    pub(crate) fn listen() -> Option<Keys> {
        let mode = Mode::without(LocalModes::ICANON | LocalModes::ECHO)?;
        let (send, pressed) = mpsc::unbounded_channel();
        let end = Arc::new(AtomicBool::new(false));
        let ended = end.clone();
        let thread = std::thread::Builder::new().name("keys".into()).spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                match event::poll(GLANCE) {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(_) => return,
                }
                for key in event::read().ok().into_iter().flat_map(meaning) {
                    if send.send(key).is_err() {
                        return;
                    }
                }
            }
        });
        Some(Keys { pressed, end, thread: thread.ok(), _mode: mode })
    }

    /// The next key. Never ends by itself.
    pub(crate) async fn next(&mut self) -> Key {
        match self.pressed.recv().await {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to end.
            let _ = thread.join();
        }
    }
}

/// Throws away what was typed and not read yet, so that it cannot answer a question that nobody has seen.
pub(crate) fn discard_pending() {
    // Where standard input is no terminal, nothing was typed.
    let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
}

/// Sets the terminal back to how it was. For the ways out of the program that drop nothing.
pub(crate) fn restore() {
    if let Some(before) = BEFORE.get() {
        // A terminal that went away needs nothing.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
    }
}

fn meaning(event: Event) -> Vec<Key> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => {
            let plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
            match key.code {
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => vec![Key::Interrupt],
                KeyCode::Char('u') if key.modifiers.contains(KeyModifiers::CONTROL) => vec![Key::Clear],
                KeyCode::Char('j') if key.modifiers.contains(KeyModifiers::CONTROL) => vec![Key::Enter],
                KeyCode::Char(c) if plain => vec![Key::Char(c)],
                KeyCode::BackTab => vec![Key::Mode],
                KeyCode::Enter => vec![Key::Enter],
                KeyCode::Backspace => vec![Key::Backspace],
                KeyCode::Esc => vec![Key::Clear],
                _ => Vec::new(),
            }
        }
        Event::Paste(text) => {
            text.chars().map(|c| if c == '\n' { Key::Enter } else { Key::Char(c) }).collect()
        }
        _ => Vec::new(),
    }
}
