//! Text becomes search terms: identifiers are split at underscores and capitals, text without spaces between words
//! (Chinese, Japanese, Thai …) becomes pairs of characters.

/// Longest identifier that is looked at; longer ones are data.
const LONGEST: usize = 80;

/// A 64-bit hash, the same on every machine. It is not made to resist an attacker: a collision only makes a file rank wrong.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = (bytes.len() as u64).wrapping_mul(PRIME) ^ 0x51_7c_c1_b7_27_22_0a_95;
    let mut mix = |word: u64| {
        let wide = u128::from(state ^ word) * u128::from(PRIME);
        state = (wide as u64) ^ ((wide >> 64) as u64) ^ word.rotate_left(32);
    };
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        mix(u64::from_le_bytes([
            chunk[0], chunk[1], chunk[2], chunk[3], chunk[4], chunk[5], chunk[6], chunk[7],
        ]));
    }
    let mut last = [0u8; 8];
    let rest = chunks.remainder();
    last[..rest.len()].copy_from_slice(rest);
    mix(u64::from_le_bytes(last));
    mix(0);
    state
}

/// The hash of a name as it is stored.
pub(crate) fn name_hash(name: &str) -> u32 {
    (hash(name.as_bytes()) >> 32) as u32
}

/// Whether a character can be part of an identifier or word.
fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Calls `each` with every identifier or word of a text and the byte at which it starts.
pub fn each_word<'t>(text: &'t str, mut each: impl FnMut(&'t str, usize)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let mut is_ascii = true;
        while let Some(&byte) = bytes.get(at) {
            if CLASS[usize::from(byte)] == WORD {
                at += 1;
            } else if byte < 0x80 {
                break;
            } else {
                let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) else { break };
                if !is_word(c) {
                    break;
                }
                is_ascii = false;
                at += c.len_utf8();
            }
        }
        if at > start {
            let limit = if is_ascii { LONGEST } else { usize::MAX };
            if at - start <= limit
                && let Some(word) = text.get(start..at)
            {
                each(word, start);
            }
        } else {
            // A character between words, of one byte or of several.
            at += 1;
            while at < bytes.len() && !text.is_char_boundary(at) {
                at += 1;
            }
        }
    }
}

const WORD: u8 = 1;
/// Which ASCII bytes belong to a word, looked up instead of compared: every byte of a repository goes through it.
const CLASS: [u8; 256] = {
    let mut class = [0u8; 256];
    let mut byte = 0usize;
    while byte < 128 {
        let c = byte as u8;
        if c == b'_' || c.is_ascii_alphanumeric() {
            class[byte] = WORD;
        }
        byte += 1;
    }
    class
};

/// Calls `each` with the terms of one word: its parts in lower case and, if it has several, all of them joined.
pub(crate) fn each_term(word: &str, scratch: &mut String, mut each: impl FnMut(&str)) {
    if word.is_ascii() {
        each_ascii(word, scratch, &mut each);
    } else {
        each_foreign(word, scratch, &mut each);
    }
}

fn each_ascii(word: &str, scratch: &mut String, each: &mut impl FnMut(&str)) {
    let bytes = word.as_bytes();
    let mut parts = 0;
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'_' {
            at += 1;
            continue;
        }
        let end = part_end(bytes, at);
        scratch.clear();
        scratch.extend(bytes[at..end].iter().map(|byte| char::from(byte.to_ascii_lowercase())));
        if end - at > 1 {
            parts += 1;
            each(singular(scratch));
        } else {
            parts += 1;
        }
        at = end;
    }
    if parts > 1 {
        scratch.clear();
        scratch.extend(
            bytes.iter().filter(|byte| **byte != b'_').map(|byte| char::from(byte.to_ascii_lowercase())),
        );
        each(scratch);
    }
}

/// Where the part of an identifier that starts at `at` ends: before an underscore, before a capital after a small letter,
/// and before the last capital of several that is followed by a small letter (`HTTPServer` is `HTTP` and `Server`).
fn part_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(&byte) = bytes.get(end) {
        let previous = bytes[end - 1];
        let is_hump = byte.is_ascii_uppercase()
            && (!previous.is_ascii_uppercase() || bytes.get(end + 1).is_some_and(u8::is_ascii_lowercase));
        if byte == b'_' || is_hump {
            break;
        }
        end += 1;
    }
    end
}

