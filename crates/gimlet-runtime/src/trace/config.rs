//! What is said about tracing, by flags and by the environment: whether, where to, and how much. Read once.

use std::time::Duration;

use gimlet::telemetry::Payloads;
use gimlet_models::Url;

use gimlet_config::options::Trace;
use gimlet_config::{Origin, Settings, UsageError};

/// Longest wait for a collector's answer, unless the environment says otherwise. Nobody waits for it but the thread
/// that exports.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Looks up a variable of the environment; a value of its own, so that tests can bring theirs.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Where spans go.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    pub(crate) endpoint: Url,
    pub(crate) chosen: Chosen,
    pub(crate) timeout: Duration,
}

/// How an endpoint came to be used: a failure of one that somebody named is worth a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// Nobody said anything.
    ByDefault,
    /// Somebody did.
    ByName,
}

impl Target {
    /// The endpoint as people may see it: without a name and password in it.
    pub(crate) fn shown(&self) -> String {
        let mut url = self.endpoint.clone();
        // Only addresses that have no host cannot be changed, and those cannot hold a password either.
        let _unchanged = url.set_username("").and_then(|()| url.set_password(None));
        url.to_string()
    }
}

/// Where spans are to go; none when they are not wanted.
pub(crate) fn target(settings: &Settings, env: Lookup<'_>) -> anyhow::Result<Option<Target>> {
    if !settings.trace_enabled.value || switch("OTEL_SDK_DISABLED", env)?.unwrap_or(false) {
        return Ok(None);
    }
    let mut target = endpoint(settings, env)?;
    if matches!(settings.trace_enabled.origin, Origin::Flag(_)) {
        target.chosen = Chosen::ByName;
    }
    Ok(Some(target))
}

/// Where spans go if they go anywhere.
pub(crate) fn endpoint(settings: &Settings, env: Lookup<'_>) -> anyhow::Result<Target> {
    let origin = settings.trace_origin();
    // Our own variable is the most particular name; files come after the whole environment.
    let (endpoint, chosen) = match (origin, standard(env)?) {
        (Origin::Flag(_) | Origin::Project { .. } | Origin::User(_) | Origin::Default, Some(url)) => {
            (url, Chosen::ByName)
        }
        (Origin::Default, None) => (settings.trace_endpoint()?, Chosen::ByDefault),
        (Origin::Flag(_) | Origin::Environment | Origin::User(_), _) => {
            (settings.trace_endpoint()?, Chosen::ByName)
        }
        (Origin::Project { spot, .. }, None) => {
            if !secrets(env).is_empty() {
                // Keys never go to an address that only a project names, trusted or not.
                return Err(UsageError::new(format!(
                    "{spot} names a trace collector, and OTEL_EXPORTER_OTLP_HEADERS holds keys that are not for it"
                ))
                .hint("set PHOENIX_ENDPOINT in the environment, or say --no-trace")
                .into());
            }
            (settings.trace_endpoint()?, Chosen::ByName)
        }
    };
    Ok(Target { endpoint, chosen, timeout: timeout(env)? })
}

/// The endpoint that OpenTelemetry's own variables name.
fn standard(env: Lookup<'_>) -> Result<Option<Url>, UsageError> {
    let (key, text) = if let Some(text) = env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", text)
    } else if let Some(base) = env("OTEL_EXPORTER_OTLP_ENDPOINT") {
        ("OTEL_EXPORTER_OTLP_ENDPOINT", format!("{}/v1/traces", base.trim_end_matches('/')))
    } else {
        return Ok(None);
    };
    let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    match url {
        Some(url) => Ok(Some(url)),
        None => {
            Err(UsageError::new(format!("{key} is not an http(s) address"))
                .hint("such as http://localhost:4318"))
        }
    }
}

fn timeout(env: Lookup<'_>) -> Result<Duration, UsageError> {
    let said = ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"]
        .into_iter()
        .find_map(|key| env(key).map(|value| (key, value)));
    match said {
        None => Ok(TIMEOUT),
        Some((key, value)) => match value.trim().parse() {
            Ok(ms) => Ok(Duration::from_millis(ms)),
            Err(_) => Err(UsageError::new(format!("{key} is not a number of milliseconds: {value}"))),
        },
    }
}

