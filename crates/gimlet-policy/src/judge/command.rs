//! One command, as words: unwrapped, matched against the rules, and looked at for what it would run.

use std::borrow::Cow;

use super::finding::{Finding, Level, Structural};
use super::{Io, Judge, MAX_NESTING, Traits, basename, names};
use crate::rules::flags::{self, Order};
use crate::rules::{Author, Inner, Operands, Rule, Say, Wrapper, builtin};
use crate::shell::{Certainty, Direction, Origin, Word};

impl Judge<'_> {
    /// Judges a command given as words.
    pub(super) fn words(&mut self, argv: &[Word], io: &Io<'_>, traits: &mut Traits) -> Vec<Finding> {
        let Some((program, args)) = argv.split_first() else { return Vec::new() };
        self.nesting += 1;
        self.work += 32 * argv.len();
        if self.nesting > MAX_NESTING * 2 || self.work > super::MAX_WORK {
            self.nesting -= 1;
            return vec![self.found(Structural::Unreadable, "nested too deeply")];
        }
        let mut findings = Vec::new();
        if program.origin == Origin::Foreign {
            findings.push(self.found(Structural::FetchToShell, ""));
        }
        if !program.is_known() {
            findings.push(self.found(Structural::Computed, &program.text));
        }
        if program.text.is_empty() {
            findings.push(self.found(Structural::Unknown, "a program without a name"));
            // A name that expands to nothing makes the next word the program.
            findings.extend(self.words(args, io, traits));
        } else if assigned_name(&program.text).is_some() {
            findings.push(self.found(Structural::SetsVariable, &program.text));
            findings.extend(self.words(args, io, traits));
        } else {
            findings.extend(self.named(program, args, io, traits));
        }
        self.nesting -= 1;
        findings
    }

    fn named(&mut self, program: &Word, args: &[Word], io: &Io<'_>, traits: &mut Traits) -> Vec<Finding> {
        let mut findings = Vec::new();
        let name = program.part(basename(&program.text));
        let lower = name.text.to_lowercase();
        if program.text.contains('/') && program.is_known() && !self.policy.is_trusted_location(&program.text)
        {
            findings.push(self.found(Structural::LocalProgram, &program.text));
        }
        if self.saved.iter().any(|saved| same_file(saved, &program.text)) {
            findings.push(self.found(Structural::FetchToShell, &program.text));
        }
        let policy = self.policy;
        for rule in policy.rules_about(&name).filter(|rule| rule.verdict == Say::Deny) {
            if rule.after_subcommand(args).is_some_and(|rest| rule.accepts(rest)) {
                findings.push(Finding::of_rule(rule, self.context.jail));
            }
        }
        let nature = builtin().nature(&name.text);
        traits.foreign |= nature.fetcher || nature.decoder;
        if matches!(lower.as_str(), "curl" | "wget" | "wget2" | "aria2c" | "http" | "https" | "xh") {
            self.saved.extend(saved_by(&lower, args));
        }
        match lower.as_str() {
            "chmod" | "gchmod" => findings.extend(self.chmod(args)),
            "find" | "gfind" => findings.extend(self.find(args, io, traits)),
            "cd" | "pushd" | "popd" => self.change_folder(args),
            _ => {}
        }
        let judged = if lower == "find" { names::without_exec(args) } else { Cow::Borrowed(args) };
        let chosen = policy.chosen(&name, &judged);
        findings.extend(self.operand_findings(&name, &judged, chosen));
        let wrappers: Vec<&Wrapper> = builtin().wrappers_named(&name.text).collect();
        let by_user = chosen.filter(|rule| rule.author == Author::User);
        let alias = builtin().unaliased(&name.text, args).filter(|_| name.is_known() && by_user.is_none());
        if let Some(words) = alias {
            findings.extend(self.words(words, io, traits));
        } else if !wrappers.is_empty() && chosen.is_none_or(|rule| rule.author == Author::User) {
            for wrapper in wrappers {
                let floor = by_user.map(|rule| Finding::of_rule(rule, self.context.jail));
                findings.extend(self.unwrap(wrapper, floor, args, io, traits));
            }
        } else if nature.shell && chosen.is_none_or(|rule| rule.author == Author::User) {
            findings.extend(self.shell(by_user, args, io, traits));
        } else if matches!(lower.as_str(), "source" | ".") {
            findings.push(self.found(Structural::RunsScript, ""));
            findings.extend(args.first().into_iter().flat_map(|word| self.secret_script(word)));
            let stdin = args.first().is_some_and(|word| is_stdin(&word.text));
            traits.runs_input |= stdin;
            for text in io.segment.filter(|_| stdin).map(super::printed).unwrap_or_default() {
                findings.extend(self.text(&text, Vec::new()).into_findings());
            }
            if io.fed_foreign
                || args.iter().any(|word| self.saved.iter().any(|saved| same_file(saved, &word.text)))
            {
                findings.push(self.found(Structural::FetchToShell, ""));
            }
        } else if lower == "alias" {
            findings.push(self.found(Structural::Unknown, "alias"));
            for value in
                args.iter().filter_map(|word| word.text.split_once('=')).map(|(_, value)| value.to_owned())
            {
                findings.extend(self.text(&value, Vec::new()).into_findings());
            }
        } else {
            if nature.interpreter {
                findings.extend(self.interpreter(args, io, traits));
            }
            findings.extend(self.verdict(&name, &judged, chosen, nature.interpreter, io));
        }
        for rule in policy.project_rules_about(&name).filter(|rule| rule.verdict != Say::Deny) {
            if rule.after_subcommand(args).is_some_and(|rest| rule.accepts(rest)) {
                findings.push(Finding::of_rule(rule, self.context.jail));
            }
        }
        findings
    }

    /// What the matching rule says, and why nothing is allowed when arguments cannot be known.
    fn verdict(
        &self,
        name: &Word,
        args: &[Word],
        chosen: Option<&Rule>,
        interpreter: bool,
        io: &Io<'_>,
    ) -> Vec<Finding> {
        let Some(rule) = chosen else {
            let familiar = self.policy.rules_about(name).any(|rule| rule.verdict != Say::Deny);
            let structural = match (interpreter, familiar) {
                (true, _) => Structural::RunsCode,
                (false, true) => Structural::UnlistedOption,
                (false, false) => Structural::Unknown,
            };
            return vec![self.found(structural, &name.text)];
        };
        let mut findings = vec![Finding::of_rule(rule, self.context.jail)];
        for word in args {
            // A pattern may expand to a file named like an option, unless every option is harmless.
            let expands = match word.certainty {
                Certainty::Literal | Certainty::Resolved => false,
                Certainty::Glob | Certainty::Match => rule.flags.is_some() && may_become_option(&word.text),
                Certainty::Variable => !is_printed(rule),
                Certainty::Unknown => !(io.appended && is_printed(rule)),
            };
            if expands {
                findings.push(self.found(Structural::Expansion, &word.text));
            }
        }
        findings
    }

    /// What the program's operands touch, by the rule that decides, or else by the first that knows the program,
    /// whether or not it accepts the rest.
    fn operand_findings(&self, name: &Word, args: &[Word], chosen: Option<&Rule>) -> Vec<Finding> {
        let folded = name.part(&name.text.to_lowercase());
        let known = chosen.into_iter().chain(self.policy.rules_about(&folded)).find_map(|rule| {
            let kind = rule.operands.filter(|_| rule.verdict != Say::Deny)?;
            let rest = rule.after_subcommand(args)?;
            let decides = chosen.is_some_and(|chosen| std::ptr::eq(chosen, rule));
            let fits = decides || rule.with.iter().all(|group| flags::has_any(group, rest));
            fits.then_some((rule, kind, rest))
        });
        let Some((rule, kind, rest)) = known else { return Vec::new() };
        let sorted = rule.sort(rest);
        let mut findings = self.operands(kind, &sorted, rest, rule.flags.is_none());
        let pattern = usize::from(kind == Operands::Pattern && !gives_pattern(&sorted));
        let paths = sorted.operands.get(pattern..).unwrap_or_default();
        findings.extend(self.walks(rule, &sorted, paths));
        findings
    }

    /// A program that runs another: the other one is judged in its place.
    fn unwrap(
        &mut self,
        wrapper: &Wrapper,
        floor: Option<Finding>,
        args: &[Word],
        io: &Io<'_>,
        traits: &mut Traits,
    ) -> Vec<Finding> {
        let mut findings = Vec::new();
        let level = if wrapper.verdict == Say::Allow { Level::Allow } else { Level::Ask };
        let own = Finding { level, rule: wrapper.id.clone(), reason: wrapper.reason.clone() };
        let floor = floor.unwrap_or(own);
        if floor.level > Level::Allow {
            findings.push(floor);
        }
        for (index, word) in args.iter().enumerate() {
            let Some(code) =
                wrapper.code_flags.iter().find_map(|flag| code_after(flag, word, args.get(index + 1)))
            else {
                continue;
            };
            let rest = args.get(index + 1..).unwrap_or_default();
            let rest = if code.1 { rest.get(1..).unwrap_or_default() } else { rest };
            let text =
                std::iter::once(code.0.text.as_str()).chain(rest.iter().map(|word| word.text.as_str()));
            let text = text.collect::<Vec<_>>().join(" ");
            findings.push(self.found(Structural::RunsScript, ""));
            findings.extend(self.nested(&text, code.0.origin, io, traits));
            return findings;
        }
        let sorted = flags::sort(&wrapper.flags, args, Order::OptionsFirst);
        let mut rest = args.get(sorted.leading..).unwrap_or_default();
        if !sorted.unknown.is_empty() {
            findings.push(self.found(Structural::UnlistedOption, &sorted.unknown[0].text));
            // An option we do not know may take a value, so the command may start at any later word.
            for start in 0..args.len().min(12) {
                let suffix = self.words(&args[start..], io, traits);
                findings.extend(suffix.into_iter().filter(|finding| finding.level == Level::Deny));
            }
        }
        let files: Vec<Finding> =
            sorted.files.iter().flat_map(|file| self.place(file, super::places::Use::Read)).collect();
        findings.extend(files);
        // `env - cmd` and `su - user`.
        while let Some((first, after)) = rest.split_first()
            && first.text == "-"
        {
            rest = after;
        }
        while matches!(wrapper.inner, Inner::Words | Inner::WordsAndMore)
            && let Some((first, after)) = rest.split_first()
            && let Some(variable) = assigned_name(&first.text)
        {
            let value = first.part(first.text.split_once('=').map_or("", |(_, value)| value));
            if !self.policy.is_harmless_setting(variable, &value) {
                findings.push(self.found(Structural::SetsVariable, variable));
            }
            rest = after;
        }
        rest = rest.get(wrapper.skip.min(rest.len())..).unwrap_or_default();
        if rest.is_empty() {
            traits.runs_input |= wrapper.stdin_shell;
            findings.push(self.found(Structural::Unknown, "no command is given"));
            return findings;
        }
        match wrapper.inner {
            Inner::Words => findings.extend(self.words(rest, io, traits)),
            Inner::WordsAndMore => {
                let words = self.with_input(args, rest, io);
                findings.extend(self.words(&words, &Io { appended: true, ..*io }, traits));
            }
            Inner::Somewhere => {
                for start in 0..rest.len().min(24) {
                    let suffix = self.words(&rest[start..], io, traits);
                    findings.extend(suffix.into_iter().filter(|finding| finding.level == Level::Deny));
                }
            }
            Inner::Text | Inner::FirstText => {
                let used = if wrapper.inner == Inner::FirstText { &rest[..1] } else { rest };
                let text = used.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
                let origin = rest.iter().map(|word| word.origin).max().unwrap_or(Origin::Local);
                findings.extend(self.nested(&text, origin, io, traits));
            }
        }
        findings
    }

    /// Text that a shell will run as part of this command.
    fn nested(&mut self, text: &str, origin: Origin, io: &Io<'_>, traits: &mut Traits) -> Vec<Finding> {
        let mut findings = Vec::new();
        if origin == Origin::Foreign || io.fed_foreign {
            findings.push(self.found(Structural::FetchToShell, ""));
        }
        let outcome = self.text(text, Vec::new());
        traits.add(outcome.traits);
        findings.extend(outcome.into_findings());
        findings
    }

    fn shell(
        &mut self,
        by_user: Option<&Rule>,
        args: &[Word],
        io: &Io<'_>,
        traits: &mut Traits,
    ) -> Vec<Finding> {
        let mut findings = Vec::new();
        let call = ShellCall::read(args);
        traits.runs_input |= io.appended;
        if io.fed_foreign || args.iter().any(|word| word.origin == Origin::Foreign) {
            findings.push(self.found(Structural::FetchToShell, ""));
        }
        match call.code {
            Some(code) => {
                if !code.is_known() {
                    findings.push(self.found(Structural::Expansion, &code.text));
                }
                if call.more_options {
                    findings.push(self.found(Structural::RunsScript, ""));
                }
                let outcome = self.text(&code.text, call.operands.to_vec());
                traits.add(outcome.traits);
                findings.extend(outcome.into_findings());
            }
            None => {
                findings.push(match by_user {
                    Some(rule) => Finding::of_rule(rule, self.context.jail),
                    None => self.found(Structural::RunsScript, ""),
                });
                let script = call.operands.first().filter(|word| !is_stdin(&word.text) && !call.reads_input);
                if let Some(script) = script {
                    findings.extend(self.secret_script(script));
                    if self.saved.iter().any(|saved| same_file(saved, &script.text)) {
                        findings.push(self.found(Structural::FetchToShell, &script.text));
                    }
                    return findings;
                }
                traits.runs_input = true;
                let Some(segment) = io.segment else { return findings };
                let strings = segment
                    .redirections
                    .iter()
                    .filter(|redirection| redirection.direction == Direction::Text);
                let strings: Vec<Word> = strings.map(|redirection| redirection.target.clone()).collect();
                for text in strings {
                    if text.origin == Origin::Foreign {
                        findings.push(self.found(Structural::FetchToShell, ""));
                    }
                    findings.extend(self.text(&text.text, Vec::new()).into_findings());
                }
                for text in segment.heredocs.clone() {
                    findings.extend(self.text(&text, Vec::new()).into_findings());
                }
            }
        }
        findings
    }

    /// A file that is run is read as well, and what cannot be understood in it ends up in error messages.
    fn secret_script(&self, script: &Word) -> impl Iterator<Item = Finding> {
        let found = self.place(script, super::places::Use::Read);
        found.into_iter().filter(|finding| finding.rule == Structural::ReadsSecret.id())
    }

    /// An interpreter other than a shell: whether its program comes from its input or a download.
    fn interpreter(&mut self, args: &[Word], io: &Io<'_>, traits: &mut Traits) -> Vec<Finding> {
        let mut findings = Vec::new();
        let file = args.first().filter(|word| !word.text.starts_with('-'));
        findings.extend(file.into_iter().flat_map(|word| self.secret_script(word)));
        let script = args.iter().find(|word| !word.text.starts_with('-') || word.text == "-");
        let has_code = args.iter().any(|word| {
            matches!(
                word.text.as_str(),
                "-c" | "-e"
                    | "-m"
                    | "-r"
                    | "-E"
                    | "-p"
                    | "-n"
                    | "-ne"
                    | "-pe"
                    | "-lne"
                    | "--eval"
                    | "--version"
                    | "-V"
            )
        });
        let reads_input = match script {
            Some(word) => is_stdin(&word.text),
            None => !has_code,
        };
        traits.runs_input |= reads_input || io.appended;
        let saved = script.is_some_and(|word| self.saved.iter().any(|saved| same_file(saved, &word.text)));
        let foreign_word = args.iter().any(|word| word.origin == Origin::Foreign);
        if io.fed_foreign || saved || foreign_word {
            findings.push(self.found(Structural::FetchToShell, ""));
        }
        findings
    }
}

