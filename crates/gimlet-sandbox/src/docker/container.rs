//! One container, from its creation to its removal. It ends when its input closes, so it cannot outlive this process.

use std::pin::Pin;

use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::query_parameters::AttachContainerOptionsBuilder;
use futures_util::Stream;
use tokio::io::AsyncWrite;

use super::engine::{DockerError, Engine, Kind};

/// A running container. Dropping it removes it.
pub(crate) struct Container {
    pub(crate) engine: Engine,
    pub(crate) id: String,
    /// Held open as long as the container is to live; taken by a session, which speaks through it.
    pub(crate) streams: Option<Streams>,
}

/// The standard streams of a container's first process.
pub(crate) struct Streams {
    pub(crate) input: Pin<Box<dyn AsyncWrite + Send>>,
    pub(crate) output: Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send>>,
}

impl Container {
    /// A container that is not started, and is held to its limits once it is.
    pub(crate) async fn make(engine: &Engine, kind: &Kind<'_>) -> Result<Container, DockerError> {
        let created = engine.docker.create_container(None, engine.body(kind)).await;
        let created = created.map_err(|error| engine.failed(&error))?;
        // From here on it is removed whatever happens, also when whoever waits for it stops waiting.
        let container = Container { engine: engine.clone(), id: created.id, streams: None };
        match engine.check_limits(&container.id).await {
            Ok(()) => Ok(container),
            Err(error) => {
                container.end().await;
                Err(error)
            }
        }
    }

    pub(crate) async fn start(engine: &Engine, kind: &Kind<'_>) -> Result<Container, DockerError> {
        let failed = |error| engine.failed(&error);
        let mut container = Container::make(engine, kind).await?;
        let options =
            AttachContainerOptionsBuilder::default().stdin(true).stdout(true).stderr(true).stream(true);
        let attached =
            engine.docker.attach_container(&container.id, Some(options.build())).await.map_err(failed)?;
        container.streams = Some(Streams { input: attached.input, output: attached.output });
        engine.docker.start_container(&container.id, None).await.map_err(failed)?;
        Ok(container)
    }

    /// Ends and removes it, and comes back when it is gone.
    pub(crate) async fn end(mut self) {
        self.streams = None;
        self.engine.remove(&self.id).await;
        self.id.clear();
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if self.id.is_empty() {
            return;
        }
        // Closing its input would do, a moment later; without a runtime that is what happens.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (engine, id) = (self.engine.clone(), std::mem::take(&mut self.id));
            runtime.spawn(async move { engine.remove(&id).await });
        }
    }
}
