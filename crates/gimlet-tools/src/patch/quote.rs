//! Git's way to write unusual file names: in double quotes with C escapes, bytes as octal.

/// The name behind a header's text. Text that is not quoted, or badly, stands for itself.
pub fn unquote(text: &str) -> String {
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match inner.and_then(unescape) {
        Some(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        None => text.to_owned(),
    }
}

/// A quoted name and, behind a space, what follows it. A quote that is escaped is part of the name.
pub(super) fn split_quoted(text: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    let closes = |byte: u8| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    };
    let end = text.strip_prefix('"')?.bytes().position(closes)?;
    let (name, rest) = text.split_at(end + 2);
    Some((name, rest.strip_prefix(' ')?))
}

/// A name as git reads it back: quoted only where it must be.
pub fn quote(name: &str) -> String {
    let plain = name.bytes().all(|byte| (0x20..0x7f).contains(&byte) && byte != b'"' && byte != b'\\');
    if plain {
        return name.into();
    }
    let mut quoted = String::from('"');
    for byte in name.bytes() {
        match byte {
            b'"' => quoted.push_str("\\\""),
            b'\\' => quoted.push_str("\\\\"),
            b'\n' => quoted.push_str("\\n"),
            b'\t' => quoted.push_str("\\t"),
            b'\r' => quoted.push_str("\\r"),
            0x20..0x7f => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\{byte:03o}")),
        }
    }
    quoted.push('"');
    quoted
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return None,
            b'\\' => out.push(match bytes.next()? {
                b'a' => 7,
                b'b' => 8,
                b't' => b'\t',
                b'n' => b'\n',
                b'v' => 11,
                b'f' => 12,
                b'r' => b'\r',
                b'"' => b'"',
                b'\\' => b'\\',
                digit @ b'0'..=b'7' => {
                    let mut value = u16::from(digit - b'0');
                    for _ in 0..2 {
                        let next = bytes.next_if(|next| (b'0'..=b'7').contains(next))?;
                        value = value * 8 + u16::from(next - b'0');
                    }
                    u8::try_from(value).ok()?
                }
                _ => return None,
            }),
            _ => out.push(byte),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn gits_own_examples() {
        assert_eq!(unquote(r#""caf\303\251 \"x\"\n""#), "café \"x\"\n");
        assert_eq!(unquote("plain name"), "plain name");
        assert_eq!(unquote(r#""bad\q""#), r#""bad\q""#);
        assert_eq!(quote("plain name.rs"), "plain name.rs");
        assert_eq!(quote("café"), r#""caf\303\251""#);
    }

    #[test]
    fn an_escaped_quote_ends_no_name() {
        assert_eq!(split_quoted(r#""a\" \\" "b""#), Some((r#""a\" \\""#, r#""b""#)));
        assert_eq!(split_quoted(r#""a" "b""#), Some((r#""a""#, r#""b""#)));
        assert_eq!(split_quoted(r#""a\""#), None);
        assert_eq!(split_quoted("a b"), None);
    }

    proptest! {
        #[test]
        fn quoting_is_undone_by_unquoting(name in "\\PC*|[\\x00-\\x7f]*") {
            prop_assume!(!(name.starts_with('"') && name.ends_with('"')) || quote(&name) != name);
            prop_assert_eq!(unquote(&quote(&name)), name);
        }
    }
}
