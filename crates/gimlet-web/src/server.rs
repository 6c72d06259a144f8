//! The server: what it is bound to, what it owns, and its routes.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header;
use axum::routing::{get, post};
use gimlet_runtime::{Runtime, UsageError};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::desk::Desk;
use crate::gate::{Gate, guard, login};
use crate::{api, gate, pages};

/// Most bytes of a request.
const MOST_BYTES: usize = 1 << 20;
/// Most streams of events at a time.
const MOST_WATCHERS: usize = 2000;

/// What a server is started with.
pub struct Config {
    /// Where to listen; a loopback address.
    pub listen: SocketAddr,
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
}

/// A server that is bound and not yet at work.
pub struct Server {
    listener: TcpListener,
    app: Arc<App>,
    address: SocketAddr,
}

impl Server {
    /// Binds a server. It refuses to leave this machine.
    pub async fn bind(config: Config) -> anyhow::Result<Server> {
        let Config { listen, projects, runtime, program } = config;
        if !listen.ip().is_loopback() {
            return Err(UsageError::new(format!(
                "{listen} is not a loopback address: the page is a remote shell, and this server has neither TLS nor accounts"
            ))
            .hint("listen on 127.0.0.1 and reach it from elsewhere through `ssh -L`")
            .into());
        }
        let listener =
            TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))?;
        let address = listener.local_addr()?;
        let token = token(runtime.process().need_home()?.path())?;
        let app = App {
            gate: Gate::new(address, token),
            desk: Desk::new(runtime.clone()),
            projects,
            program,
            watchers: Arc::new(Semaphore::new(MOST_WATCHERS)),
        };
        Ok(Server { listener, app: Arc::new(app), address })
    }

    /// Where it listens.
    pub fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A link that logs one browser in, once.
    pub fn login(&self) -> anyhow::Result<String> {
        Ok(format!("{}/login?token={}", self.address(), self.app.gate.new_link()?))
    }

    /// Serves until `stop` is ready. Runs that are at work are stopped; they can be resumed.
    pub async fn run(self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let app = self.app.clone();
        let serving = axum::serve(self.listener, routes(self.app));
        tokio::select! {
            served = serving.into_future() => served?,
            () = stop => {}
        }
        app.desk.stop_all().await;
        Ok(())
    }
}

/// What programs send as `Authorization: Bearer …`. It is kept in a file that only its owner reads.
fn token(home: &Path) -> anyhow::Result<String> {
    let path = home.join("serve.token");
    if let Ok(text) = std::fs::read_to_string(&path)
        && text.trim().len() == 64
    {
        return Ok(text.trim().to_owned());
    }
    let token = gate::secret()?;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let write =
        |mut file: std::fs::File| std::io::Write::write_all(&mut file, format!("{token}\n").as_bytes());
    options.open(&path).and_then(write).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(token)
}

fn routes(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(pages::list))
        .route("/login", get(login))
        .route("/table", get(pages::table))
        .route("/bell", get(pages::bell))
        .route("/new", get(pages::new_task))
        .route("/start", post(pages::start))
        .route("/approvals", get(pages::approvals))
        .route("/about/{what}", get(pages::about))
        .route("/runs/{run}", get(pages::run))
        .route("/runs/{run}/stream", get(pages::stream))
        .route("/runs/{run}/{action}", post(pages::act))
        .route("/approvals/{id}", post(pages::decide))
        .route("/api/v1/runs", get(api::list).post(api::start))
        .route("/api/v1/runs/{run}", get(api::show))
        .route("/api/v1/runs/{run}/events", get(api::events))
        .route("/api/v1/runs/{run}/{action}", post(api::act))
        .route("/api/v1/approvals", get(api::approvals))
        .route("/api/v1/approvals/{id}/decision", post(api::decide))
        .route("/api/v1/blobs/{sha}", get(api::blob))
        .route("/openapi.json", get(api::openapi))
        .route("/static/style.css", get(|| asset("text/css", include_str!("../static/style.css"))))
        .route("/static/app.js", get(|| asset("text/javascript", include_str!("../static/app.js"))))
        .route(
            "/static/htmx.js",
            get(|| asset("text/javascript", include_str!("../static/htmx-4.0.1.min.js"))),
        )
        .route(
            "/static/sse.js",
            get(|| asset("text/javascript", include_str!("../static/htmx-sse-4.0.1.min.js"))),
        )
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .layer(axum::middleware::from_fn_with_state(app.clone(), guard))
        .with_state(app)
}

async fn asset(
    kind: &'static str,
    text: &'static str,
) -> ([(header::HeaderName, &'static str); 1], &'static str) {
    ([(header::CONTENT_TYPE, kind)], text)
}
