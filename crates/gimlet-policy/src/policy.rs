//! The policy as a whole: shipped rules, then the user's, then the project's.

use std::borrow::Cow;
use std::path::PathBuf;

use gimlet::effect::{Effect, Policy as EffectPolicy, PolicyError, Verdict};

use crate::context::{Context, Jail};
use crate::judge::{Finding, Judge, Level, Structural, basename};
use crate::paths::PathRules;
use crate::report::{Report, SegmentReport};
use crate::rules::{self, Author, ExampleFailure, Rule, RuleSet, RulesError, Shape, builtin};
use crate::shell::{self, Certainty, Script, Word};

/// The longest text a kernel takes as one argument, so the longest command that can run.
const MAX_COMMAND: usize = 128 * 1024;

/// Judges commands. Cheap to clone the shipped part of; build it once.
#[derive(Debug, Clone)]
pub struct Policy {
    user: RuleSet,
    project: RuleSet,
    secrets: Vec<String>,
    public: Vec<String>,
    /// The shipped names until somebody adds one.
    paths: Cow<'static, PathRules>,
}

impl Policy {
    /// The shipped rules alone.
    pub fn builtin() -> Self {
        Policy {
            user: RuleSet::default(),
            project: RuleSet::default(),
            secrets: Vec::new(),
            public: Vec::new(),
            paths: Cow::Borrowed(PathRules::shipped()),
        }
    }

    /// Adds a user's rules. They may turn a question into a yes, never a denial.
    pub fn with_user_rules(self, text: &str, name: &str) -> Result<Self, Box<RulesError>> {
        self.with_rules(text, name, Author::User, Shape::Rules)
    }

    /// The same, from the table `policy` of a file of settings.
    pub fn with_user_settings(self, text: &str, name: &str) -> Result<Self, Box<RulesError>> {
        self.with_rules(text, name, Author::User, Shape::Settings)
    }

    /// Adds a project's rules. They may only tighten.
    pub fn with_project_rules(self, text: &str, name: &str) -> Result<Self, Box<RulesError>> {
        self.with_rules(text, name, Author::Project, Shape::Rules)
    }

    /// The same, from the table `policy` of a file of settings.
    pub fn with_project_settings(self, text: &str, name: &str) -> Result<Self, Box<RulesError>> {
        self.with_rules(text, name, Author::Project, Shape::Settings)
    }

    fn with_rules(
        mut self,
        text: &str,
        name: &str,
        author: Author,
        shape: Shape,
    ) -> Result<Self, Box<RulesError>> {
        let loaded = rules::load(text, name, author, shape)?;
        loaded.secrets.iter().for_each(|pattern| self.paths.to_mut().add_secret(pattern));
        self.secrets.extend(loaded.secrets.iter().cloned());
        loaded.public.iter().for_each(|pattern| self.paths.to_mut().lift(pattern));
        self.public.extend(loaded.public.iter().cloned());
        match author {
            Author::Builtin | Author::User => self.user = self.user.with(loaded.rules.clone()),
            Author::Project => self.project = self.project.with(loaded.rules.clone()),
        }
        let failures = self.failures(&loaded);
        if failures.is_empty() {
            Ok(self)
        } else {
            Err(Box::new(RulesError::Examples { name: name.to_owned(), failures }))
        }
    }

