//! The connection to an engine, what every container is given, and what can be wrong with an engine.

use std::collections::HashMap;
use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error;
use bollard::models::{
    ContainerCreateBody, HostConfig, HostConfigLogConfig, Mount, MountBindOptions, MountPoint, MountType,
};
use bollard::query_parameters::{ListContainersOptionsBuilder, RemoveContainerOptionsBuilder};
use rustix::fs::Access;

use super::container::Containers;
use super::{limits, owner};
use crate::runner;

/// Marks our containers; the value names the process they belong to.
const LABEL: &str = "dev.gimlet.sandbox";
/// Nobody, whose id is the same everywhere.
const USER: &str = "65534:65534";
/// Where the project is.
pub(crate) const WORKSPACE: &str = "/workspace";
/// How long an engine may take to say that it is there.
const GREETING: Duration = Duration::from_secs(5);
/// How long it may take to answer anything else, such as the request for a container.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// How often a container that is being removed is looked for.
const REMOVALS: u32 = 200;
/// What Podman says of a container that ends while it is to be removed.
const PODMAN_IS_AT_IT: &str = "container state improper";

/// Which engine and image.
#[derive(Debug, Clone)]
pub struct DockerConfig {
    /// Address of the engine, such as `unix:///var/run/docker.sock`.
    pub host: String,
    /// The image.
    pub image: String,
    /// Longest a command or a piece of code may run.
    pub timeout: Duration,
    /// Who owns the containers.
    pub containers: Containers,
}

impl DockerConfig {
    /// The engine's address: what `DOCKER_HOST` says, else the first usual socket that this user may use, else the first
    /// that exists.
    pub fn host(docker_host: Option<String>, runtime_dir: Option<&Path>, home: Option<&Path>) -> String {
        if let Some(host) = docker_host.filter(|host| !host.is_empty()) {
            return host;
        }
        let sockets = sockets(runtime_dir, home);
        let usable = |socket: &&PathBuf| rustix::fs::access(socket.as_path(), Access::WRITE_OK).is_ok();
        let found = sockets.iter().find(usable).or_else(|| sockets.iter().find(|socket| socket.exists()));
        format!("unix://{}", found.map_or(Path::new(USUAL), PathBuf::as_path).display())
    }
}

/// Where Docker listens unless somebody moved it.
const USUAL: &str = "/var/run/docker.sock";

/// Where engines listen: Docker, Docker of this user alone, Docker Desktop, Podman of this user alone, Podman.
fn sockets(runtime_dir: Option<&Path>, home: Option<&Path>) -> Vec<PathBuf> {
    let mut sockets = vec![PathBuf::from(USUAL)];
    sockets.extend(runtime_dir.map(|folder| folder.join("docker.sock")));
    sockets.extend(home.map(|home| home.join(".docker/run/docker.sock")));
    sockets.extend(runtime_dir.map(|folder| folder.join("podman/podman.sock")));
    sockets.push("/run/podman/podman.sock".into());
    sockets
}

/// What is wrong with an engine.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DockerError {
    /// Nobody answers.
    #[error("no Docker engine answers at {host}: {why}")]
    NoDaemon {
        /// The address.
        host: String,
        /// What happened.
        why: String,
    },
    /// The socket is closed to this user.
    #[error("you may not use the Docker engine at {host}")]
    NoPermission {
        /// The address.
        host: String,
    },
    /// There is no such image.
    #[error("the image {image} is not there")]
    ImageMissing {
        /// Its name.
        image: String,
    },
    /// The image lacks what containers need.
    #[error("the image {image} is of no use: {why}")]
    ImageUnfit {
        /// Its name.
        image: String,
        /// What it lacks.
        why: String,
    },
    /// Containers cannot read the project.
    #[error("containers cannot read the project: {why}")]
    ProjectHidden {
        /// What was tried.
        why: String,
    },
    /// It would run containers without the limits they are to have.
    #[error("the engine at {host} does not limit what a container uses: {dropped}")]
    LimitsDropped {
        /// The address.
        host: String,
        /// What is not limited.
        dropped: String,
    },
    /// The engine's disk is full.
    #[error("the Docker engine is out of disk space: {0}")]
    OutOfDisk(String),
    /// Anything else.
    #[error("Docker: {0}")]
    Other(String),
}

