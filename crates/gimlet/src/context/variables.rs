//! The interpreter's variables, as the model is reminded of them when what showed them has left the conversation.

use gimlet_event::context::Variable;

/// Most variables that are named.
const MOST: usize = 30;
/// Longest listing, in bytes.
const MOST_BYTES: usize = 700;

const HEAD: &str = "Variables that still hold their values: ";

/// A text without the line that names them.
pub(crate) fn unlisted(text: &str) -> String {
    text.split('\n').filter(|line| !line.starts_with(HEAD)).collect::<Vec<_>>().join("\n")
}

/// One line that names them, the latest first; none when there are none.
pub(crate) fn listing(variables: &[Variable]) -> Option<String> {
    let mut text = String::from(HEAD);
    let mut named = 0;
    for variable in variables.iter().rev().take(MOST) {
        let size = variable.size.map(|size| format!(", {size}")).unwrap_or_default();
        let one = format!("{}{} ({}{size})", if named > 0 { "; " } else { "" }, variable.name, variable.kind);
        if text.len() + one.len() > MOST_BYTES {
            break;
        }
        text.push_str(&one);
        named += 1;
    }
    let left = variables.len() - named;
    if left > 0 {
        text.push_str(&format!("; and {left} more"));
    }
    (named > 0).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str, size: Option<u64>) -> Variable {
        Variable { name: name.into(), kind: "list".into(), size }
    }

    #[test]
    fn a_listing_is_short_however_many_there_are() {
        assert_eq!(listing(&[]), None);
        let two = [variable("a", None), variable("rows", Some(120))];
        assert_eq!(
            listing(&two).unwrap(),
            "Variables that still hold their values: rows (list, 120); a (list)"
        );
        let many: Vec<Variable> =
            (0..200).map(|n| variable(&format!("{}{n}", "x".repeat(50)), None)).collect();
        let text = listing(&many).unwrap();
        assert!(text.len() < MOST_BYTES + 20 && text.ends_with(" more"), "{text}");
    }
}
