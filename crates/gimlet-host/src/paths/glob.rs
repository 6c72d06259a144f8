//! Small patterns over names: `*`, `?` and `[…]`, compared without regard to case.
//!
//! Besides matching a name, two patterns can be asked whether any name fits both: that is how `cat /etc/shad?w` is
//! recognised without looking at the disk.

/// Pairs of patterns that would take more steps than this are taken to fit.
const MAX_STEPS: usize = 4 * 1024 * 1024;

#[derive(Clone, Copy, PartialEq)]
enum Token {
    Char(char),
    One,
    Many,
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        match char {
            '*' => found.push(Token::Many),
            '?' => found.push(Token::One),
            // A set is widened to "any character": wrong only towards caution.
            '[' if chars.as_str().contains(']') => {
                found.push(Token::One);
                let mut first = true;
                for inner in chars.by_ref() {
                    if inner == ']' && !first {
                        break;
                    }
                    first = false;
                }
            }
            other => found.extend(other.to_lowercase().map(Token::Char)),
        }
    }
    found
}

fn literal(text: &str) -> Vec<Token> {
    text.chars().flat_map(char::to_lowercase).map(Token::Char).collect()
}

/// Whether some name fits both token lists: a walk over pairs of positions.
fn meet(left: &[Token], right: &[Token]) -> bool {
    if left.len().saturating_mul(right.len()) > MAX_STEPS {
        return true;
    }
    let width = right.len() + 1;
    let mut reachable = vec![false; (left.len() + 1) * width];
    reachable[0] = true;
    for i in 0..=left.len() {
        for j in 0..=right.len() {
            if !reachable[i * width + j] {
                continue;
            }
            let (a, b) = (left.get(i), right.get(j));
            if a == Some(&Token::Many) {
                reachable[(i + 1) * width + j] = true;
                if b.is_some() {
                    reachable[i * width + j + 1] = true;
                }
            }
            if b == Some(&Token::Many) {
                reachable[i * width + j + 1] = true;
                if a.is_some() {
                    reachable[(i + 1) * width + j] = true;
                }
            }
            if let (Some(a), Some(b)) = (a, b) {
                let fits = match (a, b) {
                    (Token::Many, _) | (_, Token::Many) => false,
                    (Token::One, _) | (_, Token::One) => true,
                    (Token::Char(x), Token::Char(y)) => x == y,
                };
                if fits {
                    reachable[(i + 1) * width + j + 1] = true;
                }
            }
        }
    }
    reachable[left.len() * width + right.len()]
}

fn is_meta(byte: u8) -> bool {
    matches!(byte, b'*' | b'?' | b'[')
}

/// Whether a text stands for other names than itself.
pub fn is_pattern(text: &str) -> bool {
    text.bytes().any(is_meta)
}

/// The letter that every name begins with that fits a pattern, but for its case; none if it can be any.
pub fn initial(pattern: &str) -> Option<u8> {
    pattern.bytes().next().filter(|byte| byte.is_ascii() && !is_meta(*byte))
}

/// The letter that every name ends with that fits a pattern, but for its case; none if it can be any.
pub fn ending(pattern: &str) -> Option<u8> {
    pattern.bytes().next_back().filter(|byte| byte.is_ascii() && !is_meta(*byte) && *byte != b']')
}

/// Whether a name fits a pattern.
pub fn matches(pattern: &str, name: &str) -> bool {
    // Hundreds of comparisons happen for one check, so most must end at the first letter.
    if let (Some(first), Some(letter)) = (initial(pattern), name.as_bytes().first())
        && !first.eq_ignore_ascii_case(letter)
    {
        return false;
    }
    if !is_pattern(pattern) {
        return pattern.eq_ignore_ascii_case(name);
    }
    // Almost every other pattern is `*.ext` or `prefix*`; those need no tables.
    if let Some((head, tail)) = pattern.split_once('*')
        && !tail.contains(['*', '?', '['])
        && !head.contains(['?', '['])
        && pattern.is_ascii()
    {
        let (name, head, tail) = (name.as_bytes(), head.as_bytes(), tail.as_bytes());
        return name.len() >= head.len() + tail.len()
            && name[..head.len()].eq_ignore_ascii_case(head)
            && name[name.len() - tail.len()..].eq_ignore_ascii_case(tail);
    }
    meet(&tokens(pattern), &literal(name))
}

/// Whether a name could fit both a pattern of ours and one that a program matches itself, to which a dot is a letter.
pub fn could_be_found(pattern: &str, glob: &str) -> bool {
    meet(&tokens(pattern), &tokens(glob))
}

/// Whether a name could fit both a pattern of ours and a pattern a shell would expand.
pub fn could_match(pattern: &str, glob: &str) -> bool {
    // A shell's pattern does not match a leading dot unless it has one itself.
    if pattern.starts_with('.') && glob.starts_with(['*', '?', '[']) {
        return false;
    }
    // Plain first or last letters that differ settle it without tables.
    let plain =
        |byte: Option<&u8>| byte.copied().filter(|b| b.is_ascii() && !matches!(b, b'*' | b'?' | b'[' | b']'));
    let differ = |left: Option<u8>, right: Option<u8>| {
        left.zip(right).is_some_and(|(left, right)| !left.eq_ignore_ascii_case(&right))
    };
    let (ours, theirs) = (pattern.as_bytes(), glob.as_bytes());
    if differ(plain(ours.first()), plain(theirs.first())) || differ(plain(ours.last()), plain(theirs.last()))
    {
        return false;
    }
    meet(&tokens(pattern), &tokens(glob))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns() {
        assert!(matches("*.pem", "Server.PEM"));
        assert!(!matches("*.pem", "pem"));
        assert!(matches("mkfs.*", "mkfs.ext4"));
        assert!(matches("id_rsa*", "id_rsa"));
        assert!(!matches("id_rsa*", "id_utils.py"));
        assert!(could_match("shadow", "shad?w"));
        assert!(could_match("shadow", "s*"));
        assert!(could_match("*.pem", "a*"));
        assert!(!could_match("*.pem", "*.py"));
        assert!(!could_match(".env*", "*"));
        assert!(could_match(".env*", ".e*"));
        assert!(could_match("rm", "r[a-z]"));
    }
}
