//! Scripts of `sed` and `awk` that only print: no file is written or opened, and no program is run.
//! What is not understood is refused, so a script is only ever called harmless by mistake of reading, never by default.

/// Whether a sed script only prints, deletes and replaces lines of its input.
pub(super) fn sed_only_prints(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';', '}']);
        if rest.is_empty() {
            return true;
        }
        let Some(after) = sed_addresses(rest) else { return false };
        rest = after.trim_start_matches([' ', '!']);
        let Some(command) = rest.chars().next() else { return false };
        rest = &rest[command.len_utf8()..];
        match command {
            '{' => continue,
            'p' | 'd' | '=' | 'n' | 'N' | 'P' | 'D' | 'g' | 'G' | 'h' | 'H' | 'x' | 'z' => {}
            'q' | 'Q' => rest = rest.trim_start_matches(|char: char| char.is_ascii_digit()),
            's' | 'y' => {
                let Some(delimiter) = rest.chars().next().filter(|char| !char.is_alphanumeric()) else {
                    return false;
                };
                if matches!(delimiter, '\\' | '\n' | ' ') {
                    return false;
                }
                let Some(replacement) = sed_regex(&rest[delimiter.len_utf8()..], delimiter) else {
                    return false;
                };
                let Some(flags) = sed_regex(replacement, delimiter) else { return false };
                // `e` runs what was replaced, `w` writes it; every other flag only changes how it is replaced.
                rest = flags.trim_start_matches(|char: char| char.is_ascii_digit() || "gpiIM".contains(char));
            }
            _ => return false,
        }
        let next = rest.trim_start_matches([' ', '\t']);
        if !next.is_empty() && !next.starts_with([';', '\n', '}']) {
            return false;
        }
        rest = next;
    }
}

/// What follows the addresses of a command.
fn sed_addresses(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        rest = match rest.chars().next()? {
            '/' => sed_regex(&rest[1..], '/')?.trim_start_matches(['I', 'M']),
            '$' => &rest[1..],
            '0'..='9' | '+' | '~' => {
                rest.trim_start_matches(|char: char| char.is_ascii_digit() || "+~".contains(char))
            }
            _ => rest,
        };
        match rest.trim_start_matches(' ').strip_prefix(',') {
            Some(second) => rest = second.trim_start_matches(' '),
            None => return Some(rest),
        }
    }
}

/// What follows the delimiter that ends a regular expression. Programs differ on a delimiter inside brackets, so there
/// it is refused.
fn sed_regex(text: &str, delimiter: char) -> Option<&str> {
    let mut chars = text.char_indices();
    let mut bracket = false;
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => {
                chars.next()?;
            }
            _ if char == delimiter => return (!bracket).then(|| &text[at + char.len_utf8()..]),
            '[' => bracket = true,
            ']' => bracket = false,
            '\n' => return None,
            _ => {}
        }
    }
    None
}

/// Whether an awk program only prints: it has no redirection, pipe, command, file of its own or indirect call.
pub(super) fn awk_only_prints(program: &str) -> bool {
    const REFUSED: &[&str] =
        &["system", "getline", "ENVIRON", "PROCINFO", "ARGV", "ARGC", "@", "SYMTAB", "FUNCTAB"];
    if REFUSED.iter().any(|word| program.contains(word)) || program.replace("||", "").contains('|') {
        return false;
    }
    // `>` after a `print` writes a file; before any, and as `>=`, it compares.
    match program.find("print") {
        Some(first) => !program[first..].replace(">=", "").contains('>'),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sed_scripts() {
        for script in [
            "10p",
            "$p",
            "1,5p;9p",
            "/foo/p",
            "/start/,/end/p",
            "s/a/b/g",
            "s|a/b|c|",
            "1!d",
            "/x/I,+3p",
            "s/[a-z]*//2p",
            "/a/{p;q}",
            "0~3p",
            "q",
            "$=",
            "y/abc/ABC/",
            "s/\\//x/",
            "2q5",
            "/^$/d",
            "s/^ *//; s/ *$//",
        ] {
            assert!(sed_only_prints(script), "{script}");
        }
        for script in [
            "1w out",
            "s/x/y/e",
            "s/x/y/w out",
            "s/x/y/gw out",
            "1e id",
            "r .env",
            "/x/r .env",
            "R f",
            "W f",
            "e",
            "s/a/b/ge",
            "a text",
            "b end",
            "w",
            "s/[/]w out/x/",
            "s/a/b",
            "i\\",
            "c x",
            "F;w x",
            "s/a/b/;e id",
            "v",
            "1~2w x",
            "sxaxbx",
            "s\na\nb\n",
        ] {
            assert!(!sed_only_prints(script), "{script}");
        }
    }

    #[test]
    fn awk_programs() {
        for program in [
            "{print $1}",
            "NR>=10 && NR<=20",
            "$3 > 100 {print $1}",
            "END{print NR}",
            "/foo/",
            "{sum+=$1} END{print sum}",
            "a||b",
            "BEGIN{FS=\":\"} {printf \"%s\\n\", $2}",
            "!seen[$0]++",
            "length($0) > 80",
        ] {
            assert!(awk_only_prints(program), "{program}");
        }
        for program in [
            "{print > \"out\"}",
            "{print | \"sh\"}",
            "BEGIN{system(\"id\")}",
            "{\"id\" | getline x}",
            "BEGIN{getline < \".env\"}",
            "{printf \"x\" >> \"f\"}",
            "BEGIN{print ENVIRON[\"X\"]}",
            "@include \"x\"",
            "BEGIN{ARGV[1]=\".env\"}",
            "{print |& \"x\"}",
            "BEGIN{f=\"sys\" \"tem\"; @f(\"id\")}",
            "{ print; x = \";\" } { printf(\"a\") > \"b\" }",
        ] {
            assert!(!awk_only_prints(program), "{program}");
        }
    }
}