/// Whether a rule's operands are only printed, and any option is fine.
fn is_printed(rule: &Rule) -> bool {
    rule.operands == Some(Operands::Text) && rule.flags.is_none() && rule.only.is_empty()
}

/// Whether a search has its pattern in an option, so that every operand is a path.
fn gives_pattern(sorted: &flags::Arguments<'_>) -> bool {
    sorted.known.iter().any(|flag| ["-e", "-f", "--regexp", "--file"].contains(flag))
}

/// How a shell was called.
struct ShellCall<'a> {
    code: Option<&'a Word>,
    operands: &'a [Word],
    more_options: bool,
    reads_input: bool,
}

impl<'a> ShellCall<'a> {
    fn read(args: &'a [Word]) -> Self {
        let mut call = ShellCall { code: None, operands: &[], more_options: false, reads_input: false };
        let mut takes_code = false;
        let mut index = 0;
        while let Some(word) = args.get(index) {
            let text = word.text.as_str();
            if text == "--" || text == "-" {
                index += 1;
                break;
            }
            let long = text.starts_with("--");
            if text.is_empty() && word.certainty >= Certainty::Variable {
                // It may expand to nothing.
                call.more_options = true;
            } else if long || text.starts_with(['-', '+']) {
                let letters = if long { "" } else { &text[1..] };
                let command = text == "--command" || (text.starts_with('-') && letters.contains('c'));
                takes_code |= command;
                call.reads_input |= letters.contains('s') && !command;
                call.more_options |= text != "-c";
                if letters.ends_with(['o', 'O']) || matches!(text, "--rcfile" | "--init-file") {
                    index += 1;
                }
            } else {
                break;
            }
            index += 1;
        }
        let rest = args.get(index..).unwrap_or_default();
        if takes_code && let Some((code, operands)) = rest.split_first() {
            call.code = Some(code);
            call.operands = operands;
        } else {
            call.operands = rest;
        }
        call
    }
}

