//! Everything that is shipped: the rules, those whose condition is code, programs that run others, and lists of names.

use std::sync::LazyLock;

use miette::NamedSource;
use serde::Deserialize;
use toml::Spanned;

use super::flags::{Flag, Style};
use super::index::Index;
use super::load::{File, Loaded, RawRule, RulesError, examples, parse, texts};
use super::{Author, Rule, RuleSet, Say};
use crate::glob;
use crate::shell::{Certainty, Word};

/// The shipped rules, in the order in which they are asked: what only looks, what runs code of the project, the rest.
const SHIPPED: &str = concat!(
    include_str!("../../rules.toml"),
    include_str!("../../rules-run.toml"),
    include_str!("../../rules-ask.toml"),
);

/// A program that runs another one named in its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Wrapper {
    pub(crate) id: String,
    pub(crate) program: Vec<String>,
    pub(crate) flags: Vec<Flag>,
    pub(crate) skip: usize,
    pub(crate) inner: Inner,
    pub(crate) code_flags: Vec<String>,
    pub(crate) stdin_shell: bool,
    pub(crate) verdict: Say,
    pub(crate) reason: String,
}

/// How a wrapper takes what it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Inner {
    /// As words.
    Words,
    /// As words, to which it adds more at run time.
    WordsAndMore,
    /// As text for a shell.
    Text,
    /// Its first operand is text for a shell.
    FirstText,
    /// As words that start nobody knows where, so that only denials count.
    Somewhere,
}

/// Another way to start a program, which is then judged as if it had been started by its name: `python3 -m mypy`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Alias {
    program: Vec<String>,
    /// What stands before the name, each as words with a blank between them.
    lead: Vec<String>,
    /// The names it is about.
    only: Vec<String>,
}

/// What a program is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Nature {
    pub(crate) shell: bool,
    pub(crate) interpreter: bool,
    pub(crate) fetcher: bool,
    pub(crate) decoder: bool,
}

/// Names of programs by what they are.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lists {
    pub(crate) shells: Vec<String>,
    pub(crate) interpreters: Vec<String>,
    pub(crate) fetchers: Vec<String>,
    pub(crate) decoders: Vec<String>,
    pub(crate) builtins: Vec<String>,
    pub(crate) harmless_variables: Vec<String>,
    /// Settings of other variables that are harmless, as `NAME=value`.
    pub(crate) harmless_settings: Vec<String>,
    /// Variables that hold no secrets, so that their value may be printed.
    pub(crate) printable_variables: Vec<String>,
    /// Words that name folders of a project where git would also take a revision.
    pub(crate) folders: Vec<String>,
    pub(crate) trusted_folders: Vec<String>,
}

/// A rule that needs the structure of a command, so its condition is code; its words are data.
#[derive(Debug, Clone)]
pub(crate) struct Structure {
    pub(crate) rule: Rule,
}

/// Everything that is shipped.
#[derive(Debug)]
pub(crate) struct Builtin {
    pub(crate) loaded: Loaded,
    pub(crate) structures: Vec<Structure>,
    wrappers: Vec<Wrapper>,
    aliases: Vec<Alias>,
    pub(crate) lists: Lists,
    /// Which lists, in the order of [`Lists::of_programs`], and which wrappers may be about a program.
    listed: Index,
    wrapping: Index,
}

impl Lists {
    fn of_programs(&self) -> [&[String]; 4] {
        [&self.shells, &self.interpreters, &self.fetchers, &self.decoders]
    }
}

impl Builtin {
    /// What the program of this name is.
    pub(crate) fn nature(&self, name: &str) -> Nature {
        let lists = self.lists.of_programs();
        let candidates = self.listed.about(name);
        let [shell, interpreter, fetcher, decoder] = std::array::from_fn(|place| {
            candidates.contains(&place) && lists[place].iter().any(|known| glob::matches(known, name))
        });
        Nature { shell, interpreter, fetcher, decoder }
    }

