//! A check's output, reduced to what helps to repair the code: the first failure with the frames inside the project, and
//! the names of the others.

use std::path::Path;
use std::sync::LazyLock;

use gimlet::guided::Reduced;
use regex::Regex;

/// The output of a check, cut to `most` characters.
pub(super) fn reduce(_command: &str, output: &str, root: &Path, most: usize) -> Reduced {
    let (passed, failed) = counts(output);
    let text = unittest(output, root).unwrap_or_else(|| without_foreign_frames(output.trim(), root));
    Reduced { text: middle_cut(&text, most), passed, failed }
}

/// The first failure of Python's unittest, and the names of the others.
fn unittest(output: &str, root: &Path) -> Option<String> {
    const RULE: &str = "======================================================================";
    let mut parts = output.split(RULE).skip(1);
    let first = parts.next()?;
    let end = first.rfind("----------------------------------------------------------------------\nRan ");
    let first = without_foreign_frames(first[..end.unwrap_or(first.len())].trim(), root);
    let others: Vec<&str> = parts.filter_map(|part| part.trim().lines().next()).take(8).collect();
    Some(match others.as_slice() {
        [] => first,
        others => format!("{first}\n\nAlso:\n{}", others.join("\n")),
    })
}

/// Python frames of code outside the project are left out, with the line each of them quotes.
fn without_foreign_frames(text: &str, root: &Path) -> String {
    let root = format!("{}/", root.display());
    let mut kept = Vec::new();
    let mut in_foreign = false;
    for line in text.lines() {
        if let Some(rest) = line.trim_start().strip_prefix("File \"") {
            in_foreign = rest.starts_with('/') && !rest.starts_with(&root);
        } else if !line.starts_with("    ") {
            in_foreign = false;
        }
        let is_rule = line.len() > 20 && line.chars().all(|c| matches!(c, '-' | '='));
        if !in_foreign && !is_rule {
            kept.push(line.replace(&root, ""));
        }
    }
    kept.join("\n")
}

/// A text cut in its middle: what failed comes first, and why comes last.
fn middle_cut(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let half = most / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(count - half).collect();
    format!("{head}\n[…]\n{tail}")
}

/// How many tests passed and failed, as far as a known runner tells.
fn counts(output: &str) -> (Option<u32>, Option<u32>) {
    static RAN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?m)^Ran (\d+) tests? in").ok());
    static BAD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?:failures|errors)=(\d+)").ok());
    static WORDS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(\d+) (passed|failed|errors?)\b").ok());
    let number = |text: &str| text.parse::<u32>().unwrap_or(0);
    if let (Some(ran), Some(bad)) = (RAN.as_ref(), BAD.as_ref())
        && let Some(found) = ran.captures(output)
    {
        let verdict = &output[found.get(0).map_or(0, |whole| whole.end())..];
        let failed: u32 = bad.captures_iter(verdict).map(|found| number(&found[1])).sum();
        return (Some(number(&found[1]).saturating_sub(failed)), Some(failed));
    }
    let Some(words) = WORDS.as_ref() else { return (None, None) };
    let (mut passed, mut failed) = (None, None);
    for found in words.captures_iter(output) {
        let sum = if &found[2] == "passed" { &mut passed } else { &mut failed };
        *sum = Some(sum.unwrap_or(0) + number(&found[1]));
    }
    (passed, failed.or(passed.map(|_| 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNITTEST: &str = r#".F
======================================================================
FAIL: test_two (a_test.ATest.test_two)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/project/a_test.py", line 8, in test_two
    self.assertEqual(f(2), 4)
  File "/usr/lib/python3.11/unittest/case.py", line 873, in assertEqual
    assertion_func(first, second, msg=msg)
AssertionError: 3 != 4

----------------------------------------------------------------------
Ran 2 tests in 0.001s

FAILED (failures=1)
"#;

    #[test]
    fn the_first_failure_of_unittest_is_kept_with_the_frames_of_the_project() {
        let reduced = reduce("python3 -m unittest", UNITTEST, Path::new("/project"), 1500);
        assert_eq!((reduced.passed, reduced.failed), (Some(1), Some(1)));
        let lines: Vec<&str> = reduced.text.lines().collect();
        assert_eq!(lines[0], "FAIL: test_two (a_test.ATest.test_two)");
        assert!(lines.contains(&"  File \"a_test.py\", line 8, in test_two"), "{}", reduced.text);
        assert!(
            !reduced.text.contains("case.py") && reduced.text.ends_with("AssertionError: 3 != 4"),
            "{}",
            reduced.text
        );
    }

    #[test]
    fn counts_are_read_from_the_summaries_of_runners() {
        for (output, expected) in [
            ("Ran 3 tests in 0.1s\n\nOK\n", (Some(3), Some(0))),
            ("Ran 3 tests in 0.1s\n\nFAILED (failures=1, errors=1)\n", (Some(1), Some(2))),
            ("2 failed, 5 passed in 0.12s", (Some(5), Some(2))),
            ("test result: FAILED. 3 passed; 1 failed; 0 ignored", (Some(3), Some(1))),
            ("4 passed in 0.1s", (Some(4), Some(0))),
            ("make: *** [test] Error 1", (None, None)),
        ] {
            assert_eq!(counts(output), expected, "{output}");
        }
    }

    #[test]
    fn a_long_output_is_cut_in_its_middle() {
        let text = middle_cut(&"x".repeat(5000), 100);
        assert!(text.len() < 120 && text.contains("[…]"));
    }
}
