//! How a call looks in an editor: its title, its kind, the places it touches, and what it changes.

use std::path::Path;

use gimlet::effect::Effect;
use gimlet::patch::FileChange;
use serde_json::{Value, json};

/// Which of the editor's kinds a tool is.
pub(crate) fn kind(tool: &str) -> &'static str {
    match tool {
        "read_file" | "read_file_snippet" | "file_info" | "show_patch" | "git_diff" | "git_log"
        | "git_status" | "git_changed_files" => "read",
        "list_files" | "rg_search" | "search_code" | "list_definitions" | "repo_info" => "search",
        "edit_file" | "apply_patch" | "write_files" => "edit",
        "run_cmd" | "run_tests" => "execute",
        "propose_patch" | "propose_patch_unified" => "think",
        _ => "other",
    }
}

/// The arguments that say most about a call, the most telling first.
const TELLING: [&str; 8] = ["path", "file_path", "pattern", "query", "task", "patch_id", "question", "name"];

/// A title in one line where the call allows it. A command is whole: a person decides about all of it.
pub(crate) fn title(tool: &str, args: &Value, agents: &[&str]) -> String {
    let telling = TELLING.iter().find_map(|name| args.get(name)?.as_str());
    let words = match (command(args), telling) {
        (Some(command), _) => command.to_owned(),
        (None, Some(telling)) => format!("{tool} {telling}"),
        (None, None) => tool.to_owned(),
    };
    if agents.is_empty() { words } else { format!("{}: {words}", agents.join(" › ")) }
}

/// The command of a call, whole.
pub(crate) fn command(args: &Value) -> Option<&str> {
    ["cmd", "command"].iter().find_map(|name| args.get(name)?.as_str())
}

/// The files that effects touch.
pub(crate) fn locations(root: &Path, effects: &[Effect]) -> Vec<Value> {
    let path = |effect: &Effect| match effect {
        Effect::Read { path } | Effect::Write { path, .. } => Some(json!({ "path": root.join(path) })),
        Effect::Run { .. }
        | Effect::Network { .. }
        | Effect::Delegate { .. }
        | Effect::Remember { .. }
        | Effect::Opaque { .. } => None,
    };
    effects.iter().filter_map(path).collect()
}

/// The file that arguments name.
pub(crate) fn named_place(root: &Path, args: &Value) -> Vec<Value> {
    let Some(path) = ["path", "file_path"].iter().find_map(|name| args.get(name)?.as_str()) else {
        return Vec::new();
    };
    let line = ["start_line", "line"].iter().find_map(|name| args.get(name)?.as_u64());
    match line {
        Some(line) => vec![json!({ "path": root.join(path), "line": line })],
        None => vec![json!({ "path": root.join(path) })],
    }
}

/// Text as content of a call.
pub(crate) fn text(text: &str) -> Value {
    json!({ "type": "content", "content": { "type": "text", "text": text } })
}

/// A text in a fence of its own, long enough to hold any fence inside it.
pub(crate) fn fenced(language: &str, text: &str) -> String {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// What changes in files, as the editor shows it.
pub(crate) fn diffs(root: &Path, changes: &[FileChange]) -> Vec<Value> {
    let diff = |change: &FileChange| {
        json!({
            "type": "diff",
            "path": root.join(&change.path),
            "oldText": change.before.as_ref().map(|before| before.text.as_str()),
            "newText": change.after.as_ref().map_or("", |after| after.text.as_str()),
        })
    };
    changes.iter().map(diff).collect()
}

/// A result as a person reads it.
pub(crate) fn result(result: &Value) -> String {
    match result {
        Value::String(text) => text.clone(),
        Value::Object(map) if map.contains_key("stdout_tail") => {
            let part = |name: &str| map.get(name).and_then(Value::as_str).unwrap_or_default().trim_end();
            let code = map.get("exit").map(|code| format!("exit code {code}")).unwrap_or_default();
            let parts = [part("stdout_tail"), part("stderr_tail"), &code];
            fenced("", &parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n"))
        }
        Value::Object(map) if map.contains_key("error") && map.contains_key("message") => {
            map["message"].as_str().unwrap_or_default().to_owned()
        }
        other => fenced("json", &serde_json::to_string_pretty(other).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_has_the_whole_command() {
        let long = format!("cargo test {}\nrm -rf /", "x".repeat(5000));
        assert_eq!(title("run_cmd", &json!({ "cmd": long }), &[]), long);
        assert_eq!(title("read_file", &json!({ "path": "a.py" }), &["scout"]), "scout: read_file a.py");
        assert_eq!(title("repo_info", &json!({}), &[]), "repo_info");
    }

    #[test]
    fn a_fence_holds_any_fence_inside_it() {
        assert_eq!(fenced("", "a"), "```\na\n```");
        assert!(fenced("md", "````\nx\n````").starts_with("`````md\n"));
    }
}
