//! Cuts a result to what a model's window can bear, once and honestly: what was cut is said, the whole is stored, and
//! its address is told. The flag is set only when something was cut.

use std::borrow::Cow;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use super::{Done, Layer, Outcome, Pass};
use crate::store::BlobId;
use crate::tool::Keep;

/// How much of a result a model sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncation {
    /// Characters of a text inside a structure.
    pub field_chars: usize,
    /// Lines of a text inside a structure.
    pub field_lines: usize,
    /// Characters of a result that is a bare text.
    pub text_chars: usize,
    /// Lines of a result that is a bare text.
    pub text_lines: usize,
    /// Items of a list.
    pub list_items: usize,
    /// Characters of a whole structure, written as JSON.
    pub total_chars: usize,
}

impl Default for Truncation {
    fn default() -> Self {
        Truncation {
            field_chars: 3000,
            field_lines: 150,
            text_chars: 5000,
            text_lines: 200,
            list_items: 100,
            total_chars: 20_000,
        }
    }
}

/// Cuts a text to so many lines, then so many characters, keeping one end. The marker counts what is missing.
pub fn truncate(text: &str, max_chars: usize, max_lines: usize, keep: Keep) -> (Cow<'_, str>, bool) {
    let (kept, lines_cut) = keep_lines(text, max_lines, keep);
    let (kept, chars_cut) = keep_chars(kept, max_chars, keep);
    if lines_cut == 0 && chars_cut == 0 {
        return (Cow::Borrowed(text), false);
    }
    let missing = match (lines_cut, chars_cut) {
        (lines, 0) => format!("{lines} lines"),
        (0, chars) => format!("{chars} characters"),
        (lines, chars) => format!("{lines} lines and {chars} characters"),
    };
    let cut = match keep {
        Keep::Head => format!("{kept}\n[… {missing} cut]"),
        Keep::Tail => format!("[{missing} cut …]\n{kept}"),
    };
    (Cow::Owned(cut), true)
}

fn keep_lines(text: &str, most: usize, keep: Keep) -> (&str, usize) {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let total = body.matches('\n').count() + 1;
    if total <= most {
        return (text, 0);
    }
    let kept = match keep {
        Keep::Head => {
            body.match_indices('\n').nth(most.saturating_sub(1)).map_or(body, |(at, _)| &body[..at])
        }
        Keep::Tail => body.match_indices('\n').nth(total - most - 1).map_or(body, |(at, _)| &body[at + 1..]),
    };
    (if most == 0 { "" } else { kept }, total - most)
}

fn keep_chars(text: &str, most: usize, keep: Keep) -> (&str, usize) {
    // A text has at most as many characters as bytes: the common case needs no count.
    if text.len() <= most {
        return (text, 0);
    }
    let total = text.chars().count();
    if total <= most {
        return (text, 0);
    }
    let boundary = |nth: usize| text.char_indices().nth(nth).map_or(text.len(), |(at, _)| at);
    let kept = match keep {
        Keep::Head => &text[..boundary(most)],
        Keep::Tail => &text[boundary(total - most)..],
    };
    (kept, total - most)
}

pub(super) struct Truncate {
    pub inner: Box<dyn Layer>,
    pub keep: Keep,
}

impl Layer for Truncate {
    fn pass<'a>(&'a self, pass: &'a mut Pass) -> BoxFuture<'a, Outcome> {
        async move {
            let outcome = self.inner.pass(pass).await;
            let Outcome::Done(done) = outcome else { return outcome };
            let cut = cut(done.value, &pass.services.truncation, self.keep);
            let mut stored = Vec::new();
            for whole in &cut.wholes {
                match pass.services.store.put(whole.as_bytes()).await {
                    Ok(blob) => stored.push(blob),
                    Err(error) => return Outcome::Fatal(error.to_string()),
                }
            }
            Outcome::Done(Done { value: cut.value, truncated: cut.truncated, stored })
        }
        .boxed()
    }
}

/// A value cut to size.
struct Cut {
    value: Value,
    truncated: bool,
    /// The whole of each text that was cut.
    wholes: Vec<String>,
    notes: Vec<String>,
}

fn cut(value: Value, limits: &Truncation, keep: Keep) -> Cut {
    if let Value::String(text) = value {
        return cut_bare(text, limits, keep);
    }
    let whole = value.to_string();
    let mut limits = limits.clone();
    let total = limits.total_chars;
    loop {
        let mut cut = Cut { value: value.clone(), truncated: false, wholes: Vec::new(), notes: Vec::new() };
        let mut fields = cut.value.take();
        cut.fields(&mut fields, "", &limits, keep);
        cut.value = fields;
        if cut.value.to_string().len() <= total {
            cut.tell();
            return cut;
        }
        // Every part is within its limits and the sum is not: tighten them together. A shape with no large part left
        // to cut, such as ten thousand keys, is shown as cut text.
        if limits.field_chars < 64 {
            return cut_bare(whole, &limits, keep);
        }
        limits.field_chars /= 2;
        limits.field_lines = (limits.field_lines / 2).max(1);
        limits.list_items = (limits.list_items / 2).max(1);
    }
}

