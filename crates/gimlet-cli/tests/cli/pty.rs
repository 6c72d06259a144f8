//! The binary on a pseudo-terminal: typed at like a person does, read as a terminal shows it.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::support::Project;

/// How long something may take to appear before the test gives up. Nothing waits that long that works.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the terminal is like.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    pub(crate) columns: u16,
    pub(crate) colour: bool,
}

impl Default for Look {
    fn default() -> Self {
        Look { columns: 100, colour: false }
    }
}

/// A program on a terminal.
pub(crate) struct Pty {
    child: Box<dyn Child + Send + Sync>,
    writer: Arc<Mutex<Box<dyn Write + Send>>>,
    screen: Arc<Mutex<vt100::Parser>>,
    /// Every byte that the program wrote.
    written: Arc<Mutex<Vec<u8>>>,
    /// Keeps the terminal open.
    _master: Box<dyn MasterPty + Send>,
}

impl Pty {
    /// Starts the binary in a project.
    pub(crate) fn start(project: &Project, args: &[&str], look: Look) -> Self {
        Pty::start_with(project, args, look, &[])
    }

    /// The same with variables of its own.
    pub(crate) fn start_with(
        project: &Project,
        args: &[&str],
        look: Look,
        variables: &[(&str, &str)],
    ) -> Self {
        let size = PtySize { rows: 60, cols: look.columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(assert_cmd::cargo::cargo_bin!("gimlet"));
        command.args(args);
        command.cwd(project.repo.path());
        command.env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("GIMLET_HOME", project.home.path());
        command.env("TERM", "xterm-256color");
        for (name, value) in variables {
            command.env(name, value);
        }
        if !look.colour {
            command.env("NO_COLOR", "1");
        }
        let child = pair.slave.spawn_command(command).unwrap();
        let writer = Arc::new(Mutex::new(pair.master.take_writer().unwrap()));
        let screen = Arc::new(Mutex::new(vt100::Parser::new(
            size.rows.try_into().unwrap(),
            size.cols.try_into().unwrap(),
            0,
        )));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let written = Arc::new(Mutex::new(Vec::new()));
        let (shown, answers, all) = (screen.clone(), writer.clone(), written.clone());
        // Ends when the program has closed its side.
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                all.lock().unwrap().extend_from_slice(&bytes[..count]);
                let position = {
                    let mut screen = shown.lock().unwrap();
                    screen.process(&bytes[..count]);
                    screen.screen().cursor_position()
                };
                // A terminal is asked where its cursor is, and must say so.
                if bytes[..count].windows(4).any(|ask| ask == b"\x1b[6n") {
                    let (row, column) = position;
                    let _ = write!(answers.lock().unwrap(), "\x1b[{};{}R", row + 1, column + 1);
                }
            }
        });
        Pty { child, writer, screen, written, _master: pair.master }
    }

    /// Presses keys.
    pub(crate) fn press(&self, keys: &str) {
        let mut writer = self.writer.lock().unwrap();
        writer.write_all(keys.as_bytes()).unwrap();
        writer.flush().unwrap();
    }

    /// Types a line at the prompt.
    pub(crate) fn enter(&self, line: &str) {
        self.press(line);
        self.wait_for(line.rsplit('\n').next().unwrap());
        self.press("\r");
    }

    /// Everything that the program wrote, as it wrote it.
    pub(crate) fn written(&self) -> String {
        String::from_utf8_lossy(&self.written.lock().unwrap()).into_owned()
    }

    /// Where the cursor is: its row and its column.
    pub(crate) fn cursor(&self) -> (u16, u16) {
        self.screen.lock().unwrap().screen().cursor_position()
    }

    /// What the terminal shows.
    pub(crate) fn shown(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// What the terminal shows, with its colours, which are written so that people can read them.
    pub(crate) fn shown_in_colour(&self) -> String {
        let screen = self.screen.lock().unwrap();
        let (_, columns) = screen.screen().size();
        let rows: Vec<String> =
            screen.screen().rows_formatted(0, columns.get()).map(|row| row.replace('\u{1b}', "⎋")).collect();
        rows.join("\n").trim_end().to_owned()
    }

    /// Waits until the terminal shows a text.
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_until(text, |shown| shown.contains(text));
    }

    /// Waits until the terminal shows something.
    pub(crate) fn wait_until(&self, what: &str, there: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        loop {
            let shown = self.shown();
            if there(&shown) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "waited in vain for {what:?}:\n{shown}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the prompt is there and nothing is on it.
    pub(crate) fn wait_for_prompt(&self) {
        self.wait_until("a prompt", |shown| shown.trim_end().ends_with('›'));
    }

    /// Waits for the end of the program; returns its exit code.
    pub(crate) fn end(&mut self) -> u32 {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.exit_code();
            }
            assert!(begun.elapsed() < PATIENCE, "it does not end:\n{}", self.shown());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // It is gone already when the test went well.
        let _ = self.child.kill();
    }
}
