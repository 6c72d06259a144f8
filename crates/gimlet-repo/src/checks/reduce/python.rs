//! pytest and unittest.

use super::{Failure, Findings, is_outside, number_after, number_before};

/// pytest, quiet or verbose.
pub(super) fn pytest<'t>(lines: &[&'t str]) -> Findings<'t> {
    let mut found = Findings::default();
    let mut current: Option<Failure<'t>> = None;
    for line in lines {
        if let Some(name) = titled(line, '_') {
            found.failures.extend(current.take());
            let name = name.strip_prefix("ERROR collecting ").unwrap_or(name);
            current = Some(Failure { name: name.into(), lines: Vec::new() });
        } else if titled(line, '=').is_some() || titled(line, '!').is_some() {
            found.failures.extend(current.take());
        } else if let Some(current) = &mut current {
            current.lines.push(line);
        }
    }
    found.failures.extend(current);
    for failure in &mut found.failures {
        failure.lines = inside(&failure.lines);
    }
    // The summary at the end has the full names.
    let summary =
        lines.iter().filter_map(|line| line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR ")));
    let full: Vec<&str> = summary
        .map(|line| line.split(" - ").next().unwrap_or(line).trim())
        .filter(|name| !name.is_empty())
        .collect();
    for failure in &mut found.failures {
        let plain = failure.name.replace('.', "::");
        if let Some(full) = full.iter().find(|full| full.ends_with(&format!("::{plain}"))) {
            failure.name = (*full).into();
        }
    }
    if found.failures.is_empty() {
        found.failures =
            full.iter().map(|name| Failure { name: (*name).into(), lines: Vec::new() }).collect();
    }
    let totals = lines.iter().rev().find(|line| {
        line.contains(" in ")
            && [" passed", " failed", " error", " skipped", " deselected"]
                .iter()
                .any(|word| line.contains(word))
    });
    if let Some(line) = totals {
        let of = |word| number_before(line, word);
        found.passed = Some(of(" passed").unwrap_or(0));
        found.failed = Some(of(" failed").unwrap_or(0) + of(" error").unwrap_or(0));
    }
    found
}

/// The text between two rows of a character.
fn titled(line: &str, mark: char) -> Option<&str> {
    if !line.starts_with(mark) || !line.ends_with(mark) {
        return None;
    }
    let inner = line.trim_matches(mark);
    let is_title = inner.starts_with(' ') && inner.ends_with(' ') && line.len() >= inner.len() + 2;
    Some(inner.trim()).filter(|title| is_title && !title.is_empty() && !title.starts_with('_'))
}

/// The lines of a failure without the frames outside the project and without what only fills the page.
fn inside<'t>(lines: &[&'t str]) -> Vec<&'t str> {
    let mut kept: Vec<&str> = Vec::new();
    let mut skipping = false;
    for line in lines {
        let is_frame = !line.starts_with([' ', '>', 'E', '_']) && line.contains(": in ");
        if is_frame {
            skipping = is_outside(line);
        } else if line.starts_with(['E', '_', '>']) {
            skipping = false;
        }
        let is_noise =
            line.starts_with("_ _ _") || line.starts_with("self = <") || line.starts_with("Hint: make sure");
        if !skipping && !is_noise {
            kept.push(line);
        }
    }
    kept
}

/// Python's own test runner.
pub(super) fn unittest<'t>(lines: &[&'t str]) -> Findings<'t> {
    let mut found = Findings::default();
    let mut current: Option<Failure<'t>> = None;
    let mut previous = "";
    for line in lines {
        let title = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: "));
        if let Some(title) = title.filter(|_| previous.starts_with("=====")) {
            found.failures.extend(current.take());
            current = Some(Failure { name: full_name(title), lines: Vec::new() });
        } else if line.starts_with("=====")
            || (line.starts_with("-----") && current.as_ref().is_some_and(|c| !c.lines.is_empty()))
        {
            found.failures.extend(current.take());
        } else if let Some(current) = &mut current
            && !line.starts_with("-----")
        {
            current.lines.push(line);
        }
        previous = line;
    }
    found.failures.extend(current);
    for failure in &mut found.failures {
        failure.lines = frames(&failure.lines);
    }
    let ran =
        lines.iter().rev().find(|line| line.starts_with("Ran ")).and_then(|line| number_after(line, "Ran "));
    if let Some(ran) = ran {
        let end = lines.iter().rev().find(|line| line.starts_with("FAILED (") || line.starts_with("OK"));
        let of = |word| end.and_then(|line| number_after(line, word)).unwrap_or(0);
        let failed = of("failures=") + of("errors=") + of("unexpected successes=");
        found.failed = Some(failed);
        found.passed = Some(ran.saturating_sub(failed).saturating_sub(of("skipped=")));
    }
    found
}

/// `test_x (pkg.Class.test_x)` is `pkg.Class.test_x`; older versions leave the method out of the brackets.
fn full_name(title: &str) -> String {
    let Some((method, place)) = title.split_once(" (") else { return title.into() };
    let place = place.split(')').next().unwrap_or(place);
    if place.ends_with(method) { place.into() } else { format!("{place}.{method}") }
}

/// A traceback without the frames outside the project; all of it if nothing would be left.
fn frames<'t>(lines: &[&'t str]) -> Vec<&'t str> {
    let mut kept: Vec<&str> = Vec::new();
    let mut skipping = false;
    for line in lines {
        if line.starts_with("  File \"") {
            skipping = is_outside(line);
        } else if !line.starts_with("    ") {
            skipping = false;
        }
        if !skipping {
            kept.push(line);
        }
    }
    kept
}

/// A script that ended with a traceback.
pub(super) fn uncaught<'t>(lines: &[&'t str]) -> Vec<Failure<'t>> {
    let Some(start) = lines.iter().rposition(|line| line.trim() == "Traceback (most recent call last):")
    else {
        return Vec::new();
    };
    let block = lines.get(start..).unwrap_or_default();
    let end = block.iter().skip(1).position(|line| !line.starts_with(' ')).map_or(block.len(), |at| at + 2);
    let block = block.get(..end.min(block.len())).unwrap_or(block);
    let name = block.last().copied().unwrap_or_default().to_owned();
    vec![Failure { name, lines: frames(block) }]
}