/// The value of a code option: attached or the next word (then the flag is true).
fn code_after(flag: &str, word: &Word, next: Option<&Word>) -> Option<(Word, bool)> {
    if word.text == flag {
        return next.map(|next| (next.clone(), true));
    }
    // `script -qc code`, `env -vS code`: the last letter of a cluster takes the value.
    let cluster = word.text.starts_with('-') && !word.text.starts_with("--") && flag.len() == 2;
    if cluster && word.text.len() > 2 && word.text.ends_with(&flag[1..]) {
        return next.map(|next| (next.clone(), true));
    }
    let value = word.text.strip_prefix(flag)?;
    if flag.starts_with("--") {
        value.strip_prefix('=').map(|value| (word.part(value), false))
    } else {
        Some((word.part(value), false))
    }
}

/// Whether a pattern could expand to an option other than the one it spells: `*` could, `--include=*.py` could not.
fn may_become_option(glob: &str) -> bool {
    let first = glob.find(['*', '?', '[']).unwrap_or(glob.len());
    first == 0 || (glob.starts_with('-') && !glob[..first].contains('='))
}

/// The variable of `NAME=value`.
fn assigned_name(text: &str) -> Option<&str> {
    let (name, _) = text.split_once('=')?;
    let valid = !name.is_empty() && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
    valid.then_some(name)
}

