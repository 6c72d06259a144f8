//! Rules from TOML, with errors that point at the line.

use miette::{Diagnostic, NamedSource, SourceSpan};
use serde::Deserialize;
use toml::Spanned;

use super::flags::{Flag, Style};
use super::{Author, Operands, Rule, RuleSet, Say};

/// A rule file that cannot be used.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum RulesError {
    /// Not TOML, or not of the right shape.
    #[error("{name} is not a file of rules: {message}")]
    #[diagnostic(code(gimlet::policy::syntax))]
    Syntax {
        /// The file.
        name: String,
        /// What is wrong.
        message: String,
        /// Its text.
        #[source_code]
        source_code: NamedSource<String>,
        /// Where.
        #[label("here")]
        span: SourceSpan,
    },
    /// A rule says something that does not hold together.
    #[error("rule `{rule}` in {name}: {message}")]
    #[diagnostic(code(gimlet::policy::rule))]
    Rule {
        /// The file.
        name: String,
        /// The rule.
        rule: String,
        /// What is wrong.
        message: String,
        /// Its text.
        #[source_code]
        source_code: NamedSource<String>,
        /// Where.
        #[label("this rule")]
        span: SourceSpan,
    },
    /// A project's rule would allow something.
    #[error("rule `{rule}` in {name} would loosen the policy")]
    #[diagnostic(code(gimlet::policy::loosens), help("rules of a project may only say `ask` or `deny`"))]
    Loosens {
        /// The file.
        name: String,
        /// The rule.
        rule: String,
        /// Its text.
        #[source_code]
        source_code: NamedSource<String>,
        /// Where.
        #[label("says it here")]
        span: SourceSpan,
    },
    /// Examples that do not come out as the rule says.
    #[error("{} of the examples in {name} came out differently", failures.len())]
    #[diagnostic(code(gimlet::policy::examples))]
    Examples {
        /// The file.
        name: String,
        /// Each of them.
        #[related]
        failures: Vec<ExampleFailure>,
    },
}

/// An example that does not come out as its rule says.
#[derive(Debug, Clone, thiserror::Error, Diagnostic)]
#[error("rule `{rule}`: `{example}` {problem}")]
pub struct ExampleFailure {
    /// The rule.
    pub rule: String,
    /// The command.
    pub example: String,
    /// What happened instead.
    pub problem: String,
    /// The file's text.
    #[source_code]
    pub source_code: NamedSource<String>,
    /// Where the example is.
    #[label("this example")]
    pub span: SourceSpan,
}

/// Where an example stands, so that a failure can point at it.
#[derive(Debug, Clone)]
pub(crate) struct Example {
    pub(crate) rule: String,
    pub(crate) command: String,
    /// Whether the rule should decide it.
    pub(crate) expected: Expected,
    pub(crate) span: SourceSpan,
}

/// What an example shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The rule decides it, with this verdict.
    Decides(Say),
    /// The rule has no part in it.
    LeftAlone,
}

/// A rule file, read.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub(crate) rules: RuleSet,
    pub(crate) secrets: Vec<String>,
    /// Files that the user says are no secrets.
    pub(crate) public: Vec<String>,
    pub(crate) examples: Vec<Example>,
    pub(crate) source: NamedSource<String>,
}

