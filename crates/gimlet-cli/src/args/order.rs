//! Options are accepted before and after a command. Clap takes a command behind options for a task, so the words are put
//! in order first: the command, its own words, and then the options that it knows.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};

/// Options that say something about every command, and nothing to those that do not know them.
const EVERYWHERE: &[&str] = &["quiet", "verbose", "debug", "model", "api_base", "root", "trace", "no_trace"];

/// The words with a command before its options. None where they are in order.
pub(super) fn reordered(words: &[OsString], cli: &Command) -> Option<Vec<OsString>> {
    let (program, words) = words.split_first()?;
    let mut before: Vec<(&Arg, &[OsString])> = Vec::new();
    let mut at = 0;
    let name = loop {
        let word = words.get(at)?.to_str()?;
        if !word.starts_with('-') || word == "-" || word == "--" {
            break word;
        }
        let option = option_of(cli, word)?;
        let has_value = option.get_action().takes_values() && !word.contains('=') && !is_joined(word);
        let end = at + 1 + usize::from(has_value && !option.is_require_equals_set());
        before.push((option, words.get(at..end)?));
        at = end;
    };
    if before.is_empty() {
        return None;
    }
    let mut command = cli.find_subcommand(name)?;
    let mut family = vec![cli, command];
    let mut ordered = vec![program.clone(), name.into()];
    let mut rest = &words[at + 1..];
    while let Some((next, more)) = rest.split_first()
        && let Some(below) = next.to_str().and_then(|next| command.find_subcommand(next))
    {
        ordered.push(next.clone());
        family.push(below);
        (command, rest) = (below, more);
    }
    // In front of a command's own words, some of which may take everything behind them.
    for (option, said) in before {
        // A command says itself that it does not know an option, but for those that may be said everywhere.
        if knows(&family, option) || !EVERYWHERE.contains(&option.get_id().as_str()) {
            ordered.extend(said.iter().cloned());
        }
    }
    ordered.extend(rest.iter().cloned());
    Some(ordered)
}

/// The words of a task that begins with a command such as `/NAME` as one word, so that its arguments need no quotes.
pub(super) fn joined(words: Vec<OsString>, cli: &Command) -> Vec<OsString> {
    let Some(first) = first_word(&words, cli) else { return words };
    let is_command = |word: &str| word.len() > 1 && word.starts_with('/') && !word[1..].contains(['/', ' ']);
    if !words.get(first).and_then(|word| word.to_str()).is_some_and(is_command) {
        return words;
    }
    let more = words[first + 1..].iter().take_while(|word| !word.to_string_lossy().starts_with('-')).count();
    let Some(texts) =
        words[first..=first + more].iter().map(|word| word.to_str()).collect::<Option<Vec<_>>>()
    else {
        return words;
    };
    let arguments = gimlet_runtime::knowledge::joined(texts[1..].iter().copied());
    let task = format!("{} {arguments}", texts[0]).trim_end().to_owned();
    let mut all = words[..first].to_vec();
    all.push(task.into());
    all.extend_from_slice(&words[first + 1 + more..]);
    all
}

/// Where the first word is that is neither an option, nor the value of one, nor `run`.
fn first_word(words: &[OsString], cli: &Command) -> Option<usize> {
    let mut at = 1;
    loop {
        let word = words.get(at)?.to_str()?;
        if word == "run" && at == 1 {
            at += 1;
        } else if !word.starts_with('-') || word == "-" || word == "--" {
            return Some(at);
        } else {
            let option = option_of(cli, word)?;
            let has_value = option.get_action().takes_values() && !word.contains('=') && !is_joined(word);
            at += 1 + usize::from(has_value && !option.is_require_equals_set());
        }
    }
}

/// The command that a word was probably meant to be.
pub(super) fn meant<'a>(word: &str, cli: &'a Command) -> Option<&'a str> {
    // A short word is a word: `hello` is not `help`.
    let far = if word.chars().count() < 6 { 1 } else { 2 };
    let names = cli.get_subcommands().map(Command::get_name).filter(|name| *name != "help");
    let distances = names.map(|name| (strsim::damerau_levenshtein(word, name), name));
    distances.filter(|(distance, _)| (1..=far).contains(distance)).min().map(|(_, name)| name)
}

/// Whether a command, or one above it for all of its family, has an option.
fn knows(family: &[&Command], option: &Arg) -> bool {
    let same = |known: &&Arg| known.get_long() == option.get_long();
    let Some((command, above)) = family.split_last() else { return false };
    command.get_arguments().any(|known| same(&known))
        || above
            .iter()
            .skip(1)
            .any(|above| above.get_arguments().any(|arg| same(&arg) && arg.is_global_set()))
}

fn option_of<'a>(cli: &'a Command, word: &str) -> Option<&'a Arg> {
    let name = word.split('=').next().unwrap_or(word);
    cli.get_arguments().find(|arg| match name.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => name.chars().nth(1).is_some_and(|short| arg.get_short() == Some(short)),
    })
}

/// Whether a short option has its value in the same word: `-mNAME`.
fn is_joined(word: &str) -> bool {
    !word.starts_with("--") && OsStr::new(word).len() > 2
}
