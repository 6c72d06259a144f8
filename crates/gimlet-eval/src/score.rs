//! Numbers from results: shares with intervals, the worst of several tries, what it cost.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::ledger::{Contender, OWN, Record};
use super::transcript::Ended;

/// Standard deviations of an interval that holds the true share in 95 of 100 cases.
const Z: f64 = 1.959_964;

/// How a contender did on some tasks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Score {
    /// Different tasks.
    pub(crate) tasks: usize,
    /// All tries.
    pub(crate) tries: usize,
    /// Those that passed.
    pub(crate) passed: usize,
    /// Their share.
    pub(crate) rate: f64,
    /// Between which shares the true one lies, with a certainty of 95 % if no try resembled another.
    pub(crate) interval: Interval,
    /// The share of tasks that passed every time.
    pub(crate) worst: f64,
    /// Means over all tries.
    pub(crate) steps: f64,
    pub(crate) tokens_in: f64,
    pub(crate) tokens_out: f64,
    /// The median: one slow try says little.
    pub(crate) seconds: f64,
    /// The share of replies nothing of which could be used.
    pub(crate) parse_failures: f64,
    /// Sums over all tries; none for another program, which does not tell them.
    pub(crate) loops: Option<u32>,
    pub(crate) approvals: Option<u32>,
    pub(crate) refused: Option<u32>,
    /// Tries that a limit of steps, time or tokens ended.
    pub(crate) limited: usize,
    pub(crate) broken: usize,
}

/// A range of shares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Interval {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Wilson's interval, which is honest for few tries and for shares near 0 and 1.
pub(crate) fn wilson(passed: usize, tries: usize) -> Interval {
    if tries == 0 {
        return Interval { low: 0.0, high: 1.0 };
    }
    let n = tries as f64;
    let share = passed as f64 / n;
    let scale = 1.0 + Z * Z / n;
    let middle = share + Z * Z / (2.0 * n);
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let low = if passed == 0 { 0.0 } else { (middle - half) / scale };
    let high = if passed == tries { 1.0 } else { (middle + half) / scale };
    Interval { low, high }
}

impl Score {
    /// The score of these tries; none without any.
    pub(crate) fn of<'a>(records: impl Iterator<Item = &'a Record>) -> Option<Score> {
        let records: Vec<&Record> = records.collect();
        if records.is_empty() {
            return None;
        }
        let mut by_task: BTreeMap<&str, bool> = BTreeMap::new();
        for record in &records {
            let every = by_task.entry(&record.attempt.task).or_insert(true);
            *every &= record.passed;
        }
        let tries = records.len();
        let passed = records.iter().filter(|record| record.passed).count();
        let mean =
            |of: fn(&Record) -> f64| records.iter().map(|record| of(record)).sum::<f64>() / tries as f64;
        let sum = |of: fn(&Record) -> u32| records.iter().map(|record| of(record)).sum::<u32>();
        let own = |of: fn(&Record) -> u32| {
            records.iter().all(|record| record.attempt.contender.agent == OWN).then(|| sum(of))
        };
        let replies = sum(|record| record.transcript.replies);
        let failures = sum(|record| record.transcript.parse_failures);
        Some(Score {
            tasks: by_task.len(),
            tries,
            passed,
            rate: passed as f64 / tries as f64,
            interval: wilson(passed, tries),
            worst: by_task.values().filter(|every| **every).count() as f64 / by_task.len() as f64,
            steps: mean(|record| f64::from(record.transcript.steps)),
            tokens_in: mean(|record| record.transcript.tokens.input as f64),
            tokens_out: mean(|record| record.transcript.tokens.output as f64),
            seconds: median(records.iter().map(|record| record.transcript.seconds).collect()),
            parse_failures: f64::from(failures) / f64::from(replies.max(1)),
            loops: own(|record| record.transcript.loops),
            approvals: own(|record| record.transcript.approvals),
            refused: own(|record| record.transcript.refused),
            limited: records.iter().filter(|record| record.transcript.ended == Ended::Limited).count(),
            broken: records.iter().filter(|record| record.transcript.error.is_some()).count(),
        })
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// A row of a report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Row {
    #[serde(flatten)]
    pub(crate) contender: Contender,
    /// Which tasks it is about; empty for all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) part: String,
    #[serde(flatten)]
    pub(crate) score: Score,
}

/// Scores of every contender, on each of the parts that a try can be in.
pub(crate) fn rows<P: Ord>(
    records: &[Record],
    part: impl Fn(&Record) -> P,
    name: impl Fn(&P) -> String,
) -> Vec<Row> {
    let contenders: BTreeSet<&Contender> = records.iter().map(|record| &record.attempt.contender).collect();
    let parts: BTreeSet<P> = records.iter().map(&part).collect();
    let mut rows = Vec::new();
    for which in &parts {
        for contender in &contenders {
            let own = |record: &&Record| record.attempt.contender == **contender && part(record) == *which;
            if let Some(score) = Score::of(records.iter().filter(own)) {
                rows.push(Row { contender: (*contender).clone(), part: name(which), score });
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Try;
    use crate::suite::{Level, Split};
    use crate::transcript::Transcript;

    /// Against published values (Newcombe 1998, and the rule of three's exact bounds).
    #[test]
    fn intervals_are_wilsons() {
        for (passed, tries, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let interval = wilson(passed, tries);
            assert!((interval.low - low).abs() < 5e-4, "{passed}/{tries}: {interval:?}");
            assert!((interval.high - high).abs() < 5e-4, "{passed}/{tries}: {interval:?}");
        }
        assert_eq!(wilson(3, 3).high, 1.0);
        assert_eq!(wilson(0, 0), Interval { low: 0.0, high: 1.0 });
    }

    fn tried(agent: &str, task: &str, repetition: u32, passed: bool) -> Record {
        let contender = Contender { agent: agent.into(), model: "m".into(), action: "tools".into() };
        let (seconds, steps) = (f64::from(repetition), 3 * repetition);
        Record {
            attempt: Try { contender, task: task.into(), repetition },
            group: "find".into(),
            level: Level::Easy,
            split: Split::Tuning,
            passed,
            checks: Vec::new(),
            transcript: Transcript {
                replies: 4,
                parse_failures: 1,
                loops: 2,
                approvals: 3,
                seconds,
                steps,
                ..Transcript::default()
            },
        }
    }

    #[test]
    fn a_task_counts_every_time_only_if_no_try_of_it_failed() {
        let tries = |agent: &str| {
            [("a", 1, true), ("a", 2, true), ("b", 1, true), ("b", 2, false)]
                .map(|(task, repetition, passed)| tried(agent, task, repetition, passed))
        };
        let score = Score::of(tries(OWN).iter()).unwrap();
        assert_eq!((score.tasks, score.tries, score.passed), (2, 4, 3));
        assert_eq!((score.rate, score.worst, score.seconds, score.steps), (0.75, 0.5, 1.5, 4.5));
        assert_eq!(
            (score.parse_failures, score.loops, score.approvals, score.refused),
            (0.25, Some(8), Some(12), Some(0))
        );
        let other = Score::of(tries("another").iter()).unwrap();
        assert_eq!((other.worst, other.loops, other.approvals), (0.5, None, None));
        assert_eq!(Score::of([].iter()), None);
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