    /// Every rule in force: the user's, the shipped ones, those whose condition is code, the project's.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        let [user, shipped, project] = self.sets();
        let structures = builtin().structures.iter().map(|structure| &structure.rule);
        user.iter().chain(shipped.iter()).chain(project.iter()).chain(structures)
    }

    /// Patterns of files that the user says are no secrets.
    pub fn public_files(&self) -> &[String] {
        &self.public
    }

    /// Patterns of secret files that users and projects added.
    pub fn added_secrets(&self) -> &[String] {
        &self.secrets
    }

    /// Names that must not be read or written; other crates ask the same list.
    pub fn paths(&self) -> &PathRules {
        &self.paths
    }

    /// In the order in which they are asked.
    fn sets(&self) -> [&RuleSet; 3] {
        [&self.user, &builtin().loaded.rules, &self.project]
    }

    /// Every rule about a program.
    pub(crate) fn rules_about<'a>(&'a self, program: &'a Word) -> impl Iterator<Item = &'a Rule> {
        self.sets().into_iter().flat_map(|set| set.about(program))
    }

    /// The project's rules about a program.
    pub(crate) fn project_rules_about<'a>(&'a self, program: &'a Word) -> impl Iterator<Item = &'a Rule> {
        self.project.about(program)
    }

    /// The rule that decides a command which nothing denies: the user's first, then the shipped ones.
    pub(crate) fn chosen<'a>(&'a self, program: &'a Word, args: &[Word]) -> Option<&'a Rule> {
        if !program.is_known() {
            return None;
        }
        let [user, shipped, _] = self.sets();
        user.about(program)
            .chain(shipped.about(program))
            .filter(|rule| rule.verdict != rules::Say::Deny)
            .find(|rule| rule.after_subcommand(args).is_some_and(|rest| rule.accepts(rest)))
    }

    /// Whether setting a variable changes nothing that a program does, beside how it talks.
    pub(crate) fn is_harmless_setting(&self, name: &str, value: &Word) -> bool {
        let lists = &builtin().lists;
        let setting = || format!("{name}={}", value.text);
        lists.harmless_variables.iter().any(|known| known == name)
            || (value.is_known() && lists.harmless_settings.contains(&setting()))
    }

    pub(crate) fn is_trusted_location(&self, program: &str) -> bool {
        let folder = program.rsplit_once('/').map(|(folder, _)| folder).unwrap_or_default();
        builtin().lists.trusted_folders.iter().any(|trusted| trusted == folder)
    }

    /// Judges one command.
    pub fn check(&self, command: &str, context: &Context) -> Report {
        let mut judge = Judge::new(self, context);
        let unreadable = |judge: &Judge<'_>, why: &str| {
            report(command, vec![judge.found(Structural::Unreadable, why)], Vec::new(), None)
        };
        if command.len() > MAX_COMMAND {
            return unreadable(&judge, "too long");
        }
        if command.contains('\0') {
            return unreadable(&judge, "it holds a NUL character");
        }
        let mut variables = judge.variables(Vec::new());
        let Ok(script) = shell::parse(command, &mut variables, self) else {
            return unreadable(&judge, "too deeply nested");
        };
        let outcome = judge.script(&script);
        let mut findings = outcome.findings;
        if command.chars().any(is_unusual) {
            findings.push(judge.found(Structural::UnusualCharacters, ""));
        }
        if findings.is_empty() && outcome.segments.iter().all(Vec::is_empty) {
            findings.push(judge.found(Structural::Unknown, "nothing would run"));
        }
        let mut segments = Vec::with_capacity(outcome.segments.len());
        for (segment, said) in script.segments.iter().zip(outcome.segments) {
            if let Some(worst) = worst(&said) {
                let argv = segment.argv.iter().map(|word| word.text.clone()).collect();
                segments.push(SegmentReport { argv, verdict: worst.verdict(), rule: worst.rule.clone() });
            }
            findings.extend(said);
        }
        report(command, findings, segments, plain_argv(&script))
    }

    /// Runs the examples of every shipped rule; those of users and projects were checked when they were loaded.
    pub fn self_test(&self) -> Vec<ExampleFailure> {
        self.failures(&builtin().loaded)
    }

    fn failures(&self, loaded: &rules::Loaded) -> Vec<ExampleFailure> {
        let mut context = Context::new("/srv/project", Jail::Active);
        context.home = Some(PathBuf::from("/home/someone"));
        let mut failures = Vec::new();
        for example in &loaded.examples {
            let report = self.check(&example.command, &context);
            let decided = report.decided_by(&example.rule);
            let problem = match example.expected {
                rules::Expected::Decides(say) => {
                    let wanted = match say {
                        rules::Say::Allow | rules::Say::AllowInJail => "allow",
                        rules::Say::Ask => "require_approval",
                        rules::Say::Deny => "deny",
                    };
                    let got = report.verdict.word();
                    let same = got == wanted;
                    (!decided || !same)
                        .then(|| format!("should be {wanted} by this rule, but is {got}: {}", report.reason))
                }
                rules::Expected::LeftAlone => {
                    decided.then(|| "should be left alone, but the rule decides it".to_owned())
                }
            };
            if let Some(problem) = problem {
                failures.push(ExampleFailure {
                    rule: example.rule.clone(),
                    example: example.command.clone(),
                    problem,
                    source_code: loaded.source.clone(),
                    span: example.span,
                });
            }
        }
        failures
    }
}

