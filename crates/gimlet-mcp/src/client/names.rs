//! Names a model and Python can call: `server__tool`, made of what the server calls its tools, unique and stable.

use std::collections::BTreeMap;

use gimlet::digest::digest;
use gimlet::toolbox::is_callable_name;

/// Longest name a tool may have.
const LONGEST: usize = 64;

/// The safe name of each tool of one server, in order. The same tools have the same names whatever their order.
pub(super) fn safe_names<'a>(server: &str, tools: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let plain = |tool: &str| format!("{}{}", prefix(server), identifier(tool));
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    for tool in tools.clone() {
        *taken.entry(plain(tool)).or_default() += 1;
    }
    tools
        .map(|tool| {
            let name = plain(tool);
            let shared = taken.get(&name).is_some_and(|count| *count > 1);
            // Of tools that end up alike, the one that needed no change keeps the name.
            if name.len() <= LONGEST && (!shared || identifier(tool) == tool) {
                return name;
            }
            let mark = format!("_{}", &digest(format!("{server}\n{tool}").as_bytes())[..6]);
            let head: String = name.chars().take(LONGEST - mark.len()).collect();
            format!("{head}{mark}")
        })
        .collect()
}

/// How the names of a server's tools begin.
pub fn prefix(server: &str) -> String {
    format!("{}__", identifier(server))
}

/// A tool's own name, if it can be called by it.
pub(super) fn own_name(tool: &str) -> Option<String> {
    Some(identifier(tool)).filter(|name| is_callable_name(name))
}

/// A part of a Python identifier.
fn identifier(name: &str) -> String {
    let safe: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if safe.starts_with(|c: char| c.is_ascii_digit()) || safe.is_empty() { format!("_{safe}") } else { safe }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(server: &str, tools: &[&str]) -> Vec<String> {
        safe_names(server, tools.iter().copied())
    }

    #[test]
    fn hyphens_and_dots_become_underscores() {
        assert_eq!(
            names("my-server", &["get.item", "do it", "7up"]),
            ["my_server__get_item", "my_server__do_it", "my_server___7up"]
        );
        assert_eq!(own_name("get-item").as_deref(), Some("get_item"));
        assert_eq!(own_name("import"), None, "a keyword cannot be called");
        assert_eq!(own_name("final_answer"), None, "taken by the runtime");
    }

    #[test]
    fn what_ends_up_alike_stays_apart_in_any_order() {
        let mut one = names("s", &["a-b", "a.b", "a_b"]);
        let mut other = names("s", &["a_b", "a.b", "a-b"]);
        assert!(one.contains(&"s__a_b".to_owned()), "{one:?}");
        one.sort();
        other.sort();
        assert_eq!(one, other);
        one.dedup();
        assert_eq!(one.len(), 3);
    }

    #[test]
    fn every_name_is_callable() {
        let long = "x".repeat(200);
        for name in names("ein schöner Name", &[&long, "", "日本", "class", "a__b", "-"]) {
            assert!(is_callable_name(&name), "{name}");
        }
    }
}
