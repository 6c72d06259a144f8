//! A summary that takes the place of old steps: goal, constraints, decisions, files, open questions; beside it, word
//! for word, what people said. The model writes it from the diary of the run; when it cannot, code does.

use std::sync::Arc;

use super::size::Measured;
use super::{Window, variables};
use crate::message::Message;
use crate::state::State;
use gimlet_reply::sections::{self, Section};
use gimlet_text::clip;

pub use gimlet_event::context::{Author, Compacted, Summary};

const SECTIONS: [Section; 5] = [
    Section { key: "goal", headings: &["goal", "goals"] },
    Section { key: "constraints", headings: &["constraints", "constraint", "rules"] },
    Section {
        key: "decisions",
        headings: &["decisions", "decision", "decisions and findings", "findings", "facts", "done"],
    },
    Section { key: "files", headings: &["files", "file", "relevant files"] },
    Section {
        key: "open_questions",
        headings: &["open questions", "open", "questions", "next steps", "to do"],
    },
];

/// Most files that code names of each kind.
const FILES: usize = 12;
/// Most steps that code tells of.
const STEPS: usize = 12;

/// What a model wrote; none when it holds none of the lists. What code knows for certain is added.
pub(crate) fn read(text: &str, state: &State) -> Option<Summary> {
    let [goal, constraints, decisions, mut files, open_questions] = sections::read(text, &SECTIONS)?;
    let missed: Vec<String> = changed(state)
        .filter(|file| !files.iter().any(|line| line.contains(file.as_str())))
        .map(|file| format!("{file} (changed)"))
        .collect();
    files.extend(missed);
    Some(Summary { goal, constraints, decisions, files, open_questions })
}

/// What code can say by itself.
pub(crate) fn by_code(state: &State) -> Summary {
    let read = state.work.files_read.iter().take(FILES).map(|file| format!("{file} (read)"));
    let errors = state.work.errors.iter().map(|(error, times)| format!("{error} came up {times} times"));
    Summary {
        goal: vec![clip(&state.task.split_whitespace().collect::<Vec<_>>().join(" "), 300)],
        constraints: Vec::new(),
        decisions: state.diary.gist(STEPS),
        files: changed(state).map(|file| format!("{file} (changed)")).chain(read).collect(),
        open_questions: errors.collect(),
    }
}

/// Its lists, with at most so many of the latest entries of each, each at most so long.
fn lists(summary: &Summary, entries: usize, chars: usize) -> String {
    let lists = [
        ("Goal", &summary.goal),
        ("Constraints", &summary.constraints),
        ("Decisions", &summary.decisions),
        ("Files", &summary.files),
        ("Open questions", &summary.open_questions),
    ];
    let list = |(name, items): (&str, &Vec<String>)| {
        let skip = items.len().saturating_sub(entries);
        let lines: Vec<String> =
            items.iter().skip(skip).map(|item| format!("\n- {}", clip(item, chars))).collect();
        (!lines.is_empty()).then(|| format!("{name}:{}", lines.concat()))
    };
    lists.into_iter().filter_map(list).collect::<Vec<_>>().join("\n")
}

fn changed(state: &State) -> impl Iterator<Item = String> + '_ {
    state.work.files_changed.iter().take(FILES).cloned()
}

/// Who sums up.
const SYSTEM: &str = "You sum up the work of a coding agent, for the agent to go on from. Facts from the text only, in few words.";

/// The request for a summary: a conversation of its own.
pub(crate) fn conversation(question: &str) -> Vec<Arc<Message>> {
    vec![Arc::new(Message::system(SYSTEM)), Arc::new(Message::user(question))]
}

/// What the model is asked: what happened, as fully as the window takes it, and the form of a summary.
pub(crate) fn question(state: &State, window: Window) -> String {
    let said: Vec<String> = state.diary.words.iter().map(|word| clip(&word.text, 2000)).collect();
    let head = format!("Sum up this run.\n\nThe person said:\n{}\n\nWhat happened:\n", said.join("\n"));
    let fixed = head.len() + SYSTEM.len() + FORM.len();
    let diary = state.diary.written(|size| tokens(state, fixed + size) <= window.room());
    format!("{head}{diary}\n\n{FORM}")
}

const FORM: &str = "Reply with five short lists and nothing else. Keep names, numbers and paths exactly.\n\
    Goal:\n- …\nConstraints:\n- …\nDecisions:\n- …\nFiles:\n- …\nOpen questions:\n- …";

fn tokens(state: &State, bytes: usize) -> u64 {
    Measured::correct(state.measured, bytes, 0)
}

/// What stands in place of the messages before `until`, in at most so many bytes if that is possible at all. What
/// people said goes last: it is cut only where it alone would not fit.
pub(crate) fn written(state: &State, until: usize, summary: &Summary, most: usize) -> String {
    const LOG: &str = "the run's log has it whole";
    let words: Vec<&str> =
        state.diary.words.iter().filter(|word| word.message < until).map(|word| word.text.as_str()).collect();
    let context = state.started.as_ref().map_or("", |started| started.context.as_str());
    let plan = match &state.plan {
        Some(plan) if !plan.steps.is_empty() => format!("\nPlan:\n- {}", plan.steps.join("\n- ")),
        Some(_) | None => String::new(),
    };
    let variables = variables::listing(&state.variables).map(|list| format!("\n{list}")).unwrap_or_default();
    let shorten = |text: &str, most: usize| match text.chars().count() {
        count if count <= most => text.to_owned(),
        count => format!("{}\n[{} characters cut; {LOG}]", clip(text, most), count - most),
    };
    let mut text = String::new();
    let everything = usize::MAX;
    for (entries, chars, about, older, newest) in [
        (20, 300, everything, everything, everything),
        (10, 200, everything, everything, everything),
        (6, 120, 2000, everything, everything),
        (6, 120, 500, 1000, everything),
        (4, 100, 0, 300, everything),
        (3, 80, 0, 200, 4000),
        (2, 80, 0, 100, 1000),
    ] {
        let last = words.len().saturating_sub(1);
        let said = words
            .iter()
            .enumerate()
            .map(|(at, word)| if at == last { shorten(word, newest) } else { shorten(word, older) });
        let mut parts: Vec<String> = Vec::new();
        if !context.is_empty() && about > 0 {
            parts.push(shorten(context, about));
        }
        parts.extend(said);
        parts.push(format!(
            "[Steps 1 to {} were summed up to save room; {LOG}.]\n{}{plan}{variables}",
            steps_before(state, until),
            lists(summary, entries, chars)
        ));
        text = parts.join("\n\n");
        if text.len() <= most {
            break;
        }
    }
    text
}

/// The last step whose reply gives way.
fn steps_before(state: &State, until: usize) -> u32 {
    let kept = state.messages[until.min(state.messages.len())..]
        .iter()
        .filter(|message| matches!(message.as_ref(), Message::Assistant { .. }))
        .count();
    state.step.saturating_sub(u32::try_from(kept).unwrap_or(u32::MAX))
}
