//! Takes secrets out of a result, once, before the model, the cell, the log or the store see it. Also the innermost
//! layer: it calls the tool, and turns a panic into a failure.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::{Done, Layer, Outcome, Pass};
use crate::tool::{Tool, ToolCx, ToolError, ToolFailure, code};

pub(super) struct Redact {
    pub tool: Arc<dyn Tool>,
}

impl Layer for Redact {
    fn pass<'a>(&'a self, pass: &'a mut Pass) -> BoxFuture<'a, Outcome> {
        async move {
            let cx = ToolCx {
                cancel: pass.cancel.clone(),
                id: pass.call.id.clone(),
                effects: pass.effects.clone(),
                services: pass.services.clone(),
            };
            let redactor = &pass.services.redactor;
            let called = AssertUnwindSafe(self.tool.call(&pass.call, &cx)).catch_unwind().await;
            match called {
                Ok(Ok(output)) => {
                    let mut value = output.value;
                    redactor.clean(&mut value);
                    Outcome::Done(Done { value, ..Done::default() })
                }
                Ok(Err(ToolError::Failed(mut failure))) => {
                    redactor.clean_failure(&mut failure);
                    Outcome::Failed(failure)
                }
                Ok(Err(ToolError::Suspended(suspension))) => Outcome::Suspended(suspension),
                Ok(Err(ToolError::Fatal(message))) => Outcome::Fatal(message),
                Err(panic) => Outcome::failed(
                    code::TOOL_EXCEPTION,
                    format!("The tool broke: {}", redactor.clean_text(panic_text(panic.as_ref()))),
                ),
            }
        }
        .boxed()
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it panicked")
}

/// Knows what must not be shown: the secrets of this process, and texts that look like keys.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Exact values, longest first, so that a secret inside another does not leave its rest behind.
    secrets: Vec<String>,
}

/// Prefixes by which services mark their keys, with the shortest length of what follows.
const KEY_PREFIXES: &[(&str, usize)] = &[
    ("sk-ant-", 20),
    ("sk-proj-", 20),
    ("sk-", 32),
    ("ghp_", 30),
    ("gho_", 30),
    ("ghs_", 30),
    ("github_pat_", 30),
    ("glpat-", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("AKIA", 16),
    ("AIza", 30),
    ("hf_", 30),
    ("npm_", 30),
    ("gsk_", 30),
];

const MARK: &str = "[redacted]";

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

impl Redactor {
    /// A redactor for these values; ones too short to be secrets are ignored, since they would mask ordinary text.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<_> = secrets.into_iter().filter(|secret| secret.trim().len() >= 8).collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Redactor { secrets }
    }

    /// Cleans what a failed call tells.
    pub(super) fn clean_failure(&self, failure: &mut ToolFailure) {
        failure.message = self.clean_text(&failure.message).into_owned();
        failure.context.values_mut().for_each(|value| self.clean(value));
    }

    /// Cleans every text in a value, keys of objects included.
    pub fn clean(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let std::borrow::Cow::Owned(clean) = self.clean_text(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean(item)),
            Value::Object(map) => {
                let dirty: Vec<String> = map
                    .keys()
                    .filter(|key| matches!(self.clean_text(key), std::borrow::Cow::Owned(_)))
                    .cloned()
                    .collect();
                for key in dirty {
                    if let Some(inner) = map.shift_remove(&key) {
                        map.insert(self.clean_text(&key).into_owned(), inner);
                    }
                }
                map.values_mut().for_each(|inner| self.clean(inner));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Cleans a text.
    pub fn clean_text<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        let mut clean = std::borrow::Cow::Borrowed(text);
        for secret in &self.secrets {
            if clean.contains(secret.as_str()) {
                clean = clean.replace(secret.as_str(), MARK).into();
            }
        }
        for (prefix, least) in KEY_PREFIXES {
            if clean.contains(prefix) {
                clean = mask_keys(&clean, prefix, *least).into();
            }
        }
        clean
    }
}

/// Masks each word that starts with `prefix` and goes on for at least `least` key characters.
fn mask_keys(text: &str, prefix: &str, least: usize) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(prefix) {
        let (before, found) = rest.split_at(at);
        clean.push_str(before);
        let body = &found[prefix.len()..];
        let end =
            body.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_')).unwrap_or(body.len());
        let starts_word = !before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if end >= least && starts_word {
            clean.push_str(MARK);
        } else {
            clean.push_str(&found[..prefix.len() + end]);
        }
        rest = &body[end..];
    }
    clean.push_str(rest);
    clean
}
