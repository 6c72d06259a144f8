//! Builds the image from the Dockerfile that is part of this program.

use std::collections::HashMap;
use std::time::Duration;

use bollard::query_parameters::BuildImageOptionsBuilder;
use futures_util::StreamExt;

use super::engine::{DockerError, Engine, is_out_of_disk};
use super::pack::Archive;

/// The Dockerfile.
pub const DOCKERFILE: &str = include_str!("../../container/sandbox.Dockerfile");

/// Builds the image under the configured name, on the Dockerfile's own base or another; `tell` hears what the engine says
/// meanwhile.
pub async fn build(
    engine: &Engine,
    base: Option<&str>,
    mut tell: impl FnMut(&str),
) -> Result<(), DockerError> {
    let mut context = Archive::default();
    context.add("Dockerfile", DOCKERFILE.as_bytes());
    let options = BuildImageOptionsBuilder::default().t(engine.image_name()).rm(true).forcerm(true);
    let options = match base {
        Some(base) => options.buildargs(&HashMap::from([("BASE", base)])).build(),
        None => options.build(),
    };
    let body = bollard::body_full(context.finish().into());
    // The first word may come only after a base image has.
    let docker = engine.docker.clone().with_timeout(Duration::from_secs(600));
    let mut progress = docker.build_image(options, None, Some(body));
    while let Some(step) = progress.next().await {
        let step = step.map_err(|error| engine.failed(&error))?;
        if let Some(text) = step.stream.as_deref().map(str::trim_end).filter(|text| !text.is_empty()) {
            tell(text);
        }
        if let Some(error) = step.error_detail.and_then(|detail| detail.message) {
            return Err(if is_out_of_disk(&error.to_lowercase()) {
                DockerError::OutOfDisk(error)
            } else {
                DockerError::Other(error)
            });
        }
    }
    Ok(())
}
