//! Whether containers do here what they are for; found out by having them do it.

use std::path::Path;

use gimlet::command::{End, Finished};
use tokio_util::sync::CancellationToken;

use super::commands::{Job, Warm};
use super::engine::{DockerConfig, DockerError, WORKSPACE, Workspace};

/// Starts a container and asks for what the check of a patch needs.
pub async fn try_image(config: &DockerConfig) -> Result<(), DockerError> {
    let finished = run(config, Workspace::Empty, &["git", "--version"]).await?;
    match finished.end {
        End::Exited(0) => Ok(()),
        End::Exited(_) | End::Signalled(_) | End::TimedOut | End::Cancelled => {
            let why = format!("git does not work in it: {}", finished.stderr.text().trim());
            Err(DockerError::ImageUnfit { image: config.image.clone(), why })
        }
    }
}

/// Has a container look at a project. An engine with files of its own, as in a virtual machine, may not have it, and the
/// user of a container may not read it.
pub async fn try_project(config: &DockerConfig, root: &Path) -> Result<(), DockerError> {
    let finished = run(config, Workspace::Project(root.to_owned()), &["ls", "-a", WORKSPACE]).await?;
    let seen = finished.stdout.text();
    let is_seen = |name: &str| seen.lines().any(|line| line == name);
    let why = match finished.end {
        End::Exited(0) => {
            let mut entries = std::fs::read_dir(root).into_iter().flatten().flatten();
            match entries.find_map(|entry| entry.file_name().into_string().ok()) {
                Some(name) if !is_seen(&name) => format!("{name} is not there"),
                Some(_) | None => return Ok(()),
            }
        }
        End::Exited(_) | End::Signalled(_) | End::TimedOut | End::Cancelled => {
            finished.stderr.text().trim().to_owned()
        }
    };
    Err(DockerError::ProjectHidden { why })
}

async fn run(config: &DockerConfig, workspace: Workspace, words: &[&str]) -> Result<Finished, DockerError> {
    let job = Job {
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        folder: "/".into(),
        input: None,
        timeout: config.timeout,
        keep: 1 << 20,
    };
    Warm::new(config.clone()).run(workspace, job, &CancellationToken::new()).await
}