    /// The words of the program that is started under another name, its own first.
    pub(crate) fn unaliased<'a>(&self, name: &str, args: &'a [Word]) -> Option<&'a [Word]> {
        let about = |alias: &&Alias| alias.program.iter().any(|known| glob::matches(known, name));
        self.aliases.iter().filter(about).find_map(|alias| {
            let known = |rest: &'a [Word]| {
                let first = rest.first().filter(|word| word.certainty == Certainty::Literal)?;
                alias.only.contains(&first.text).then_some(rest)
            };
            alias.lead.iter().find_map(|lead| {
                let mut rest = args;
                for part in lead.split_whitespace() {
                    let (word, after) = rest.split_first()?;
                    rest = (word.text == part && word.is_known()).then_some(after)?;
                }
                known(rest)
            })
        })
    }

    /// The wrappers of this name.
    pub(crate) fn wrappers_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Wrapper> {
        let places = self.wrapping.about(name).iter();
        places
            .filter_map(|place| self.wrappers.get(*place))
            .filter(move |wrapper| wrapper.program.iter().any(|known| glob::matches(known, name)))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawShipped {
    lists: Lists,
    structure: Vec<RawStructure>,
    wrapper: Vec<RawWrapper>,
    alias: Vec<Alias>,
    rule: Vec<RawRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStructure {
    id: Spanned<String>,
    verdict: Say,
    reason: String,
    #[serde(default, rename = "match")]
    matches: Vec<Spanned<String>>,
    #[serde(default)]
    not_match: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWrapper {
    id: Spanned<String>,
    program: Vec<String>,
    #[serde(default)]
    flags: Vec<String>,
    #[serde(default)]
    skip: usize,
    #[serde(default = "words")]
    inner: Inner,
    #[serde(default)]
    code_flags: Vec<String>,
    #[serde(default)]
    stdin_shell: bool,
    verdict: Say,
    reason: String,
}

fn words() -> Inner {
    Inner::Words
}

fn load_shipped() -> Result<Builtin, Box<RulesError>> {
    let name = "rules.toml";
    let source = NamedSource::new(name, SHIPPED.to_owned());
    let raw: RawShipped = parse(SHIPPED, name, &source)?;
    let file = File { name, source, author: Author::Builtin };
    let mut wrappers = Vec::new();
    for raw in raw.wrapper {
        wrappers.push(Wrapper {
            flags: file.flags(&raw.id, &raw.flags)?,
            id: raw.id.into_inner(),
            program: raw.program,
            skip: raw.skip,
            inner: raw.inner,
            code_flags: raw.code_flags,
            stdin_shell: raw.stdin_shell,
            verdict: raw.verdict,
            reason: raw.reason,
        });
    }
    let (rules, mut all) = file.rules(raw.rule)?;
    let mut structures = Vec::new();
    for raw in raw.structure {
        all.extend(examples(&raw.id, raw.verdict, &raw.matches, &raw.not_match));
        let rule = Rule {
            author: Author::Builtin,
            source: name.to_owned(),
            program: Vec::new(),
            subcommand: Vec::new(),
            with: Vec::new(),
            args: Vec::new(),
            verdict: raw.verdict,
            reason: raw.reason,
            operands: None,
            matches: texts(&raw.matches),
            not_match: texts(&raw.not_match),
            flags: None,
            global: Vec::new(),
            passed: None,
            style: Style::default(),
            only: Vec::new(),
            not_args: Vec::new(),
            walks: None,
            at_most: None,
            unknown_fits: false,
            id: raw.id.into_inner(),
        };
        structures.push(Structure { rule });
    }
    let loaded = Loaded {
        rules: RuleSet::new(rules),
        secrets: Vec::new(),
        public: Vec::new(),
        examples: all,
        source: file.source,
    };
    let listed = Index::new(raw.lists.of_programs().into_iter());
    let wrapping = Index::new(wrappers.iter().map(|wrapper: &Wrapper| wrapper.program.as_slice()));
    let (aliases, lists) = (raw.alias, raw.lists);
    Ok(Builtin { loaded, structures, wrappers, aliases, lists, listed, wrapping })
}

/// The shipped rules, read once.
#[expect(clippy::expect_used, reason = "the text is part of the program and read by every test")]
pub(crate) fn builtin() -> &'static Builtin {
    static SHIPPED_RULES: LazyLock<Builtin> =
        LazyLock::new(|| load_shipped().expect("the shipped rules can be read"));
    &SHIPPED_RULES
}