impl shell::Foreign for Policy {
    fn is_foreign(&self, program: &str) -> bool {
        let lists = &builtin().lists;
        let name = basename(program);
        lists.fetchers.iter().chain(&lists.decoders).any(|known| known == name)
    }
}

/// Control characters, and characters that hide or reorder what a person reads.
fn is_unusual(char: char) -> bool {
    (char.is_control() && !matches!(char, '\n' | '\t'))
        || matches!(char, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}' | '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{3000}')
}

fn worst(findings: &[Finding]) -> Option<&Finding> {
    // The first of the worst, so that the reason is stable.
    findings.iter().rev().max_by_key(|finding| finding.level)
}

/// Program and arguments when the text is one simple command whose words need no shell.
fn plain_argv(script: &Script) -> Option<Vec<String>> {
    let [segment] = script.segments.as_slice() else { return None };
    let simple = script.opaque.is_empty()
        && segment.assignments.is_empty()
        && segment.redirections.is_empty()
        && segment.substitutions.is_empty()
        && segment.argv.iter().all(|word| word.certainty == Certainty::Literal);
    let program = segment.argv.first()?;
    let builtins = &builtin().lists.builtins;
    (simple && !builtins.contains(&program.text))
        .then(|| segment.argv.iter().map(|word| word.text.clone()).collect())
}

fn report(
    command: &str,
    findings: Vec<Finding>,
    segments: Vec<SegmentReport>,
    argv: Option<Vec<String>>,
) -> Report {
    let (verdict, reason, rules) = match worst(&findings) {
        // Never reached with nothing found; if it were, a person should look.
        None => (Verdict::Ask(String::new()), String::new(), Vec::new()),
        Some(worst) if worst.level == Level::Allow => {
            let mut reasons: Vec<&str> = Vec::new();
            for finding in &findings {
                if !reasons.contains(&finding.reason.as_str()) {
                    reasons.push(&finding.reason);
                }
            }
            (Verdict::Allow, reasons.join("; "), ids(&findings, Level::Allow))
        }
        Some(worst) => (worst.verdict(), worst.reason.clone(), ids(&findings, worst.level)),
    };
    Report {
        command: command.to_owned(),
        verdict,
        reason,
        segments,
        needs_shell: argv.is_none(),
        argv,
        rules,
    }
}

fn ids(findings: &[Finding], level: Level) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for finding in findings.iter().filter(|finding| finding.level == level) {
        if !found.contains(&finding.rule) {
            found.push(finding.rule.clone());
        }
    }
    found
}

/// The policy for commands. It judges [`Effect::Run`] only: reading and delegating are allowed as far as it is
/// concerned, and writing, networking and opaque effects are the business of other policies, to which it does not object.
#[derive(Debug, Clone)]
pub struct CommandPolicy {
    /// The rules.
    pub policy: Policy,
    /// Where commands run; the effect's folder is taken relative to the root.
    pub context: Context,
}

impl EffectPolicy for CommandPolicy {
    fn judge(&self, effect: &Effect) -> Result<Verdict, PolicyError> {
        match effect {
            Effect::Run { command, cwd } => {
                let context = Context { cwd: self.context.root.join(cwd), ..self.context.clone() };
                Ok(self.policy.check(command, &context).verdict)
            }
            Effect::Read { .. }
            | Effect::Write { .. }
            | Effect::Network { .. }
            | Effect::Delegate { .. }
            | Effect::Remember { .. }
            | Effect::Opaque { .. } => Ok(Verdict::Allow),
        }
    }
}
