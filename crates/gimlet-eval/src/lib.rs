//! Models on a suite of tasks, and how they did. Results are kept as they come, so that an evaluation can
//! be stopped and carried on; the report is made from what there is.
#![forbid(unsafe_code)]

mod attempt;
mod check;
mod fixture;
mod foreign;
mod ledger;
mod load;
mod options;
mod progress;
mod prove;
mod report;
pub mod repository;
mod score;
mod suite;
mod transcript;

use std::io::Write;
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use gimlet_runtime::config::{Settings, shown};
use gimlet_runtime::isolation::{Containers, Isolation, end_containers};
use gimlet_runtime::options::Choice;

use gimlet_term::style::DIM;
use gimlet_term::{out, style};

pub use attempt::stay_with_parent;
pub use options::{Conclusion, EvalMode, EvalOptions, Format, SplitChoice, Writing};

use attempt::{Bench, DEFAULT_MODEL, Outcome, Places};
use check::{Grounds, judge};
use ledger::{Contender, Ledger, Record, Try, Writer};
use progress::Progress;
use report::{Report, Skipped};
use suite::{Suite, Task};

/// Tries models on a suite, or does what else can be done with one.
pub async fn eval(
    args: EvalOptions,
    settings: &Settings,
    cancel: CancellationToken,
) -> anyhow::Result<Conclusion> {
    let mut suite = load::load(&args.suite)?;
    if let Some(most) = args.timeout {
        suite.hurry(most);
    }
    let suite = suite;
    let chosen = suite.choose(args.split, &args.tasks)?;
    match args.mode.clone() {
        EvalMode::Check => prove::prove(&chosen, settings, &cancel).await,
        EvalMode::Prepare(folder) => {
            let laid = foreign::prepare(&chosen, &folder)?;
            writeln!(crate::out::stderr(), "{laid} tasks are laid out in {}", shown(&folder))?;
            Ok(Conclusion::Done)
        }
        EvalMode::Grade(folder) => {
            let mut ledger = Ledger::open(&results_in(&args, &suite), &suite, &Writer::Grading)?;
            let graded = foreign::grade(&folder, &suite, &chosen, &mut ledger, settings, &cancel).await?;
            writeln!(crate::out::stderr(), "{graded} tries are graded")?;
            tell(&args, &suite, &ledger, Vec::new())?;
            Ok(Conclusion::Done)
        }
        EvalMode::Report(places) => {
            let mut records = ledger::gather(&places)?;
            records.retain(|record| chosen.iter().any(|task| task.id == record.attempt.task));
            print(&args, &Report::new(&suite, &records, Vec::new()))?;
            Ok(Conclusion::Done)
        }
        EvalMode::Try => {
            let writer = Writer::Trying { writing: &args.writing, timeout: args.timeout };
            let mut ledger = Ledger::open(&results_in(&args, &suite), &suite, &writer)?;
            let (able, skipped) = sort_out(&chosen);
            let ahead = tries(&args, &able);
            let status = try_all(&args, settings, &ahead, &mut ledger, &cancel).await;
            // What is finished is told, whatever stopped the rest.
            if !ledger.records.is_empty() {
                tell(&args, &suite, &ledger, skipped)?;
            }
            status
        }
    }
}

/// Where results are kept.
fn results_in(args: &EvalOptions, suite: &Suite) -> PathBuf {
    args.out.clone().unwrap_or_else(|| Path::new("gimlet-eval").join(&suite.name))
}

/// The tasks that can be tried here, and those that cannot.
fn sort_out<'a>(chosen: &[&'a Task]) -> (Vec<&'a Task>, Vec<Skipped>) {
    let (able, unable): (Vec<&Task>, Vec<&Task>) = chosen.iter().partition(|task| task.lacks().is_empty());
    let skipped = unable.into_iter().map(|task| Skipped {
        task: task.id.clone(),
        needs: task.lacks().into_iter().map(str::to_owned).collect(),
    });
    (able, skipped.collect())
}

/// Every try that is asked for: repetition by repetition, so that stopping early still leaves whole rounds.
fn tries<'a>(args: &EvalOptions, tasks: &[&'a Task]) -> Vec<(Try, &'a Task)> {
    let default = [DEFAULT_MODEL.to_owned()];
    let models = if args.models.is_empty() { &default[..] } else { &args.models };
    let mut tries = Vec::new();
    for repetition in 1..=args.repeat {
        for model in models {
            for action in &args.actions {
                let contender = Contender {
                    agent: ledger::OWN.into(),
                    model: model.clone(),
                    action: action.name().to_owned(),
                };
                tries.extend(tasks.iter().map(|task| {
                    let attempt = Try { contender: contender.clone(), task: task.id.clone(), repetition };
                    (attempt, *task)
                }));
            }
        }
    }
    tries
}

async fn try_all(
    args: &EvalOptions,
    settings: &Settings,
    tries: &[(Try, &Task)],
    ledger: &mut Ledger,
    cancel: &CancellationToken,
) -> anyhow::Result<Conclusion> {
    let ahead: Vec<&(Try, &Task)> = tries.iter().filter(|(attempt, _)| !ledger.has(attempt)).collect();
    let progress = Progress::new(ahead.len());
    if ahead.len() < tries.len() {
        progress.say(&format!(
            "{DIM}{} of {} tries are there already{DIM:#}",
            tries.len() - ahead.len(),
            tries.len()
        ));
    }
    let bench = Bench::new(settings, &args.writing)?;
    let copy = ledger.folder().join("copy");
    for (attempt, task) in ahead {
        if cancel.is_cancelled() {
            return Ok(Conclusion::Interrupted);
        }
        progress.begin(attempt);
        let folder = ledger.folder().join("tries").join(attempt.folder());
        let places = Places { copy: &copy, folder: &folder };
        let transcript = match bench.attempt(task, attempt, places, &progress, cancel).await? {
            Outcome::Over(transcript) => transcript,
            Outcome::Interrupted => return Ok(Conclusion::Interrupted),
        };
        let repo = copy.canonicalize()?;
        let before = task.fixture.untouched()?;
        let containers = Containers::default();
        let isolation = Isolation::new(&repo, settings, &containers)?;
        let grounds =
            Grounds { transcript: &transcript, repo: &repo, before: &before, isolation: &isolation, cancel };
        let verdicts = judge(task, &grounds).await;
        end_containers(&containers).await;
        let verdicts = verdicts?;
        std::fs::rename(&copy, folder.join("repo"))?;
        let record = Record::new(attempt.clone(), task, verdicts, transcript);
        progress.end(&record);
        ledger.add(record)?;
    }
    Ok(Conclusion::Done)
}

/// Writes the report, and prints what it comes to.
fn tell(args: &EvalOptions, suite: &Suite, ledger: &Ledger, skipped: Vec<Skipped>) -> anyhow::Result<()> {
    let report = Report::new(suite, &ledger.records, skipped);
    report.write(ledger.folder())?;
    print(args, &report)?;
    let page = ledger.folder().join("report.html");
    writeln!(crate::out::stderr(), "{DIM}the whole report: {}{DIM:#}", page.display())?;
    Ok(())
}

fn print(args: &EvalOptions, report: &Report) -> anyhow::Result<()> {
    let mut stdout = crate::out::stdout();
    match args.format {
        Format::Json => crate::out::json(report)?,
        Format::Markdown => write!(stdout, "{}", report.markdown())?,
        Format::Table => write!(stdout, "{}", report.table())?,
    }
    Ok(())
}
