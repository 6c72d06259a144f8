//! What a failed answer means: a status, headers and a body of any kind become one [`ModelError`].
//!
//! | the server says | it means |
//! |---|---|
//! | 401, 403, 402, a used-up quota | `Auth`: this account cannot, now or a minute later |
//! | 404 about a model | `NoSuchModel` |
//! | 413, or a text about the window | `ContextLength`, whatever the status |
//! | a text about a tool call that it could not parse | `UnreadableCall`, whatever the status |
//! | 429 | `RateLimited`, with the server's delay |
//! | 408, 425, 5xx | `Server`: try again |
//! | 3xx and any other 4xx | `Refused` |

use std::time::Duration;

use gimlet::model::ModelError;
use serde_json::Value;

/// Longest message kept from a server.
const MAX_MESSAGE: usize = 500;

/// A failed answer.
#[derive(Debug, Clone)]
pub(crate) struct Failure<'a> {
    pub(crate) status: u16,
    pub(crate) content_type: &'a str,
    /// `Retry-After`, as it was sent.
    pub(crate) retry_after: Option<&'a str>,
    /// `Date`, the server's clock.
    pub(crate) date: Option<&'a str>,
    /// `Location` of a redirect.
    pub(crate) location: Option<&'a str>,
    pub(crate) body: &'a [u8],
    pub(crate) model: &'a str,
}

impl Failure<'_> {
    /// What the server said, on one line.
    pub(crate) fn message(&self) -> String {
        message(self.content_type, self.body)
    }

    /// What it means.
    pub(crate) fn error(&self) -> ModelError {
        let mut said = self.message();
        if said.is_empty() {
            said = "no explanation".to_owned();
        }
        if (300..400).contains(&self.status) {
            let to = self.location.unwrap_or("an unnamed address");
            said = format!("redirects are not followed, and the server redirects to {to}");
        }
        let retry_after = self.retry_after.and_then(|value| retry_after(value, self.date));
        by_status(self.status, said, retry_after, self.model)
    }
}

fn by_status(status: u16, message: String, retry_after: Option<Duration>, model: &str) -> ModelError {
    let lower = message.to_lowercase();
    match status {
        401..=403 => ModelError::Auth { message },
        429 if speaks_of_quota(&lower) => ModelError::Auth { message },
        429 => ModelError::RateLimited { message, retry_after },
        413 => ModelError::ContextLength { message },
        400.. if speaks_of_window(&lower) => ModelError::ContextLength { message },
        400.. if speaks_of_unreadable_call(&lower) => ModelError::UnreadableCall { message },
        404 if lower.contains("model") => ModelError::NoSuchModel { model: model.to_owned(), message },
        400 if speaks_of_missing_model(&lower) => {
            ModelError::NoSuchModel { model: model.to_owned(), message }
        }
        408 | 425 | 500.. => ModelError::Server { status, message, retry_after },
        _ => ModelError::Refused { status, message },
    }
}

/// What an error says, on one line.
pub(crate) fn message_of(error: &Value) -> String {
    clean(&error_text(error).unwrap_or_else(|| error.to_string()))
}

/// What an error inside a stream that began well means.
pub(crate) fn in_stream(error: &Value) -> ModelError {
    let message = message_of(error);
    let kind = error.get("type").and_then(Value::as_str).unwrap_or_default();
    let code = error.get("code").or_else(|| error.get("status"));
    let status = match kind {
        "overloaded_error" => 529,
        "rate_limit_error" => 429,
        "authentication_error" => 401,
        "permission_error" => 403,
        "billing_error" => 402,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "invalid_request_error" => 400,
        "timeout_error" => 504,
        _ => code
            .and_then(|code| code.as_u64().or_else(|| code.as_str().and_then(|text| text.parse().ok())))
            .and_then(|code| u16::try_from(code).ok())
            .filter(|code| (400..600).contains(code))
            .unwrap_or(500),
    };
    by_status(status, message, None, "")
}

/// Whether a server is there and only has to load the model.
pub(crate) fn is_loading(status: u16, message: &str) -> bool {
    let lower = message.to_lowercase();
    matches!(status, 500 | 503)
        && ["loading model", "model is loading", "loading the model", "is still loading", "currently loading"]
            .iter()
            .any(|words| lower.contains(words))
}

fn speaks_of_quota(lower: &str) -> bool {
    [
        "insufficient_quota",
        "exceeded your current quota",
        "insufficient balance",
        "out of credits",
        "credit balance",
    ]
    .iter()
    .any(|words| lower.contains(words))
}

fn speaks_of_missing_model(lower: &str) -> bool {
    lower.contains("model")
        && [
            "not found",
            "does not exist",
            "not a valid model",
            "invalid model",
            "no such model",
            "unknown model",
        ]
        .iter()
        .any(|words| lower.contains(words))
}

