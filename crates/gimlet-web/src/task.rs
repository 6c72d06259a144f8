//! A task as a form or a program sends it, and the run's options that it stands for.

use std::path::{Path, PathBuf};

use gimlet::guard::truncate;
use gimlet::tool::Keep;
use gimlet_runtime::options::{Action, ApproveMode, Choice};
use gimlet_runtime::{Options, Runtime, redactor};
use serde::Deserialize;

use crate::problem::Problem;

/// Most characters and lines of one attachment, as for those of the terminal.
const MOST_CHARS: usize = 20_000;
const MOST_LINES: usize = 5_000;
/// Most attachments.
const MOST_FILES: usize = 20;

/// A task.
#[derive(Debug, Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Task {
    pub(crate) task: String,
    pub(crate) project: String,
    pub(crate) model: String,
    pub(crate) action: String,
    pub(crate) agent: String,
    pub(crate) approve: String,
    pub(crate) max_steps: Option<u32>,
    pub(crate) timeout: Option<f64>,
    pub(crate) token_budget: Option<u64>,
    pub(crate) attachments: Vec<Attachment>,
}

/// A text beside the task's own words.
#[derive(Debug, Deserialize)]
pub(crate) struct Attachment {
    pub(crate) name: String,
    pub(crate) text: String,
}

fn given(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The served folder of this name; the first one where none is named.
pub(crate) fn project<'a>(name: &str, projects: &'a [PathBuf]) -> Result<&'a PathBuf, Problem> {
    let found = match given(name) {
        None => projects.first(),
        Some(path) => projects.iter().find(|known| known.as_path() == Path::new(&path)),
    };
    found.ok_or_else(|| {
        Problem::unusable("this server does not serve that project")
            .hinted("start it with `gimlet serve --project DIR`")
    })
}

/// The approval mode of this name.
pub(crate) fn mode(name: &str) -> Result<ApproveMode, Problem> {
    ApproveMode::named(name).ok_or_else(|| unknown::<ApproveMode>("approval mode", name))
}

fn unknown<T: Choice>(what: &str, name: &str) -> Problem {
    let names: Vec<&str> = T::ALL.iter().map(|(_, name, _)| *name).collect();
    Problem::unusable(format!("`{name}` is not a known {what}: use one of {}", names.join(", ")))
}

impl Task {
    /// The same as a run's options. Only the folders that are served can be worked in.
    pub(crate) fn options(&self, projects: &[PathBuf]) -> Result<Options, Problem> {
        let action = match given(&self.action) {
            None => None,
            Some(name) => Some(Action::named(&name).ok_or_else(|| unknown::<Action>("action", &name))?),
        };
        let approve = given(&self.approve).map(|name| mode(&name)).transpose()?;
        if self.max_steps == Some(0) {
            return Err(Problem::unusable("max_steps must be at least 1"));
        }
        if self.timeout.is_some_and(|seconds| !(seconds.is_finite() && seconds > 0.0)) {
            return Err(Problem::unusable("timeout must be more than 0 seconds"));
        }
        Ok(Options {
            root: Some(project(&self.project, projects)?.clone()),
            model: given(&self.model),
            agent: given(&self.agent),
            action,
            approve,
            max_steps: self.max_steps,
            timeout: self.timeout,
            token_budget: self.token_budget,
            ..Options::default()
        })
    }

    /// What the model reads: the task's words, and what is attached to them. Secrets are taken out of attachments, and
    /// one that is too long is cut; the whole is kept where the cut says.
    pub(crate) async fn words(&self, runtime: &Runtime) -> Result<String, Problem> {
        if self.task.trim().is_empty() {
            return Err(Problem::unusable("the task is empty"));
        }
        if self.attachments.len() > MOST_FILES {
            return Err(Problem::unusable(format!("attach at most {MOST_FILES} files")));
        }
        let redactor = redactor(runtime.process());
        let mut words = self.task.replace("\r\n", "\n");
        for Attachment { name, text } in &self.attachments {
            let text = redactor.clean_text(text).into_owned();
            let (kept, cut) = truncate(&text, MOST_CHARS, MOST_LINES, Keep::Head);
            let rest = match cut {
                true => format!("\n[the whole is kept as {}]", runtime.store().put(text.as_bytes()).await?),
                false => String::new(),
            };
            let fence = fence(&kept);
            let name = crate::text::clip(name, 200);
            words.push_str(&format!("\n\n{name}:\n{fence}\n{}{rest}\n{fence}", kept.trim_end_matches('\n')));
        }
        Ok(words)
    }
}

/// A fence that the text does not hold itself.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}
