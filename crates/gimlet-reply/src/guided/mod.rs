//! The `guided` action format: the program leads and the model answers small questions.
//!
//! Phases: aim → locate → show → edit → check → repair → tell. Everything here is pure; what needs the project is
//! behind [`Guide`], and every effect (writing files, running the check) is a call through the toolbox, made by the
//! loop's driver.

pub mod apply;
pub mod ask;
pub mod ladder;
pub mod reply;
pub mod show;
mod state;
pub mod tell;

pub use gimlet_event::guided as record;
pub use gimlet_event::guided::{
    Aim, Aimed, Candidate, CheckOutcome, Checked, DecidedBy, EditOutcome, Edited, FileEdit, Found, Located,
};
pub use state::{Attempt, Guided, HeardReply, LastReply, Stage, Way};

/// Name of the tool through which the driver writes the files of an edit.
pub const WRITE_TOOL: &str = "write_files";
/// Name of the tool through which the driver runs the check.
pub const CHECK_TOOL: &str = "run_tests";

/// How many times a failed edit is repaired, if nobody says otherwise.
pub const REPAIR_ROUNDS: u32 = 3;

/// What guided work needs to know about the project. Implemented by the product; calls may block for a short time and
/// change nothing.
pub trait Guide: Send + Sync {
    /// Files a task is about, the test that judges it, and the command that checks it.
    fn locate(&self, task: &str) -> Found;

    /// Test files and the check command for these files, where [`Guide::locate`] named none.
    fn tests_for(&self, task: &str, files: &[String]) -> (Vec<String>, Option<String>);

    /// The text of a file; `Ok(None)` if there is no such file, an error in words if it may not or cannot be read.
    fn read(&self, path: &str) -> Result<Option<String>, String>;

    /// The first syntax error of a text, in words with its line, if there is one and the language is known.
    fn syntax_problem(&self, path: &str, text: &str) -> Option<String>;

    /// What a check's output says, cut to what helps to repair the code.
    fn reduce(&self, command: &str, output: &str, most_chars: usize) -> Reduced;

    /// What the project tells agents, shown before the files; empty if it tells nothing.
    fn notes(&self) -> String {
        String::new()
    }
}

/// A check's output, reduced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reduced {
    /// The part that helps: the first failure, its assertion, the frames inside the project.
    pub text: String,
    /// Tests that passed, if the output tells.
    pub passed: Option<u32>,
    /// Tests that failed, if the output tells.
    pub failed: Option<u32>,
}