/// A file of settings, of which one table is ours.
#[derive(Deserialize)]
struct RawSettings {
    #[serde(default)]
    policy: RawFile,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    secrets: Vec<String>,
    #[serde(default)]
    public: Vec<Spanned<String>>,
    #[serde(default)]
    rule: Vec<RawRule>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn into_vec(self) -> Vec<String> {
        match self {
            OneOrMany::One(one) => vec![one],
            OneOrMany::Many(many) => many,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRule {
    id: Spanned<String>,
    program: OneOrMany,
    subcommand: Option<OneOrMany>,
    #[serde(default)]
    with: Vec<String>,
    #[serde(default)]
    args: Vec<String>,
    flags: Option<Vec<String>>,
    #[serde(default)]
    global: Vec<String>,
    passed: Option<Vec<String>>,
    #[serde(default)]
    style: Style,
    #[serde(default)]
    only: Vec<String>,
    #[serde(default)]
    not_args: Vec<String>,
    walks: Option<String>,
    operands: Option<Operands>,
    at_most: Option<usize>,
    #[serde(default)]
    unknown_fits: bool,
    verdict: Spanned<Say>,
    reason: String,
    #[serde(rename = "match")]
    matches: Vec<Spanned<String>>,
    #[serde(default)]
    not_match: Vec<Spanned<String>>,
}

pub(super) struct File<'a> {
    pub(super) name: &'a str,
    pub(super) source: NamedSource<String>,
    pub(super) author: Author,
}

impl File<'_> {
    fn wrong(&self, rule: &Spanned<String>, message: String) -> Box<RulesError> {
        Box::new(RulesError::Rule {
            name: self.name.to_owned(),
            rule: rule.get_ref().clone(),
            message,
            source_code: self.source.clone(),
            span: rule.span().into(),
        })
    }

    pub(super) fn flags(
        &self,
        rule: &Spanned<String>,
        texts: &[String],
    ) -> Result<Vec<Flag>, Box<RulesError>> {
        texts.iter().map(|text| Flag::parse(text).map_err(|message| self.wrong(rule, message))).collect()
    }

    fn rule(&self, raw: RawRule) -> Result<(Rule, Vec<Example>), Box<RulesError>> {
        let verdict = *raw.verdict.get_ref();
        if self.author == Author::Project && matches!(verdict, Say::Allow | Say::AllowInJail) {
            return Err(Box::new(RulesError::Loosens {
                name: self.name.to_owned(),
                rule: raw.id.get_ref().clone(),
                source_code: self.source.clone(),
                span: raw.verdict.span().into(),
            }));
        }
        if raw.matches.is_empty() {
            return Err(self.wrong(&raw.id, "needs at least one example under `match`".to_owned()));
        }
        let examples = examples(&raw.id, verdict, &raw.matches, &raw.not_match);
        let rule = Rule {
            author: self.author,
            source: self.name.to_owned(),
            flags: raw.flags.as_deref().map(|texts| self.flags(&raw.id, texts)).transpose()?,
            global: self.flags(&raw.id, &raw.global)?,
            passed: raw.passed.as_deref().map(|texts| self.flags(&raw.id, texts)).transpose()?,
            style: raw.style,
            only: raw.only,
            not_args: raw.not_args,
            walks: raw.walks,
            program: raw.program.into_vec(),
            subcommand: raw.subcommand.map(OneOrMany::into_vec).unwrap_or_default(),
            with: raw.with,
            args: raw.args,
            verdict,
            reason: raw.reason,
            operands: raw.operands,
            matches: texts(&raw.matches),
            not_match: texts(&raw.not_match),
            at_most: raw.at_most,
            unknown_fits: raw.unknown_fits,
            id: raw.id.into_inner(),
        };
        Ok((rule, examples))
    }

    pub(super) fn rules(&self, raw: Vec<RawRule>) -> Result<(Vec<Rule>, Vec<Example>), Box<RulesError>> {
        let (mut rules, mut all) = (Vec::<Rule>::new(), Vec::new());
        for raw in raw {
            if rules.iter().any(|rule| &rule.id == raw.id.get_ref()) {
                return Err(self.wrong(&raw.id, "has the same id as an earlier one".to_owned()));
            }
            let (rule, examples) = self.rule(raw)?;
            rules.push(rule);
            all.extend(examples);
        }
        Ok((rules, all))
    }
}

pub(super) fn texts(examples: &[Spanned<String>]) -> Vec<String> {
    examples.iter().map(|example| example.get_ref().clone()).collect()
}

pub(super) fn examples(
    id: &Spanned<String>,
    say: Say,
    yes: &[Spanned<String>],
    no: &[Spanned<String>],
) -> Vec<Example> {
    let make = |expected| {
        move |text: &Spanned<String>| Example {
            rule: id.get_ref().clone(),
            command: text.get_ref().clone(),
            expected,
            span: text.span().into(),
        }
    };
    yes.iter().map(make(Expected::Decides(say))).chain(no.iter().map(make(Expected::LeftAlone))).collect()
}

pub(super) fn parse<'a, T: Deserialize<'a>>(
    text: &'a str,
    name: &str,
    source: &NamedSource<String>,
) -> Result<T, Box<RulesError>> {
    toml::from_str(text).map_err(|error| {
        Box::new(RulesError::Syntax {
            name: name.to_owned(),
            message: error.message().to_owned(),
            source_code: source.clone(),
            span: error.span().unwrap_or(0..0).into(),
        })
    })
}

/// What a text with rules in it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Rules and nothing else.
    Rules,
    /// Settings, with the rules in the table `policy`.
    Settings,
}

/// Reads a user's or project's rules. Their examples are not checked yet: that takes the whole policy.
pub(crate) fn load(text: &str, name: &str, author: Author, shape: Shape) -> Result<Loaded, Box<RulesError>> {
    let source = NamedSource::new(name, text.to_owned());
    let raw: RawFile = match shape {
        Shape::Rules => parse(text, name, &source)?,
        Shape::Settings => parse::<RawSettings>(text, name, &source)?.policy,
    };
    let file = File { name, source, author };
    if let (Author::Project, Some(pattern)) = (author, raw.public.first()) {
        return Err(Box::new(RulesError::Syntax {
            name: name.to_owned(),
            message: "a project cannot say that files are no secrets; only your own settings can".to_owned(),
            source_code: file.source,
            span: pattern.span().into(),
        }));
    }
    let (rules, examples) = file.rules(raw.rule)?;
    let public = texts(&raw.public);
    Ok(Loaded { rules: RuleSet::new(rules), secrets: raw.secrets, public, examples, source: file.source })
}
