//! Addresses of texts that are too long to show.

use std::fmt;
use std::str::FromStr;

use gimlet_text::digest::digest;
use serde::{Deserialize, Serialize};

/// Address of stored bytes: `blob:` and the SHA-256 of the content.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BlobId(String);

impl BlobId {
    /// The address of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        BlobId(digest(bytes))
    }

    /// The hex digest alone, for file names.
    pub fn hex(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blob:{}", self.0)
    }
}

impl FromStr for BlobId {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let hex = text.strip_prefix("blob:").unwrap_or(text);
        if hex.len() == 64 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            Ok(BlobId(hex.into()))
        } else {
            Err(BadAddress(text.into()))
        }
    }
}

impl TryFrom<String> for BlobId {
    type Error = BadAddress;

    fn try_from(text: String) -> Result<Self, BadAddress> {
        text.parse()
    }
}

impl From<BlobId> for String {
    fn from(blob: BlobId) -> String {
        blob.to_string()
    }
}

/// The text is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an address: blob: and 64 hex digits")]
pub struct BadAddress(pub String);
