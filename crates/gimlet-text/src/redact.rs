//! Takes secrets out of text before anybody sees it: values this process knows, in every spelling, and texts that look
//! like keys of well-known services.

use std::borrow::Cow;

use serde_json::Value;

use crate::{encodings, shapes};

/// Knows what must not be shown: the secrets of this process, and texts that look like keys.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Values in every spelling, longest first, so that a secret inside another does not leave its rest behind.
    secrets: Vec<String>,
}

pub(crate) const MARK: &str = "[redacted]";

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

    /// Cleans every text in a value, keys of objects included.
    pub fn clean(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.clean_text(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean(item)),
            Value::Object(map) => {
                let dirty: Vec<String> =
                    map.keys().filter(|key| matches!(self.clean_text(key), Cow::Owned(_))).cloned().collect();
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
    pub fn clean_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut clean = Cow::Borrowed(text);
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
