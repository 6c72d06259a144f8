//! Errors with what to do about them.

/// A mistake in how the program was called or configured. Command lines end with exit code 2 for it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct UsageError {
    message: String,
    hint: Option<String>,
}

impl UsageError {
    /// What is wrong.
    pub fn new(message: impl Into<String>) -> Self {
        UsageError { message: message.into(), hint: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds what to do about it, where something is known.
    #[must_use]
    pub fn maybe_hint(self, hint: Option<impl Into<String>>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }
}

/// Something failed that was used correctly: a server is away, a disk is full.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    message: String,
    hint: String,
}

impl Failure {
    /// What failed and what to do about it.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Failure { message: message.into(), hint: hint.into() }
    }
}

/// What an error says to do, where it says so.
pub fn hint_of(error: &anyhow::Error) -> Option<&str> {
    match error.downcast_ref::<UsageError>() {
        Some(usage) => usage.hint.as_deref(),
        None => error.downcast_ref::<Failure>().map(|failure| failure.hint.as_str()),
    }
}