impl DockerError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            DockerError::NoDaemon { .. } => "start Docker or Podman, or set DOCKER_HOST to its socket",
            DockerError::NoPermission { .. } => {
                "join the group of the socket (usually `docker`), or use rootless Docker or Podman"
            }
            DockerError::ImageMissing { .. } => {
                "`gimlet sandbox build` makes it; SANDBOX_IMAGE names another"
            }
            DockerError::ImageUnfit { .. } => {
                "it needs python3, sh and git, and no volumes; `gimlet sandbox build` makes one, SANDBOX_IMAGE names another"
            }
            DockerError::ProjectHidden { .. } => {
                "commands in containers need an engine that has this folder, and files that everybody may read; patches \
                 and code do without"
            }
            DockerError::LimitsDropped { .. } => {
                "run the engine as root, or rootless with control groups version 2 and their cpu, memory and pids \
                 controllers delegated to you"
            }
            DockerError::OutOfDisk(_) => "`docker system prune` removes what is not used",
            DockerError::Other(_) => "the engine's own log may say more",
        }
    }
}

/// An engine that answered.
#[derive(Debug, Clone)]
pub struct Engine {
    pub(crate) docker: Docker,
    pub(crate) config: DockerConfig,
    make: Make,
}

/// Whose engine it is, where that matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Make {
    Docker,
    Podman,
}

impl Make {
    /// Options of a folder in memory. It gets the mode that its place in the image has, so its user should own it; Podman
    /// knows no owner, and needs an image in which everybody may write there, as in ours.
    fn memory(self, size: &str) -> String {
        let owner = match self {
            Make::Docker => ",uid=65534,gid=65534",
            Make::Podman => "",
        };
        format!("rw,nosuid,nodev,exec,size={size},mode=1777{owner}")
    }
}

impl Engine {
    /// Connects, and removes containers whose owner is gone.
    pub async fn connect(config: DockerConfig) -> Result<Engine, DockerError> {
        let failed = |error| classify(&config, &error);
        let docker = Docker::connect_with_host(&config.host).map_err(failed)?.with_timeout(GREETING);
        let docker = docker.negotiate_version().await.map_err(failed)?;
        let parts = docker.version().await.map_err(failed)?.components.unwrap_or_default();
        let docker = docker.with_timeout(PATIENCE);
        let podman = parts.iter().any(|part| part.name.contains("Podman"));
        let make = if podman { Make::Podman } else { Make::Docker };
        let engine = Engine { docker, config, make };
        engine.reap().await?;
        Ok(engine)
    }

    /// The engine's version.
    pub async fn version(&self) -> Result<String, DockerError> {
        let version = self.docker.version().await.map_err(|error| self.failed(&error))?;
        Ok(version.version.unwrap_or_else(|| "unknown".into()))
    }

    /// Fails unless the engine says that it holds a container to its limits.
    pub(crate) async fn check_limits(&self, name: &str) -> Result<(), DockerError> {
        let made = self.docker.inspect_container(name, None).await.map_err(|error| self.failed(&error))?;
        let is_volume = |mount: &MountPoint| mount.typ.as_deref() == Some("volume");
        if let Some(volume) = made.mounts.unwrap_or_default().into_iter().find(is_volume) {
            let place = volume.destination.unwrap_or_default();
            let why = format!("it declares the volume {place}, which would be written to the engine's disk");
            return Err(DockerError::ImageUnfit { image: self.config.image.clone(), why });
        }
        let dropped = limits::dropped(&made.host_config.unwrap_or_default());
        if dropped.is_empty() {
            return Ok(());
        }
        Err(DockerError::LimitsDropped { host: self.config.host.clone(), dropped: dropped.join(", ") })
    }

    /// The name of the image that is used.
    pub fn image_name(&self) -> &str {
        &self.config.image
    }

