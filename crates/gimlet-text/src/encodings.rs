//! The spellings in which a known secret may leave a command: base64 at any offset, hex, percent and JSON escapes, and
//! the ones that are typed as quickly. Each is looked for as plain text, so the list per secret is short and fixed.

/// Shorter spellings would mask ordinary text.
const LEAST: usize = 8;

/// Every spelling of a secret, itself included.
pub(crate) fn of(secret: &str) -> Vec<String> {
    let bytes = secret.as_bytes();
    let hex = |separator: &str, upper: bool| {
        let one = |byte: &u8| {
            if upper { format!("{separator}{byte:02X}") } else { format!("{separator}{byte:02x}") }
        };
        bytes.iter().map(one).collect::<String>()
    };
    let mut all = vec![secret.to_owned(), secret.chars().rev().collect(), rot13(secret), base32(bytes)];
    for separator in ["", "%", "\\x", " ", ":"] {
        all.extend(
            [false, true].map(|upper| hex(separator, upper).trim_start_matches([' ', ':']).to_owned()),
        );
    }
    all.extend([false, true].map(|upper| percent(secret, upper)));
    all.extend(serde_json::to_string(secret).ok().map(|text| text.trim_matches('"').to_owned()));
    for alphabet in [STANDARD, URL] {
        all.extend((0..3).map(|offset| base64(bytes, offset, alphabet)));
        let once = base64(bytes, 0, alphabet);
        all.push(base64(once.as_bytes(), 0, alphabet));
    }
    all.retain(|text| text.len() >= LEAST);
    all.sort();
    all.dedup();
    all
}

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The letters that depend on these bytes alone when `offset` other bytes stand before them, and more may follow.
fn base64(bytes: &[u8], offset: usize, alphabet: &[u8; 64]) -> String {
    let text = groups(&[&vec![0; offset][..], bytes].concat(), 6, alphabet);
    // One unknown byte takes part in two letters, two of them in three.
    text.get(offset + usize::from(offset > 0)..).unwrap_or_default().to_owned()
}

fn base32(bytes: &[u8]) -> String {
    groups(bytes, 5, b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
}

/// The bits of the bytes in groups of `width`, each as a letter; a last group that is not full is left out.
fn groups(bytes: &[u8], width: u32, alphabet: &[u8]) -> String {
    let (mut held, mut bits, mut text) = (0u32, 0u32, String::new());
    for byte in bytes {
        held = (held << 8) | u32::from(*byte);
        bits += 8;
        while bits >= width {
            bits -= width;
            let index = (held >> bits) & ((1 << width) - 1);
            text.extend(alphabet.get(index as usize).map(|letter| char::from(*letter)));
        }
        held &= (1 << bits) - 1;
    }
    text
}

fn percent(secret: &str, upper: bool) -> String {
    let one = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ if upper => format!("%{byte:02X}"),
        _ => format!("%{byte:02x}"),
    };
    secret.bytes().map(one).collect()
}

fn rot13(secret: &str) -> String {
    let turn = |char: char| {
        let base = match char {
            'a'..='z' => b'a',
            'A'..='Z' => b'A',
            other => return other,
        };
        u8::try_from(char).map_or(char, |letter| char::from((letter - base + 13) % 26 + base))
    };
    secret.chars().map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finding_15_encodings_are_those_of_the_usual_tools() {
        let all = of("hunter2/&hunter2");
        for known in [
            "aHVudGVyMi8maHVudGVyM", // base64
            "h1bnRlcjIvJmh1bnRlcj",  // one byte before it
            "odW50ZXIyLyZodW50ZXIy", // two bytes before it
            "68756e746572322f2668756e74657232",
            "68756E746572322F2668756E74657232",
            "hunter2%2F%26hunter2",
            "2retnuh&/2retnuh",
            "uhagre2/&uhagre2",
        ] {
            assert!(all.iter().any(|text| text == known), "{known} in {all:?}");
        }
    }
}
