//! All tools of this crate, wired together.

use std::sync::Arc;

use gimlet::command::{CommandRunner, Environment, Permissions};
use gimlet::patch::PatchValidator;
use gimlet::tool::{Tool, tool};

use crate::apply_patch::ApplyPatch;
use crate::edit_file::EditFile;
use crate::file_info::FileInfo;
use crate::git::Git;
use crate::git_changed_files::GitChangedFiles;
use crate::git_diff::GitDiff;
use crate::git_log::GitLog;
use crate::git_status::GitStatus;
use crate::list_definitions::ListDefinitions;
use crate::list_files::ListFiles;
use crate::patch::Patches;
use crate::propose_patch::ProposePatch;
use crate::propose_patch_unified::ProposePatchUnified;
use crate::read_file::{Page, ReadFile};
use crate::read_file_snippet::ReadFileSnippet;
use crate::repo_info::RepoInfo;
use crate::rg_search::RgSearch;
use crate::root::Root;
use crate::run_cmd::{LooksOnly, RunCmd, Shell};
use crate::run_tests::RunTests;
use crate::search_code::SearchCode;
use crate::show_patch::ShowPatch;
use crate::write_files::WriteFiles;

/// What the tools work with.
#[derive(Clone)]
pub struct Kit {
    /// The project.
    pub root: Root,
    /// What child processes see of the environment.
    pub environment: Environment,
    /// How much of a file fits one result.
    pub page: Page,
    /// How many threads search.
    pub threads: usize,
    /// The patches of the run.
    pub patches: Patches,
    /// Who checks patches.
    pub validator: Arc<dyn PatchValidator>,
    /// Who runs commands.
    pub runner: Arc<dyn CommandRunner>,
    /// What commands may touch unasked.
    pub permissions: Permissions,
    /// Which commands need nothing beyond that.
    pub looks_only: LooksOnly,
}

impl Kit {
    /// The tools that only look, in a stable order.
    pub fn reading(&self) -> Vec<Arc<dyn Tool>> {
        let root = || self.root.clone();
        let git = || Git { root: root(), environment: self.environment.clone() };
        vec![
            tool(RepoInfo { root: root() }),
            tool(ListFiles { root: root() }),
            tool(RgSearch { root: root(), threads: self.threads }),
            tool(ReadFile { root: root(), page: self.page }),
            tool(ReadFileSnippet { root: root() }),
            tool(FileInfo { root: root() }),
            tool(SearchCode { root: root(), threads: self.threads }),
            tool(ListDefinitions { root: root() }),
            tool(GitStatus { git: git() }),
            tool(GitDiff { git: git() }),
            tool(GitLog { git: git() }),
            tool(GitChangedFiles { git: git() }),
        ]
    }

    /// The tools that change files or run commands, in a stable order.
    pub fn changing(&self) -> Vec<Arc<dyn Tool>> {
        let (root, patches, validator) = (&self.root, &self.patches, &self.validator);
        let shell = Shell {
            root: root.clone(),
            environment: self.environment.clone(),
            runner: self.runner.clone(),
            permissions: self.permissions,
            looks_only: self.looks_only.clone(),
        };
        vec![
            tool(ProposePatchUnified {
                root: root.clone(),
                patches: patches.clone(),
                validator: validator.clone(),
            }),
            tool(ProposePatch { root: root.clone(), patches: patches.clone(), validator: validator.clone() }),
            tool(ShowPatch { patches: patches.clone() }),
            tool(ApplyPatch { root: root.clone(), patches: patches.clone(), validator: validator.clone() }),
            tool(EditFile { root: root.clone(), patches: patches.clone(), validator: validator.clone() }),
            tool(RunCmd { shell: shell.clone() }),
            tool(RunTests::new(shell)),
        ]
    }

    /// The tool by which the program itself writes whole files; no model is told of it.
    pub fn writing(&self) -> Arc<dyn Tool> {
        let (root, patches, validator) = (self.root.clone(), self.patches.clone(), self.validator.clone());
        tool(WriteFiles { root, patches, validator })
    }
}
