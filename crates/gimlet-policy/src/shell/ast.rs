//! A shell command as this crate understands it: segments with resolved words, and what lies between them.

use std::ops::Range;

/// How sure the text of a word is. The order is doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// Exactly this text, whatever runs it.
    Literal,
    /// This text once a shell has expanded it.
    Resolved,
    /// A pattern that a shell matches against files.
    Glob,
    /// A pattern that a program such as `find` or `git` matches itself; its `*` also finds dot-files and crosses folders.
    Match,
    /// The value of a variable that holds no secret, such as `$PATH`, or of a loop over known words.
    Variable,
    /// Part of it is only known when it runs; that part is empty in the text.
    Unknown,
}

/// Where the unknown part of a word comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// From here.
    Local,
    /// From a download or a decoder.
    Foreign,
}

/// One word of a command, freed from quotes and escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The best reading; unknown parts are left out.
    pub text: String,
    /// How sure the reading is.
    pub certainty: Certainty,
    /// Where an unknown part comes from.
    pub origin: Origin,
}

impl Word {
    /// A word that is exactly this text.
    pub fn literal(text: impl Into<String>) -> Self {
        Word { text: text.into(), certainty: Certainty::Literal, origin: Origin::Local }
    }

    /// A word nothing is known about.
    pub fn unknown() -> Self {
        Word { text: String::new(), certainty: Certainty::Unknown, origin: Origin::Local }
    }

    /// Whether the text is all there is to it.
    pub fn is_known(&self) -> bool {
        self.certainty <= Certainty::Resolved
    }

    /// The same doubt about another text, for a part of this word.
    pub(crate) fn part(&self, text: &str) -> Word {
        Word { text: text.to_owned(), ..self.clone() }
    }
}

/// `NAME=value` before a command or alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// Its value.
    pub value: Word,
}

/// What a redirection does with its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// `<`
    Read,
    /// `>`, `>>`, `>|`, `&>`, `<>`
    Write,
    /// `<<<`: the target is the text itself.
    Text,
    /// `2>&1`, `>&-`: no file is opened.
    Duplicate,
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// What is done.
    pub direction: Direction,
    /// The file, text or descriptor.
    pub target: Word,
}

/// Which way a substitution is connected to its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// `$(…)`, backticks or `<(…)`: the command reads what it prints.
    Feeds,
    /// `>(…)`: it reads what the command prints.
    Drains,
}

/// A script inside a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Substitution {
    /// Which way it is connected.
    pub channel: Channel,
    /// What it runs.
    pub script: Script,
}

/// One simple command with all that belongs to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segment {
    /// Variables set for it.
    pub assignments: Vec<Assignment>,
    /// The program and its arguments.
    pub argv: Vec<Word>,
    /// Files it is connected to.
    pub redirections: Vec<Redirection>,
    /// Bodies of its here-documents.
    pub heredocs: Vec<String>,
    /// Scripts inside its words.
    pub substitutions: Vec<Substitution>,
}

impl Segment {
    pub(crate) fn is_empty(&self) -> bool {
        self.assignments.is_empty()
            && self.argv.is_empty()
            && self.redirections.is_empty()
            && self.heredocs.is_empty()
            && self.substitutions.is_empty()
    }
}

/// Stages connected by pipes; each stage is a run of segments, because a stage may be a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    /// Indexes into the script's segments.
    pub stages: Vec<Range<usize>>,
}

/// A function defined by the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The segments of its body.
    pub body: Range<usize>,
}

/// A parsed command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// All simple commands, in the order of the text.
    pub segments: Vec<Segment>,
    /// How they are piped.
    pub pipelines: Vec<Pipeline>,
    /// Functions.
    pub functions: Vec<Function>,
    /// Constructs outside the plain subset: loops, groups, errors. Any of them means that a person should look.
    pub opaque: Vec<String>,
}
