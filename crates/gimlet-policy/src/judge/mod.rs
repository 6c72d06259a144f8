//! From a parsed script to a verdict: every segment is unwrapped until the program that really runs is found, then
//! rules and paths are applied, and the worst finding counts.

mod command;
mod finding;
mod history;
mod meaning;
mod names;
mod places;

use std::path::Path;
use std::rc::Rc;

pub(crate) use finding::{Finding, Level, Structural};

use crate::context::Context;
use crate::paths::{self, Folder};
use crate::policy::Policy;
use crate::rules::builtin;
use crate::shell::{self, Certainty, Channel, Direction, Script, Segment, Variables, Word};

/// Scripts inside scripts inside scripts: deeper than this is refused.
const MAX_NESTING: usize = 10;
/// Bytes of shell text that may be parsed for one check, nested texts included.
const MAX_WORK: usize = 1024 * 1024;

/// What a segment does with text, for judging pipes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traits {
    /// Its output was downloaded or decoded.
    foreign: bool,
    /// It runs what it reads.
    runs_input: bool,
}

impl Traits {
    fn add(&mut self, other: Traits) {
        self.foreign |= other.foreign;
        self.runs_input |= other.runs_input;
    }
}

/// What flows into a command from its surroundings.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Io<'a> {
    /// The segment it belongs to, for here-documents and here-strings.
    segment: Option<&'a Segment>,
    /// A substitution feeds it text from elsewhere.
    fed_foreign: bool,
    /// Words are added at run time, as xargs does.
    appended: bool,
    /// Names of files that are piped into it, as patterns; empty when they are not known.
    names: &'a [Word],
}

pub(crate) struct Judge<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) context: &'a Context,
    /// The root and the folder that nothing may name, taken apart once.
    root: Folder,
    gimlet_home: Option<Folder>,
    /// Where the command starts.
    start: Folder,
    /// Variables every script starts with.
    given: Rc<[(&'static str, Word)]>,
    /// Where relative paths may start; empty when it cannot be known.
    cwds: Vec<Folder>,
    nesting: usize,
    work: usize,
    /// Files a download was saved to.
    saved: Vec<String>,
}

/// What was said about each of a script's segments, and about the script as a whole.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) segments: Vec<Vec<Finding>>,
    pub(crate) findings: Vec<Finding>,
    traits: Traits,
}

impl<'a> Judge<'a> {
    pub(crate) fn new(policy: &'a Policy, context: &'a Context) -> Self {
        let start = paths::absolute(&context.cwd);
        Judge {
            policy,
            context,
            root: paths::absolute(&context.root),
            gimlet_home: context.gimlet_home.as_deref().map(paths::absolute),
            cwds: vec![start.clone()],
            start,
            given: given(context),
            nesting: 0,
            work: 0,
            saved: Vec::new(),
        }
    }

    pub(crate) fn found(&self, structural: Structural, detail: &str) -> Finding {
        let mut short: String = detail.chars().take(80).collect();
        if short.len() < detail.len() {
            short.push('…');
        }
        structural.found(builtin(), &short)
    }

    /// What is known of variables when a script starts.
    pub(crate) fn variables(&self, positional: Vec<Word>) -> Variables {
        Variables::new(Rc::clone(&self.given), positional)
    }

    /// Parses and judges a text that would be run as a script.
    pub(crate) fn text(&mut self, text: &str, positional: Vec<Word>) -> Outcome {
        self.nesting += 1;
        self.work += text.len() + 64;
        if self.nesting > MAX_NESTING || self.work > MAX_WORK {
            self.nesting -= 1;
            return Outcome {
                findings: vec![self.found(Structural::Unreadable, "nested too deeply")],
                ..Outcome::default()
            };
        }
        let mut variables = self.variables(positional);
        let outcome = match shell::parse(text, &mut variables, self.policy) {
            Ok(script) => self.script(&script),
            Err(_) => {
                Outcome { findings: vec![self.found(Structural::Unreadable, "")], ..Outcome::default() }
            }
        };
        self.nesting -= 1;
        outcome
    }

    pub(crate) fn script(&mut self, script: &Script) -> Outcome {
        let mut outcome = Outcome::default();
        let mut traits = Vec::with_capacity(script.segments.len());
        let names = self.piped_names(script);
        for (index, segment) in script.segments.iter().enumerate() {
            let piped = names.get(index).map(Vec::as_slice).unwrap_or_default();
            let (findings, own) = self.segment(segment, piped);
            outcome.traits.add(own);
            traits.push(own);
            outcome.segments.push(findings);
        }
        for pipeline in &script.pipelines {
            let mut foreign = false;
            for (index, stage) in pipeline.stages.iter().enumerate() {
                let mut here = Traits::default();
                traits.get(stage.clone()).unwrap_or_default().iter().for_each(|own| here.add(*own));
                if here.runs_input && foreign {
                    let finding = self.found(Structural::FetchToShell, "");
                    blame(&mut outcome, stage.end, finding);
                } else if here.runs_input && index > 0 {
                    // Stages between may pass the text on, as tee does.
                    let before = pipeline.stages[0].start..pipeline.stages[index - 1].end;
                    for text in script.segments.get(before).unwrap_or_default().iter().flat_map(printed) {
                        let inner = self.text(&text, Vec::new());
                        inner
                            .into_findings()
                            .into_iter()
                            .for_each(|finding| blame(&mut outcome, stage.end, finding));
                    }
                }
                foreign |= here.foreign;
            }
        }
        for function in &script.functions {
            let body = script.segments.get(function.body.clone()).unwrap_or_default();
            let calls = body
                .iter()
                .filter(|segment| segment.argv.first().is_some_and(|word| word.text == function.name));
            let background = script.opaque.iter().any(|what| what == "a command in the background");
            let calls = calls.count();
            if calls >= 2 || (calls == 1 && background) {
                outcome.findings.push(self.found(Structural::ForkBomb, ""));
            }
        }
        if !script.opaque.is_empty() {
            outcome.findings.push(self.found(Structural::Opaque, &script.opaque.join(", ")));
        }
        outcome
    }

