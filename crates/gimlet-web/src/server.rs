//! The server: what it is bound to, what it owns, and its routes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header;
use axum::routing::{get, post};
use gimlet::ids::RunId;
use gimlet_runtime::{Options, Runtime, UsageError};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use crate::api;
use crate::desk::Desk;
use crate::gate::{Gate, guard};
use crate::keys::Keys;
use crate::listener::{Doors, Tls};
use crate::login::{self, Logins};
use crate::page::{about, compare, evaluations, list, new, questions, run};
use crate::problem::Problem;
use crate::task::Task;

/// Most bytes of a request.
const MOST_BYTES: usize = 2 << 20;
/// Most streams of events at a time.
const MOST_WATCHERS: usize = 2000;

/// What a server is started with.
pub struct Config {
    /// Where to listen. Off loopback only with TLS and a password.
    pub listen: SocketAddr,
    /// Other names that the server is reached by, as in `gimlet.example.org`.
    pub names: Vec<String>,
    /// A certificate; none for plain HTTP.
    pub tls: Option<Tls>,
    /// A file with the password for the page, which only its owner may read.
    pub password_file: Option<PathBuf>,
    /// Folders in which tasks may be started.
    pub projects: Vec<PathBuf>,
    /// Runs, settings and everything else.
    pub runtime: Runtime,
    /// The program whose listings the pages show.
    pub program: PathBuf,
}

/// What all handlers share.
pub(crate) struct App {
    pub(crate) gate: Gate,
    pub(crate) desk: Desk,
    pub(crate) projects: Vec<PathBuf>,
    pub(crate) program: PathBuf,
    pub(crate) watchers: Arc<Semaphore>,
    pub(crate) keys: Keys,
}

impl App {
    /// Starts a task.
    pub(crate) async fn start(&self, task: &Task) -> Result<RunId, Problem> {
        let options = task.options(&self.projects)?;
        let words = task.words(self.desk.runtime()).await?;
        self.desk.start(options, words).await
    }
}

/// A server that is bound and not yet at work.
pub struct Server {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    app: Arc<App>,
    address: String,
}

impl Server {
    /// Binds a server. It refuses to leave this machine without TLS and a password.
    pub async fn bind(config: Config) -> anyhow::Result<Server> {
        let Config { listen, names, tls, password_file, projects, runtime, program } = config;
        if !listen.ip().is_loopback() && (tls.is_none() || password_file.is_none()) {
            return Err(UsageError::new(format!(
                "{listen} is not a loopback address: the page is a remote shell, and needs TLS and a password there"
            ))
            .hint("give --tls-cert, --tls-key and --password-file, or listen on 127.0.0.1 and reach it through `ssh -L`")
            .into());
        }
        let password = password_file.as_deref().map(login::password_of).transpose()?;
        let tls = tls.map(|tls| tls.acceptor()).transpose()?;
        let scheme = if tls.is_some() { "https://" } else { "http://" };
        let listener =
            TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))?;
        let bound = listener.local_addr()?;
        let hosts = hosts(bound, &names, tls.is_some());
        // A browser is sent to a name that it can reach.
        let reached = match names.first() {
            Some(name) => format!("{name}:{}", bound.port()),
            None if bound.ip().is_unspecified() => format!("localhost:{}", bound.port()),
            None => bound.to_string(),
        };
        let logins =
            Logins::open(runtime.process().need_home()?.path(), bound.port(), password, tls.is_some())?;
        let app = App {
            gate: Gate::new(hosts, scheme, logins),
            desk: Desk::new(runtime),
            projects,
            program,
            watchers: Arc::new(Semaphore::new(MOST_WATCHERS)),
            keys: Keys::default(),
        };
        Ok(Server { listener, tls, app: Arc::new(app), address: format!("{scheme}{reached}") })
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A link that logs one browser in, once, and leads to the runs.
    pub fn login(&self) -> anyhow::Result<String> {
        Ok(format!("{}/login?token={}", self.address, self.app.gate.logins.new_link()?))
    }

    /// The same, but it leads to a certain run.
    pub fn login_to(&self, run: &RunId) -> anyhow::Result<String> {
        Ok(format!("{}&next=/runs/{run}", self.login()?))
    }

    /// Starts a task, as the page would.
    pub async fn start(&self, options: Options, task: &str) -> anyhow::Result<RunId> {
        self.app.desk.start(options, task.to_owned()).await.map_err(|problem| anyhow::anyhow!(problem.detail))
    }

    /// Serves until `stop` is ready. Runs that are at work are stopped; they can be resumed.
    pub async fn run(self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let app = self.app.clone();
        let doors = Doors::open(self.listener, self.tls)?;
        let serving = axum::serve(doors, routes(self.app));
        tokio::select! {
            served = serving.into_future() => served?,
            () = stop => {}
        }
        app.desk.stop_all().await;
        Ok(())
    }
}

