//! The table of commands, and what must hold for every way of writing them.

use std::path::PathBuf;

use gimlet_policy::{Context, Jail, Policy};

fn context() -> Context {
    let mut context = Context::new("/srv/project", Jail::Active);
    context.home = Some(PathBuf::from("/home/someone"));
    context.gimlet_home = Some(PathBuf::from("/home/someone/.local/share/gimlet"));
    context
}

fn table() -> Vec<(&'static str, String)> {
    let lines = include_str!("commands.txt").lines();
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (verdict, command) = line.split_once(' ').unwrap_or((line, ""));
            (verdict, command.trim_start_matches(' ').replace('⏎', "\n"))
        })
        .collect()
}

fn word(verdict: &str) -> &str {
    if verdict == "ask" { "require_approval" } else { verdict }
}

#[test]
fn every_command_of_the_table_gets_its_verdict() {
    let (policy, context, table) = (Policy::builtin(), context(), table());
    assert!(table.len() >= 300, "{}", table.len());
    let wrong: Vec<String> = table
        .iter()
        .filter_map(|(verdict, command)| {
            let report = policy.check(command, &context);
            let got = report.verdict.word();
            (got != word(verdict)).then(|| format!("{command:?}: {got}, not {verdict} ({})", report.reason))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), table.len(), wrong.join("\n"));
}
