//! Which requests are let in. A coding agent's page is a remote shell, so every request is checked, on loopback too: the
//! name it was sent to, where it comes from, who sends it, and how many there are.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::login::{Logins, Who};
use crate::page;
use crate::problem::Problem;
use crate::server::App;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Headers of every answer. Requests to other sites must not name this one; those to this one must, since they are
/// checked by it.
const HEADERS: [(&str, &str); 7] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
];

/// Allows so many things a second, and so many at once.
struct Bucket {
    left: f64,
    filled: Instant,
    per_second: f64,
    most: f64,
}

impl Bucket {
    fn new(per_second: f64, most: f64) -> Mutex<Self> {
        Mutex::new(Bucket { left: most, filled: Instant::now(), per_second, most })
    }

    fn take(&mut self) -> bool {
        let now = Instant::now();
        let passed = now.duration_since(self.filled).as_secs_f64();
        (self.left, self.filled) = ((self.left + passed * self.per_second).min(self.most), now);
        let allowed = self.left >= 1.0;
        if allowed {
            self.left -= 1.0;
        }
        allowed
    }
}

/// What requests are checked by.
pub(crate) struct Gate {
    /// Names this server answers to, with the port.
    hosts: Vec<String>,
    /// `http://` or `https://`.
    scheme: &'static str,
    pub(crate) logins: Logins,
    requests: Mutex<Bucket>,
    /// Those who are not logged in use up their own share, so that another site cannot keep a person out.
    strangers: Mutex<Bucket>,
    attempts: Mutex<Bucket>,
}

impl Gate {
    pub(crate) fn new(hosts: Vec<String>, scheme: &'static str, logins: Logins) -> Self {
        Gate {
            hosts,
            scheme,
            logins,
            requests: Bucket::new(500.0, 4000.0),
            strangers: Bucket::new(50.0, 500.0),
            attempts: Bucket::new(0.2, 10.0),
        }
    }

    /// Whether another login may be tried now.
    pub(crate) fn may_try_login(&self) -> bool {
        take(&self.attempts)
    }

    fn is_host(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    }

    fn is_own_origin(&self, origin: &str) -> bool {
        origin.strip_prefix(self.scheme).is_some_and(|host| self.is_host(host))
    }

    fn admit(&self, request: &Request) -> Result<(), Problem> {
        let headers = request.headers();
        if !self.is_host(host_of(request)) {
            let detail = "this server does not answer to that name";
            return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, detail));
        }
        let origin = headers.get(header::ORIGIN).map(|value| value.to_str().unwrap_or_default());
        if origin.is_some_and(|origin| !self.is_own_origin(origin)) || comes_from_elsewhere(request) {
            return Err(Problem::new(StatusCode::FORBIDDEN, "requests from other sites are refused"));
        }
        let who = self.logins.who(headers);
        let share = if who.is_some() { &self.requests } else { &self.strangers };
        if !take(share) {
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many requests"));
        }
        let path = request.uri().path();
        if path == "/login" || path.starts_with("/static/") {
            return Ok(());
        }
        let Some(who) = who else {
            return Err(Problem::new(StatusCode::UNAUTHORIZED, "you are not logged in")
                .hinted("open the login link that `gimlet serve` printed, or send its bearer token"));
        };
        let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
        // A cookie is sent from other ports of the same machine, too: what changes something must say where it comes from.
        if changes && who == Who::Browser && origin.is_none() {
            return Err(Problem::new(StatusCode::FORBIDDEN, "the request does not name its origin"));
        }
        Ok(())
    }
}

/// The name a request was sent to.
fn host_of(request: &Request) -> &str {
    let named = request.headers().get(header::HOST).and_then(|value| value.to_str().ok());
    named.or_else(|| request.uri().authority().map(|name| name.as_str())).unwrap_or_default()
}

/// Whether a browser says that a page of another site, or of another port, sends this. Following a link to a page is fine:
/// it changes nothing, and the page shows itself in no frame.
fn comes_from_elsewhere(request: &Request) -> bool {
    let text = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let follows_link = request.method() == Method::GET && text("sec-fetch-mode") == Some("navigate");
    text("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none")) && !follows_link
}

/// Lets a request through, or not; and puts the headers on every answer.
pub(crate) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let is_static = request.uri().path().starts_with("/static/");
    let wants_page = wants_page(request.method(), request.uri().path(), request.headers());
    let mut response = match app.gate.admit(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) if problem.status == StatusCode::UNAUTHORIZED && wants_page => {
            let shown = page::page("Log in", &page::log_in(app.gate.logins.has_password()));
            (StatusCode::UNAUTHORIZED, shown).into_response()
        }
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let cache = if is_static { "max-age=31536000, immutable" } else { "no-store" };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    response
}

fn wants_page(method: &Method, path: &str, headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    method == Method::GET
        && !path.starts_with("/api/")
        && accept.is_some_and(|accept| accept.contains("text/html"))
}

fn take(bucket: &Mutex<Bucket>) -> bool {
    bucket.lock().unwrap_or_else(PoisonError::into_inner).take()
}
