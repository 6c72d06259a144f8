//! Texts that look like keys, tokens and passwords of well-known services. The shapes are data (`shapes.json`): a word
//! that must occur, so that most texts are never searched, a pattern, and examples that tests check.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde::Deserialize;

use crate::redact::MARK;

/// The shapes as they are shipped.
const SHIPPED: &str = include_str!("shapes.json");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawShape {
    #[cfg_attr(not(test), expect(dead_code, reason = "for tests and readers of the table"))]
    id: String,
    keyword: String,
    pattern: String,
    #[serde(rename = "match")]
    #[cfg_attr(not(test), expect(dead_code, reason = "checked by tests"))]
    matches: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "checked by tests"))]
    not_match: Vec<String>,
}

/// One shape, ready to be looked for. Matching takes time linear in the text.
struct Shape {
    keyword: String,
    /// What is masked is its group `secret`, or all of it.
    pattern: Regex,
}

static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(|| {
    let raw: Vec<RawShape> = serde_json::from_str(SHIPPED).unwrap_or_default();
    // Tests read the same table and fail on a pattern that is wrong.
    let shape = |raw: RawShape| Some(Shape { pattern: Regex::new(&raw.pattern).ok()?, keyword: raw.keyword });
    raw.into_iter().filter_map(shape).collect()
});

/// The text without what looks like a key.
pub(crate) fn mask(text: Cow<'_, str>) -> Cow<'_, str> {
    SHAPES.iter().fold(text, |text, shape| match text.contains(&shape.keyword) {
        true => mask_one(text, &shape.pattern),
        false => text,
    })
}

fn mask_one<'a>(text: Cow<'a, str>, pattern: &Regex) -> Cow<'a, str> {
    let replaced = pattern.replace_all(&text, |found: &Captures<'_>| {
        let Some(whole) = found.get(0) else { return String::new() };
        let Some(secret) = found.name("secret") else {
            // A key is a word of its own: the same letters inside a longer word are something else.
            let inside =
                text[..whole.start()].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-');
            return if inside { whole.as_str().to_owned() } else { MARK.to_owned() };
        };
        format!("{}{MARK}{}", &text[whole.start()..secret.start()], &text[secret.end()..whole.end()])
    });
    match replaced {
        Cow::Borrowed(_) => text.clone(),
        Cow::Owned(clean) if clean == *text => text.clone(),
        Cow::Owned(clean) => Cow::Owned(clean),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_15_every_shape_masks_its_examples_and_leaves_the_others() {
        let shapes: Vec<RawShape> = serde_json::from_str(SHIPPED).unwrap();
        assert!(shapes.len() >= 40 && shapes.len() == SHAPES.len());
        for shape in shapes {
            let pattern = Regex::new(&shape.pattern).unwrap();
            assert!(!shape.matches.is_empty() && !shape.not_match.is_empty(), "{} needs examples", shape.id);
            for text in &shape.matches {
                assert!(text.contains(&shape.keyword), "{}: {text}", shape.id);
                let alone = mask_one(Cow::Borrowed(text), &pattern);
                assert!(alone.contains(MARK), "{}: {text}", shape.id);
                assert!(mask(Cow::Borrowed(text)).contains(MARK), "{}: {text}", shape.id);
            }
            for text in &shape.not_match {
                assert_eq!(mask_one(Cow::Borrowed(text), &pattern), text.as_str(), "{}", shape.id);
            }
        }
    }

    #[test]
    fn ordinary_text_stays() {
        for text in [
            "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
            "id = 123e4567-e89b-12d3-a456-426614174000",
            "integrity sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
            "checksum = \"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"",
            "src=\"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==\"",
            "let key = std::env::var(\"API_KEY\")?;",
            "see https://docs.rs/regex/1.13.1/regex/struct.Regex.html",
        ] {
            assert_eq!(mask(Cow::Borrowed(text)), text);
        }
    }
}
