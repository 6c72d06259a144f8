//! JavaScript and Ruby runners, and TAP.

use super::{Failure, Findings, is_outside, number_after, number_before};

/// Splits lines into failures: `start` names one, `end` closes it.
fn blocks<'t>(
    lines: &[&'t str],
    start: impl Fn(&str) -> Option<String>,
    end: impl Fn(&str) -> bool,
) -> Vec<Failure<'t>> {
    let mut found: Vec<Failure<'t>> = Vec::new();
    let mut open = false;
    for line in lines {
        if let Some(name) = start(line) {
            found.push(Failure { name, lines: Vec::new() });
            open = true;
        } else if end(line) {
            open = false;
        } else if open && let Some(failure) = found.last_mut() {
            failure.lines.push(line);
        }
    }
    found
}

/// Removes the frames outside the project.
fn inside(failures: &mut [Failure<'_>]) {
    for failure in failures {
        failure.lines.retain(|line| {
            let line = line.trim_start();
            let is_frame = line.starts_with("at ")
                || line.starts_with("# ")
                || line.starts_with("node:")
                || line.contains(" (node:");
            !(is_frame && is_outside(line))
        });
    }
}

/// Jest.
pub(super) fn jest<'t>(lines: &[&'t str]) -> Findings<'t> {
    let mut failures = blocks(
        lines,
        |line| line.strip_prefix("  ● ").map(str::to_owned),
        |line| {
            ["FAIL ", "PASS ", "Test Suites:", "Tests:", "Summary of all"]
                .iter()
                .any(|start| line.starts_with(start))
        },
    );
    inside(&mut failures);
    let mut seen = std::collections::HashSet::new();
    // Failures of a long run are printed twice.
    failures.retain(|failure| seen.insert(failure.name.clone()) && !failure.name.starts_with("Console"));
    let mut found = Findings { failures, ..Findings::default() };
    if let Some(line) = lines.iter().rev().find(|line| line.starts_with("Tests:")) {
        found.passed = Some(number_before(line, " passed").unwrap_or(0));
        found.failed = Some(number_before(line, " failed").unwrap_or(0));
    }
    // A suite that cannot be loaded has no tests that could fail.
    let suites = lines.iter().rev().find(|line| line.starts_with("Test Suites:"));
    let broken = suites.and_then(|line| number_before(line, " failed")).unwrap_or(0);
    if found.failed.is_none_or(|failed| failed == 0) && broken > 0 {
        found.failed = Some(broken);
    }
    found
}

/// Vitest.
pub(super) fn vitest<'t>(lines: &[&'t str]) -> Findings<'t> {
    let mut failures = blocks(
        lines,
        |line| line.strip_prefix(" FAIL  ").map(str::to_owned),
        |line| line.starts_with("⎯⎯") || line.trim_start().starts_with("Test Files  "),
    );
    inside(&mut failures);
    let mut found = Findings { failures, ..Findings::default() };
    let totals = |word: &str| lines.iter().rev().find(|line| line.trim_start().starts_with(word));
    if let Some(line) = totals("Tests  ") {
        found.passed = Some(number_before(line, " passed").unwrap_or(0));
        found.failed = Some(number_before(line, " failed").unwrap_or(0));
    }
    let broken = totals("Test Files  ").and_then(|line| number_before(line, " failed")).unwrap_or(0);
    if found.failed.is_none_or(|failed| failed == 0) && broken > 0 {
        found.failed = Some(broken);
    }
    found
}

/// `node --test`, as TAP or for people.
pub(super) fn node<'t>(lines: &[&'t str]) -> Findings<'t> {
    let count = |word: &str| {
        lines.iter().rev().find_map(|line| {
            let rest = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "))?;
            rest.strip_prefix(word)?.trim().parse().ok()
        })
    };
    let is_tap = lines.iter().any(|line| line.starts_with("TAP version"));
    let failures = if is_tap {
        tap(lines).failures
    } else {
        // The list at the end repeats each failing test with its place.
        let start = lines.iter().rposition(|line| line.ends_with("failing tests:")).map_or(0, |at| at + 1);
        let rest = lines.get(start..).unwrap_or_default();
        let name = |line: &str| {
            let rest = line.trim_start().strip_prefix("✖ ")?;
            Some(rest.rsplit_once(" (").map_or(rest, |(name, _)| name).to_owned())
        };
        let mut failures = blocks(rest, name, |line| {
            line.starts_with("test at ") || line.starts_with("ℹ ") || line.starts_with("✔ ")
        });
        inside(&mut failures);
        for failure in &mut failures {
            failure.lines.retain(|line| !line.contains("generatedMessage:") && line.trim() != "}");
        }
        failures
    };
    Findings { passed: count("pass "), failed: count("fail "), failures }
}

