//! What a check found, for people and for `--json`.

use gimlet::effect::Verdict;
use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

/// The verdict on a whole command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The text that was judged.
    pub command: String,
    /// The most severe verdict of its parts.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// Its simple commands.
    pub segments: Vec<SegmentReport>,
    /// Whether it takes a shell to run it.
    pub needs_shell: bool,
    /// Program and arguments, when no shell is needed.
    pub argv: Option<Vec<String>>,
    /// Every rule that came to this verdict.
    pub rules: Vec<String>,
}

impl Report {
    /// Whether a rule had a part in the verdict.
    pub fn decided_by(&self, rule: &str) -> bool {
        self.rules.iter().any(|known| known == rule)
    }
}

/// The verdict on one simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentReport {
    /// Program and arguments; what is only known at run time is left out.
    pub argv: Vec<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// The rule that decided it.
    pub rule: String,
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Report", 4)?;
        object.serialize_field("command", &self.command)?;
        object.serialize_field("verdict", self.verdict.word())?;
        object.serialize_field("reason", &self.reason)?;
        object.serialize_field("segments", &self.segments)?;
        object.end()
    }
}

impl Serialize for SegmentReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("SegmentReport", 3)?;
        object.serialize_field("argv", &self.argv)?;
        object.serialize_field("verdict", self.verdict.word())?;
        object.serialize_field("rule", &self.rule)?;
        object.end()
    }
}
