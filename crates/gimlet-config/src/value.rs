//! From what is written somewhere to a typed value. A value that does not fit is an error and never a default.

use std::num::NonZeroU32;
use std::time::Duration;

use gimlet::plan::Planning;
use gimlet_models::Url;
use serde_json::json;
use toml::de::DeValue;

use crate::options::{ApproveMode, Choice};

/// A value as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Raw {
    /// In the environment, where everything is text.
    Word(String),
    /// A text in a file.
    Text(String),
    /// A whole number in a file.
    Int(i64),
    /// A number in a file.
    Float(f64),
    /// A truth value in a file.
    Bool(bool),
    /// Anything else in a file.
    Other(&'static str),
}

impl From<&DeValue<'_>> for Raw {
    fn from(value: &DeValue<'_>) -> Raw {
        match value {
            DeValue::String(text) => Raw::Text(text.to_string()),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_or(Raw::Other("a number too large"), Raw::Int),
            DeValue::Float(number) => number.as_str().parse().map_or(Raw::Other("no number"), Raw::Float),
            DeValue::Boolean(value) => Raw::Bool(*value),
            DeValue::Datetime(_) => Raw::Other("a date"),
            DeValue::Array(_) => Raw::Other("a list"),
            DeValue::Table(_) => Raw::Other("a table"),
        }
    }
}

impl std::fmt::Display for Raw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Raw::Word(text) | Raw::Text(text) => {
                let shown: String = text.chars().take(60).collect();
                write!(f, "{shown:?}")
            }
            Raw::Int(number) => write!(f, "{number}"),
            Raw::Float(number) => write!(f, "{number}"),
            Raw::Bool(value) => write!(f, "{value}"),
            Raw::Other(what) => f.write_str(what),
        }
    }
}

/// A type a setting can have.
pub(crate) trait Value: Sized {
    /// What is wanted, after "must be".
    const WANTED: &'static str;
    /// Reads it; nothing when it does not fit.
    fn read(raw: &Raw) -> Option<Self>;
    /// As `config show` shows it.
    fn shown(&self) -> serde_json::Value;
}

fn whole(raw: &Raw) -> Option<i64> {
    match raw {
        Raw::Word(word) => word.trim().parse().ok(),
        Raw::Int(number) => Some(*number),
        Raw::Text(_) | Raw::Float(_) | Raw::Bool(_) | Raw::Other(_) => None,
    }
}

fn number(raw: &Raw) -> Option<f64> {
    match raw {
        Raw::Word(word) => word.trim().parse().ok(),
        #[expect(clippy::cast_precision_loss, reason = "settings are small numbers")]
        Raw::Int(number) => Some(*number as f64),
        Raw::Float(number) => Some(*number),
        Raw::Text(_) | Raw::Bool(_) | Raw::Other(_) => None,
    }
}

fn text(raw: &Raw) -> Option<&str> {
    match raw {
        Raw::Word(text) | Raw::Text(text) => Some(text.trim()).filter(|text| !text.is_empty()),
        Raw::Int(_) | Raw::Float(_) | Raw::Bool(_) | Raw::Other(_) => None,
    }
}

impl Value for String {
    const WANTED: &'static str = "a text that is not empty";
    fn read(raw: &Raw) -> Option<Self> {
        text(raw).map(str::to_owned)
    }
    fn shown(&self) -> serde_json::Value {
        json!(self)
    }
}

impl Value for Url {
    const WANTED: &'static str = "an address such as http://localhost:11434";
    fn read(raw: &Raw) -> Option<Self> {
        let url: Url = text(raw)?.parse().ok()?;
        (matches!(url.scheme(), "http" | "https") && url.host_str().is_some()).then_some(url)
    }
    /// Without what may be secret: a name and password in it, and everything after the path.
    fn shown(&self) -> serde_json::Value {
        let mut url = self.clone();
        let secret = !url.username().is_empty() || url.password().is_some();
        // Web addresses always have a place for both.
        let _ = url.set_password(None);
        let _ = url.set_username(if secret { "***" } else { "" });
        if url.query().is_some() {
            url.set_query(Some("***"));
        }
        url.set_fragment(None);
        json!(url.as_str().trim_end_matches('/'))
    }
}

/// Randomness of a model's replies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Temperature(pub(crate) f32);