/// The names that requests may be sent to.
fn hosts(bound: SocketAddr, names: &[String], is_tls: bool) -> Vec<String> {
    let port = bound.port();
    let own = ["127.0.0.1", "localhost", "[::1]"].map(str::to_owned);
    let mut hosts: Vec<String> = own.iter().chain(names).map(|name| format!("{name}:{port}")).collect();
    hosts.push(bound.to_string());
    // A browser leaves the usual port out.
    if is_tls && port == 443 {
        hosts.extend(names.iter().cloned());
    }
    hosts
}

fn routes(app: Arc<App>) -> Router {
    let mut router = Router::new()
        .route("/", get(list::list))
        .route("/login", get(login::link).post(login::password))
        .route("/table", get(list::table))
        .route("/bell", get(list::bell))
        .route("/new", get(new::form))
        .route("/choices", get(new::choose_from))
        .route("/start", post(new::start))
        .route("/compare", get(compare::compare))
        .route("/evaluations", get(evaluations::show))
        .route("/approvals", get(questions::list))
        .route("/approvals/{id}", post(questions::decide))
        .route("/about/{what}", get(about::show))
        .route("/about/{what}/listing", get(about::listing))
        .route("/runs/{run}", get(run::run))
        .route("/runs/{run}/stream", get(run::stream))
        .route("/runs/{run}/earlier", get(run::earlier))
        .route("/runs/{run}/controls", get(run::controls_of))
        .route("/runs/{run}/{action}", post(run::act));
    for (path, _, handler) in api::routes() {
        router = router.route(&path, handler);
    }
    for (path, kind, text) in ASSETS {
        router = router.route(path, get(move || async move { ([(header::CONTENT_TYPE, kind)], text) }));
    }
    router
        .fallback(|| async { Problem::not_found("there is no such page") })
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .layer(axum::middleware::from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

/// What the page is made of beside its text.
const ASSETS: [(&str, &str, &str); 4] = [
    ("/static/style.css", "text/css", include_str!("../static/style.css")),
    ("/static/icon.svg", "image/svg+xml", include_str!("../static/icon.svg")),
    ("/static/app.js", "text/javascript", include_str!("../static/app.js")),
    // One script: htmx begins in the next task, and an extension that came later would be left out.
    (
        "/static/htmx.js",
        "text/javascript",
        concat!(
            include_str!("../static/htmx-4.0.1.min.js"),
            "\n",
            include_str!("../static/htmx-sse-4.0.1.min.js")
        ),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Every route of the interface is described, and nothing else is.
    #[test]
    fn the_description_knows_exactly_the_routes() {
        let described: serde_json::Value =
            serde_json::from_str(include_str!("openapi.json")).unwrap_or_default();
        let paths = described["paths"].as_object().cloned().unwrap_or_default();
        let mut known: Vec<String> = paths
            .iter()
            .flat_map(|(path, methods)| {
                methods.as_object().into_iter().flatten().map(move |(method, _)| format!("{method} {path}"))
            })
            .collect();
        let mut routed: Vec<String> = api::routes()
            .iter()
            .flat_map(|(path, methods, _)| methods.iter().map(move |method| format!("{method} {path}")))
            .collect();
        known.sort();
        routed.sort();
        assert_eq!(known, routed);
    }

    /// Everything that a browser loads for its first page, but for the page's own few kilobytes.
    #[test]
    fn what_the_page_is_made_of_is_small() {
        let bytes: usize = ASSETS.iter().map(|(_, _, text)| text.len()).sum();
        assert!(bytes < 90_000, "{bytes} bytes");
    }
}
