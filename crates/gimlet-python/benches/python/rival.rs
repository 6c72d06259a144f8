//! Another interpreter, which runs the same programs and says how long it computed.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A process that runs `rival.py`; ends when its input closes.
pub(crate) struct Rival {
    pub(crate) name: String,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    _process: Child,
}

impl Rival {
    /// Starts it; `None` if there is no such program, or it has not what it needs.
    pub(crate) fn start(python: &str, args: &[&str]) -> Option<Rival> {
        let mut process = Command::new(python)
            .args(["-c", include_str!("rival.py")])
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let (input, output) = (process.stdin.take()?, process.stdout.take()?);
        let mut rival =
            Rival { name: String::new(), input, output: BufReader::new(output), _process: process };
        rival.name = rival.line().filter(|name| !name.is_empty())?;
        Some(rival)
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.output.read_line(&mut line).ok()?;
        Some(line.trim().to_owned())
    }

    /// Seconds of processor time that a program takes.
    pub(crate) fn seconds(&mut self, code: &str) -> f64 {
        writeln!(self.input, "{}", serde_json::to_string(code).unwrap()).unwrap();
        self.line().and_then(|line| line.parse().ok()).unwrap_or_else(|| panic!("{} failed", self.name))
    }
}