impl Value for Temperature {
    const WANTED: &'static str = "a number from 0 to 2";
    fn read(raw: &Raw) -> Option<Self> {
        #[expect(clippy::cast_possible_truncation, reason = "a temperature needs no more digits")]
        number(raw).filter(|value| (0.0..=2.0).contains(value)).map(|value| Temperature(value as f32))
    }
    fn shown(&self) -> serde_json::Value {
        // By way of text, so that 0.2 is not shown as 0.20000000298.
        self.0.to_string().parse::<f64>().map_or(json!(self.0), |value| json!(value))
    }
}

const COUNT: &str = "a whole number of at least 1";

impl Value for u32 {
    const WANTED: &'static str = COUNT;
    fn read(raw: &Raw) -> Option<Self> {
        whole(raw).and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0)
    }
    fn shown(&self) -> serde_json::Value {
        json!(self)
    }
}

impl Value for NonZeroU32 {
    const WANTED: &'static str = COUNT;
    fn read(raw: &Raw) -> Option<Self> {
        u32::read(raw).and_then(NonZeroU32::new)
    }
    fn shown(&self) -> serde_json::Value {
        json!(self)
    }
}

impl Value for usize {
    const WANTED: &'static str = COUNT;
    fn read(raw: &Raw) -> Option<Self> {
        whole(raw).and_then(|number| usize::try_from(number).ok()).filter(|number| *number > 0)
    }
    fn shown(&self) -> serde_json::Value {
        json!(self)
    }
}

impl Value for bool {
    const WANTED: &'static str = "true or false";
    fn read(raw: &Raw) -> Option<Self> {
        match raw {
            Raw::Bool(value) => Some(*value),
            Raw::Word(word) => match word.trim().to_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => Some(true),
                "false" | "0" | "no" | "off" => Some(false),
                _ => None,
            },
            Raw::Text(_) | Raw::Int(_) | Raw::Float(_) | Raw::Other(_) => None,
        }
    }
    fn shown(&self) -> serde_json::Value {
        json!(self)
    }
}

impl Value for Planning {
    const WANTED: &'static str = "true, false or a number of steps";
    fn read(raw: &Raw) -> Option<Self> {
        match bool::read(raw) {
            Some(true) if whole(raw).is_none() => Some(Planning::AtStart),
            Some(false) => Some(Planning::Never),
            Some(true) | None => u32::read(raw).map(|steps| Planning::from(Some(steps))),
        }
    }
    fn shown(&self) -> serde_json::Value {
        match self {
            Planning::Never => json!(false),
            Planning::AtStart => json!(true),
            Planning::Every(steps) => json!(steps),
        }
    }
}

impl Value for Duration {
    const WANTED: &'static str = "a number of seconds above 0";
    fn read(raw: &Raw) -> Option<Self> {
        number(raw)
            .filter(|seconds| *seconds > 0.0)
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            // Zero after rounding, or longer than any clock can add to.
            .filter(|duration| !duration.is_zero() && duration.as_secs() < 1 << 32)
    }
    fn shown(&self) -> serde_json::Value {
        match self.subsec_nanos() {
            0 => json!(self.as_secs()),
            _ => json!(self.as_secs_f64()),
        }
    }
}

impl Value for ApproveMode {
    const WANTED: &'static str = "ask, edits, plan, auto, never or all";
    fn read(raw: &Raw) -> Option<Self> {
        ApproveMode::named(text(raw)?)
    }
    fn shown(&self) -> serde_json::Value {
        json!(self.name())
    }
}

/// The least severe diagnostics that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Everything.
    Trace,
    /// What helps to find a mistake.
    Debug,
    /// What is worth knowing.
    Info,
    /// What is wrong and was worked around.
    Warning,
    /// What failed.
    Error,
    /// Nothing.
    Off,
}

impl Value for LogLevel {
    const WANTED: &'static str = "TRACE, DEBUG, INFO, WARNING, ERROR or OFF";
    fn read(raw: &Raw) -> Option<Self> {
        match text(raw)?.to_uppercase().as_str() {
            "TRACE" => Some(LogLevel::Trace),
            "DEBUG" => Some(LogLevel::Debug),
            "INFO" => Some(LogLevel::Info),
            "WARNING" | "WARN" => Some(LogLevel::Warning),
            "ERROR" | "CRITICAL" => Some(LogLevel::Error),
            "OFF" | "NONE" => Some(LogLevel::Off),
            _ => None,
        }
    }
    fn shown(&self) -> serde_json::Value {
        json!(match self {
            LogLevel::Trace => "TRACE",
            LogLevel::Debug => "DEBUG",
            LogLevel::Info => "INFO",
            LogLevel::Warning => "WARNING",
            LogLevel::Error => "ERROR",
            LogLevel::Off => "OFF",
        })
    }
}
