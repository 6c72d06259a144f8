//! Two pieces of quoting that need their own reading: `$'…'` and the end of `${…}`.

/// The index of the brace that closes the one at the start.
pub(super) fn matching_brace(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut chars = text.char_indices();
    while let Some((index, char)) = chars.next() {
        match char {
            '\\' => {
                chars.next();
            }
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(index);
                }
            }
            _ => {}
        }
    }
    None
}

/// Decodes `$'…'` after its opening quote: the text, the bytes used, and whether the closing quote was there.
pub(super) fn ansi_c(text: &str) -> (String, usize, bool) {
    let mut out = Vec::new();
    let mut chars = text.char_indices().peekable();
    while let Some((index, char)) = chars.next() {
        if char == '\'' {
            return (String::from_utf8_lossy(&out).into_owned(), index + 1, true);
        }
        if char != '\\' {
            out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let Some((_, escape)) = chars.next() else { break };
        let mut digits = |radix: u32, most: usize, first: Option<char>| {
            let mut value = first.and_then(|c| c.to_digit(radix)).unwrap_or(0);
            let mut count = usize::from(first.is_some());
            while count < most
                && let Some(digit) = chars.peek().and_then(|(_, c)| c.to_digit(radix))
            {
                value = value.wrapping_mul(radix).wrapping_add(digit);
                count += 1;
                chars.next();
            }
            value
        };
        match escape {
            'n' => out.push(b'\n'),
            't' => out.push(b'\t'),
            'r' => out.push(b'\r'),
            'a' => out.push(7),
            'b' => out.push(8),
            'e' | 'E' => out.push(27),
            'f' => out.push(12),
            'v' => out.push(11),
            'x' => out.push((digits(16, 2, None) & 0xff) as u8),
            'u' | 'U' => {
                let most = if escape == 'u' { 4 } else { 8 };
                let char = char::from_u32(digits(16, most, None)).unwrap_or('\u{fffd}');
                out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            }
            '0'..='7' => out.push((digits(8, 3, Some(escape)) & 0xff) as u8),
            'c' => {
                if let Some((_, control)) = chars.next() {
                    out.push((control as u32 & 0x1f) as u8);
                }
            }
            '\\' | '\'' | '"' | '?' => out.push(escape as u8),
            other => {
                out.push(b'\\');
                out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
    (String::from_utf8_lossy(&out).into_owned(), text.len(), false)
}
