//! What a review of the policy found, as tables of commands: each section is one finding and the class behind it.

use std::path::PathBuf;

use gimlet::effect::Verdict;
use gimlet_policy::{Context, Jail, Policy};

fn context(jail: Jail) -> Context {
    let mut context = Context::new("/srv/project", jail);
    context.home = Some(PathBuf::from("/home/someone"));
    context.gimlet_home = Some(PathBuf::from("/home/someone/.local/share/gimlet"));
    context
}

/// The lines of one section as expected verdict and command.
fn section(title: &str) -> Vec<(&'static str, &'static str)> {
    let tables = [include_str!("security.txt"), include_str!("variants.txt")];
    let mut lines = tables.into_iter().flat_map(str::lines).skip_while(|line| *line != format!("## {title}"));
    assert!(lines.next().is_some(), "no section {title}");
    let lines = lines
        .take_while(|line| !line.starts_with("## "))
        .filter(|line| !line.is_empty() && !line.starts_with("# "));
    lines
        .filter_map(|line| line.split_once(' '))
        .map(|(verdict, command)| (verdict, command.trim()))
        .collect()
}

fn check(title: &str, least: usize) {
    let (policy, context, cases) = (Policy::builtin(), context(Jail::Active), section(title));
    assert!(cases.len() >= least, "{} cases in {title}", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(expected, command)| {
            let report = policy.check(command, &context);
            let right = match *expected {
                "allow" => report.verdict == Verdict::Allow,
                "ask!" => report.verdict != Verdict::Allow,
                "deny" => matches!(report.verdict, Verdict::Deny(_)),
                _ => false,
            };
            let got = report.verdict.word();
            (!right).then(|| format!("{command:?}: {got}, not {expected} ({})", report.reason))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn finding_03_secrets_are_not_read_through_commands_that_look() {
    check("Finding 3: secrets through commands that only look", 200);
}

#[test]
fn finding_04_runner_options_ask() {
    check("Finding 4: options of test runners", 250);
    check("Options of runners and linters", 400);
}

#[test]
fn finding_16_commands_that_change_something_ask() {
    check("Finding 16: commands that change something and look harmless", 50);
}

#[test]
fn variants_of_every_class_ask_or_are_denied() {
    check("Git, redirections, variables, wrappers and programs in programs", 700);
    check("Denied in any spelling", 250);
}

#[test]
fn everyday_commands_run_unasked_in_the_jail() {
    check("Everyday looking", 200);
    check("Everyday commands", 80);
    check("What these must not let through", 80);
}

#[test]
fn without_a_jail_code_of_the_project_asks() {
    let (policy, context) = (Policy::builtin(), context(Jail::Absent));
    for command in [
        "pytest",
        "cargo test",
        "cargo check",
        "npm test",
        "npm run lint",
        "go vet ./...",
        "mypy src",
        "make -n",
        "cargo --version",
        "yarn --version",
        "mvn -v",
        "env",
    ] {
        assert!(matches!(policy.check(command, &context).verdict, Verdict::Ask(_)), "{command}");
    }
}
