//! What a task's words ask for. Deliberately narrow: only a clear order to change code counts as one, since holding up
//! the answer to a question is worse than letting a lazy one pass.

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Something is to be changed.
    Change,
    /// Something is to be told.
    Question,
    /// The words do not say.
    Unclear,
}

/// Only the beginning of a task says what is wanted; what follows may be a pasted log or diff.
const READ_CHARS: usize = 400;

/// A task that begins so wants to be told something. `Find` and `look` are not here: often, something is to be done then.
const ASKING: &str = "what why how where when who which whose is are was were does do did has have should may might explain \
    describe summarise summarize review list show tell compare analyse analyze count print suggest propose \
    recommend estimate document translate think discuss assess";
/// Words before the verb that change nothing about it.
const POLITE: &str = "please kindly then now also just and so first next finally to go ahead i we want need like you let's \
    lets must should can could would will hey hi";
/// Orders that change something, given the right object.
const CHANGING: &str = "fix repair patch implement refactor rename rewrite add change modify edit remove delete drop replace \
    update write create move convert migrate port extract inline make correct extend support handle bump";
/// Words that may stand between the order and what it is about.
const LIGHT: &str = "a an the this that these those all any some my our your its failing broken missing new unit existing \
    wrong flaky old unused first last second single simple small python rust go typescript javascript more \
    another integration regression failed red off-by-one syntax type compile build lint command-line cli \
    public private";
/// What code is made of.
const CODE: &str = "test tests testcase function functions method methods class classes module file files bug bugs error \
    errors code import imports parameter parameters argument arguments field fields endpoint endpoints \
    variable variables constant docstring docstrings script flag option dependency dependencies readme \
    makefile build warning warnings struct enum trait interface handler parser exception typo crash panic \
    regression annotation annotations hints logging validation";
/// What stands for something named elsewhere.
const PRONOUNS: &str = "it them this that these those";
/// Words that forbid a change.
const FORBIDDEN: &str = "do not change | don't change | do not modify | don't modify | do not edit | don't edit | \
    do not write | don't write | do not touch | don't touch | do not apply | don't apply | do not fix | \
    don't fix | without changing | without modifying | without editing | change nothing | no changes | \
    read-only | read only | only explain | just explain | only tell | just tell | dry run";

/// Reads a task.
pub fn wish(task: &str) -> Wish {
    let text: String = task.trim().chars().take(READ_CHARS).collect::<String>().to_lowercase();
    let text = text.split("\n\n").next().unwrap_or_default();
    if FORBIDDEN.split(" | ").any(|words| text.contains(words)) {
        return Wish::Question;
    }
    let clauses: Vec<Vec<&str>> = sentences(text).into_iter().flat_map(clauses).collect();
    let first = clauses.first().and_then(|words| words.first()).copied().unwrap_or_default();
    let request = is_request(clauses.first().map_or(&[], Vec::as_slice));
    if has(ASKING, first) || (text.contains('?') && !request) {
        return Wish::Question;
    }
    let about_code = text.split_whitespace().map(bare).any(names_code);
    if clauses.iter().any(|words| orders_change(words, about_code)) { Wish::Change } else { Wish::Unclear }
}

/// Whether a list of words holds this one.
fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|known| known == word)
}

/// `Can you fix it?` is no question.
fn is_request(words: &[&str]) -> bool {
    matches!(words, ["can" | "could" | "would" | "will", "you", ..])
        && order(words).is_some_and(|(verb, _)| has(CHANGING, verb))
}

fn sentences(text: &str) -> Vec<&str> {
    text.split(". ").flat_map(|part| part.split(['\n', ';', '!', '?'])).collect()
}

/// The parts of a sentence that may each hold an order.
fn clauses(sentence: &str) -> Vec<Vec<&str>> {
    let mut clauses = vec![Vec::new()];
    for word in sentence.split_whitespace() {
        let (ends, starts) = (word.ends_with(','), matches!(word, "and" | "then"));
        if starts {
            clauses.push(Vec::new());
        }
        let bare = bare(word);
        if let Some(clause) = clauses.last_mut().filter(|_| !bare.is_empty()) {
            clause.push(bare);
        }
        if ends {
            clauses.push(Vec::new());
        }
    }
    clauses.retain(|clause| !clause.is_empty());
    clauses
}

fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| matches!(c, ',' | '.' | ':' | '"' | '\'' | '(' | ')' | '!' | '?'))
}