/// TAP: bats, prove, and node's own.
pub(super) fn tap<'t>(lines: &[&'t str]) -> Findings<'t> {
    let (mut passed, mut failed) = (0u32, 0u32);
    let mut found: Vec<Failure<'t>> = Vec::new();
    let mut open = false;
    for line in lines {
        let trimmed = line.trim_start();
        let is_top = trimmed.len() == line.len();
        if let Some(rest) = trimmed.strip_prefix("not ok ") {
            let name = rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches([' ', '-']);
            open = !name.contains("# TODO") && !name.contains("# SKIP");
            if open {
                failed += u32::from(is_top);
                found.push(Failure { name: name.into(), lines: Vec::new() });
            }
        } else if trimmed.starts_with("ok ") {
            passed += u32::from(is_top && !trimmed.contains("# skip") && !trimmed.contains("# SKIP"));
            open = false;
        } else if trimmed.starts_with("# Subtest") || trimmed == "..." || trimmed.starts_with("1..") {
            open = false;
        } else if open && let Some(failure) = found.last_mut() {
            failure.lines.push(line);
        }
    }
    // A suite only says that its parts failed.
    found.retain(|failure| !failure.lines.iter().any(|line| line.contains("subtestsFailed")));
    inside(&mut found);
    for failure in &mut found {
        const NOISE: &[&str] =
            &["---", "duration_ms:", "failureType:", "code:", "name:", "operator:", "type:"];
        failure.lines.retain(|line| !NOISE.iter().any(|noise| line.trim_start().starts_with(noise)));
    }
    Findings { passed: Some(passed), failed: Some(failed), failures: found }
}

/// `1) name` at the beginning of a line: the number's rest.
fn numbered(line: &str) -> Option<&str> {
    let (number, rest) = line.trim_start().split_once(") ")?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) && line.starts_with("  "))
        .then_some(rest)
}

/// RSpec.
pub(super) fn rspec<'t>(lines: &[&'t str]) -> Findings<'t> {
    let start = lines.iter().position(|line| line.starts_with("Failures:")).unwrap_or(0);
    let rest = lines.get(start..).unwrap_or_default();
    let mut failures = blocks(
        rest,
        |line| numbered(line).map(str::to_owned),
        |line| ["Finished in", "Failed examples:", "Pending:"].iter().any(|end| line.starts_with(end)),
    );
    inside(&mut failures);
    let mut found = Findings { failures, ..Findings::default() };
    if let Some(line) = lines.iter().rev().find(|line| line.contains(" example") && line.contains(" failure"))
    {
        let failed = number_before(line, " failure").unwrap_or(0);
        let outside = number_before(line, " error").unwrap_or(0);
        let all = number_before(line, " example").unwrap_or(0);
        let pending = number_before(line, " pending").unwrap_or(0);
        found.failed = Some(failed + outside);
        found.passed = Some(all.saturating_sub(failed).saturating_sub(pending));
    }
    found
}

/// Minitest.
pub(super) fn minitest<'t>(lines: &[&'t str]) -> Findings<'t> {
    let is_kind = |line: &str| numbered(line).is_some_and(|kind| matches!(kind, "Failure:" | "Error:"));
    let mut failures = blocks(
        lines,
        |line| is_kind(line).then(String::new),
        |line| line.contains(" runs, ") || line.starts_with("Finished in"),
    );
    for failure in &mut failures {
        let first = failure.lines.first().copied().unwrap_or_default();
        failure.name = first.split(" [").next().unwrap_or(first).trim_end_matches(':').into();
    }
    inside(&mut failures);
    let mut found = Findings { failures, ..Findings::default() };
    if let Some(line) =
        lines.iter().rev().find(|line| line.contains(" runs, ") && line.contains(" assertions, "))
    {
        let failed =
            number_before(line, " failures").unwrap_or(0) + number_before(line, " errors").unwrap_or(0);
        let all = number_before(line, " runs").or_else(|| number_after(line, "runs ")).unwrap_or(0);
        let skipped = number_before(line, " skips").unwrap_or(0);
        found.failed = Some(failed);
        found.passed = Some(all.saturating_sub(failed).saturating_sub(skipped));
    }
    found
}
