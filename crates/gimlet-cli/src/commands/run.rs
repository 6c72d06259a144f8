//! `gimlet TASK`, `gimlet run` and `gimlet resume`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use gimlet::event::{Failure, FinishState, Suspension};
use gimlet::ids::RunId;
use gimlet::journal::Observer;
use gimlet::limits::Limits;
use gimlet::state::State;
use gimlet::store::Store;
use gimlet::{Ending, Env, Run};
use gimlet_store::{Approvals, FileStore, Repair};

use crate::approver::CliApprover;
use crate::args::{ResumeArgs, RunArgs, RunOptions};
use crate::exit::{ExitStatus, UsageError};
use crate::home;
use crate::models::{self, Found};
use crate::patches::PatchFile;
use crate::show::{JsonLines, Talk, Volume, question, summary};
use crate::style::{DIM, ERROR, WARNING};
use crate::world::{self, Place};

/// Runs one task.
pub(crate) async fn run(args: RunArgs) -> anyhow::Result<ExitStatus> {
    let task = world::task(args.task)?;
    let options = args.options;
    let place = Place::open(&options.root)?;
    let found = models::find(options.model.model.as_deref(), &options.model).await?;
    if let Some(why) = found.why.as_ref().filter(|_| !options.json && !options.quiet) {
        writeln!(anstream::stderr(), "{DIM}using {}: {why}{DIM:#}", found.model.id())?;
    }
    let agent = world::agent(&place, found, &options, world::limits(&options, Limits::default()))?;
    let approver = CliApprover::new(home::approvals()?, options.approve, options.session.clone());
    let store = Arc::new(home::store()?);
    let env = environment(&place, store.clone(), approver, &options)?;
    let run = Run::start(agent, &task, env).await?;
    place.keep_patches_in(&run_folder(&store, run.id()));
    finish(run, options.json).await
}

/// Carries on a run.
pub(crate) async fn resume(args: ResumeArgs) -> anyhow::Result<ExitStatus> {
    let options = args.options;
    let store = Arc::new(home::store()?);
    let id = store
        .resolve(&args.run)
        .map_err(|error| UsageError::new(error.to_string()).hint("see `gimlet runs`"))?;
    // Taking the run's lock also mends what a crash left behind.
    let opened = store.open_run(&id).await?;
    if let Repair::TornLine { bytes } = opened.repair {
        writeln!(
            anstream::stderr(),
            "{WARNING}note:{WARNING:#} the log ended in the middle of a line; {bytes} bytes were dropped"
        )?;
    }
    let events = store.load(&id).await?;
    let state = State::fold(&events, &Default::default());
    let started = state.started.as_ref().with_context(|| format!("run {id} has no beginning"))?;
    let mut options = options;
    if options.action.is_none() {
        options.action = Some(match started.action {
            gimlet::event::ActionFormat::Tools => crate::args::Action::Tools,
            gimlet::event::ActionFormat::Code => crate::args::Action::Code,
        });
    }
    let place = Place::open(&options.root)?;
    let model = options.model.model.clone().unwrap_or_else(|| started.model.clone());
    // The conversation goes on in the way it began.
    let found = Found { dialect: started.dialect, ..models::find(Some(&model), &options.model).await? };
    let limits = world::limits(&options, state.limits.clone());
    let agent = world::agent(&place, found, &options, limits.clone())?;
    let approver = CliApprover::new(home::approvals()?, options.approve, options.session.clone());
    let folder = run_folder(&store, &id);
    place.take_up_patches(
        PatchFile::entries(&folder).with_context(|| format!("cannot read the patches of run {id}"))?,
    );
    place.keep_patches_in(&folder);
    let env = environment(&place, store, approver, &options)?;
    let run = Run::resume(agent, &id, env, Some(limits)).await?;
    finish(run, options.json).await
}

/// Where a run's files are.
fn run_folder(store: &FileStore, id: &RunId) -> PathBuf {
    let log = store.log_path(id);
    log.parent().map(Path::to_owned).unwrap_or(log)
}

fn environment(
    place: &Place,
    store: Arc<FileStore>,
    approver: CliApprover,
    options: &RunOptions,
) -> anyhow::Result<Env> {
    let observer: Arc<dyn Observer> =
        if options.json { Arc::new(JsonLines) } else { Arc::new(Talk::new(volume(options))) };
    Ok(world::env(place, store, Arc::new(approver), vec![observer], world::interruptible()?))
}

fn volume(options: &RunOptions) -> Volume {
    if options.quiet {
        Volume::Quiet
    } else if options.debug {
        Volume::Debug
    } else if options.verbose {
        Volume::Verbose
    } else {
        Volume::Normal
    }
}

/// Drives a run to its end and tells how it ended.
pub(crate) async fn finish(run: Run, json: bool) -> anyhow::Result<ExitStatus> {
    let id = run.id().to_string();
    let ending = run.drive().await?;
    if !json {
        tell(&id, &ending)?;
    }
    Ok(ExitStatus::from(&ending))
}

fn tell(id: &str, ending: &Ending) -> anyhow::Result<()> {
    let mut stderr = anstream::stderr().lock();
    match ending {
        Ending::Finished(finished) => {
            let limit = match finished.state {
                FinishState::Answered | FinishState::Failed => None,
                FinishState::MaxSteps => Some("the step limit; raise it with --max-steps"),
                FinishState::Timeout => Some("the time limit; raise it with --timeout"),
                FinishState::TokenBudget => Some("the token budget; raise it with --token-budget"),
            };
            if !finished.answer.is_empty() {
                // Sets the answer apart from the talk where both are seen.
                writeln!(stderr)?;
                writeln!(std::io::stdout(), "{}", finished.answer.trim_end())?;
            }
            writeln!(stderr)?;
            for note in &finished.notes {
                writeln!(stderr, "{WARNING}note:{WARNING:#} {note}")?;
            }
            if let Some(limit) = limit {
                writeln!(stderr, "{WARNING}stopped:{WARNING:#} the run reached {limit}")?;
                writeln!(stderr, "hint: gimlet resume {id} carries on")?;
            }
            writeln!(stderr, "{}", summary(id, finished))?;
        }
        Ending::Suspended(Suspension::Approval { approval }) => {
            if let Some(pending) = pending(approval)? {
                write!(stderr, "{}", question(&pending.request))?;
            }
            writeln!(stderr, "{WARNING}suspended:{WARNING:#} run {id} waits for approval {approval}")?;
            writeln!(stderr, "hint: gimlet approve {approval} && gimlet resume {id}")?;
        }
        Ending::Suspended(Suspension::Interrupted) => {
            writeln!(stderr, "{WARNING}interrupted:{WARNING:#} nothing is lost")?;
            writeln!(stderr, "hint: gimlet resume {id} carries on")?;
        }
        Ending::Suspended(Suspension::Diverged { message }) => {
            writeln!(stderr, "{ERROR}error:{ERROR:#} run {id} cannot be replayed: {message}")?;
        }
        Ending::Failed(Failure { error, message, hint }) => {
            writeln!(stderr, "{ERROR}error:{ERROR:#} {message} ({error})")?;
            if let Some(hint) = hint {
                writeln!(stderr, "hint: {hint}")?;
            }
            writeln!(stderr, "hint: gimlet resume {id} tries again from where it stopped")?;
        }
    }
    Ok(())
}

fn pending(id: &str) -> anyhow::Result<Option<gimlet_store::Question>> {
    let approvals: Approvals = home::approvals()?;
    Ok(approvals.pending()?.into_iter().find(|question| question.request.id == id))
}
