//! `gimlet policy`: what a command would be judged as and why, the rules in force, and the rules' own examples.

use std::io::Write;

use gimlet::approval::binding;
use gimlet::command::Confinement;
use gimlet::effect::{Effect, Verdict};
use gimlet::store::{Grant, Reach};
use gimlet_runtime::parts::policy::{Author, Jail, Report, Rule, Say};

use serde_json::json;

use crate::app;
use crate::args::{PolicyCommand, RootArgs};
use crate::exit::{ExitStatus, UsageError};
use crate::show::{day, effect_line};
use crate::style::{BOLD, DIM, ERROR, GOOD, NAME, WARNING};
use gimlet_runtime::Project;

/// The tools that run commands: what was said of one of them is said of the command.
const COMMAND_TOOLS: [&str; 2] = ["run_cmd", "run_tests"];

/// Checks a command, or shows or tests the rules.
pub(crate) async fn policy(command: PolicyCommand) -> anyhow::Result<ExitStatus> {
    let project = |root: &RootArgs| Project::to_look_at(&app::settings(root)?);
    match command {
        PolicyCommand::Check { command, no_jail, json, root } => {
            let jail = if no_jail { Jail::Absent } else { Jail::Active };
            check(&project(&root)?, &command.join(" "), jail, json.json).await
        }
        PolicyCommand::Show { root, json } => match json.json {
            true => show_json(&project(&root)?).await,
            false => show(&project(&root)?).await,
        },
        PolicyCommand::Test(root) => test(&project(&root)?),
        PolicyCommand::Forget { id } => forget(&id).await,
    }
}

async fn check(project: &Project, command: &str, jail: Jail, json: bool) -> anyhow::Result<ExitStatus> {
    let mut report = project.policy().check(command, &project.command_context(jail));
    if matches!(report.verdict, Verdict::Ask(_))
        && let Some(grant) = always(project, command, jail).await?
    {
        report = Report {
            verdict: Verdict::Allow,
            reason: format!("you said always ({})", name(&grant)),
            ..report
        };
    }
    if json {
        crate::out::json(&report)?;
    } else {
        writeln!(crate::out::stdout(), "{}\t{}", report.verdict.word(), report.reason)?;
    }
    Ok(ExitStatus::Success)
}

/// The standing yes that a command has here.
async fn always(project: &Project, command: &str, jail: Jail) -> anyhow::Result<Option<Grant>> {
    let effects = [Effect::Run { command: command.to_owned(), cwd: "".into() }];
    let root = project.path().display().to_string();
    let confinement = match jail {
        Jail::Active => Confinement::Jailed,
        Jail::Absent => Confinement::None,
    };
    let bindings = COMMAND_TOOLS.map(|tool| binding(tool, &effects, &root, confinement));
    Ok(standing().await?.into_iter().find(|grant| bindings.contains(&grant.request.binding)))
}

/// Every answer that was given with "always".
async fn standing() -> anyhow::Result<Vec<Grant>> {
    let grants = app::inbox()?.grants().await?;
    Ok(grants.into_iter().filter(|grant| grant.reach == Reach::Always).collect())
}

/// What people call a standing yes.
fn name(grant: &Grant) -> String {
    format!("always-{}", grant.request.binding.chars().take(8).collect::<String>())
}

async fn show(project: &Project) -> anyhow::Result<ExitStatus> {
    let mut stdout = crate::out::stdout();
    for rule in project.policy().rules() {
        let (style, word) = match rule.verdict {
            Say::Allow => (GOOD, "allow"),
            Say::AllowInJail => (GOOD, "allow in a jail"),
            Say::Ask => (WARNING, "ask"),
            Say::Deny => (ERROR, "deny"),
        };
        let what = [rule.program.join("|"), rule.subcommand.join("|"), rule.with.join(" ")].join(" ");
        writeln!(stdout, "{style}{word:<15}{style:#} {BOLD}{:<26}{BOLD:#} {}", rule.id, what.trim())?;
        writeln!(stdout, "{:16}{DIM}{}{}{DIM:#}", "", rule.reason, source(rule))?;
    }
    for secret in project.policy().added_secrets() {
        writeln!(stdout, "{ERROR}{:<15}{ERROR:#} {BOLD}{secret}{BOLD:#}", "never shown")?;
    }
    for grant in standing().await? {
        let effects: Vec<String> = grant.request.effects.iter().map(effect_line).collect();
        let name = name(&grant);
        writeln!(stdout, "{GOOD}{:<15}{GOOD:#} {BOLD}{name:<26}{BOLD:#} {}", "allow", effects.join(", "))?;
        let day = day(grant.granted);
        writeln!(stdout, "{:16}{DIM}you said always on {day}; gimlet policy forget {name}{DIM:#}", "")?;
    }
    Ok(ExitStatus::Success)
}

async fn show_json(project: &Project) -> anyhow::Result<ExitStatus> {
    let always: Vec<_> = standing().await?
        .iter()
        .map(|grant| json!({ "name": name(grant), "effects": grant.request.effects, "granted": grant.granted }))
        .collect();
    let rules: Vec<&Rule> = project.policy().rules().collect();
    crate::out::json(&json!({
        "rules": rules,
        "secrets": project.policy().added_secrets(),
        "always": always,
    }))?;
    Ok(ExitStatus::Success)
}

/// Whose rule it is; what is shipped needs no saying.
fn source(rule: &Rule) -> String {
    match rule.author {
        Author::Builtin => String::new(),
        Author::User => format!(" (yours, {})", rule.source),
        Author::Project => format!(" (the project's, {})", rule.source),
    }
}

fn test(project: &Project) -> anyhow::Result<ExitStatus> {
    // Rules that were added have been tried when they were read; only the shipped ones are left.
    let failures = gimlet_runtime::parts::policy::Policy::builtin().self_test();
    let (rules, examples) = project
        .policy()
        .rules()
        .fold((0, 0), |(rules, n), rule| (rules + 1, n + rule.matches.len() + rule.not_match.len()));
    let mut stdout = crate::out::stdout();
    for failure in &failures {
        writeln!(stdout, "{ERROR}✗{ERROR:#} {}: {}: {}", failure.rule, failure.example, failure.problem)?;
    }
    writeln!(stdout, "{rules} rules, {examples} examples, {} wrong", failures.len())?;
    Ok(if failures.is_empty() { ExitStatus::Success } else { ExitStatus::Failure })
}

async fn forget(id: &str) -> anyhow::Result<ExitStatus> {
    let found = standing().await?.into_iter().find(|grant| name(grant) == id);
    let Some(grant) = found else {
        return Err(UsageError::new(format!("nothing was answered with always under the name `{id}`"))
            .hint("see `gimlet policy show`")
            .into());
    };
    app::inbox()?.revoke(&grant.request.binding).await?;
    writeln!(crate::out::stderr(), "forgotten: {NAME}{id}{NAME:#} asks again")?;
    Ok(ExitStatus::Success)
}
