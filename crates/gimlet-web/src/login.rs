//! Who is logged in: one-time links, a password where one is configured, browsers by their cookie, programs by a token.

use std::collections::VecDeque;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;
use axum::extract::{Form, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use gimlet::digest::digest;
use gimlet_runtime::UsageError;
use serde::Deserialize;

use crate::page;
use crate::problem::Problem;
use crate::server::App;

/// Most browsers that are logged in at a time; the oldest is logged out for a newer one.
const MOST_BROWSERS: usize = 64;
/// Most login links that wait to be used.
const MOST_LINKS: usize = 8;
/// Fewest characters of a password.
const SHORTEST: usize = 12;

/// Who sends a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Browser,
    Program,
}

/// What is known of those who may come in. Only digests of cookies and of the password are kept.
pub(crate) struct Logins {
    /// Login links that were not used.
    links: Mutex<VecDeque<String>>,
    /// Digests of the cookies of browsers that are logged in; a restarted server still knows them.
    browsers: Mutex<VecDeque<String>>,
    kept_in: PathBuf,
    /// Digest of what programs send.
    token: String,
    /// Digest of the password.
    password: Option<String>,
    /// Its name has the port: cookies do not tell the ports of a machine apart.
    cookie: String,
    /// Sent over TLS only.
    is_secure: bool,
}

impl Logins {
    pub(crate) fn open(
        home: &Path,
        port: u16,
        password: Option<String>,
        is_secure: bool,
    ) -> anyhow::Result<Logins> {
        let kept_in = home.join("serve.browsers");
        let known = std::fs::read_to_string(&kept_in).unwrap_or_default();
        let browsers = known.lines().filter(|line| line.len() == 64).map(str::to_owned).collect();
        Ok(Logins {
            links: Mutex::default(),
            browsers: Mutex::new(browsers),
            kept_in,
            token: digest(token(home)?.as_bytes()),
            password: password.map(|password| digest(password.as_bytes())),
            cookie: format!("gimlet_session_{port}"),
            is_secure,
        })
    }

    /// A login link's secret. It is good for one browser.
    pub(crate) fn new_link(&self) -> anyhow::Result<String> {
        let secret = secret()?;
        keep(&mut lock(&self.links), secret.clone(), MOST_LINKS);
        Ok(secret)
    }

    fn use_link(&self, given: &str) -> bool {
        let mut links = lock(&self.links);
        let found = links.iter().position(|link| same(link, given));
        found.and_then(|at| links.remove(at)).is_some()
    }

    pub(crate) fn has_password(&self) -> bool {
        self.password.is_some()
    }

    pub(crate) fn who(&self, headers: &HeaderMap) -> Option<Who> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        if let Some(token) = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer ")) {
            return same(&digest(token.trim().as_bytes()), &self.token).then_some(Who::Program);
        }
        let cookies = text(header::COOKIE).into_iter().flat_map(|value| value.split(';'));
        let mut values =
            cookies.filter_map(|cookie| cookie.trim().strip_prefix(&self.cookie)?.strip_prefix('='));
        let browsers = lock(&self.browsers);
        let is_known = |value: &str| {
            let given = digest(value.as_bytes());
            browsers.iter().any(|known| same(known, &given))
        };
        values.any(is_known).then_some(Who::Browser)
    }

    /// Logs a browser in: the cookie that it is to send from now on.
    fn admit(&self) -> anyhow::Result<HeaderValue> {
        let value = secret()?;
        let mut browsers = lock(&self.browsers);
        keep(&mut browsers, digest(value.as_bytes()), MOST_BROWSERS);
        let all: String = browsers.iter().map(|known| format!("{known}\n")).collect();
        write_private(&self.kept_in, &all)?;
        let secure = if self.is_secure { "; Secure" } else { "" };
        let cookie =
            format!("{}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000{secure}", self.cookie);
        Ok(HeaderValue::from_str(&cookie)?)
    }
}

/// What a login link carries.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Link {
    token: String,
    /// The page to go on to.
    next: String,
}

/// What the login form carries.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Password {
    password: String,
}

/// Uses a login link.
pub(crate) async fn link(State(app): State<Arc<App>>, Query(link): Query<Link>) -> Response {
    log_in(&app, &link.next, |logins| logins.use_link(&link.token))
}

/// Uses the password.
pub(crate) async fn password(State(app): State<Arc<App>>, Form(form): Form<Password>) -> Response {
    let given = digest(form.password.as_bytes());
    log_in(&app, "/", |logins| logins.password.as_ref().is_some_and(|known| same(known, &given)))
}

fn log_in(app: &App, next: &str, is_right: impl FnOnce(&Logins) -> bool) -> Response {
    if !app.gate.may_try_login() {
        return Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many logins").into_response();
    }
    let logins = &app.gate.logins;
    if !is_right(logins) {
        let shown = page::page("Log in", &page::log_in(logins.has_password()));
        return (StatusCode::UNAUTHORIZED, shown).into_response();
    }
    match logins.admit() {
        Ok(cookie) => {
            // Only pages of runs, so that a link cannot lead elsewhere.
            let is_run = next
                .strip_prefix("/runs/")
                .is_some_and(|run| run.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
            let next = if is_run { next } else { "/" };
            ([(header::SET_COOKIE, cookie)], page::logged_in(next)).into_response()
        }
        Err(error) => Problem::from(error).into_response(),
    }
}

/// The password of a file that only its owner may read.
pub(crate) fn password_of(file: &Path) -> anyhow::Result<String> {
    let refused = |text: String| UsageError::new(format!("{}: {text}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| refused(error.to_string()))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(file).map_err(|error| refused(error.to_string()))?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(refused("others can read the password".into()).hint("chmod 600 FILE").into());
        }
    }
    let password = text.trim().to_owned();
    if password.chars().count() < SHORTEST {
        return Err(refused(format!("the password has fewer than {SHORTEST} characters")).into());
    }
    Ok(password)
}

/// What programs send as `Authorization: Bearer …`. It is kept in a file that only its owner reads.
fn token(home: &Path) -> anyhow::Result<String> {
    let path = home.join("serve.token");
    if let Ok(text) = std::fs::read_to_string(&path)
        && text.trim().len() == 64
    {
        return Ok(text.trim().to_owned());
    }
    let token = secret()?;
    write_private(&path, &format!("{token}\n"))?;
    Ok(token)
}

fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// 32 random bytes in hex.
fn secret() -> anyhow::Result<String> {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn keep(list: &mut VecDeque<String>, entry: String, most: usize) {
    while list.len() >= most {
        list.pop_front();
    }
    list.push_back(entry);
}

/// Compares without telling by the time it takes how much is right.
fn same(one: &str, other: &str) -> bool {
    let differs = one.bytes().zip(other.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
    one.len() == other.len() && differs == 0
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