/// The word without the `s` of a plural.
fn singular(word: &str) -> &str {
    match word.strip_suffix('s') {
        Some(stem) if stem.len() >= 3 && !stem.ends_with(['s', 'u', 'i']) => stem,
        _ => word,
    }
}

/// Terms of a word with letters beyond ASCII. Scripts that put no spaces between words give pairs of characters; anything
/// else between such characters is a word or an identifier of its own.
fn each_foreign(word: &str, scratch: &mut String, each: &mut impl FnMut(&str)) {
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let kind = is_unspaced(first);
        let end = rest.find(|c| is_unspaced(c) != kind).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after;
        if !kind {
            if run.is_ascii() {
                each_ascii(run, scratch, each);
            } else {
                each(&run.chars().take(LONGEST).flat_map(char::to_lowercase).collect::<String>());
            }
            continue;
        }
        let marks: Vec<(usize, char)> = run.char_indices().collect();
        if marks.len() == 1 {
            each(run);
        }
        for pair in marks.windows(2) {
            if let [(start, _), (second, c)] = pair
                && let Some(text) = run.get(*start..*second + c.len_utf8())
            {
                each(text);
            }
        }
    }
}

/// Whether a character belongs to a script without spaces between words.
fn is_unspaced(c: char) -> bool {
    // Thai, Lao, Myanmar, Khmer; kana, Han and their extensions; Hangul.
    matches!(u32::from(c),
        0x0e00..=0x0eff
        | 0x1000..=0x109f
        | 0x1780..=0x17ff
        | 0x3040..=0x30ff
        | 0x3400..=0x4dbf
        | 0x4e00..=0x9fff
        | 0xac00..=0xd7af
        | 0xf900..=0xfaff
        | 0x20000..=0x3ffff)
}

/// How much a word of a task tells, from 0 to 1, by its shape: the shorter a plain word, the likelier it is one that a
/// language has in every sentence (`die`, `wo`, `the`, `que`), whichever language it is. An identifier always tells all.
pub(crate) fn weight(word: &str) -> f64 {
    let is_plain = word.chars().all(char::is_alphabetic) && word.chars().skip(1).all(char::is_lowercase);
    if !is_plain {
        return 1.0;
    }
    match word.chars().count() {
        0..=2 => 0.1,
        3 => 0.3,
        4 => 0.6,
        _ => 1.0,
    }
}

/// All terms of a text, in order, with repetitions.
pub fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    let mut scratch = String::new();
    each_word(text, |word, _| each_term(word, &mut scratch, |term| terms.push(term.to_owned())));
    terms
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn identifiers_are_split() {
        for (text, expected) in [
            ("parse_config", vec!["parse", "config", "parseconfig"]),
            ("parseConfig", vec!["parse", "config", "parseconfig"]),
            ("HTTPServer2", vec!["http", "server2", "httpserver2"]),
            ("__init__", vec!["init"]),
            ("tests", vec!["test"]),
            ("class", vec!["class"]),
            ("x", vec![]),
            ("Größe", vec!["größe"]),
            ("修复解析器", vec!["修复", "复解", "解析", "析器"]),
            ("在parser_utils中", vec!["在", "parser", "util", "parserutils", "中"]),
            ("a-b.c", vec![]),
        ] {
            assert_eq!(terms(text), expected, "{text}");
        }
    }

    #[test]
    fn short_plain_words_tell_little_in_any_language() {
        for (word, told) in [
            ("wo", 0.1),
            ("die", 0.3),
            ("Die", 0.3),
            ("que", 0.3),
            ("wird", 0.6),
            ("Größe", 1.0),
            ("修复", 1.0),
        ] {
            assert_eq!(weight(word), told, "{word}");
        }
        for identifier in ["get_x", "URL", "aB", "x2", "_id"] {
            assert_eq!(weight(identifier), 1.0, "{identifier}");
        }
    }

    proptest! {
        #[test]
        fn words_are_parts_of_the_text(text in "\\PC{0,200}") {
            each_word(&text, |word, at| assert_eq!(text.get(at..at + word.len()), Some(word)));
            for term in terms(&text) {
                prop_assert!(!term.is_empty());
            }
        }

        #[test]
        fn the_style_of_an_identifier_does_not_matter(parts in prop::collection::vec("[a-z]{2,6}", 1..5)) {
            let snake = parts.join("_");
            let camel: String = parts.iter().map(|part| part[..1].to_uppercase() + &part[1..]).collect();
            prop_assert_eq!(terms(&snake), terms(&camel));
        }
    }
}