    fn segment(&mut self, segment: &Segment, names: &[Word]) -> (Vec<Finding>, Traits) {
        let (mut findings, mut traits) = (Vec::new(), Traits::default());
        let mut io = Io { segment: Some(segment), names, ..Io::default() };
        for substitution in &segment.substitutions {
            self.nesting += 1;
            let inner = if self.nesting > MAX_NESTING * 4 {
                Outcome {
                    findings: vec![self.found(Structural::Unreadable, "nested too deeply")],
                    ..Outcome::default()
                }
            } else {
                self.script(&substitution.script)
            };
            self.nesting -= 1;
            match substitution.channel {
                Channel::Feeds => io.fed_foreign |= inner.traits.foreign,
                Channel::Drains => traits.runs_input |= inner.traits.runs_input,
            }
            findings.extend(inner.into_findings().into_iter().filter(|finding| finding.level > Level::Allow));
        }
        findings.extend(segment.redirections.iter().flat_map(|redirection| self.redirection(redirection)));
        for assignment in &segment.assignments {
            if !self.policy.is_harmless_setting(&assignment.name, &assignment.value) {
                findings.push(self.found(Structural::SetsVariable, &assignment.name));
            }
        }
        if !segment.argv.is_empty() {
            findings.extend(self.words(&segment.argv, &io, &mut traits));
            if findings.is_empty() {
                // Silence is not consent.
                findings.push(self.found(Structural::Unknown, ""));
            }
        }
        if traits.foreign {
            let targets = segment.redirections.iter().filter(|r| r.direction == Direction::Write);
            self.saved.extend(targets.map(|redirection| redirection.target.text.clone()));
        }
        (findings, traits)
    }
}

fn given(context: &Context) -> Rc<[(&'static str, Word)]> {
    let path = |path: &Path| Word::literal(path.to_string_lossy());
    let home = context.home.as_deref().map(|home| ("HOME", path(home)));
    // Not known for sure, because `cd` may have changed it.
    let cwd = ("PWD", Word { certainty: Certainty::Variable, ..path(&context.cwd) });
    // Whatever shell it is, it is a shell.
    let shells = ["SHELL", "BASH", "ZSH_NAME"]
        .map(|name| (name, Word { certainty: Certainty::Variable, ..Word::literal("sh") }));
    let printable = builtin().lists.printable_variables.iter();
    let printable =
        printable.map(|name| (name.as_str(), Word { certainty: Certainty::Variable, ..Word::literal("") }));
    home.into_iter().chain([cwd]).chain(shells).chain(printable).collect()
}

impl Outcome {
    pub(crate) fn into_findings(self) -> Vec<Finding> {
        let mut all = self.findings;
        all.extend(self.segments.into_iter().flatten());
        all
    }
}

/// Adds a finding to the last segment of a stage, so that the report shows it where it belongs.
fn blame(outcome: &mut Outcome, end: usize, finding: Finding) {
    match outcome.segments.get_mut(end.saturating_sub(1)) {
        Some(said) => said.push(finding),
        None => outcome.findings.push(finding),
    }
}

/// What a segment prints, when that can be told; more than one reading where shells differ.
fn printed(segment: &Segment) -> Vec<String> {
    // `sudo echo x` and `env A=1 echo x` print the same.
    let prints = |word: &Word| matches!(basename(&word.text), "echo" | "printf" | "cat" | "tee");
    let at = segment.argv.iter().position(prints).unwrap_or(0);
    let mut found = segment.heredocs.clone();
    let texts = segment.redirections.iter().filter(|redirection| redirection.direction == Direction::Text);
    found.extend(texts.map(|redirection| redirection.target.text.clone()));
    if let Some((program, rest)) = segment.argv.get(at..).and_then(<[Word]>::split_first)
        && matches!(basename(&program.text), "echo" | "printf")
    {
        let words = rest
            .iter()
            .map(|word| word.text.as_str())
            .filter(|text| !matches!(*text, "-n" | "-e" | "%s" | "%s\\n"));
        let text = words.collect::<Vec<_>>().join(" ");
        // Some shells turn `\n` into a new line, others keep it.
        found.push(text.replace("\\n", "\n"));
        found.push(text);
    }
    found
}

pub(crate) fn basename(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}
