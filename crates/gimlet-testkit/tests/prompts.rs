//! What models read before anything else, kept as snapshots so that a change is seen.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use gimlet::event::{ActionFormat, Dialect};
use gimlet::prompt::system_prompt;
use gimlet::tool::{Manner, ToolSpec};
use serde_json::json;

fn tools() -> Vec<Arc<ToolSpec>> {
    vec![Arc::new(ToolSpec {
        name: "read_file".into(),
        description: "Read lines of a file.\nLines are numbered from 1.".into(),
        input: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "File path relative to the project root."},
                "start_line": {"type": "integer", "default": 1},
            },
            "required": ["path"],
        }),
        output: None,
        manner: Manner::default(),
    })]
}

#[test]
fn system_prompts() {
    let prompt = |action, dialect| system_prompt(action, dialect, &tools(), "").unwrap();
    insta::assert_snapshot!("tools_native", prompt(ActionFormat::Tools, Dialect::Native));
    insta::assert_snapshot!("tools_as_text", prompt(ActionFormat::Tools, Dialect::Text));
    insta::assert_snapshot!("code", prompt(ActionFormat::Code, Dialect::Text));
}
