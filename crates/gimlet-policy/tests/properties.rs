//! What holds for every way of writing a command, and for text that is no command at all.

use std::path::PathBuf;

use gimlet::effect::Verdict;
use gimlet_policy::{Context, Jail, Policy};
use proptest::prelude::*;
use proptest::sample::select;

fn context() -> Context {
    let mut context = Context::new("/srv/project", Jail::Active);
    context.home = Some(PathBuf::from("/home/someone"));
    context.gimlet_home = Some(PathBuf::from("/home/someone/.local/share/gimlet"));
    context
}

/// Commands of the table whose words are plain, so that they can be written in other ways.
fn plain(verdict: &str) -> Vec<Vec<String>> {
    let lines = include_str!("commands.txt").lines().chain(include_str!("security.txt").lines());
    // `ask!` in the second table means "asks or is denied".
    let commands =
        lines.filter_map(|line| line.strip_prefix(verdict)).map(|rest| rest.trim_start_matches('!'));
    let plain = |c: char| c.is_ascii_alphanumeric() || " ./_=+@:,-".contains(c);
    let found: Vec<Vec<String>> = commands
        .map(str::trim)
        .filter(|command| command.chars().all(plain))
        .map(|command| command.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect())
        .collect();
    assert!(found.len() > 60);
    found
}

/// One word in one of the ways a shell reads back as the same word.
fn spelled(word: &str, style: usize, at: usize) -> String {
    let at = at % word.len().max(1);
    let (head, tail) = word.split_at(at);
    match style {
        0 => word.to_owned(),
        1 => format!("'{word}'"),
        2 => format!("\"{word}\""),
        3 => word.chars().map(|c| format!("\\{c}")).collect(),
        4 => format!("{head}''{tail}"),
        5 => format!("{head}\"\"{tail}"),
        6 => format!("{head}\\\n{tail}"),
        7 => format!("$'{}'", word.bytes().map(|b| format!("\\x{b:02x}")).collect::<String>()),
        8 => format!("$'{}'", word.bytes().map(|b| format!("\\{b:03o}")).collect::<String>()),
        9 => format!("{head}$@{tail}"),
        10 => format!("{head}${{nothing}}{tail}"),
        11 => format!("'{head}'\"{tail}\""),
        _ => format!("{head}$nothing'{tail}'"),
    }
}

