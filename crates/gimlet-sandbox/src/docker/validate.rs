//! Checks a patch in a container that sees the project at `/workspace` and cannot change it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::command::End;
use gimlet::patch::{Draft, PatchValidator, Validated, ValidationError};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::commands::{Job, Warm};
use super::engine::{DockerConfig, DockerError, Engine};

/// What is said about a check.
const NAME: &str = "git apply --check in a Docker container";

/// Checks patches in a container, which is started with the first one and kept.
pub struct DockerValidator {
    warm: Warm,
    timeout: Duration,
}

impl DockerValidator {
    /// A validator; no container is started yet.
    pub fn new(config: DockerConfig) -> Self {
        let timeout = config.timeout;
        DockerValidator { warm: Warm::new(config), timeout }
    }
}

impl PatchValidator for DockerValidator {
    fn name(&self) -> &str {
        NAME
    }

    fn validate<'a>(
        &'a self,
        draft: Draft<'a>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Validated, ValidationError>> {
        async move {
            // Outside of the project, so that no setting of its repository is read.
            let words = ["git", "apply", "--check", "--whitespace=nowarn", "--directory=workspace", "-"];
            let job = Job {
                words: words.map(str::to_owned).to_vec(),
                folder: "/".into(),
                input: Some(draft.diff.as_bytes().to_vec()),
                timeout: self.timeout,
                keep: 64 * 1024,
            };
            let checked = self.warm.run(draft.root, job, cancel).await;
            let finished =
                checked.map_err(|error: DockerError| no_check(format!("{error} ({})", error.hint())))?;
            match finished.end {
                End::Exited(0) => Ok(Validated { by: NAME.into() }),
                // Git's own words for a patch that does not apply; anything else is the container's failure.
                End::Exited(1) => Err(ValidationError::Refused {
                    by: NAME.into(),
                    said: finished.stderr.text().replace("workspace/", "").trim().into(),
                }),
                End::Exited(_) => Err(no_check(finished.stderr.text().trim().to_owned())),
                End::Signalled(_) => Err(no_check("git was killed")),
                End::TimedOut => Err(no_check("git took too long")),
                End::Cancelled => Err(no_check("stopped")),
            }
        }
        .boxed()
    }
}

/// Checks in a container where there is one, otherwise by another validator; every result says which.
pub struct AutoValidator {
    config: DockerConfig,
    docker: Arc<dyn PatchValidator>,
    other: Arc<dyn PatchValidator>,
    /// Found out with the first patch.
    choice: OnceCell<Choice>,
}

enum Choice {
    Docker,
    /// The text says what is wrong with an engine that is there.
    Other(Option<String>),
}

impl AutoValidator {
    /// A validator that finds out later whether the engine and the image of `config` are there.
    pub fn new(
        config: DockerConfig,
        docker: Arc<dyn PatchValidator>,
        other: Arc<dyn PatchValidator>,
    ) -> Self {
        AutoValidator { config, docker, other, choice: OnceCell::new() }
    }

    async fn choose(&self) -> Choice {
        let tried = async { Engine::connect(self.config.clone()).await?.ready().await };
        match tried.await {
            Ok(()) => Choice::Docker,
            Err(DockerError::NoDaemon { .. }) => Choice::Other(None),
            Err(error) => Choice::Other(Some(error.to_string())),
        }
    }
}

impl PatchValidator for AutoValidator {
    fn name(&self) -> &str {
        match self.choice.get() {
            None => "git apply --check",
            Some(Choice::Docker) => self.docker.name(),
            Some(Choice::Other(_)) => self.other.name(),
        }
    }

    fn validate<'a>(
        &'a self,
        draft: Draft<'a>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Validated, ValidationError>> {
        async move {
            match self.choice.get_or_init(|| self.choose()).await {
                Choice::Docker => self.docker.validate(draft, cancel).await,
                Choice::Other(None) => self.other.validate(draft, cancel).await,
                Choice::Other(Some(why)) => {
                    let checked = self.other.validate(draft, cancel).await?;
                    Ok(Validated { by: format!("{} (not in Docker: {why})", checked.by) })
                }
            }
        }
        .boxed()
    }
}

fn no_check(why: impl Into<String>) -> ValidationError {
    ValidationError::Unavailable { by: NAME.into(), why: why.into() }
}
