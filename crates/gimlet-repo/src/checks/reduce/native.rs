//! cargo, go, ctest and compilers.

use super::{Failure, Findings, is_outside, number_after, number_before};

/// Most lines of a compiler's message.
const MESSAGE_LINES: usize = 20;

/// `cargo test`: failing tests, or the errors of the build.
pub(super) fn cargo<'t>(lines: &[&'t str]) -> Findings<'t> {
    let mut found = Findings::default();
    let mut current: Option<Failure<'t>> = None;
    for line in lines {
        if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" ----")) {
            found.failures.extend(current.take());
            let name = name.strip_suffix(" stdout").unwrap_or(name);
            current = Some(Failure { name: name.into(), lines: Vec::new() });
        } else if *line == "failures:" || line.starts_with("test result: ") {
            found.failures.extend(current.take());
        } else if let Some(current) = &mut current {
            current.lines.push(line);
        }
    }
    found.failures.extend(current);
    for failure in &mut found.failures {
        failure.lines = backtrace(&failure.lines);
    }
    // Tests of a file and its documentation are counted apart.
    for line in lines.iter().filter(|line| line.starts_with("test result: ")) {
        let add = |sum: Option<u32>, word| {
            Some(sum.unwrap_or(0).saturating_add(number_before(line, word).unwrap_or(0)))
        };
        found.passed = add(found.passed, " passed");
        found.failed = add(found.failed, " failed");
    }
    if found.failures.is_empty() && found.failed.is_none() {
        found.failures = rustc(lines);
        found.failed = (!found.failures.is_empty()).then_some(1);
    }
    found
}

/// A panic's message and the frames of the project.
fn backtrace<'t>(lines: &[&'t str]) -> Vec<&'t str> {
    let Some(start) = lines.iter().position(|line| *line == "stack backtrace:") else {
        return lines
            .iter()
            .copied()
            .filter(|line| !line.starts_with("note: run with `RUST_BACKTRACE"))
            .collect();
    };
    let (message, frames) = lines.split_at(start);
    let mut kept = message.to_vec();
    for pair in frames.windows(2) {
        let place = pair[1].trim_start().strip_prefix("at ");
        if place.is_some_and(|place| !is_outside(place)) && !pair[0].contains("{{closure}}") {
            kept.extend(pair);
        }
    }
    kept
}

/// The errors of rustc, each up to the empty line behind it.
fn rustc<'t>(lines: &[&'t str]) -> Vec<Failure<'t>> {
    let mut found: Vec<Failure<'t>> = Vec::new();
    let mut open = false;
    for line in lines {
        let is_error = line.starts_with("error[") || line.starts_with("error: ");
        if is_error && !line.contains("could not compile") && !line.contains("aborting due to") {
            found.push(Failure { name: (*line).into(), lines: vec![line] });
            open = true;
        } else if line.is_empty() || is_error || line.starts_with("warning") {
            open = false;
        } else if open
            && let Some(error) = found.last_mut()
            && error.lines.len() < MESSAGE_LINES
        {
            // The rest of a message about the standard library explains little.
            if is_outside(line) {
                open = false;
            } else {
                error.lines.push(line);
            }
        }
    }
    // The library and its tests are compiled apart and complain alike.
    found.dedup_by(|b, a| a.lines == b.lines);
    found
}

