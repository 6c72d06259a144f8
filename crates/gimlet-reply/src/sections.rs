//! Reads lists under headings, as models write them when asked for facts, steps or decisions: Markdown of any taste, or
//! an object in JSON.

use gimlet_text::clip;
use serde_json::Value;

/// Most entries of one list.
const MOST_ITEMS: usize = 20;
/// Longest entry, in characters.
const MOST_CHARS: usize = 300;

/// A list that is looked for: its key in JSON, and the headings it may stand under, in lower case.
pub struct Section {
    /// Its key in JSON.
    pub key: &'static str,
    /// The headings it may stand under.
    pub headings: &'static [&'static str],
}

/// The lists of a text, in the order of `sections`; none when it holds none of them.
pub fn read<const N: usize>(text: &str, sections: &[Section; N]) -> Option<[Vec<String>; N]> {
    let found = from_json(text, sections).unwrap_or_else(|| from_headings(text, sections));
    found.iter().any(|list| !list.is_empty()).then_some(found)
}

fn from_json<const N: usize>(text: &str, sections: &[Section; N]) -> Option<[Vec<String>; N]> {
    let object: Value = serde_json::from_str(text.get(text.find('{')?..=text.rfind('}')?)?).ok()?;
    sections.iter().any(|section| object.get(section.key).is_some()).then(|| {
        std::array::from_fn(|index| {
            let mut list = Vec::new();
            match &object[sections[index].key] {
                Value::Array(items) => items.iter().for_each(|item| add(&mut list, &plain(item))),
                Value::Null => {}
                other => add(&mut list, &plain(other)),
            }
            list
        })
    })
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn from_headings<const N: usize>(text: &str, sections: &[Section; N]) -> [Vec<String>; N] {
    let mut lists: [Vec<String>; N] = std::array::from_fn(|_| Vec::new());
    let mut current = None;
    for line in text.lines() {
        if let Some((section, rest)) = heading(line, sections) {
            current = Some(section);
            add(&mut lists[section], rest);
        } else if let Some(section) = current {
            add(&mut lists[section], line);
        }
    }
    lists
}

/// The list a line begins, and what it says behind the colon.
fn heading<'a, const N: usize>(line: &'a str, sections: &[Section; N]) -> Option<(usize, &'a str)> {
    let marks = |c: char| c.is_whitespace() || matches!(c, '#' | '*' | '_' | '>');
    let mut bare = line.trim_matches(marks);
    if bare.len() < line.len() {
        // A number before a heading; before an entry it would stand without such marks.
        bare = unnumbered(bare).trim_start_matches(marks);
    }
    let (name, rest) = bare.split_once(':').unwrap_or((bare, ""));
    let name = name.trim_matches(marks).to_lowercase();
    let found = sections.iter().position(|section| section.headings.contains(&name.as_str()))?;
    Some((found, rest.trim_matches(marks)))
}

fn unnumbered(text: &str) -> &str {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match text.as_bytes().get(digits) {
        Some(b'.' | b')') if digits > 0 => text[digits + 1..].trim_start(),
        _ => text,
    }
}

fn add(list: &mut Vec<String>, line: &str) {
    let text = line.trim().trim_start_matches(['-', '*', '•', '+']).trim_start();
    let text = unnumbered(text).trim_start_matches("[ ]").trim();
    let nothing = text.is_empty()
        || text.starts_with("```")
        || ["none", "none.", "n/a", "-", "nothing", "nothing."].contains(&text.to_lowercase().as_str());
    if !nothing && list.len() < MOST_ITEMS {
        list.push(clip(text, MOST_CHARS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTIONS: [Section; 2] = [
        Section { key: "known", headings: &["facts known", "known"] },
        Section { key: "steps", headings: &["steps", "plan"] },
    ];

    fn lists(text: &str) -> Option<(Vec<String>, Vec<String>)> {
        read(text, &SECTIONS).map(|[known, steps]| (known, steps))
    }

    #[test]
    fn headings_of_any_taste_are_found() {
        let expected = Some((vec!["a is 1".to_owned()], vec!["look".to_owned(), "mend: it".to_owned()]));
        for text in [
            "Facts known:\n- a is 1\nSteps:\n1. look\n2. mend: it",
            "Sure!\n## Facts known\n* a is 1\n\n## Plan\n1) look\n2) mend: it\n",
            "**1. Known:** a is 1\n**2. Steps:**\n- [ ] look\n- mend: it",
            "```json\n{\"known\": \"a is 1\", \"steps\": [\"look\", \"mend: it\"]}\n```",
        ] {
            assert_eq!(lists(text), expected, "{text}");
        }
    }

    #[test]
    fn what_holds_no_list_is_none_and_a_long_one_is_cut() {
        for text in ["", "I would look first.", "{\"other\": 1}", "Steps: none", "{ not json }"] {
            assert_eq!(lists(text), None, "{text}");
        }
        let (_, steps) = lists(&format!("Steps:\n{}", "- x\n".repeat(100))).unwrap();
        assert_eq!(steps.len(), MOST_ITEMS);
        let (_, steps) = lists(&format!("Steps:\n- {}", "ä".repeat(1000))).unwrap();
        assert_eq!(steps[0].chars().count(), MOST_CHARS);
    }
}
