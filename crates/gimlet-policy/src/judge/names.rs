//! Names that one program finds and another takes: `find -exec`, and lists of files piped into `xargs`. They are told
//! as patterns, so that the program that takes them is judged as if it had been given the pattern.

use std::borrow::Cow;

use super::{Io, Judge, basename};
use crate::shell::{Certainty, Script, Segment, Word};

impl Judge<'_> {
    /// For each command of a script, the names that are piped into it; empty where they are not known.
    pub(super) fn piped_names(&self, script: &Script) -> Vec<Vec<Word>> {
        let mut names: Vec<Vec<Word>> = vec![Vec::new(); script.segments.len()];
        for pipeline in &script.pipelines {
            for pair in pipeline.stages.windows(2) {
                let [before, stage] = pair else { continue };
                if before.len() != 1 || stage.len() != 1 {
                    continue;
                }
                let Some(segment) = script.segments.get(before.start) else { continue };
                let input = names.get(before.start).cloned().unwrap_or_default();
                if let Some(known) = names.get_mut(stage.start) {
                    *known = printed_names(segment, input);
                }
            }
        }
        names
    }

    /// The words that `xargs` runs: what it was given, with the names of its input where it puts them.
    pub(super) fn with_input(&self, args: &[Word], rest: &[Word], io: &Io<'_>) -> Vec<Word> {
        let unknown = [Word::unknown()];
        let options = args.get(..args.len().saturating_sub(rest.len())).unwrap_or_default();
        let from_file = |word: &Word| word.text.starts_with("-a") || word.text.starts_with("--arg");
        let names = match io.names.is_empty() || options.iter().any(from_file) {
            true => unknown.as_slice(),
            false => io.names,
        };
        match placeholder(options) {
            Some(mark) if !mark.is_empty() => rest.iter().flat_map(|word| put(word, &mark, names)).collect(),
            Some(_) | None => rest.iter().chain(names).cloned().collect(),
        }
    }
}

/// A word with its placeholder replaced by each of the names.
pub(super) fn put(word: &Word, mark: &str, names: &[Word]) -> Vec<Word> {
    match word.text.contains(mark) {
        true if word.text == mark => names.to_vec(),
        true => vec![Word { certainty: Certainty::Unknown, ..word.clone() }],
        false => vec![word.clone()],
    }
}

/// The text that `xargs` replaces.
fn placeholder(options: &[Word]) -> Option<String> {
    let at = options.iter().position(|word| word.text.starts_with("-I"))?;
    let attached = options[at].text.strip_prefix("-I").filter(|text| !text.is_empty());
    attached.map(str::to_owned).or_else(|| options.get(at + 1).map(|word| word.text.clone()))
}

/// The names a command prints, one in each line, given those it reads.
fn printed_names(segment: &Segment, input: Vec<Word>) -> Vec<Word> {
    let Some((program, args)) = segment.argv.split_first() else { return Vec::new() };
    let is_operand =
        |word: &&Word| !word.text.starts_with('-') && !word.text.bytes().all(|byte| byte.is_ascii_digit());
    let operands = args.iter().filter(is_operand).count();
    let has = |options: &[&str]| args.iter().any(|word| options.contains(&word.text.as_str()));
    let listed = || vec![Word { certainty: Certainty::Match, ..Word::literal("*") }];
    match basename(&program.text) {
        "find" | "gfind" => found_by(args),
        "ls" | "fd" | "fdfind" => listed(),
        "git" if args.first().is_some_and(|word| word.text == "ls-files") => {
            tracked(args.get(1..).unwrap_or_default()).unwrap_or_else(listed)
        }
        "git" if has(&["--name-only", "ls-files"]) => listed(),
        "rg" | "grep" | "egrep" if has(&["-l", "-rl", "-lr", "--files", "--files-with-matches"]) => listed(),
        "sort" | "uniq" | "head" | "tail" if operands == 0 => input,
        "grep" | "egrep" if operands <= 1 && !has(&["-r", "-R", "-e", "-f"]) => input,
        _ => Vec::new(),
    }
}

/// What `git ls-files '*.py'` prints, where every operand is such a pattern: files of these kinds in any folder.
fn tracked(args: &[Word]) -> Option<Vec<Word>> {
    let pattern = |word: &Word| {
        let plain = word.is_known() && word.text.starts_with("*.");
        plain.then(|| Word { certainty: Certainty::Match, ..Word::literal(format!("./{}", word.text)) })
    };
    let patterns: Vec<Word> =
        args.iter().filter(|word| word.text != "--").map(pattern).collect::<Option<_>>()?;
    (!patterns.is_empty()).then_some(patterns)
}

/// What `find` finds, as patterns below the places where it starts.
pub(super) fn found_by(args: &[Word]) -> Vec<Word> {
    let is_test = |word: &&Word| word.text.starts_with('-') || matches!(word.text.as_str(), "(" | "!");
    let leading =
        args.iter().take_while(|word| !is_test(word) || matches!(word.text.as_str(), "-H" | "-L" | "-P"));
    let mut starts: Vec<&Word> = leading.filter(|word| !word.text.starts_with('-')).collect();
    let here = Word::literal(".");
    if starts.is_empty() {
        starts.push(&here);
    }
    let names = name_tests(args).unwrap_or_else(|| vec!["*"]);
    let each = |start: &&Word| {
        let start = (*start).clone();
        names.clone().into_iter().map(move |name| {
            let text = format!("{}/{name}", start.text.trim_end_matches('/'));
            let certainty = start.certainty.max(Certainty::Match);
            Word { text, certainty, origin: start.origin }
        })
    };
    starts.iter().flat_map(each).collect()
}

/// The names that `find` looks for, if it finds nothing else.
fn name_tests(args: &[Word]) -> Option<Vec<&str>> {
    let texts: Vec<&str> = args.iter().map(|word| word.text.as_str()).collect();
    let mut names = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let negated = index > 0 && matches!(texts[index - 1], "!" | "-not");
        match *text {
            "-name" | "-iname" if !negated => names.push(*texts.get(index + 1)?),
            _ => {}
        }
    }
    let alternatives = texts.iter().any(|text| matches!(*text, "-o" | "-or" | ","));
    // With alternatives, each must be a name: anything else could find everything.
    let plain = |index: usize| match texts[index] {
        "-name" | "-iname" | "-o" | "-or" | "(" | ")" | "-print" | "-print0" => true,
        "-type" => matches!(texts.get(index + 2), Some(&("(" | "-name" | "-iname"))),
        text => !text.starts_with('-') && text != "!" && text != ",",
    };
    let sure = !alternatives || (0..texts.len()).all(plain);
    (sure && !names.is_empty()).then_some(names)
}

/// The arguments of `find` without `-exec … ;` and `-exec … +`, whose commands are judged on their own.
pub(super) fn without_exec(args: &[Word]) -> Cow<'_, [Word]> {
    if !args.iter().any(|word| word.text == "-exec") {
        return Cow::Borrowed(args);
    }
    let (mut kept, mut rest) = (Vec::new(), args);
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        let end = after.iter().position(|word| matches!(word.text.as_str(), ";" | "+"));
        match end {
            Some(end) if word.text == "-exec" => rest = after.get(end + 1..).unwrap_or_default(),
            Some(_) | None => kept.push(word.clone()),
        }
    }
    Cow::Owned(kept)
}
