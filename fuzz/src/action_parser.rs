//! Any text comes to something, and never to more than it says.

use gimlet::event::ActionFormat;
use gimlet::parse::{Intent, parse};

const KNOWN: [&str; 3] = ["read_file", "list_files", "write_file"];

/// Parses a reply in both action formats.
pub fn run(data: &[u8]) -> &'static str {
    let Ok(text) = std::str::from_utf8(data) else { return "not text" };
    let mut met = "answer";
    for format in [ActionFormat::Tools, ActionFormat::Code] {
        let parsed = parse(text, format, &KNOWN);
        assert!(parsed.content.len() <= text.len(), "content grew");
        assert!(parsed.prose.len() <= parsed.content.len(), "prose grew");
        met = match parsed.intent {
            Intent::Calls(calls) => {
                assert!(!calls.is_empty(), "no calls");
                "calls"
            }
            Intent::Code(code) => {
                assert!(format == ActionFormat::Code, "code where tools are called");
                assert!(!code.trim().is_empty(), "no code");
                "code"
            }
            Intent::Malformed(problem) => {
                assert!(!problem.is_empty(), "no problem");
                "malformed"
            }
            Intent::Answer(_) => "answer",
            Intent::Empty => {
                assert!(parsed.content.is_empty(), "something was said");
                "empty"
            }
        };
    }
    met
}
