//! What is to be done with a suite.

use std::path::PathBuf;

use gimlet_runtime::options::{Action, Choice};

/// What is asked of an evaluation.
#[derive(Debug, Clone)]
pub struct EvalOptions {
    /// The suite: a folder with a suite.toml, or such a file.
    pub suite: PathBuf,
    /// The models to try; none stands for the one a run would use.
    pub models: Vec<String>,
    /// How they are to act.
    pub actions: Vec<Action>,
    /// How often each task is tried.
    pub repeat: u32,
    /// Which part of the suite.
    pub split: SplitChoice,
    /// Patterns of the ids of tasks.
    pub tasks: Vec<String>,
    /// Where results are kept.
    pub out: Option<PathBuf>,
    /// How the models write.
    pub writing: Writing,
    /// Time limit of one task in seconds, where the suite allows it more.
    pub timeout: Option<f64>,
    /// How the report is printed.
    pub format: Format,
    /// What is done.
    pub mode: EvalMode,
}

/// How a report is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table.
    Table,
    /// JSON.
    Json,
    /// Markdown, with a line for each task.
    Markdown,
}

/// How the models write.
#[derive(Debug, Clone)]
pub struct Writing {
    /// Address of the model server.
    pub api_base: Option<String>,
    /// Randomness of the replies.
    pub temperature: Option<f32>,
    /// Maximum tokens of one reply.
    pub max_tokens: Option<u32>,
}

/// What is to be done with a suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvalMode {
    /// Models are tried.
    Try,
    /// The suite itself is checked.
    Check,
    /// The tasks are laid out for another program.
    Prepare(PathBuf),
    /// What another program did is graded.
    Grade(PathBuf),
    /// What is in files of results is reported.
    Report(Vec<PathBuf>),
}

/// Which part of a suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitChoice {
    /// The tasks to learn from.
    Tuning,
    /// The tasks to be measured by.
    HeldOut,
    /// Both.
    All,
}

impl Choice for SplitChoice {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Tuning, "tuning", "The tasks to learn from"),
        (Self::HeldOut, "held-out", "The tasks to be measured by"),
        (Self::All, "all", "Both"),
    ];
}

/// How an evaluation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// Everything was done.
    Done,
    /// A suite was checked and something is wrong with it.
    Faulty,
    /// It was stopped.
    Interrupted,
}
