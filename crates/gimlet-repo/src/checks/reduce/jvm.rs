//! Maven and Gradle.

use super::{Failure, Findings, number_after, number_before};

/// Most lines of a failure.
const FAILURE_LINES: usize = 20;

/// Frames of libraries.
fn is_library(line: &str) -> bool {
    const PACKAGES: &[&str] = &[
        "at org.junit.",
        "at java.",
        "at java.base/",
        "at jdk.",
        "at sun.",
        "at org.opentest4j.",
        "at org.hamcrest.",
        "at org.assertj.",
        "at org.gradle.",
        "at org.apache.maven.",
        "at app//org.junit",
        "at com.sun.",
    ];
    let line = line.trim_start();
    PACKAGES.iter().any(|package| line.starts_with(package)) || line.starts_with("... ")
}

/// Maven with surefire.
pub(super) fn maven<'t>(lines: &[&'t str]) -> Findings<'t> {
    let mut found = Findings::default();
    let mut open = false;
    for line in lines {
        let message = line.strip_prefix("[ERROR] ");
        // `[ERROR] shop.CartTest.adds -- Time elapsed: 0.01 s <<< FAILURE!`; older versions write `adds(shop.CartTest)`.
        let title = message.filter(|text| text.contains("<<< FAILURE!") || text.contains("<<< ERROR!"));
        match title {
            Some(text) if text.starts_with("Tests run:") => open = false,
            Some(text) => {
                let name =
                    text.split("  Time elapsed").next().unwrap_or(text).split(" -- ").next().unwrap_or(text);
                found.failures.push(Failure { name: name.trim().into(), lines: Vec::new() });
                open = true;
            }
            None if line.starts_with('[') || line.is_empty() => open = false,
            None => {
                if open
                    && let Some(failure) = found.failures.last_mut()
                    && failure.lines.len() < FAILURE_LINES
                    && !is_library(line)
                {
                    failure.lines.push(line);
                }
            }
        }
    }
    if let Some(line) =
        lines.iter().rev().find(|line| line.contains("Tests run: ") && !line.contains("Time elapsed"))
    {
        let of = |word| number_after(line, word).unwrap_or(0);
        let failed = of("Failures: ") + of("Errors: ");
        found.failed = Some(failed);
        found.passed = Some(of("Tests run: ").saturating_sub(failed).saturating_sub(of("Skipped: ")));
    } else if found.failures.is_empty() {
        // `[ERROR] /src/Cart.java:[5,24] cannot find symbol`, which Maven says twice.
        let mut errors: Vec<&str> = Vec::new();
        let mut inside = false;
        for line in lines {
            let text = line.strip_prefix("[ERROR] ").unwrap_or(line);
            let is_place = text.contains(".java:[") || text.contains(".kt:[");
            if is_place && errors.contains(&text) {
                break;
            }
            inside = is_place || (inside && line.starts_with("[ERROR]   "));
            if inside && errors.len() < FAILURE_LINES {
                errors.push(text);
            }
        }
        if let Some(first) = errors.first() {
            found.failures.push(Failure { name: (*first).into(), lines: errors });
            found.failed = Some(1);
        }
    }
    found
}

/// Gradle.
pub(super) fn gradle<'t>(lines: &[&'t str]) -> Findings<'t> {
    let mut found = Findings::default();
    let mut open = false;
    for line in lines {
        let title = line
            .strip_suffix(" FAILED")
            .filter(|title| title.contains(" > ") && !title.starts_with("> Task"));
        if let Some(title) = title {
            found.failures.push(Failure { name: title.into(), lines: Vec::new() });
            open = true;
        } else if !line.is_empty() && !line.starts_with(' ') {
            open = false;
        } else if open
            && let Some(failure) = found.failures.last_mut()
            && failure.lines.len() < FAILURE_LINES
            && !is_library(line)
        {
            failure.lines.push(line);
        }
    }
    if let Some(line) =
        lines.iter().rev().find(|line| line.contains(" tests completed") || line.contains(" test completed"))
    {
        let all = number_before(line, " test").unwrap_or(0);
        let failed = number_before(line, " failed").unwrap_or(0);
        let skipped = number_before(line, " skipped").unwrap_or(0);
        found.failed = Some(failed);
        found.passed = Some(all.saturating_sub(failed).saturating_sub(skipped));
    } else if lines.iter().any(|line| line.starts_with("BUILD SUCCESSFUL")) {
        // Gradle does not count what passes.
        found.failed = Some(0);
    }
    found
}