fn is_stdin(text: &str) -> bool {
    matches!(text, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

fn same_file(left: &str, right: &str) -> bool {
    !left.is_empty() && left.trim_start_matches("./") == right.trim_start_matches("./")
}

/// Where a fetcher saves what it gets.
fn saved_by(name: &str, args: &[Word]) -> Vec<String> {
    let mut found = Vec::new();
    for (index, word) in args.iter().enumerate() {
        let next = args.get(index + 1).map(|word| word.text.clone());
        match word.text.as_str() {
            "-o" | "--output" | "--output-document" => found.extend(next),
            "-O" if name.starts_with("wget") => found.extend(next),
            "-O" | "--remote-name" | "-OL" | "-LO" => {
                found.extend(
                    args.iter()
                        .filter(|word| word.text.contains('/'))
                        .map(|word| basename(&word.text).to_owned()),
                );
            }
            text => {
                found.extend(
                    text.strip_prefix("--output=")
                        .or_else(|| text.strip_prefix("--output-document="))
                        .map(str::to_owned),
                );
                // `-sSLo file`
                if text.starts_with('-') && !text.starts_with("--") && text.ends_with('o') && text.len() > 2 {
                    found.extend(next);
                }
                if name.starts_with("wget") && text.contains("://") {
                    found.push(basename(text).to_owned());
                }
            }
        }
    }
    found
}
