//! `gimlet policy`: what a command would be judged as and why, the rules in force, and the rules' own examples.

use std::io::Write;

use gimlet_policy::{Jail, Policy, Say};

use crate::args::{PolicyCommand, RootArgs};
use crate::exit::ExitStatus;
use crate::style::{BOLD, DIM, ERROR, GOOD, WARNING};
use crate::world::Place;

/// Checks a command, or shows or tests the rules.
pub(crate) fn policy(command: PolicyCommand, root: &RootArgs) -> anyhow::Result<ExitStatus> {
    match command {
        PolicyCommand::Check { command, no_jail, json } => {
            let jail = if no_jail { Jail::Absent } else { Jail::Active };
            let context = Place::open(root)?.command_context(jail);
            let report = Policy::builtin().check(&command.join(" "), &context);
            let mut stdout = std::io::stdout().lock();
            if json.json {
                writeln!(stdout, "{}", serde_json::to_string(&report)?)?;
            } else {
                writeln!(stdout, "{}\t{}", report.verdict.word(), report.reason)?;
            }
            Ok(ExitStatus::Success)
        }
        PolicyCommand::Show => show(),
        PolicyCommand::Test => test(),
    }
}

fn show() -> anyhow::Result<ExitStatus> {
    let mut stdout = anstream::stdout().lock();
    for rule in Policy::builtin().rules() {
        let (style, word) = match rule.verdict {
            Say::Allow => (GOOD, "allow"),
            Say::AllowInJail => (GOOD, "allow in a jail"),
            Say::Ask => (WARNING, "ask"),
            Say::Deny => (ERROR, "deny"),
        };
        let what = [rule.program.join("|"), rule.subcommand.join("|"), rule.with.join(" ")].join(" ");
        writeln!(stdout, "{style}{word:<15}{style:#} {BOLD}{:<26}{BOLD:#} {}", rule.id, what.trim())?;
        writeln!(stdout, "{:16}{DIM}{}{DIM:#}", "", rule.reason)?;
    }
    Ok(ExitStatus::Success)
}

fn test() -> anyhow::Result<ExitStatus> {
    let policy = Policy::builtin();
    let failures = policy.self_test();
    let (rules, examples) = policy
        .rules()
        .fold((0, 0), |(rules, n), rule| (rules + 1, n + rule.matches.len() + rule.not_match.len()));
    let mut stdout = anstream::stdout().lock();
    for failure in &failures {
        writeln!(stdout, "{ERROR}✗{ERROR:#} {}: {}: {}", failure.rule, failure.example, failure.problem)?;
    }
    writeln!(stdout, "{rules} rules, {examples} examples, {} wrong", failures.len())?;
    Ok(if failures.is_empty() { ExitStatus::Success } else { ExitStatus::Failure })
}
