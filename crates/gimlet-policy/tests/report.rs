//! What callers get: the JSON shape, words for running without a shell, and verdicts on effects.

use std::path::PathBuf;

use gimlet::effect::{Effect, Policy as _, Verdict};
use gimlet_policy::{CommandPolicy, Context, Jail, Policy};

fn context(jail: Jail) -> Context {
    let mut context = Context::new("/srv/project", jail);
    context.home = Some(PathBuf::from("/home/someone"));
    context
}

#[test]
fn the_json_shape() {
    let report = Policy::builtin().check("git log; pip install 'x y' && rm -rf /", &context(Jail::Active));
    insta::assert_json_snapshot!(report);
    let report = Policy::builtin().check("ls -la | head", &context(Jail::Active));
    insta::assert_json_snapshot!(report);
}

#[test]
fn what_runs_repository_code_needs_a_jail() {
    let policy = Policy::builtin();
    for command in
        ["pytest", "python -m pytest", "npm test", "pnpm test", "yarn test", "cargo test", "go test ./..."]
    {
        assert_eq!(policy.check(command, &context(Jail::Active)).verdict, Verdict::Allow, "{command}");
        assert!(
            matches!(policy.check(command, &context(Jail::Absent)).verdict, Verdict::Ask(_)),
            "{command}"
        );
    }
    assert_eq!(policy.check("ls", &context(Jail::Absent)).verdict, Verdict::Allow);
}

#[test]
fn simple_commands_need_no_shell() {
    let policy = Policy::builtin();
    let argv = |command: &str| policy.check(command, &context(Jail::Active)).argv;
    assert_eq!(
        argv("grep 'a b' \"c\" d\\ e"),
        Some(vec!["grep".into(), "a b".into(), "c".into(), "d e".into()])
    );
    assert_eq!(argv("pip install numpy"), Some(vec!["pip".into(), "install".into(), "numpy".into()]));
    assert_eq!(argv("ls # a remark"), Some(vec!["ls".into()]));
    for shell in [
        "ls | head",
        "ls *",
        "cat ~/x",
        "echo $HOME",
        "X=1 ls",
        "ls > x",
        "cd src",
        "ls; ls",
        "ls &",
        "source x",
        "echo $?",
        "ls {a,b}",
        "$'ls'",
    ] {
        let report = policy.check(shell, &context(Jail::Active));
        assert!(report.needs_shell && report.argv.is_none(), "{shell}");
    }
}

#[test]
fn hidden_characters_are_never_waved_through() {
    let policy = Policy::builtin();
    for command in ["ls\u{a0}x", "ls \u{202e}x", "ls\r", "ls \u{1b}[2J", "ls \u{200b}x", "echo a\u{8}b"] {
        assert!(
            matches!(policy.check(command, &context(Jail::Active)).verdict, Verdict::Ask(_)),
            "{command:?}"
        );
    }
    assert!(matches!(policy.check("ls\0-la", &context(Jail::Active)).verdict, Verdict::Deny(_)));
    assert_eq!(policy.check("grep ümläut README.md", &context(Jail::Active)).verdict, Verdict::Allow);
}

#[test]
fn effects_are_judged_where_they_run() {
    let policy = CommandPolicy { policy: Policy::builtin(), context: context(Jail::Active) };
    let run = |command: &str, cwd: &str| {
        policy.judge(&Effect::Run { command: command.into(), cwd: cwd.into() }).unwrap()
    };
    assert_eq!(run("cat ../README.md", "src"), Verdict::Allow);
    assert!(matches!(run("cat ../README.md", ""), Verdict::Ask(_)));
    assert!(matches!(run("cat ../.env", "src"), Verdict::Deny(_)));
    assert!(matches!(run("echo x > hooks/pre-commit", ".git"), Verdict::Deny(_)));
    assert_eq!(policy.judge(&Effect::Read { path: "x".into() }).unwrap(), Verdict::Allow);
    assert_eq!(policy.judge(&Effect::Opaque { what: "x".into() }).unwrap(), Verdict::Allow);
}

#[test]
fn without_a_known_home_the_answer_is_not_weaker() {
    let policy = Policy::builtin();
    let context = Context::new("/srv/project", Jail::Active);
    assert!(matches!(policy.check("cat ~/.ssh/id_rsa", &context).verdict, Verdict::Deny(_)));
    assert!(matches!(policy.check("cat $HOME/.ssh/id_rsa", &context).verdict, Verdict::Deny(_)));
    assert!(matches!(policy.check("cat ~/notes", &context).verdict, Verdict::Ask(_)));
    assert!(matches!(policy.check("cd && cat x", &context).verdict, Verdict::Ask(_)));
}
