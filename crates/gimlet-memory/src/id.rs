//! Names for what is remembered: short enough to type, and one look tells what kind of thing it is.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::MemoryError;

/// Something that is remembered. A number is never given twice, also not after something was forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Id {
    /// A note or a synthesis: `n12`.
    Note(i64),
    /// A mental model: `m3`.
    Model(i64),
    /// A prediction: `p7`.
    Prediction(i64),
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, number) = match self {
            Id::Note(number) => ('n', number),
            Id::Model(number) => ('m', number),
            Id::Prediction(number) => ('p', number),
        };
        // Padded as a whole, so that lists have columns.
        f.pad(&format!("{kind}{number}"))
    }
}

impl FromStr for Id {
    type Err = MemoryError;

    fn from_str(text: &str) -> Result<Self, MemoryError> {
        let bad = || MemoryError::BadId(text.chars().take(40).collect());
        let word = text.trim();
        let (kind, number) = word.split_at_checked(1).ok_or_else(bad)?;
        let number = match number.bytes().all(|byte| byte.is_ascii_digit()) {
            true => number.parse().map_err(|_| bad())?,
            false => return Err(bad()),
        };
        match kind {
            "n" => Ok(Id::Note(number)),
            "m" => Ok(Id::Model(number)),
            "p" => Ok(Id::Prediction(number)),
            _ => Err(bad()),
        }
    }
}

impl TryFrom<String> for Id {
    type Error = MemoryError;

    fn try_from(text: String) -> Result<Self, MemoryError> {
        text.parse()
    }
}

impl From<Id> for String {
    fn from(id: Id) -> String {
        id.to_string()
    }
}