fn switch(key: &str, env: Lookup<'_>) -> Result<Option<bool>, UsageError> {
    let Some(value) = env(key) else { return Ok(None) };
    match value.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(Some(true)),
        "false" | "0" | "no" | "off" => Ok(Some(false)),
        _ => Err(UsageError::new(format!("{key} is neither true nor false: {value}"))),
    }
}

/// Which payloads leave this machine: what went in, and what came out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Content {
    pub(crate) inputs: Payloads,
    pub(crate) outputs: Payloads,
}

impl Content {
    /// What was asked for. Who says that something is to be hidden wins over who asks for everything.
    pub(crate) fn asked(trace: Trace, env: Lookup<'_>) -> Result<Content, UsageError> {
        let one = |key: &str| {
            Ok::<_, UsageError>(match switch(key, env)? {
                Some(true) => Payloads::Hidden,
                Some(false) => Payloads::Shown,
                None if trace.content => Payloads::Shown,
                None => Payloads::Hidden,
            })
        };
        Ok(Content { inputs: one("OPENINFERENCE_HIDE_INPUTS")?, outputs: one("OPENINFERENCE_HIDE_OUTPUTS")? })
    }

    /// What the core is to record at all.
    pub(crate) fn recorded(self) -> Payloads {
        match self {
            Content { inputs: Payloads::Hidden, outputs: Payloads::Hidden } => Payloads::Hidden,
            Content { inputs: Payloads::Shown, .. } | Content { outputs: Payloads::Shown, .. } => {
                Payloads::Shown
            }
        }
    }
}

/// The values of the headers that are sent along: keys, as a rule, which nothing may show.
pub(crate) fn secrets(env: Lookup<'_>) -> Vec<String> {
    ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"]
        .into_iter()
        .filter_map(env)
        .flat_map(|headers| {
            let values = headers.split(',').filter_map(|pair| pair.split_once('=').map(|(_, value)| value));
            values
                .flat_map(|value| {
                    // `Bearer KEY` is a secret without its first word too.
                    let plain = value.trim().replace("%20", " ");
                    let word = plain.rsplit(' ').next().unwrap_or_default().to_owned();
                    [value.trim().to_owned(), plain, word]
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn named(vars: &[(&str, &str)]) -> Result<Option<String>, String> {
        let env =
            |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        standard(&env).map(|url| url.map(|url| url.to_string())).map_err(|error| error.to_string())
    }

    #[test]
    fn the_most_particular_variable_wins() {
        assert_eq!(named(&[]).unwrap(), None);
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/");
        assert_eq!(named(&[base]).unwrap().unwrap(), "http://c:4318/v1/traces");
        let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c:4318/other");
        assert_eq!(named(&[base, traces]).unwrap().unwrap(), "http://c:4318/other");
        let wrong = ("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://x");
        assert!(named(&[wrong]).unwrap_err().contains("OTEL_EXPORTER_OTLP_ENDPOINT"));
    }

    #[test]
    fn a_wrong_timeout_is_named() {
        let env = |name: &str| (name == "OTEL_EXPORTER_OTLP_TIMEOUT").then(|| "1s".to_owned());
        assert!(timeout(&env).unwrap_err().to_string().contains("OTEL_EXPORTER_OTLP_TIMEOUT"));
    }

    #[test]
    fn hiding_wins() {
        let all = Trace { content: true, ..Trace::default() };
        let env = |name: &str| (name == "OPENINFERENCE_HIDE_INPUTS").then(|| "true".to_owned());
        let content = Content::asked(all, &env).unwrap();
        assert_eq!((content.inputs, content.outputs), (Payloads::Hidden, Payloads::Shown));
        assert_eq!(Content::asked(Trace::default(), &|_| None).unwrap().recorded(), Payloads::Hidden);
    }

    #[test]
    fn header_values_are_secrets() {
        let env = |name: &str| {
            (name == "OTEL_EXPORTER_OTLP_HEADERS").then(|| "authorization=Bearer%20abc12345,x=y".to_owned())
        };
        assert!(secrets(&env).contains(&"abc12345".to_owned()));
    }

    #[test]
    fn a_password_in_an_address_is_not_shown() {
        let endpoint = Url::parse("http://me:pass@h/v1/traces").unwrap();
        let target = Target { endpoint, chosen: Chosen::ByName, timeout: TIMEOUT };
        assert_eq!(target.shown(), "http://h/v1/traces");
    }
}