    /// Removes containers whose owner is gone; says how many.
    pub async fn reap(&self) -> Result<usize, DockerError> {
        let filters = HashMap::from([("label".to_owned(), vec![LABEL.to_owned()])]);
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let found = self.docker.list_containers(Some(options)).await.map_err(|error| self.failed(&error))?;
        let (mut removed, here) = (0, owner::place());
        for container in found {
            let label = container.labels.as_ref().and_then(|labels| labels.get(LABEL)).cloned();
            let (Some(id), Some(label)) = (container.id, label) else { continue };
            if owner::is_gone(&label, &here, owner::look) {
                self.remove(&id).await?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Whether a container still runs: an engine that was started anew has ended all of them.
    pub(crate) async fn is_running(&self, name: &str) -> bool {
        let known = self.docker.inspect_container(name, None).await;
        known.is_ok_and(|known| known.state.and_then(|state| state.running) == Some(true))
    }

    /// Removes a container, running or not, and comes back when it is gone. One that is gone is as good as removed.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), DockerError> {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        for _ in 0..REMOVALS {
            match self.docker.remove_container(name, Some(options.clone())).await {
                Ok(()) | Err(Error::DockerResponseServerError { status_code: 404, .. }) => return Ok(()),
                // The engine removes it already, because it has ended or because somebody else has asked.
                Err(Error::DockerResponseServerError { status_code, message })
                    if status_code == 409 || message.contains(PODMAN_IS_AT_IT) =>
                {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => return Err(self.failed(&error)),
            }
        }
        Err(DockerError::Other(format!("the container {name} is still there")))
    }

    pub(crate) fn failed(&self, error: &Error) -> DockerError {
        classify(&self.config, error)
    }

    /// A container with nothing but what it needs.
    pub(crate) fn body(&self, kind: &Kind<'_>) -> ContainerCreateBody {
        let strings = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let mut tmpfs = HashMap::from([("/tmp".to_owned(), self.make.memory("64m"))]);
        let mut mounts = Vec::new();
        let [first, second] = match kind {
            Kind::Waits(workspace) => {
                match workspace {
                    Workspace::Project(root) => mounts.push(Mount {
                        target: Some(WORKSPACE.into()),
                        source: Some(root.display().to_string()),
                        typ: Some(MountType::BIND),
                        read_only: Some(true),
                        // What is mounted inside of it would stay writable, so it is not shown.
                        bind_options: Some(MountBindOptions {
                            non_recursive: Some(true),
                            ..MountBindOptions::default()
                        }),
                        ..Mount::default()
                    }),
                    Workspace::Empty => drop(tmpfs.insert(WORKSPACE.into(), self.make.memory("256m"))),
                }
                ["wait".to_owned(), String::new()]
            }
            Kind::Runs { files, gaps } => {
                tmpfs.insert(WORKSPACE.into(), self.make.memory("256m"));
                [files.to_string(), gaps.clone()]
            }
        };
        ContainerCreateBody {
            image: Some(self.config.image.clone()),
            entrypoint: strings(&[&["python3"], &runner::arguments(&first, &second)[..]].concat()),
            cmd: Some(Vec::new()),
            user: Some(USER.into()),
            working_dir: Some("/".into()),
            env: strings(&[
                "HOME=/tmp",
                "LC_ALL=C.UTF-8",
                "PYTHONDONTWRITEBYTECODE=1",
                "PYTHONHASHSEED=0",
                "GIT_CONFIG_COUNT=1",
                "GIT_CONFIG_KEY_0=safe.directory",
                "GIT_CONFIG_VALUE_0=/workspace",
            ]),
            labels: Some(HashMap::from([(LABEL.to_owned(), owner::own_name())])),
            open_stdin: Some(true),
            stdin_once: Some(true),
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            network_disabled: Some(true),
            host_config: Some(HostConfig {
                cap_drop: strings(&["ALL"]),
                security_opt: strings(&["no-new-privileges"]),
                tmpfs: Some(tmpfs),
                mounts: Some(mounts),
                auto_remove: Some(true),
                // Everything is read as it is said; a log would fill the engine's disk.
                log_config: Some(HostConfigLogConfig {
                    typ: Some("none".into()),
                    ..HostConfigLogConfig::default()
                }),
                ..limits::limited()
            }),
            ..ContainerCreateBody::default()
        }
    }
}

/// What a container is for.
pub(crate) enum Kind<'a> {
    /// Commands are started in it.
    Waits(&'a Workspace),
    /// It runs a Python session on a copy of the project, so many bytes of which come first; what is not in it, in words.
    Runs { files: usize, gaps: String },
}

/// What commands find at [`WORKSPACE`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Workspace {
    /// A project, to be read.
    Project(PathBuf),
    /// A folder in memory.
    Empty,
}

/// Whether an engine's words, in small letters, say that its disk is full.
pub(crate) fn is_out_of_disk(words: &str) -> bool {
    ["no space left on device", "disk quota exceeded", "not enough space"]
        .iter()
        .any(|known| words.contains(known))
}

fn classify(config: &DockerConfig, error: &Error) -> DockerError {
    let text = error.to_string();
    let mut words = text.clone();
    let mut source = error.source();
    let mut kind = match error {
        Error::IOError { err } => Some(err.kind()),
        _ => None,
    };
    while let Some(inner) = source {
        words = format!("{words}: {inner}");
        if let Some(io) = inner.downcast_ref::<io::Error>() {
            kind = Some(io.kind());
        }
        source = inner.source();
    }
    let lower = words.to_lowercase();
    let host = config.host.clone();
    if is_out_of_disk(&lower) {
        return DockerError::OutOfDisk(text);
    }
    match kind {
        Some(io::ErrorKind::PermissionDenied) => return DockerError::NoPermission { host },
        Some(_) => return DockerError::NoDaemon { host, why: words },
        None => {}
    }
    match error {
        Error::RequestTimeoutError => DockerError::NoDaemon { host, why: "it takes too long".into() },
        Error::DockerResponseServerError { status_code: 404, message }
            if ["no such image", "image not known", "failed to find image"]
                .iter()
                .any(|known| message.to_lowercase().contains(known)) =>
        {
            DockerError::ImageMissing { image: config.image.clone() }
        }
        _ if lower.contains("executable file not found") => {
            DockerError::ImageUnfit { image: config.image.clone(), why: text }
        }
        _ if lower.contains("bind source path does not exist") => DockerError::ProjectHidden { why: text },
        _ if lower.contains("error trying to connect")
            || lower.contains("client error (connect)")
            || lower.contains("socket not found") =>
        {
            DockerError::NoDaemon { host, why: words }
        }
        _ => DockerError::Other(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_found_where_it_listens() {
        let (runtime, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let host = |docker_host: Option<&str>| {
            DockerConfig::host(docker_host.map(str::to_owned), Some(runtime.path()), Some(home.path()))
        };
        assert_eq!(host(Some("tcp://10.0.0.1:2375")), "tcp://10.0.0.1:2375");
        if Path::new(USUAL).exists() || Path::new("/run/podman/podman.sock").exists() {
            return;
        }
        assert_eq!(host(None), "unix:///var/run/docker.sock");
        assert_eq!(host(Some("")), "unix:///var/run/docker.sock", "empty is not said");
        let podman = runtime.path().join("podman/podman.sock");
        std::fs::create_dir(podman.parent().unwrap()).unwrap();
        let _listens = std::os::unix::net::UnixListener::bind(&podman).unwrap();
        assert_eq!(host(None), format!("unix://{}", podman.display()));
        let rootless = runtime.path().join("docker.sock");
        let _listens = std::os::unix::net::UnixListener::bind(&rootless).unwrap();
        assert_eq!(host(None), format!("unix://{}", rootless.display()), "Docker comes first");
    }

    #[tokio::test]
    async fn no_engine_is_said_so() {
        let config = DockerConfig {
            host: "unix:///nonexistent/docker.sock".into(),
            image: "x".into(),
            timeout: Duration::from_secs(1),
            containers: Containers::default(),
        };
        let error = Engine::connect(config).await.unwrap_err();
        assert!(matches!(error, DockerError::NoDaemon { .. }), "{error:?}");
    }
}
