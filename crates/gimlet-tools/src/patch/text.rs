//! A text as lines that remember how they ended, so that whatever a patch leaves alone keeps every byte.

/// A line without its ending, and the ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) ending: Ending,
}

/// How a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// `\n`.
    Lf,
    /// `\r\n`.
    CrLf,
    /// Not at all: the last line of a file without a final newline.
    Missing,
}

impl Ending {
    fn as_str(self) -> &'static str {
        match self {
            Ending::Lf => "\n",
            Ending::CrLf => "\r\n",
            Ending::Missing => "",
        }
    }
}

/// Takes a text apart. Joining gives it back byte by byte.
pub(crate) fn split(text: &str) -> Vec<Line> {
    text.split_inclusive('\n')
        .map(|line| {
            let (text, ending) = match line.strip_suffix('\n') {
                Some(line) => match line.strip_suffix('\r') {
                    Some(line) => (line, Ending::CrLf),
                    None => (line, Ending::Lf),
                },
                None => (line, Ending::Missing),
            };
            Line { text: text.into(), ending }
        })
        .collect()
}

/// Puts lines together.
pub(crate) fn join(lines: &[Line]) -> String {
    lines.iter().flat_map(|line| [line.text.as_str(), line.ending.as_str()]).collect()
}

/// The ending most lines have; `\n` for a text without one.
pub(crate) fn usual_ending(lines: &[Line]) -> Ending {
    let count = |ending| lines.iter().filter(|line| line.ending == ending).count();
    if count(Ending::CrLf) > count(Ending::Lf) { Ending::CrLf } else { Ending::Lf }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn endings_are_told_apart() {
        let lines = split("a\r\nb\nc\rd");
        assert_eq!(
            lines.iter().map(|l| l.ending).collect::<Vec<_>>(),
            [Ending::CrLf, Ending::Lf, Ending::Missing]
        );
        assert_eq!(lines[2].text, "c\rd");
        assert_eq!(usual_ending(&split("a\r\nb\r\nc\n")), Ending::CrLf);
        assert_eq!(usual_ending(&[]), Ending::Lf);
    }

    proptest! {
        #[test]
        fn joining_undoes_splitting(text in "[ab\r\n]{0,40}") {
            prop_assert_eq!(join(&split(&text)), text);
        }
    }
}
