//! Errors as programs read them: RFC 9457.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use gimlet::store::StoreError;
use gimlet_runtime::{UsageError, hint_of};
use serde_json::json;

/// What went wrong with a request.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) detail: String,
    pub(crate) hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Problem { status, detail: detail.into(), hint: None }
    }

    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::NOT_FOUND, detail)
    }

    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::CONFLICT, detail)
    }

    /// The same with what the caller can do about it.
    pub(crate) fn hinted(self, hint: impl Into<String>) -> Self {
        Problem { hint: Some(hint.into()), ..self }
    }

    /// The problem in a few words.
    pub(crate) fn title(&self) -> &'static str {
        self.status.canonical_reason().unwrap_or("Error")
    }

    pub(crate) fn unusable(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let status = match &error {
            StoreError::NoSuchRun(_) | StoreError::NoSuchBlob(_) => StatusCode::NOT_FOUND,
            StoreError::BadAddress(_) => StatusCode::BAD_REQUEST,
            StoreError::Locked(_) => StatusCode::CONFLICT,
            StoreError::Corrupt { .. } | StoreError::Io { .. } | StoreError::Backend(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        Problem::new(status, error.to_string())
    }
}

impl From<anyhow::Error> for Problem {
    fn from(error: anyhow::Error) -> Self {
        let status = match error.downcast_ref::<StoreError>() {
            Some(StoreError::Locked(_)) => StatusCode::CONFLICT,
            Some(StoreError::NoSuchRun(_)) => StatusCode::NOT_FOUND,
            _ if error.downcast_ref::<UsageError>().is_some() => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let hint = hint_of(&error).map(str::to_owned);
        Problem { status, detail: format!("{error:#}"), hint }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut body = json!({ "type": "about:blank", "title": self.title(), "status": self.status.as_u16(), "detail": self.detail });
        if let Some(hint) = self.hint {
            body["hint"] = hint.into();
        }
        let mut response = (self.status, body.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.status == StatusCode::TOO_MANY_REQUESTS || self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