fn cut_bare(text: String, limits: &Truncation, keep: Keep) -> Cut {
    let (kept, truncated) = truncate(&text, limits.text_chars, limits.text_lines, keep);
    if !truncated {
        return Cut { value: Value::String(text), truncated, wholes: Vec::new(), notes: Vec::new() };
    }
    let address = BlobId::of(text.as_bytes());
    let value = match keep {
        Keep::Head => format!("{kept}\n[full text: {address}]"),
        Keep::Tail => format!("[full text: {address}]\n{kept}"),
    };
    Cut { value: Value::String(value), truncated, wholes: vec![text], notes: Vec::new() }
}

impl Cut {
    fn fields(&mut self, value: &mut Value, name: &str, limits: &Truncation, keep: Keep) {
        match value {
            Value::String(text) => {
                let (kept, was_cut) = truncate(text, limits.field_chars, limits.field_lines, keep);
                if was_cut {
                    self.truncated = true;
                    self.notes.push(format!("full text of {name}: {}", BlobId::of(text.as_bytes())));
                    let kept = kept.into_owned();
                    self.wholes.push(std::mem::replace(text, kept));
                }
            }
            Value::Array(items) => {
                if items.len() > limits.list_items {
                    self.truncated = true;
                    self.notes.push(format!("{name}: first {} of {} items", limits.list_items, items.len()));
                    items.truncate(limits.list_items);
                }
                items.iter_mut().for_each(|item| self.fields(item, name, limits, keep));
            }
            Value::Object(map) => {
                for (key, inner) in map.iter_mut() {
                    let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                    self.fields(inner, &name, limits, keep);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Says in the result itself what was cut.
    fn tell(&mut self) {
        if !self.truncated {
            return;
        }
        // Many fields of one list may be cut; a handful of addresses tells enough.
        self.notes.truncate(4);
        let note = self.notes.join("; ");
        match &mut self.value {
            Value::Object(map) => {
                map.insert("truncated".into(), true.into());
                map.insert("truncation".into(), note.into());
            }
            Value::Array(items) => items.push(Value::String(format!("[… {note}]"))),
            other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                *other = Value::Object(Map::from_iter([("truncation".to_owned(), note.into())]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_fits_is_untouched() {
        assert_eq!(truncate("a\nb\n", 10, 2, Keep::Head), ("a\nb\n".into(), false));
        assert_eq!(truncate("", 0, 1, Keep::Tail), ("".into(), false));
    }

    #[test]
    fn each_end_can_be_kept_and_the_missing_is_counted() {
        assert_eq!(truncate("1\n2\n3\n4\n", 100, 2, Keep::Head), ("1\n2\n[… 2 lines cut]".into(), true));
        assert_eq!(truncate("1\n2\n3\n4\n", 100, 2, Keep::Tail), ("[2 lines cut …]\n3\n4".into(), true));
        assert_eq!(truncate("äöü", 2, 9, Keep::Head), ("äö\n[… 1 characters cut]".into(), true));
        assert_eq!(truncate("äöü", 2, 9, Keep::Tail), ("[1 characters cut …]\nöü".into(), true));
    }

    #[test]
    fn a_structure_says_what_was_cut_and_where_the_rest_is() {
        let long = "x\n".repeat(400);
        let cut = cut(
            json!({"path": "a", "lines": long, "items": vec![1; 130]}),
            &Truncation::default(),
            Keep::Head,
        );
        assert!(cut.truncated);
        assert_eq!(cut.value["truncated"], true);
        assert_eq!(cut.value["items"].as_array().unwrap().len(), 100);
        let note = cut.value["truncation"].as_str().unwrap();
        assert!(
            note.contains("items: first 100 of 130 items") && note.contains("full text of lines: blob:"),
            "{note}"
        );
        assert_eq!(cut.wholes, [long]);
    }

    #[test]
    fn a_structure_without_a_large_part_is_still_bounded() {
        let wide: Map<String, Value> = (0..20_000).map(|i| (format!("key{i}"), json!(i))).collect();
        let cut = cut(Value::Object(wide), &Truncation::default(), Keep::Head);
        assert!(cut.truncated && cut.value.to_string().len() < 21_000);
    }

    #[test]
    fn no_result_is_larger_than_its_bound() {
        let limits = Truncation::default();
        for (count, length) in [(1, 10), (300, 400), (100, 3000), (5000, 1), (3, 100_000)] {
            let cut = cut(json!({"items": vec!["ä".repeat(length); count]}), &limits, Keep::Head);
            let size = cut.value.to_string().len();
            assert!(size <= limits.total_chars + 1000, "{count} texts of {length}: {size}");
        }
    }
}
