//! Any text comes to something, and never to more than it says.
#![no_main]

use gimlet::event::ActionFormat;
use gimlet::parse::{Intent, parse};
use libfuzzer_sys::fuzz_target;

const KNOWN: [&str; 3] = ["read_file", "list_files", "write_file"];

fuzz_target!(|text: &str| {
    for format in [ActionFormat::Tools, ActionFormat::Code] {
        let parsed = parse(text, format, &KNOWN);
        assert!(parsed.content.len() <= text.len(), "content grew");
        assert!(parsed.prose.len() <= parsed.content.len(), "prose grew");
        match parsed.intent {
            Intent::Calls(calls) => assert!(!calls.is_empty(), "no calls"),
            Intent::Code(code) => {
                assert!(format == ActionFormat::Code, "code where tools are called");
                assert!(!code.trim().is_empty(), "no code");
            }
            Intent::Malformed(problem) => assert!(!problem.is_empty(), "no problem"),
            Intent::Answer(_) => {}
            Intent::Empty => assert!(parsed.content.is_empty(), "something was said"),
        }
    }
});