/// llama.cpp and Ollama fail a whole request where their own model's call is no valid JSON or XML.
fn speaks_of_unreadable_call(lower: &str) -> bool {
    [
        "failed to parse tool call",
        "error parsing tool call",
        "tool call parsing failed",
        "failed to parse input at pos",
        "failed to parse arguments",
        "xml syntax error",
    ]
    .iter()
    .any(|words| lower.contains(words))
}

fn speaks_of_window(lower: &str) -> bool {
    [
        "context length",
        "context_length",
        "context window",
        "context size",
        "context limit",
        "exceed_context_size",
        "maximum context",
        "prompt is too long",
        "prompt too long",
        "input is too long",
        "input length",
        "too many tokens",
        "input token count",
        "reduce the length of the messages",
    ]
    .iter()
    .any(|words| lower.contains(words))
}

/// `Retry-After` as a duration. A date is measured against the server's own clock, so ours may be wrong.
fn retry_after(value: &str, date: Option<&str>) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let until = http_date(value)?;
    let now = http_date(date?)?;
    Some(Duration::try_from(until.duration_since(now)).unwrap_or_default())
}

fn http_date(text: &str) -> Option<jiff::Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()
}

/// What a body says, on one line, whatever it is.
pub(crate) fn message(content_type: &str, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(64 * 1024)]);
    let said = match serde_json::from_str::<Value>(&text) {
        Ok(value) => error_text(&value).unwrap_or_else(|| text.into_owned()),
        Err(_) if is_html(content_type, &text) => html_text(&text),
        Err(_) => text.into_owned(),
    };
    clean(&said)
}

pub(crate) fn is_html(content_type: &str, text: &str) -> bool {
    let start = text.trim_start().get(..9).unwrap_or_default().to_ascii_lowercase();
    content_type.contains("html") || start.starts_with("<!doctype") || start.starts_with("<html")
}

