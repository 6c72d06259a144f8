//! How a worker died, in words for the model.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use gimlet::cell::CellEnd;

use crate::limits::Limits;

/// What the interpreter, the container's first process or the jail's helper say last when there is no memory left.
const MEMORY: &[&str] = &["memory allocation of", "capacity overflow", "MB of memory"];
/// What the jail's helper says last of a worker that has used up its processor time.
const PROCESSOR: &str = "s of processor time";

/// What is known of a worker's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Death {
    /// It asked for more memory than it may have.
    Memory,
    /// It used up its processor time.
    Processor,
    /// Its own stack was too deep.
    Stack,
    /// Anything else; the text is what it said last.
    Other(String),
}

impl Death {
    pub(crate) fn new(status: Option<ExitStatus>, words: &str) -> Self {
        if MEMORY.iter().any(|said| words.contains(said)) {
            return Death::Memory;
        }
        if words.contains("overflowed its stack") {
            return Death::Stack;
        }
        let signal = status.and_then(|status| status.signal());
        if signal == Some(libc::SIGXCPU) || words.contains(PROCESSOR) {
            return Death::Processor;
        }
        let last = words.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("note:"));
        let last: Vec<&str> = last.collect();
        let said = last[last.len().saturating_sub(2)..].join("; ");
        Death::Other(match (said.is_empty(), status) {
            (false, _) => said,
            (true, Some(status)) => status.to_string(),
            (true, None) => "it is gone".into(),
        })
    }

    pub(crate) fn words(&self) -> &str {
        match self {
            Death::Memory => "it ran out of memory",
            Death::Processor => "it used up its processor time",
            Death::Stack => "its stack overflowed",
            Death::Other(said) => said,
        }
    }

    /// The end of the cell it died in.
    pub(crate) fn end(&self, limits: &Limits) -> CellEnd {
        match self {
            Death::Memory => CellEnd::Limited {
                message: format!("MemoryError: the code needed more than {} MB", limits.memory >> 20),
            },
            Death::Processor => {
                CellEnd::Limited { message: "TimeoutError: the session used up its processor time".into() }
            }
            Death::Stack => CellEnd::Crashed {
                message: "RecursionError: the interpreter's stack overflowed; nest less deeply".into(),
            },
            Death::Other(said) => {
                CellEnd::Crashed { message: format!("the Python interpreter crashed: {said}") }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_tell_the_kind() {
        let death = |words: &str| Death::new(None, words);
        assert_eq!(death("memory allocation of 800000000 bytes failed"), Death::Memory);
        assert_eq!(death("thread 'python' has overflowed its stack\nfatal runtime error"), Death::Stack);
        assert_eq!(
            death("thread 'python' panicked at x.rs:1:1:\noh no\nnote: run with `RUST_BACKTRACE=1`"),
            Death::Other("thread 'python' panicked at x.rs:1:1:; oh no".into())
        );
        assert_eq!(death("gimlet jail: killed: it used more than 512 MB of memory\n"), Death::Memory);
        assert_eq!(
            death("gimlet jail: killed: it used more than 60 s of processor time\n"),
            Death::Processor
        );
        assert_eq!(death(""), Death::Other("it is gone".into()));
    }
}