/// `go test`, verbose or not.
pub(super) fn go<'t>(lines: &[&'t str]) -> Findings<'t> {
    let mut found = Findings::default();
    let (mut passed, mut failed, mut verbose) = (0u32, 0u32, false);
    // Verbose output tells what a test says before it tells that it failed.
    let mut before: Vec<&'t str> = Vec::new();
    let mut open = false;
    for line in lines {
        let trimmed = line.trim_start();
        if let Some(rest) = trimmed.strip_prefix("--- FAIL: ") {
            let name = rest.split(" (").next().unwrap_or(rest);
            // A test fails because its parts do: the parts say why.
            if trimmed.len() != line.len() {
                let is_parent = |failure: &Failure<'_>| name.starts_with(&format!("{}/", failure.name));
                if let Some(at) = found.failures.iter().position(is_parent) {
                    found.failures.remove(at);
                }
            } else {
                failed += 1;
            }
            found.failures.push(Failure { name: name.into(), lines: std::mem::take(&mut before) });
            open = true;
        } else if trimmed.starts_with("--- PASS: ")
            || trimmed.starts_with("=== ")
            || trimmed.starts_with("--- SKIP: ")
        {
            verbose |= trimmed.starts_with("=== RUN") || trimmed.starts_with("--- PASS: ");
            passed += u32::from(line.starts_with("--- PASS: "));
            before.clear();
            open = false;
        } else if *line == "FAIL"
            || *line == "PASS"
            || line.starts_with("FAIL\t")
            || line.starts_with("ok  \t")
        {
            open = false;
        } else if open && let Some(failure) = found.failures.last_mut() {
            failure.lines.push(line);
        } else {
            before.push(line);
        }
    }
    for failure in &mut found.failures {
        failure.lines = goroutines(&failure.lines);
    }
    let is_built = lines
        .iter()
        .any(|line| line.starts_with("ok  \t") || line.starts_with("--- ") || line.starts_with("?   \t"));
    if failed > 0 || is_built {
        found.failed = Some(failed);
        found.passed = verbose.then_some(passed);
    }
    let broken = lines
        .iter()
        .filter(|line| {
            line.starts_with("FAIL\t") && (line.contains("[build failed]") || line.contains("[setup failed]"))
        })
        .count();
    if broken > 0 {
        found.failed = Some(failed.saturating_add(u32::try_from(broken).unwrap_or(u32::MAX)));
        let message = |line: &&&str| line.contains(".go:") && !line.starts_with(['\t', ' ']);
        let errors: Vec<&str> = lines.iter().filter(message).copied().take(MESSAGE_LINES).collect();
        if let Some(first) = errors.first() {
            found.failures.insert(0, Failure { name: (*first).into(), lines: errors });
        }
    }
    found
}

/// The frames of a panic that lie in the project: a line with the function, and one with its place.
fn goroutines<'t>(lines: &[&'t str]) -> Vec<&'t str> {
    let mut kept: Vec<&str> = Vec::new();
    for line in lines {
        if line.starts_with('\t') && line.contains(".go:") {
            if is_outside(line) {
                kept.pop();
            } else {
                kept.push(line);
            }
        } else {
            kept.push(line);
        }
    }
    kept
}

/// CMake's test runner.
pub(super) fn ctest<'t>(lines: &[&'t str]) -> Findings<'t> {
    let mut found = Findings::default();
    let mut open = false;
    for line in lines {
        if let Some((_, rest)) = line.split_once(" Test ").filter(|(number, _)| number.contains('/')) {
            open = rest.contains("***");
            if open {
                let name = rest.split_once(": ").map_or(rest, |(_, name)| name);
                let name = name.split(" .").next().unwrap_or(name).split("***").next().unwrap_or(name).trim();
                found.failures.push(Failure { name: name.into(), lines: vec![line] });
            }
        } else if line.trim_start().starts_with("Start ") || line.contains("% tests passed, ") {
            open = false;
        } else if open && let Some(failure) = found.failures.last_mut() {
            failure.lines.push(line);
        }
    }
    if let Some(line) = lines.iter().rev().find(|line| line.contains("% tests passed, ")) {
        let failed =
            number_before(line, " tests failed").or_else(|| number_before(line, " test failed")).unwrap_or(0);
        found.failed = Some(failed);
        found.passed = number_after(line, "out of ").map(|all| all.saturating_sub(failed));
    }
    found
}

/// The errors of a compiler or linker: `file:line:column: error: message`, with the lines quoted below each.
pub(super) fn compiler<'t>(lines: &[&'t str]) -> Vec<Failure<'t>> {
    const MARKS: &[&str] =
        &[": error:", ": fatal error:", ": undefined reference to", "error TS", ": error C"];
    let mut found: Vec<Failure<'t>> = Vec::new();
    let mut open = false;
    for line in lines {
        if MARKS.iter().any(|mark| line.contains(mark)) {
            found.push(Failure { name: line.trim().into(), lines: vec![line] });
            open = true;
        } else if !line.starts_with([' ', '\t']) {
            open = false;
        } else if open
            && let Some(error) = found.last_mut()
            && error.lines.len() < MESSAGE_LINES
        {
            error.lines.push(line);
        }
    }
    if found.is_empty() { rustc(lines) } else { found }
}
