//! What a model reads of the project before its task.

use std::sync::Arc;

use gimlet::agent::ContextFor;
use gimlet::constrain::Constrain;
use gimlet::event::ActionFormat;
use gimlet_config::Settings;

use crate::project::Project;
use crate::served::Manner;
use crate::{lookup, overview, repo_map};

/// What the model reads of the project before its task: what it tells agents, which `skills` there are, and for a small model that calls tools the
/// names of its files and the lines that its task is about. Only a new run needs it: a resumed one has it in its log.
/// Other models get a map of the repository where their window has room for it.
pub fn context(
    project: &Project,
    settings: &Settings,
    manner: &Manner,
    window: Option<u32>,
    skills: Option<String>,
) -> ContextFor {
    let told = settings.instructions.value.then(|| {
        let found = project.instructions(window);
        for warning in found.warnings() {
            tracing::warn!("{warning}");
        }
        found.text()
    });
    let is_small = match manner.constrain {
        Constrain::Always => true,
        Constrain::AfterFailures | Constrain::Never => false,
    };
    // One that writes code copies the names into its program, instead of asking for what is there.
    let files = match manner.action {
        ActionFormat::Tools | ActionFormat::Guided if is_small => overview::of_project(project.root()),
        ActionFormat::Tools | ActionFormat::Code | ActionFormat::Guided => None,
    };
    let (root, redactor, cache) = (project.root().clone(), project.redactor(), project.index_cache());
    // Guided work looks for files itself.
    let map_window = match manner.action {
        ActionFormat::Tools | ActionFormat::Code if !is_small => window,
        ActionFormat::Tools | ActionFormat::Code | ActionFormat::Guided => None,
    };
    Arc::new(move |task| {
        let lines = is_small.then(|| lookup::of_task(&root, task, &redactor)).flatten();
        let map = repo_map::of_task(&root, cache.as_ref(), map_window, task, &redactor);
        let parts = [told.clone(), skills.clone(), files.clone(), map, lines];
        parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
    })
}

/// For a run that has it in its log.
pub fn no_context() -> ContextFor {
    Arc::new(|_| String::new())
}
