//! Texts on their way into the memory: whole, short and without characters that a terminal would obey.

use crate::error::MemoryError;
use crate::limits;

/// A text with something in it, of at most so many characters.
pub(crate) fn checked(what: &str, text: &str, most: usize) -> Result<String, MemoryError> {
    let clean: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    let clean = clean.trim();
    let length = clean.chars().count();
    match length {
        0 => Err(MemoryError::Invalid(format!("the {what} is empty"))),
        _ if length > most => Err(MemoryError::Invalid(format!(
            "the {what} has {length} characters, and at most {most} are kept; say it shorter"
        ))),
        _ => Ok(clean.to_owned()),
    }
}

/// A text that may be missing.
pub(crate) fn optional(what: &str, text: Option<&str>, most: usize) -> Result<Option<String>, MemoryError> {
    text.filter(|text| !text.trim().is_empty()).map(|text| checked(what, text, most)).transpose()
}

/// A name or a tag: one line, without spaces around or doubled inside.
pub(crate) fn name(what: &str, text: &str) -> Result<String, MemoryError> {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    checked(what, &line, limits::NAME)
}

/// Tags in lower case, each once, in a stable order.
pub(crate) fn tags(tags: &[String]) -> Result<Vec<String>, MemoryError> {
    let mut clean = Vec::new();
    for tag in tags.iter().filter(|tag| !tag.trim().is_empty()) {
        clean.push(name("tag", tag)?.to_lowercase());
    }
    clean.sort();
    clean.dedup();
    if clean.len() > limits::TAGS {
        return Err(MemoryError::Invalid(format!("at most {} tags are kept", limits::TAGS)));
    }
    Ok(clean)
}

/// A number from 0 to 1.
pub(crate) fn share(what: &str, value: f64) -> Result<f64, MemoryError> {
    match (0.0..=1.0).contains(&value) {
        true => Ok(value),
        false => Err(MemoryError::Invalid(format!("the {what} must be from 0 to 1, not {value}"))),
    }
}
