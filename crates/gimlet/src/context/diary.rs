//! What happened, in a bounded form, folded from the same events as the conversation. A summary is made from this and
//! never from another summary, so that nothing drifts however often a conversation is summed up.

use gimlet_text::clip;

/// Most characters kept of what the model said in a step.
const SAID: usize = 600;
/// Most characters kept of a call.
const CALL: usize = 240;
/// Most characters kept of what came of it.
const GOT: usize = 1500;

/// What happened.
#[derive(Debug, Clone, Default)]
pub struct Diary {
    /// What people said, whole.
    pub(crate) words: Vec<Word>,
    entries: Vec<Entry>,
}

/// Something a person said.
#[derive(Debug, Clone)]
pub(crate) struct Word {
    /// Its place in the conversation.
    pub(crate) message: usize,
    pub(crate) text: String,
}

#[derive(Debug, Clone)]
struct Entry {
    step: u32,
    said: String,
    did: Vec<(String, String)>,
}

impl Diary {
    /// The model said something.
    pub(crate) fn say(&mut self, step: u32, text: &str) {
        self.entries.push(Entry { step, said: clip(text.trim(), SAID), did: Vec::new() });
    }

    /// Something it did came to an end.
    pub(crate) fn did(&mut self, what: &str, got: &str) {
        if let Some(entry) = self.entries.last_mut() {
            entry.did.push((clip(what, CALL), clip(got.trim(), GOT)));
        }
    }

    /// What happened, written as fully as `fits` allows: results are shortened first, then words, then the oldest steps
    /// are only counted.
    pub(crate) fn written(&self, fits: impl Fn(usize) -> bool) -> String {
        let mut text = String::new();
        for (said, got) in [(SAID, GOT), (SAID, 600), (300, 300), (300, 120), (120, 60), (80, 0)] {
            text = self.tell(0, said, got);
            if fits(text.len()) {
                return text;
            }
        }
        for from in 1..self.entries.len() {
            text = self.tell(from, 80, 0);
            if fits(text.len()) {
                break;
            }
        }
        text
    }

    fn tell(&self, from: usize, said: usize, got: usize) -> String {
        let mut lines = Vec::new();
        if from > 0 {
            lines.push(format!("({from} earlier steps are left out)"));
        }
        for entry in self.entries.iter().skip(from) {
            lines.push(format!("Step {}: {}", entry.step, clip(&entry.said, said)));
            for (what, result) in &entry.did {
                lines.push(match got {
                    0 => format!("- {what}"),
                    most => format!("- {what} → {}", clip(result, most)),
                });
            }
        }
        lines.join("\n")
    }

    /// A line for each of the last steps, for a summary that no model writes.
    pub(crate) fn gist(&self, most: usize) -> Vec<String> {
        let skip = self.entries.len().saturating_sub(most);
        let line = |entry: &Entry| {
            let said = entry.said.split_whitespace().collect::<Vec<_>>().join(" ");
            let did: Vec<String> = entry.did.iter().map(|(what, _)| clip(what, 80)).collect();
            let parts: Vec<String> =
                [clip(&said, 100), did.join(", ")].into_iter().filter(|part| !part.is_empty()).collect();
            format!("step {}: {}", entry.step, parts.join(" → "))
        };
        self.entries.iter().skip(skip).map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diary_is_as_full_as_fits_and_never_empty_of_the_last_step() {
        let mut diary = Diary::default();
        for step in 1..=40 {
            diary.say(step, &format!("thought {step} {}", "x".repeat(2000)));
            diary.did("look(1)", &"y".repeat(5000));
        }
        let mut sizes: Vec<usize> = Vec::new();
        for most in [200_000, 60_000, 20_000, 6_000, 2_000, 500] {
            let text = diary.written(|size| size <= most);
            assert!(text.len() <= most, "{} > {most}", text.len());
            assert!(text.contains("Step 40: thought 40"), "{most}");
            sizes.push(text.len());
        }
        assert!(sizes.is_sorted_by(|a, b| a >= b));
        assert_eq!(diary.gist(5).len(), 5);
    }
}