/// An absolute path in one of its other spellings.
fn respelled(word: &str, style: usize) -> String {
    match (word.strip_prefix('/'), style) {
        (Some(rest), 1) => format!("//{rest}"),
        (Some(rest), 2) => format!("/./{rest}"),
        (Some(rest), 3) => format!("/x/../{rest}"),
        (Some(rest), 4) => format!("/../{rest}"),
        _ => word.to_owned(),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The command inside something that runs it.
fn wrapped(command: &str, style: usize) -> String {
    match style {
        0 => command.to_owned(),
        1 => format!("sudo {command}"),
        2 => format!("sudo -u root -E {command}"),
        3 => format!("env {command}"),
        4 => format!("env -i A=1 {command}"),
        5 => format!("A=1 {command}"),
        6 => format!("nohup {command}"),
        7 => format!("timeout -k 1 5 {command}"),
        8 => format!("nice -n 3 {command}"),
        9 => format!("command {command}"),
        10 => format!("exec {command}"),
        11 => format!("busybox {command}"),
        12 => format!("time {command}"),
        13 => format!("stdbuf -oL {command}"),
        14 => format!("bash -c {}", quoted(command)),
        15 => format!("sh -ec {}", quoted(command)),
        16 => format!("eval {}", quoted(command)),
        17 => format!("( {command} )"),
        18 => format!("{{ {command}; }}"),
        19 => format!("if true; then {command}; fi"),
        20 => format!("ls; {command}"),
        21 => format!("{command} && ls"),
        22 => format!("ls | {command}"),
        23 => format!("echo \"$({command})\""),
        24 => format!("bash <<E\n{command}\nE"),
        25 => format!("echo {} | sh", quoted(command)),
        26 => format!("x() {{ {command}; }}; x"),
        27 => format!("xargs {command}"),
        28 => format!("find . -name x -exec {command} \\;"),
        29 => format!("while {command}; do ls; done"),
        30 => format!("\t{command} # ok"),
        31 => format!("X={}; eval \"$X\"", quoted(command)),
        32 => format!("cat <({command})"),
        33 => format!("trap {} EXIT", quoted(command)),
        34 => format!("! {command}"),
        35 => format!("setsid -w {command}"),
        _ => format!("bash <<< {}", quoted(command)),
    }
}

#[derive(Debug, Clone)]
struct Spelling {
    words: Vec<(usize, usize, usize)>,
    gaps: Vec<usize>,
    wrappers: Vec<usize>,
}

fn spelling() -> impl Strategy<Value = Spelling> {
    (
        prop::collection::vec((0usize..13, 0usize..20, 0usize..5), 8),
        prop::collection::vec(0usize..5, 8),
        prop::collection::vec(0usize..37, 0..3),
    )
        .prop_map(|(words, gaps, wrappers)| Spelling { words, gaps, wrappers })
}

fn write(command: &[String], spelling: &Spelling) -> String {
    let mut text = String::new();
    for (index, word) in command.iter().enumerate() {
        let (style, at, path) = spelling.words[index % spelling.words.len()];
        if index > 0 {
            text.push_str([" ", "  ", "\t", " \\\n", " \t "][spelling.gaps[index % spelling.gaps.len()]]);
        }
        text.push_str(&spelled(&respelled(word, path), style, at));
    }
    let last = spelling.wrappers.len().saturating_sub(1);
    let mut compound = false;
    for (index, style) in spelling.wrappers.iter().enumerate() {
        // A prefix needs a simple command behind it; a here-document or a remark must end the text.
        let prefix = matches!(style, 1..=13 | 27 | 28 | 35);
        let style =
            if (prefix && compound) || (index < last && matches!(style, 24 | 30)) { 14 } else { *style };
        compound = matches!(style, 17..=22 | 24..=26 | 29..=31 | 34);
        text = wrapped(&text, style);
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_spelling_of_a_denied_command_is_less_than_denied(command in select(plain("deny")), spelling in spelling()) {
        let text = write(&command, &spelling);
        let report = Policy::builtin().check(&text, &context());
        prop_assert!(matches!(report.verdict, Verdict::Deny(_)), "{text:?} is {} ({})", report.verdict.word(), report.reason);
    }

    #[test]
    fn no_spelling_of_an_asked_command_is_allowed(command in select(plain("ask")), spelling in spelling()) {
        let text = write(&command, &spelling);
        let report = Policy::builtin().check(&text, &context());
        prop_assert!(report.verdict != Verdict::Allow, "{text:?} is allowed ({})", report.reason);
    }

    #[test]
    fn any_text_gets_a_verdict(text in any::<String>()) {
        Policy::builtin().check(&text, &context());
    }

    #[test]
    fn any_soup_of_shell_gets_a_verdict(pieces in prop::collection::vec(select(vec![
        "rm", " ", "-rf", "/", "'", "\"", "\\", "`", "$(", ")", "${", "}", "{", "(", "<<", "E", "\n", "|", "&", ";", "<(", ">(", ">", "<", "$'",
        "[[", "]]", "((", "))", "if", "then", "fi", "for", "in", "do", "done", "case", "esac", "function", "x", "=", "X=", "$X", "*", "?", "~", "#",
        "!", "eval", "bash -c", "\r", "\0", "é", "\u{202e}", ",", "..", "<<<", "<<-", "$@", "$((", "|&", "&&", "||", ";;", "2>&1",
    ]), 0..60)) {
        let text = pieces.concat();
        let report = Policy::builtin().check(&text, &context());
        // Whatever is allowed without a shell must be exactly what is said.
        if let (Verdict::Allow, Some(argv)) = (&report.verdict, &report.argv) {
            prop_assert_eq!(&report.segments[0].argv, argv);
        }
    }
}

#[test]
fn large_garbage_ends() {
    let policy = Policy::builtin();
    let long = |piece: &str| piece.repeat(100 * 1024 / piece.len());
    for piece in [
        "(", "{", "[", "\"", "'", "`", "$(", "${", "<<E\n", "|", ";", "a ", "\\", "{a,b}", "((", "if ",
        "X=$X$X;", "rm ", "<(", "$'\\x", "é", "# ", "a\n", "[[ ", "eval ",
    ] {
        let report = policy.check(&long(piece), &context());
        assert_ne!(report.verdict, Verdict::Allow, "{piece}");
    }
    let mut state = 1u64;
    let noise: String = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        char::from(32 + (state >> 58) as u8 + ((state >> 50) as u8 & 31))
    })
    .take(100 * 1024)
    .collect();
    assert_ne!(policy.check(&noise, &context()).verdict, Verdict::Allow);
    assert!(matches!(policy.check(&"a".repeat(200 * 1024), &context()).verdict, Verdict::Deny(_)));
}