/// The words of a JSON error in any of the shapes servers use.
fn error_text(value: &Value) -> Option<String> {
    match value {
        // Ollama passes on its runner's JSON inside a string.
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(inner @ Value::Object(_)) => error_text(&inner).or_else(|| Some(text.clone())),
            Ok(_) | Err(_) => Some(text.clone()),
        },
        Value::Object(map) => ["error", "message", "detail", "details", "error_description", "msg"]
            .iter()
            .find_map(|key| map.get(*key).filter(|value| !value.is_null()).and_then(error_text))
            .map(|text| with_code(text, value)),
        Value::Array(items) => {
            let said: Vec<String> = items.iter().filter_map(error_text).collect();
            (!said.is_empty()).then(|| said.join("; "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Adds what a person or a rule needs but the text does not repeat: the code and the parameter it is about.
fn with_code(mut text: String, value: &Value) -> String {
    for key in ["code", "type", "param", "loc"] {
        let more = match value.get(key) {
            Some(Value::String(word)) if !word.is_empty() => word.clone(),
            Some(Value::Array(path)) => path.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("."),
            _ => continue,
        };
        if !text.contains(&more) {
            text.push_str(&format!(" [{key}: {more}]"));
        }
    }
    text
}

/// The title and first words of a page, without its markup.
fn html_text(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some(open) = rest.find('<') {
        text.push_str(&rest[..open]);
        text.push(' ');
        rest = &rest[open..];
        let tag = rest[1..].chars().take(6).collect::<String>().to_ascii_lowercase();
        let end = match tag.as_str() {
            "script" => rest.to_ascii_lowercase().find("</script>").map(|at| at + "</script>".len()),
            tag if tag.starts_with("style") => {
                rest.to_ascii_lowercase().find("</style>").map(|at| at + "</style>".len())
            }
            _ => rest.find('>').map(|at| at + 1),
        };
        rest = end.map_or("", |end| &rest[end..]);
    }
    text.push_str(rest);
    format!("a web page instead of a reply: {text}")
}

fn clean(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ").replace(char::is_control, "");
    let mut short: String = words.chars().take(MAX_MESSAGE).collect();
    if short.len() < words.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(status: u16, body: &str) -> ModelError {
        Failure {
            status,
            content_type: "application/json",
            retry_after: None,
            date: None,
            location: None,
            body: body.as_bytes(),
            model: "m",
        }
        .error()
    }

    #[test]
    fn statuses_and_texts_become_the_documented_errors() {
        for (status, body, code) in [
            (
                401,
                r#"{"error":{"message":"Incorrect API key provided","code":"invalid_api_key"}}"#,
                "MODEL_AUTH",
            ),
            (403, "", "MODEL_AUTH"),
            (402, r#"{"error":{"message":"Insufficient credits"}}"#, "MODEL_AUTH"),
            (
                429,
                r#"{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}"#,
                "MODEL_AUTH",
            ),
            (429, r#"{"error":{"message":"slow down"}}"#, "MODEL_RATE_LIMITED"),
            (404, r#"{"error":"model 'qwen3:8b' not found"}"#, "MODEL_NOT_FOUND"),
            (404, "404 page not found", "MODEL_REFUSED_REQUEST"),
            (400, r#"{"error":{"message":"nope is not a valid model ID"}}"#, "MODEL_NOT_FOUND"),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}"#,
                "CONTEXT_LENGTH",
            ),
            (
                400,
                r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
                "CONTEXT_LENGTH",
            ),
            (
                400,
                r#"{"error":"{\"error\":{\"code\":400,\"message\":\"request (8889 tokens) exceeds the available context size (4096 tokens)\"}}"}"#,
                "CONTEXT_LENGTH",
            ),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
                "CONTEXT_LENGTH",
            ),
            (
                413,
                r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
                "CONTEXT_LENGTH",
            ),
            (500, r#"{"error":"the input length exceeds the context length"}"#, "CONTEXT_LENGTH"),
            (
                500,
                r#"{"error":{"code":500,"message":"Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error"}}"#,
                "MODEL_CALL_UNREADABLE",
            ),
            (
                500,
                r#"{"error":"error parsing tool call: raw='{\"path\":\"a\"}]', err=invalid character ']'"}"#,
                "MODEL_CALL_UNREADABLE",
            ),
            (500, r#"{"error parsing tool call":"invalid character 'c'"}"#, "MODEL_CALL_UNREADABLE"),
            (400, r#"{"error":{"message":"bad"}}"#, "MODEL_REFUSED_REQUEST"),
            (
                422,
                r#"{"detail":[{"loc":["body","stop"],"msg":"extra fields not permitted"}]}"#,
                "MODEL_REFUSED_REQUEST",
            ),
            (302, "", "MODEL_REFUSED_REQUEST"),
            (408, "", "MODEL_SERVER_ERROR"),
            (500, "", "MODEL_SERVER_ERROR"),
            (
                529,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                "MODEL_SERVER_ERROR",
            ),
        ] {
            let error = failure(status, body);
            assert_eq!(error.code(), code, "{status} {body}: {error}");
        }
    }

    #[test]
    fn messages_are_read_from_every_shape() {
        for (body, said) in [
            (r#"{"error":"plain"}"#, "plain"),
            (r#"{"error":{"message":"nested","param":"stop"}}"#, "nested [param: stop]"),
            (r#"{"message":"flat"}"#, "flat"),
            (
                r#"{"detail":[{"loc":["body","stop"],"msg":"extra"},{"msg":"more"}]}"#,
                "extra [loc: body.stop]; more",
            ),
            (r#"[{"error":{"code":400,"message":"listed","status":"INVALID"}}]"#, "listed"),
            ("  two\n lines\u{7} ", "two lines"),
            (
                "<html><head><title>502 Bad Gateway</title><style>x{}</style></head><body><h1>nginx</h1></body></html>",
                "a web page instead of a reply: 502 Bad Gateway nginx",
            ),
            ("<!DOCTYPE html><p>caf\u{e9}", "a web page instead of a reply: caf\u{e9}"),
        ] {
            assert_eq!(message("", body.as_bytes()), said);
        }
        assert_eq!(message("", &[0xff, b'a']), "\u{fffd}a");
        assert!(message("", &[b'x'; 10_000]).chars().count() <= MAX_MESSAGE + 1);
    }

    proptest::proptest! {
        #[test]
        fn any_answer_becomes_a_short_error(status in 300..1000u16, body in "[<>a-z/!ü{}\":, ]{0,200}", tail in proptest::collection::vec(proptest::num::u8::ANY, 0..9)) {
            let body = [body.as_bytes(), &tail].concat();
            let failure = Failure { status, content_type: "text/html", retry_after: Some("x"), date: None, location: None, body: &body, model: "m" };
            proptest::prop_assert!(failure.error().to_string().chars().count() < MAX_MESSAGE + 200);
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_by_the_servers_clock() {
        let date = Some("Wed, 21 Oct 2015 07:28:00 GMT");
        assert_eq!(retry_after("7", None), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("0.5", None), Some(Duration::from_millis(500)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:29:30 GMT", date), Some(Duration::from_secs(90)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:00:00 GMT", date), Some(Duration::ZERO));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:29:30 GMT", None), None);
        for nonsense in ["-1", "soon", "NaN", "inf", "1e300", ""] {
            assert_eq!(retry_after(nonsense, date), None, "{nonsense}");
        }
    }

    #[test]
    fn loading_is_told_from_failing() {
        assert!(is_loading(503, "Loading model [type: unavailable_error]"));
        assert!(is_loading(500, "unexpected server status: llm server loading model"));
        assert!(!is_loading(500, "llama runner process has terminated"));
        assert!(!is_loading(400, "loading model"));
    }
}
