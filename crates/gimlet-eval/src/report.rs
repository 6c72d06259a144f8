//! The report of an evaluation: as JSON for programs, as a page for people, as a table for the terminal.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context;
use minijinja::value::Serde;
use minijinja::{Environment, context};
use serde::Serialize;

use super::ledger::{Contender, Record};
use super::score::{self, Row};
use super::suite::{Level, Split, Suite};

/// Everything a report says.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    suite: String,
    about: String,
    digest: String,
    version: &'static str,
    /// Who did how well, on all tasks that were tried.
    contenders: Vec<Row>,
    /// The same for each split.
    splits: Vec<Row>,
    /// The same for each group.
    groups: Vec<Row>,
    /// The same for each level.
    levels: Vec<Row>,
    /// Each task, and every try of it.
    tasks: Vec<TaskRow>,
    /// Tasks that could not be tried here.
    skipped: Vec<Skipped>,
}

/// A task that could not be tried.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Skipped {
    pub(crate) task: String,
    /// The programs this machine has not.
    pub(crate) needs: Vec<String>,
}

#[derive(Debug, Serialize)]
struct TaskRow {
    id: String,
    group: String,
    level: Level,
    split: Split,
    task: String,
    tries: Vec<Record>,
    /// For each contender, in order: how many tries passed, of how many.
    cells: Vec<Cell>,
}

#[derive(Debug, Serialize)]
struct Cell {
    passed: usize,
    tries: usize,
}

impl Report {
    pub(crate) fn new(suite: &Suite, records: &[Record], skipped: Vec<Skipped>) -> Self {
        let mut records = records.to_vec();
        records.sort_by(|one, other| one.attempt.cmp(&other.attempt));
        let contenders: BTreeSet<&Contender> =
            records.iter().map(|record| &record.attempt.contender).collect();
        let mut tries: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
        for record in &records {
            tries.entry(&record.attempt.task).or_default().push(record);
        }
        let tasks = suite.tasks.iter().filter_map(|task| {
            let tries: Vec<Record> = tries.get(task.id.as_str())?.iter().copied().cloned().collect();
            let cells = contenders.iter().map(|contender| {
                let own = tries.iter().filter(|record| record.attempt.contender == **contender);
                Cell { passed: own.clone().filter(|record| record.passed).count(), tries: own.count() }
            });
            Some(TaskRow {
                id: task.id.clone(),
                group: task.group.clone(),
                level: task.level,
                split: task.split,
                task: task.words.clone(),
                cells: cells.collect(),
                tries,
            })
        });
        Report {
            suite: suite.name.clone(),
            about: suite.about.clone(),
            digest: suite.digest.clone(),
            version: env!("CARGO_PKG_VERSION"),
            tasks: tasks.collect(),
            contenders: score::rows(&records, |_| (), |()| String::new()),
            splits: score::rows(&records, |record| record.split, word),
            groups: score::rows(&records, |record| record.group.clone(), String::clone),
            levels: score::rows(&records, |record| record.level, word),
            skipped,
        }
    }

    /// Writes it beside the results.
    pub(crate) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let json = serde_json::to_vec_pretty(self)?;
        std::fs::write(folder.join("report.json"), json).context("cannot write the report")?;
        std::fs::write(folder.join("report.html"), self.page()?).context("cannot write the report")
    }

    fn page(&self) -> anyhow::Result<String> {
        let mut environment = Environment::new();
        environment.add_filter("percent", |share: f64| format!("{:.0} %", share * 100.0));
        environment.add_filter("short", |model: &str| short(model).to_owned());
        environment.add_template("report.html", include_str!("report.html"))?;
        Ok(environment.get_template("report.html")?.render(context! { report => Serde(self) })?)
    }

    /// Who did how well, below the names of the columns.
    fn summary(&self) -> Vec<[String; COLUMNS.len()]> {
        let both = self.splits.iter().map(|row| &row.part).collect::<BTreeSet<_>>().len() > 1;
        let rows = self.contenders.iter().chain(self.splits.iter().filter(|_| both));
        std::iter::once(COLUMNS.map(str::to_owned)).chain(rows.map(cells)).collect()
    }

    /// The same for a page in Markdown, and each task: in how many tries of how many it passed.
    pub(crate) fn markdown(&self) -> String {
        let mut text = markdown_table(self.summary());
        let several =
            self.contenders.iter().map(|row| &row.contender.model).collect::<BTreeSet<_>>().len() > 1;
        let names = self.contenders.iter().map(|row| match &row.contender {
            Contender { agent, model, action } if several => format!("{agent} {action} {}", short(model)),
            Contender { agent, action, .. } => format!("{agent} {action}"),
        });
        let head = ["task".to_owned(), "level".to_owned()].into_iter().chain(names).collect();
        let tasks = self.tasks.iter().map(|task| {
            let cells = task.cells.iter().map(|Cell { passed, tries }| match tries {
                0 => "–".to_owned(),
                tries => format!("{passed}/{tries}"),
            });
            [task.id.clone(), word(&task.level)].into_iter().chain(cells).collect::<Vec<_>>()
        });
        text.push('\n');
        text.push_str(&markdown_table(std::iter::once(head).chain(tasks)));
        text
    }

    /// A table for the terminal.
    pub(crate) fn table(&self) -> String {
        let table = self.summary();
        let widths: Vec<usize> = (0..table[0].len())
            .map(|column| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
            .collect();
        let mut text = String::new();
        for row in table {
            let mut line = String::new();
            for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
                // Names to the left, numbers to the right.
                if index < 3 {
                    line.push_str(&format!("{cell:<width$}  "));
                } else {
                    line.push_str(&format!("{cell:>width$}  "));
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

const COLUMNS: [&str; 16] = [
    "agent",
    "model",
    "action",
    "tasks",
    "tries",
    "passed",
    "95 %",
    "every time",
    "steps",
    "tokens in",
    "out",
    "seconds",
    "limited",
    "unread",
    "loops",
    "asked",
];

/// A table whose first row names the columns.
fn markdown_table(rows: impl IntoIterator<Item = impl AsRef<[String]>>) -> String {
    let mut text = String::new();
    for (index, row) in rows.into_iter().enumerate() {
        let row = row.as_ref();
        text.push_str(&format!("| {} |\n", row.join(" | ")));
        if index == 0 {
            text.push_str(&format!("|{}\n", "---|".repeat(row.len())));
        }
    }
    text
}

/// A model without its provider.
fn short(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
}

/// How a plain value is written in TOML and JSON.
fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn cells(row: &Row) -> [String; COLUMNS.len()] {
    let score = &row.score;
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let counted = |count: Option<u32>| count.map_or("–".to_owned(), |count| count.to_string());
    let Contender { agent, model, action } = &row.contender;
    let agent = if row.part.is_empty() { agent.clone() } else { format!("{agent}, {}", row.part) };
    [
        agent,
        short(model).to_owned(),
        action.clone(),
        score.tasks.to_string(),
        score.tries.to_string(),
        percent(score.rate),
        format!("{:.0}–{:.0}", score.interval.low * 100.0, score.interval.high * 100.0),
        percent(score.worst),
        format!("{:.1}", score.steps),
        format!("{:.0}", score.tokens_in),
        format!("{:.0}", score.tokens_out),
        format!("{:.1}", score.seconds),
        score.limited.to_string(),
        percent(score.parse_failures),
        counted(score.loops),
        counted(score.approvals),
    ]
}
