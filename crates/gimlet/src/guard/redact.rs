//! Takes secrets out of a result, once, before the model, the cell, the log or the store see it. Also the innermost
//! layer: it calls the tool, and turns a panic into a failure.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::{Done, Layer, Outcome, Pass, encodings, shapes};
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
    /// Values in every spelling, longest first, so that a secret inside another does not leave its rest behind.
    secrets: Vec<String>,
}

pub(super) const MARK: &str = "[redacted]";

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets)", self.secrets.len())
    }
}

impl Redactor {
    /// A redactor for these values; ones too short to be secrets are ignored, since they would mask ordinary text.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let secrets = secrets.into_iter().filter(|secret| secret.trim().len() >= 8);
        let mut secrets: Vec<_> = secrets.flat_map(|secret| encodings::of(&secret)).collect();
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
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
        shapes::mask(clean)
    }
}

/// Whether a variable's name says that its value is a secret.
pub fn names_secret(name: &str) -> bool {
    const PARTS: &[&str] =
        &["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY", "PRIVATE"];
    const ENDS: &[&str] = &["_PASS", "_PWD", "_PW", "_AUTH", "_DSN", "_PIN"];
    let name = name.to_uppercase();
    name == "PASS"
        || PARTS.iter().any(|part| name.contains(part))
        || ENDS.iter().any(|end| name.ends_with(end))
}

/// The password inside a URL such as `postgres://user:password@host/db`.
pub fn password_in_url(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    (!password.is_empty()).then_some(password)
}
