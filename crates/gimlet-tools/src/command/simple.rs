//! Whether a command needs a shell. One that is only a program and its words is started directly, so that nothing
//! between the approved text and the program can give it another meaning.

use gimlet::command::Invocation;

/// Words that only a shell understands as a command.
const SHELL_WORDS: &[&str] = &[
    ".", ":", "alias", "bg", "break", "case", "cd", "command", "continue", "declare", "do", "done", "elif",
    "else", "esac", "eval", "exec", "exit", "export", "fg", "fi", "for", "function", "hash", "if", "jobs",
    "let", "local", "popd", "pushd", "read", "readonly", "return", "select", "set", "shift", "shopt",
    "source", "then", "time", "times", "trap", "type", "typeset", "ulimit", "umask", "unalias", "unset",
    "until", "wait", "while", "!", "{",
];

/// Decides how a command's text is started. When in doubt a shell is used: the text means what a shell says it means.
pub fn invocation(text: &str) -> Invocation {
    let shell = || Invocation::Shell(text.into());
    if needs_shell(text) {
        return shell();
    }
    match shell_words::split(text) {
        Ok(words) => match words.first() {
            Some(program) if !program.is_empty() && !SHELL_WORDS.contains(&program.as_str()) => {
                Invocation::Direct(words.into_iter().map(Into::into).collect())
            }
            Some(_) | None => shell(),
        },
        Err(_) => shell(),
    }
}

/// Whether a character outside quotes, or `$`, `` ` `` or `\` inside double ones, has a meaning to the shell.
fn needs_shell(text: &str) -> bool {
    let mut quote = None;
    let mut first_word = true;
    for c in text.trim_start().chars() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ' | '\t') => first_word = false,
            (None, '=') if first_word => return true,
            (
                None,
                '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '\\' | '*' | '?' | '[' | ']' | '#'
                | '~' | '{' | '}' | '!' | '\n' | '\r',
            ) => return true,
            (Some('"'), '$' | '`' | '\\' | '!') => return true,
            (Some(open), c) if open == c => quote = None,
            (None | Some(_), _) => {}
        }
    }
    quote.is_some()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    #[test]
    fn plain_words_need_no_shell() {
        for (text, words) in [
            ("pytest -q", vec!["pytest", "-q"]),
            ("  cargo   test --lib ", vec!["cargo", "test", "--lib"]),
            ("grep 'rm -rf | x' f", vec!["grep", "rm -rf | x", "f"]),
            (r#"git log --format="%h %s""#, vec!["git", "log", "--format=%h %s"]),
            ("env A=1 x", vec!["env", "A=1", "x"]),
            ("r''m x", vec!["rm", "x"]),
        ] {
            let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
            assert_eq!(invocation(text), Invocation::Direct(words), "{text}");
        }
    }

    #[test]
    fn everything_else_gets_one() {
        for text in [
            "a | b", "a && b", "a; b", "a > f", "a $HOME", "a `b`", "a *.py", "A=1 b", "cd x", "a\nb",
            "a 'b", "\\rm x", "a \"$b\"", "", "   ", "a # b", "a ~/x", "a {b,c}", "if true", "(a)", "'' x",
            "export A", "! a",
        ] {
            assert_eq!(invocation(text), Invocation::Shell(text.into()), "{text}");
        }
    }
}
