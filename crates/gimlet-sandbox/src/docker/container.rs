//! One container, from its creation to its removal. It ends when its input closes, so it cannot outlive this process; what
//! was asked for is known by name, so that it can be removed before its owner ends.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::query_parameters::{AttachContainerOptionsBuilder, CreateContainerOptionsBuilder};
use futures_util::future::join_all;
use futures_util::{Stream, StreamExt};
use gimlet::digest::digest;
use tokio::io::AsyncWrite;
use tokio::sync::RwLock;

use super::engine::{DockerError, Engine, Kind, PATIENCE};
use super::owner;

/// What the first process says once nothing else in its container can reach it.
const APART: &[u8] = b"apart\n";

/// How long an engine may keep a program from ending.
const FAREWELL: Duration = Duration::from_secs(10);

/// Every container that its owner, such as a runtime, has asked for and has not seen removed: whoever used one may be gone
/// without having waited for its end. Clones are the same list.
#[derive(Clone, Default)]
pub struct Containers(Arc<Shared>);

#[derive(Default)]
struct Shared {
    open: Mutex<BTreeMap<String, Engine>>,
    /// Held by many while they ask for a container, by one while all are removed.
    making: RwLock<()>,
}

impl Containers {
    /// Removes them all, also those that were just asked for, and comes back when they are gone; what went wrong with any.
    pub async fn end_all(&self) -> Vec<DockerError> {
        let removed = async {
            let _none_meanwhile = self.0.making.write().await;
            let open = self.open().clone();
            let removed = join_all(open.iter().map(|(name, engine)| engine.remove(name))).await;
            let failed = open.keys().zip(removed).filter_map(|(name, removed)| match removed {
                Ok(()) => {
                    self.open().remove(name);
                    None
                }
                Err(error) => Some(error),
            });
            failed.collect()
        };
        let late = |_| vec![DockerError::Other("the engine does not remove it".into())];
        tokio::time::timeout(FAREWELL, removed).await.unwrap_or_else(late)
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<String, Engine>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Containers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.open().keys()).finish()
    }
}

/// A running container. Dropping it removes it.
pub(crate) struct Container {
    pub(crate) engine: Engine,
    /// Chosen by us: a container can be removed even if the engine's answer to the request for it was never read.
    pub(crate) name: String,
    /// Held open as long as the container is to live; taken by a session, which speaks through it.
    pub(crate) streams: Option<Streams>,
}

/// The standard streams of a container's first process.
pub(crate) struct Streams {
    pub(crate) input: Pin<Box<dyn AsyncWrite + Send>>,
    pub(crate) output: Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send>>,
}

impl Streams {
    /// Waits until the first process stands apart: whoever was faster could hold its input open, and with it the container.
    /// Otherwise it has ended, for a reason that it said itself, or the engine is gone.
    async fn apart(&mut self, engine: &Engine) -> Result<(), DockerError> {
        let (mut said, mut errors) = (Vec::new(), Vec::new());
        while let Some(part) = self.output.next().await {
            match part.map_err(|error| engine.failed(&error))? {
                LogOutput::StdErr { message } => errors.extend_from_slice(&message),
                LogOutput::StdOut { message } | LogOutput::Console { message } => {
                    said.extend_from_slice(&message);
                }
                LogOutput::StdIn { .. } => {}
            }
            // Python may be set up to greet first.
            if said.ends_with(APART) {
                return Ok(());
            }
        }
        let errors = String::from_utf8_lossy(&errors);
        let why = errors.lines().last().unwrap_or("its python3 ends at once").to_owned();
        Err(DockerError::ImageUnfit { image: engine.image_name().to_owned(), why })
    }
}

impl Container {
    /// A container that is not started, and is held to its limits once it is.
    async fn make(engine: &Engine, kind: &Kind<'_>) -> Result<Container, DockerError> {
        let (container, body) = (Container::named(engine), engine.body(kind));
        // A request that is broken off may make a container all the same, so this goes on when nobody waits for it.
        let made = tokio::spawn(async move {
            let containers = container.engine.config.containers.clone();
            let _making = containers.0.making.read().await;
            let options = CreateContainerOptionsBuilder::default().name(&container.name).build();
            let made = container.engine.docker.create_container(Some(options), body).await;
            (container, made)
        });
        let (container, made) = made.await.map_err(|error| DockerError::Other(error.to_string()))?;
        made.map_err(|error| engine.failed(&error))?;
        engine.check_limits(&container.name).await?;
        Ok(container)
    }

    /// A container that is yet to be made. From here on it is removed whatever happens.
    fn named(engine: &Engine) -> Container {
        // Names are the process's, whoever owns the containers.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let own = digest(owner::own_name().as_bytes());
        let name = format!("gimlet-{own:.12}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        engine.config.containers.open().insert(name.clone(), engine.clone());
        Container { engine: engine.clone(), name, streams: None }
    }

    pub(crate) async fn start(engine: &Engine, kind: &Kind<'_>) -> Result<Container, DockerError> {
        let failed = |error| engine.failed(&error);
        let mut container = Container::make(engine, kind).await?;
        let options =
            AttachContainerOptionsBuilder::default().stdin(true).stdout(true).stderr(true).stream(true);
        let attached =
            engine.docker.attach_container(&container.name, Some(options.build())).await.map_err(failed)?;
        let mut streams = Streams { input: attached.input, output: attached.output };
        engine.docker.start_container(&container.name, None).await.map_err(failed)?;
        let apart = tokio::time::timeout(PATIENCE, streams.apart(engine)).await;
        apart.map_err(|_| DockerError::Other("the container does not begin".into()))??;
        container.streams = Some(streams);
        Ok(container)
    }

    /// Ends and removes it, and comes back when it is gone.
    pub(crate) async fn end(mut self) {
        self.streams = None;
        remove(&self.engine, std::mem::take(&mut self.name)).await;
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if self.name.is_empty() {
            return;
        }
        // Without a runtime, closing its input does the same a moment later.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (engine, name) = (self.engine.clone(), std::mem::take(&mut self.name));
            runtime.spawn(async move { remove(&engine, name).await });
        }
    }
}

/// One that cannot be removed now is tried again at the end.
async fn remove(engine: &Engine, name: String) {
    if engine.remove(&name).await.is_ok() {
        engine.config.containers.open().remove(&name);
    }
}