/// The first word that is no politeness, and what follows.
fn order<'a, 'b>(words: &'b [&'a str]) -> Option<(&'a str, &'b [&'a str])> {
    let at = words.iter().position(|word| !has(POLITE, word))?;
    Some((words[at], &words[at + 1..]))
}

/// Whether a clause is an order to change code. `about_code` says whether a pronoun can mean some.
fn orders_change(words: &[&str], about_code: bool) -> bool {
    let Some((verb, rest)) = order(words).filter(|(verb, _)| has(CHANGING, verb)) else { return false };
    if verb == "make" {
        // `make the tests pass`, but not `make a list`.
        return about_code
            && rest.iter().any(|word| matches!(*word, "pass" | "passes" | "green" | "work" | "compile"));
    }
    match rest {
        [pronoun] if has(PRONOUNS, pronoun) => about_code,
        [pronoun, "in" | "so" | "by" | "with" | "properly" | "correctly", ..] if has(PRONOUNS, pronoun) => {
            about_code
        }
        _ => rest
            .iter()
            .find(|word| !has(LIGHT, word) || names_code(word))
            .is_some_and(|object| names_code(object)),
    }
}

/// Whether a word is code, or a word for some.
fn names_code(word: &str) -> bool {
    has(CODE, word) || looks_like_code(word)
}

/// `calc.py`, `src/main.rs`, `` `add` ``, `parse_line`, `--json`.
fn looks_like_code(word: &str) -> bool {
    let inside_dot = word
        .char_indices()
        .any(|(at, c)| c == '.' && at > 0 && word[at + 1..].chars().next().is_some_and(char::is_alphabetic));
    word.contains('`')
        || word.contains('_')
        || word.contains("::")
        || word.starts_with("--")
        || (inside_dot && !word.contains("://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_to_change_code_are_seen() {
        for task in [
            "Fix the failing test.",
            "fix the bug in calc.py",
            "Please add a --json flag to the list command",
            "Add a unit test for the parser.",
            "Rename parse_line to read_line everywhere",
            "Remove the unused imports in src/main.rs.",
            "Can you fix the failing tests?",
            "Could you please add type annotations?",
            "The test fails. Find out why, fix it, and show that it passes.",
            "Implement the missing method.",
            "I want you to refactor the class `Basket`.",
            "make the tests pass",
            "Update README.md: mention the new flag.",
            "Look at the failing test and fix it",
            "Write a function that adds two numbers in calc.py",
            "Replace `foo` by `bar`.",
            "Find the bug and fix it.",
            "Delete the file old.txt",
        ] {
            assert_eq!(wish(task), Wish::Change, "{task}");
        }
    }

    #[test]
    fn questions_are_never_orders() {
        for task in [
            "What is wrong?",
            "what is wrong",
            "Why does the test fail?",
            "How would you fix the bug in calc.py?",
            "Explain how to add a test and fix the build.",
            "Explain the bug and fix it in your head",
            "List the functions that need tests.",
            "Review this diff.\n\n+ fix the test\n+ add a function",
            "Show me where errors are handled",
            "Describe what `git commit -m 'fix the test'` would do",
            "Is the fix in calc.py right?",
            "Fix the failing test? Or is it fine?",
            "Summarise the commit called 'Add a test'",
            "Fix the bug in calc.py, but don't change any file: tell me the diff",
            "Tell me what to do to fix the build.",
            "Which tests are missing?",
            "Suggest a fix for the bug, and explain it",
            "Read-only: fix the test",
        ] {
            assert_eq!(wish(task), Wish::Question, "{task}");
        }
    }

    #[test]
    fn what_may_be_an_order_to_change_nothing_is_left_open() {
        for task in [
            "Write a summary of the architecture.",
            "Create a list of all functions.",
            "Make a table of the endpoints",
            "Remove duplicates from this list: 1, 1, 2",
            "Convert 5 miles to kilometres",
            "Fix the grammar of this sentence: the tests is failing",
            "Add 2 and 3",
            "Find where the parser handles errors",
            "Find all functions without tests, and count them",
            "the build is broken",
            "Update me on the state of the project",
            "hello",
            "",
            "Give me an overview",
            "Write a poem about tests",
            "Change the subject",
            "Look at calc.py",
        ] {
            assert_eq!(wish(task), Wish::Unclear, "{task}");
        }
    }
}
