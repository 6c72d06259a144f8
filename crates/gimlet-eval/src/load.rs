//! Reads a suite: `suite.toml`, every `tasks/*.toml` beside it, and the folders its fixtures name. Everything that is
//! wrong is an error that names the file and the line.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use gimlet::digest::digest;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;

use super::check::Check;
use super::fixture::{Commit, Fixture, Layer};
use super::suite::{Approve, Level, PlacedCheck, Reference, Split, Suite, Task};
use gimlet_runtime::UsageError;
use gimlet_runtime::config::{Spot, line_at, read_small, shown};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteFile {
    name: Spanned<String>,
    #[serde(default)]
    about: String,
    #[serde(default)]
    defaults: Defaults,
    #[serde(default)]
    fixture: BTreeMap<String, Spanned<RawFixture>>,
    #[serde(default)]
    task: Vec<Spanned<RawTask>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TasksFile {
    #[serde(default)]
    fixture: BTreeMap<String, Spanned<RawFixture>>,
    #[serde(default)]
    task: Vec<Spanned<RawTask>>,
}

/// What holds for tasks that say nothing else.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Defaults {
    max_steps: u32,
    timeout: f64,
}

impl Default for Defaults {
    fn default() -> Self {
        Defaults { max_steps: 10, timeout: 600.0 }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTask {
    id: Spanned<String>,
    group: String,
    #[serde(default)]
    level: Level,
    split: Split,
    task: Spanned<String>,
    fixture: Option<Spanned<String>>,
    files: Option<Spanned<BTreeMap<PathBuf, String>>>,
    #[serde(default)]
    approve: Approve,
    max_steps: Option<u32>,
    timeout: Option<f64>,
    #[serde(default)]
    needs: Vec<String>,
    check: Vec<Spanned<Check>>,
    reference: Option<Reference>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFixture {
    #[serde(default)]
    commit: Vec<Spanned<RawLayer>>,
    uncommitted: Option<Spanned<RawLayer>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLayer {
    #[serde(default)]
    message: String,
    author: Option<String>,
    /// A folder whose files are taken.
    from: Option<PathBuf>,
    #[serde(default)]
    files: BTreeMap<PathBuf, String>,
    #[serde(default)]
    remove: Vec<PathBuf>,
}

/// Reads a suite from a folder or a file.
pub(crate) fn load(path: &Path) -> anyhow::Result<Suite> {
    let file = if path.is_dir() { path.join("suite.toml") } else { path.to_owned() };
    let folder = file.parent().unwrap_or(Path::new("")).to_owned();
    let mut reader = Reader { folder, digests: Vec::new(), fixtures: BTreeMap::new() };
    let text = reader.text(&file)?;
    let suite: SuiteFile = text.parse()?;
    if suite.name.get_ref().is_empty() || !suite.name.get_ref().chars().all(is_plain) {
        return Err(text.wrong(suite.name.span(), "a name has letters, digits, `-` and `_`").into());
    }
    let mut parts = vec![(text, TasksFile { fixture: suite.fixture, task: suite.task })];
    for file in reader.task_files()? {
        let text = reader.text(&file)?;
        let part = text.parse()?;
        parts.push((text, part));
    }
    for (text, part) in &mut parts {
        for (name, raw) in std::mem::take(&mut part.fixture) {
            reader.fixture(text, name, raw)?;
        }
    }
    let mut tasks = Vec::new();
    let mut ids = HashSet::new();
    for (text, part) in parts {
        for raw in part.task {
            let id = raw.get_ref().id.clone();
            tasks.push(reader.task(&text, raw, &suite.defaults)?);
            if !ids.insert(id.get_ref().clone()) {
                return Err(text.wrong(id.span(), format!("there are two tasks `{}`", id.get_ref())).into());
            }
        }
    }
    if tasks.is_empty() {
        return Err(UsageError::new(format!("{} has no tasks", shown(&file)))
            .hint("add [[task]] to it, or to a file in tasks/ beside it")
            .into());
    }
    let digest = digest(serde_json::to_string(&reader.digests)?.as_bytes());
    Ok(Suite { name: suite.name.into_inner(), about: suite.about, digest, tasks })
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// A path that stays inside the repository.
fn is_inside(path: &Path) -> bool {
    let mut parts = path.components();
    path.components().next().is_some()
        && parts.all(|part| matches!(part, Component::Normal(name) if name != ".git"))
}

/// The text of a file, for pointing at its lines.
struct Text {
    path: PathBuf,
    text: String,
}

impl Text {
    fn parse<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        toml::from_str(&self.text).map_err(|error| {
            let span = error.span().unwrap_or(0..0);
            self.wrong(span, error.message().trim_end()).into()
        })
    }

    fn spot(&self, span: &Range<usize>) -> Spot {
        Spot { path: self.path.clone(), line: line_at(&self.text, span.start) }
    }

    fn wrong(&self, span: Range<usize>, message: impl std::fmt::Display) -> UsageError {
        UsageError::new(format!("{}: {message}", self.spot(&span)))
    }
}

struct Reader {
    /// Where the suite is.
    folder: PathBuf,
    /// Name and hash of everything that was read, in order.
    digests: Vec<(String, String)>,
    /// Those that have a name.
    fixtures: BTreeMap<String, Arc<Fixture>>,
}

impl Reader {
    fn text(&mut self, path: &Path) -> anyhow::Result<Text> {
        let Some(bytes) = read_small(path)? else {
            return Err(UsageError::new(format!("there is no suite at {}", shown(path)))
                .hint("a suite is a folder with a suite.toml, such as eval/basic")
                .into());
        };
        self.note(path, &bytes);
        let text = String::from_utf8(bytes)
            .map_err(|_| UsageError::new(format!("{} is not text in UTF-8", shown(path))))?;
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Ok(Text { path, text })
    }

    fn note(&mut self, path: &Path, bytes: &[u8]) {
        let name = path.strip_prefix(&self.folder).unwrap_or(path).display().to_string();
        self.digests.push((name, digest(bytes)));
    }

    fn task_files(&self) -> anyhow::Result<Vec<PathBuf>> {
        let folder = self.folder.join("tasks");
        if !folder.is_dir() {
            return Ok(Vec::new());
        }
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }

    fn fixture(&mut self, text: &Text, name: String, raw: Spanned<RawFixture>) -> anyhow::Result<()> {
        let span = raw.span();
        if self.fixtures.contains_key(&name) {
            return Err(text.wrong(span, format!("there are two fixtures `{name}`")).into());
        }
        let raw = raw.into_inner();
        let mut fixture = Fixture::default();
        for commit in raw.commit {
            let span = commit.span();
            if commit.get_ref().message.is_empty() {
                return Err(text.wrong(span, "a commit needs a message").into());
            }
            let message = commit.get_ref().message.clone();
            let author = commit.get_ref().author.clone().unwrap_or_else(|| "Ada".into());
            fixture.commits.push(Commit { message, author, layer: self.layer(text, commit)? });
        }
        if let Some(layer) = raw.uncommitted {
            if !layer.get_ref().message.is_empty() || layer.get_ref().author.is_some() {
                return Err(text
                    .wrong(layer.span(), "what is not committed has no message and no author")
                    .into());
            }
            fixture.uncommitted = self.layer(text, layer)?;
        }
        self.fixtures.insert(name, Arc::new(fixture));
        Ok(())
    }

    fn layer(&mut self, text: &Text, raw: Spanned<RawLayer>) -> anyhow::Result<Layer> {
        let span = raw.span();
        let raw = raw.into_inner();
        let mut layer = Layer { remove: raw.remove, ..Layer::default() };
        if let Some(from) = raw.from {
            let folder = self.folder.join(&from);
            if !folder.is_dir() {
                return Err(text.wrong(span, format!("there is no folder {}", shown(&folder))).into());
            }
            self.files(&folder, Path::new(""), &mut layer.files)?;
        }
        layer.files.extend(raw.files.into_iter().map(|(path, text)| (path, text.into_bytes())));
        let outside = layer.files.keys().chain(&layer.remove).find(|path| !is_inside(path));
        match outside {
            Some(path) => {
                Err(text.wrong(span, format!("{} is not a path in the repository", path.display())).into())
            }
            None => Ok(layer),
        }
    }

    fn files(
        &mut self,
        folder: &Path,
        below: &Path,
        files: &mut BTreeMap<PathBuf, Vec<u8>>,
    ) -> anyhow::Result<()> {
        let mut entries = std::fs::read_dir(folder.join(below))?.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let path = below.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                self.files(folder, &path, files)?;
            } else if let Some(bytes) = read_small(&entry.path())? {
                self.note(&entry.path(), &bytes);
                files.insert(path, bytes);
            }
        }
        Ok(())
    }

    fn task(&mut self, text: &Text, raw: Spanned<RawTask>, defaults: &Defaults) -> anyhow::Result<Task> {
        let spot = text.spot(&raw.span());
        let raw = raw.into_inner();
        if raw.id.get_ref().is_empty() || !raw.id.get_ref().chars().all(is_plain) {
            return Err(text.wrong(raw.id.span(), "an id has letters, digits, `-` and `_`").into());
        }
        if raw.task.get_ref().trim().is_empty() {
            return Err(text.wrong(raw.task.span(), "the task says nothing").into());
        }
        let fixture = match (raw.fixture, raw.files) {
            (Some(name), None) => self.fixtures.get(name.get_ref()).cloned().ok_or_else(|| {
                text.wrong(name.span(), format!("there is no fixture `{}`", name.get_ref())).hint(format!(
                    "known here: {}",
                    self.fixtures.keys().cloned().collect::<Vec<_>>().join(", ")
                ))
            })?,
            (None, Some(files)) => {
                let span = files.span();
                let files = files.into_inner();
                let layer =
                    RawLayer { message: String::new(), author: None, from: None, files, remove: Vec::new() };
                let layer = self.layer(text, Spanned::new(span, layer))?;
                Arc::new(single(layer))
            }
            (None, None) => Arc::new(single(Layer::default())),
            (Some(_), Some(files)) => {
                return Err(text.wrong(files.span(), "a task has a fixture or files, not both").into());
            }
        };
        let max_steps = raw.max_steps.unwrap_or(defaults.max_steps);
        let mut checks = Vec::new();
        for check in raw.check {
            let span = check.span();
            let check = check.into_inner();
            if let Some(why) = check.cannot_fail(max_steps) {
                return Err(text.wrong(span, format!("this check cannot fail: {why}")).into());
            }
            if let Some(path) = check.paths().into_iter().find(|path| !is_inside(path)) {
                let path = path.display();
                return Err(text.wrong(span, format!("{path} is not a path in the repository")).into());
            }
            checks.push(PlacedCheck { check, spot: text.spot(&span) });
        }
        if checks.is_empty() {
            return Err(text.wrong(raw.id.span(), "a task needs a check").into());
        }
        Ok(Task {
            id: raw.id.into_inner(),
            group: raw.group,
            level: raw.level,
            split: raw.split,
            words: raw.task.into_inner().trim().to_owned(),
            fixture,
            approve: raw.approve,
            max_steps,
            timeout: raw.timeout.unwrap_or(defaults.timeout),
            needs: raw.needs,
            checks,
            reference: raw.reference,
            spot,
        })
    }
}

/// A repository of one commit.
fn single(layer: Layer) -> Fixture {
    let commit = Commit { message: "First version".into(), author: "Ada".into(), layer };
    Fixture { commits: vec![commit], uncommitted: Layer::default() }
}
