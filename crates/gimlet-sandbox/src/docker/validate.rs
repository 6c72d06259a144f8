//! Checks a patch in a container that gets the files it is for as they were read. It sees nothing else of the project, so
//! that what its user may not read, and what a repository sets, makes no difference.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::command::End;
use gimlet::patch::{Draft, PatchValidator, Validated, ValidationError};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::commands::{Job, Warm};
use super::engine::{DockerConfig, DockerError, Engine, WORKSPACE, Workspace};

/// What is said about a check.
const NAME: &str = "git apply --check in a Docker container";
/// What runs in the container; it reads an [`Order`].
const CHECK: &str = include_str!("../../container/check.py");

/// What a check needs.
#[derive(Serialize)]
struct Order<'a> {
    files: Vec<File<'a>>,
    diff: &'a str,
}

/// A file as it is before the patch.
#[derive(Serialize)]
struct File<'a> {
    path: &'a str,
    text: &'a str,
    mode: u32,
}

impl<'a> Order<'a> {
    fn new(draft: Draft<'a>) -> Self {
        let files = draft.changes.iter().filter_map(|change| {
            let before = change.before.as_ref()?;
            Some(File { path: change.old_path(), text: &before.text, mode: before.git_mode() })
        });
        Order { files: files.collect(), diff: draft.diff }
    }
}

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
            let order =
                serde_json::to_vec(&Order::new(draft)).map_err(|error| no_check(error.to_string()))?;
            let job = Job {
                words: ["python3", "-c", CHECK].map(str::to_owned).to_vec(),
                folder: WORKSPACE.into(),
                input: Some(order),
                timeout: self.timeout,
                keep: 64 * 1024,
            };
            let checked = self.warm.run(Workspace::Empty, job, cancel).await;
            let finished =
                checked.map_err(|error: DockerError| no_check(format!("{error} ({})", error.hint())))?;
            match finished.end {
                End::Exited(0) => Ok(Validated { by: NAME.into() }),
                // Git's own words for a patch that does not apply; anything else is the container's failure.
                End::Exited(1) => Err(ValidationError::Refused {
                    by: NAME.into(),
                    said: finished.stderr.text().trim().into(),
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

/// Checks in containers as long as they do their work, otherwise by another validator; every result says which, and why.
pub struct AutoValidator {
    config: DockerConfig,
    docker: Arc<dyn PatchValidator>,
    other: Arc<dyn PatchValidator>,
    /// Why there are no containers, once one did not do its work.
    why_not: OnceLock<String>,
}

impl AutoValidator {
    /// A validator that finds out with the first patch whether the engine and the image of `config` do their work.
    pub fn new(
        config: DockerConfig,
        docker: Arc<dyn PatchValidator>,
        other: Arc<dyn PatchValidator>,
    ) -> Self {
        AutoValidator { config, docker, other, why_not: OnceLock::new() }
    }

    /// What a container finds, or why none could look.
    async fn in_docker(
        &self,
        draft: Draft<'_>,
        cancel: &CancellationToken,
    ) -> Result<Result<Validated, ValidationError>, String> {
        // The common case, in few words; an engine that is there and does not work has more to say.
        if let Err(DockerError::NoDaemon { .. }) = Engine::connect(self.config.clone()).await {
            return Err("no engine answers".into());
        }
        match self.docker.validate(draft, cancel).await {
            Err(ValidationError::Unavailable { why, .. }) if !cancel.is_cancelled() => Err(why),
            checked => Ok(checked),
        }
    }
}

impl PatchValidator for AutoValidator {
    fn validate<'a>(
        &'a self,
        draft: Draft<'a>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Validated, ValidationError>> {
        async move {
            let why = match self.why_not.get() {
                Some(why) => why.clone(),
                None => match self.in_docker(draft, cancel).await {
                    Ok(checked) => return checked,
                    Err(why) => self.why_not.get_or_init(|| why).clone(),
                },
            };
            NotInDocker::new(self.other.clone(), why).validate(draft, cancel).await
        }
        .boxed()
    }
}

/// Checks without a container where one was preferred; every result says why.
pub struct NotInDocker {
    other: Arc<dyn PatchValidator>,
    why: String,
}

impl NotInDocker {
    /// Whoever checks instead, and why.
    pub fn new(other: Arc<dyn PatchValidator>, why: impl Into<String>) -> Self {
        NotInDocker { other, why: why.into() }
    }
}

impl PatchValidator for NotInDocker {
    fn name(&self) -> &str {
        self.other.name()
    }

    fn validate<'a>(
        &'a self,
        draft: Draft<'a>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Validated, ValidationError>> {
        async move {
            let tell = |by: &str| format!("{by} (not in Docker: {})", self.why);
            match self.other.validate(draft, cancel).await {
                Ok(checked) => Ok(Validated { by: tell(&checked.by) }),
                Err(error) => Err(error.checked_by(tell)),
            }
        }
        .boxed()
    }
}

fn no_check(why: impl Into<String>) -> ValidationError {
    ValidationError::Unavailable { by: NAME.into(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Refuses what is empty.
    struct Other;

    impl PatchValidator for Other {
        fn validate<'a>(
            &'a self,
            draft: Draft<'a>,
            _cancel: &'a CancellationToken,
        ) -> BoxFuture<'a, Result<Validated, ValidationError>> {
            let by = "by hand".to_owned();
            let checked = if draft.diff.is_empty() {
                Err(ValidationError::Refused { by, said: "empty".into() })
            } else {
                Ok(Validated { by })
            };
            async move { checked }.boxed()
        }
    }

    #[tokio::test]
    async fn whoever_checks_instead_of_docker_says_why() {
        let config = DockerConfig {
            host: "unix:///nonexistent/docker.sock".into(),
            image: "x".into(),
            timeout: Duration::from_secs(1),
            containers: Default::default(),
        };
        let auto =
            AutoValidator::new(config.clone(), Arc::new(DockerValidator::new(config)), Arc::new(Other));
        let cancel = CancellationToken::new();
        let draft = |diff| Draft { root: Path::new("/"), changes: &[], diff };
        let expected = "by hand (not in Docker: no engine answers)";
        assert_eq!(auto.validate(draft("x"), &cancel).await.unwrap().by, expected);
        assert_eq!(auto.validate(draft(""), &cancel).await.unwrap_err().by(), expected);
    }
}
