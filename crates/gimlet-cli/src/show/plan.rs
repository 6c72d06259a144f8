//! A plan as people read it.

use gimlet::plan::Plan;

use super::clip;
use crate::style::{DIM, NAME};

/// Most lines shown of a plan that keeps no form.
const WORDS: usize = 12;
/// Most characters of a line.
const WIDTH: usize = 160;

/// The lines of a plan; none when there is none to show.
pub(crate) fn plan(plan: &Plan) -> Option<String> {
    let when = match plan.step {
        0 => String::new(),
        step => format!(" {DIM}after step {step}{DIM:#}"),
    };
    let mut lines = vec![format!("{NAME}plan{NAME:#}{when}")];
    if plan.steps.is_empty() {
        let words = plan.text.lines().filter(|line| !line.trim().is_empty());
        lines.extend(words.take(WORDS).map(|line| format!("  {}", clip(line, WIDTH))));
    } else {
        let facts = |what: &str, facts: &[String]| {
            let line = |fact: &String| format!("  {DIM}{what}:{DIM:#} {}", clip(fact, WIDTH));
            facts.iter().map(line).collect::<Vec<_>>()
        };
        lines.extend(facts("known", &plan.known));
        lines.extend(facts("to find", &plan.to_find));
        let steps = plan.steps.iter().enumerate();
        lines.extend(steps.map(|(at, step)| format!("  {}. {}", at + 1, clip(step, WIDTH))));
    }
    (lines.len() > 1).then(|| lines.join("\n"))
}
