//! Who may come in. A coding agent's page is a remote shell, so every request is checked, on loopback too: the name it was
//! sent to, where it comes from, and who sends it. Everything that is kept here is bounded.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::pages;
use crate::problem::Problem;
use crate::server::App;

/// Name of the cookie.
const COOKIE: &str = "gimlet_session";
/// Most browsers that are logged in at a time; the oldest is logged out for a newer one.
const MOST_SESSIONS: usize = 64;
/// Most login links that wait to be used.
const MOST_LINKS: usize = 8;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

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

/// What is known of those who may come in.
pub(crate) struct Gate {
    /// Names this server answers to, with the port.
    hosts: Vec<String>,
    /// Login links that were not used.
    links: Mutex<VecDeque<String>>,
    /// Cookies of the browsers that are logged in.
    sessions: Mutex<VecDeque<String>>,
    /// What programs send.
    token: String,
    requests: Mutex<Bucket>,
    logins: Mutex<Bucket>,
}

impl Gate {
    pub(crate) fn new(address: SocketAddr, token: String) -> Self {
        let port = address.port();
        let mut hosts: Vec<String> =
            ["127.0.0.1", "localhost", "[::1]"].iter().map(|name| format!("{name}:{port}")).collect();
        hosts.push(address.to_string());
        Gate {
            hosts,
            links: Mutex::default(),
            sessions: Mutex::default(),
            token,
            requests: Bucket::new(500.0, 2000.0),
            logins: Bucket::new(0.2, 10.0),
        }
    }

    /// A login link's secret. It is good for one browser.
    pub(crate) fn new_link(&self) -> anyhow::Result<String> {
        let secret = secret()?;
        keep(&self.links, secret.clone(), MOST_LINKS);
        Ok(secret)
    }

    fn use_link(&self, given: &str) -> bool {
        let mut links = lock(&self.links);
        let found = links.iter().position(|link| same(link, given));
        found.and_then(|at| links.remove(at)).is_some()
    }

    fn is_host(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    }

    fn is_own_origin(&self, origin: &str) -> bool {
        origin.strip_prefix("http://").is_some_and(|host| self.is_host(host))
    }

    fn who(&self, headers: &HeaderMap) -> Option<Who> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        if let Some(token) = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer ")) {
            return same(token.trim(), &self.token).then_some(Who::Program);
        }
        let cookies = text(header::COOKIE).into_iter().flat_map(|value| value.split(';'));
        let mut values = cookies.filter_map(|cookie| cookie.trim().strip_prefix(COOKIE)?.strip_prefix('='));
        let sessions = lock(&self.sessions);
        values.any(|value| sessions.iter().any(|known| same(known, value))).then_some(Who::Browser)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Browser,
    Program,
}

/// Lets a request through, or not; and puts the headers on every answer.
pub(crate) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let is_static = request.uri().path().starts_with("/static/");
    let mut response = match admit(&app.gate, &request) {
        Ok(()) => next.run(request).await,
        Err(Problem { status: StatusCode::UNAUTHORIZED, .. }) if wants_page(&request) => {
            (StatusCode::UNAUTHORIZED, pages::page("Log in", &pages::log_in())).into_response()
        }
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    let cache = if is_static { "max-age=31536000, immutable" } else { "no-store" };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    response
}

fn wants_page(request: &Request) -> bool {
    let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
    request.method() == Method::GET
        && !request.uri().path().starts_with("/api/")
        && accept.is_some_and(|accept| accept.contains("text/html"))
}

fn admit(gate: &Gate, request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !gate.is_host(host) {
        let detail = "this server does not answer to that name";
        return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, detail));
    }
    let origin = headers.get(header::ORIGIN).map(|value| value.to_str().unwrap_or_default());
    if origin.is_some_and(|origin| !gate.is_own_origin(origin)) {
        return Err(Problem::new(StatusCode::FORBIDDEN, "requests of other origins are refused"));
    }
    if !lock(&gate.requests).take() {
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many requests"));
    }
    let path = request.uri().path();
    if path == "/login" || path.starts_with("/static/") {
        return Ok(());
    }
    let Some(who) = gate.who(headers) else {
        return Err(Problem {
            hint: Some("open the login link that `gimlet serve` printed, or send its bearer token".into()),
            ..Problem::new(StatusCode::UNAUTHORIZED, "you are not logged in")
        });
    };
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD);
    // A cookie is sent from other ports of the same machine, too: what changes something must say where it comes from.
    if changes && who == Who::Browser && origin.is_none() {
        return Err(Problem::new(StatusCode::FORBIDDEN, "the request does not say which origin it is from"));
    }
    Ok(())
}

#[derive(Deserialize)]
pub(crate) struct Link {
    #[serde(default)]
    token: String,
}

/// Uses a login link.
pub(crate) async fn login(State(app): State<Arc<App>>, Query(link): Query<Link>) -> Response {
    if !lock(&app.gate.logins).take() {
        return Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many logins").into_response();
    }
    if !app.gate.use_link(&link.token) {
        return (StatusCode::UNAUTHORIZED, pages::page("Log in", &pages::log_in())).into_response();
    }
    let Ok(value) = secret() else {
        return Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "no random numbers").into_response();
    };
    keep(&app.gate.sessions, value.clone(), MOST_SESSIONS);
    let cookie = format!("{COOKIE}={value}; HttpOnly; SameSite=Strict; Path=/");
    // No redirect: a browser that came by a link from elsewhere would not send the cookie with it.
    let mut response = pages::page("Logged in", &pages::logged_in()).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// 32 random bytes in hex.
pub(crate) fn secret() -> anyhow::Result<String> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn keep(list: &Mutex<VecDeque<String>>, secret: String, most: usize) {
    let mut list = lock(list);
    if list.len() == most {
        list.pop_front();
    }
    list.push_back(secret);
}

/// Compares without telling by the time it takes how much is right.
fn same(one: &str, other: &str) -> bool {
    let differs = one.bytes().zip(other.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
    one.len() == other.len() && differs == 0
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
