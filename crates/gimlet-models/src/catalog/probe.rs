//! Grading a model by doing: a few tiny tasks show how it calls tools, whether it keeps a format, and how fast it is.
//!
//! What it shows is worth more than what is known of its family. A card is kept by the digest of the weights, so that
//! a model is graded once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::StreamExt;
use gimlet::constrain::Constrain;
use gimlet::event::ActionFormat;
use gimlet::guided::ask::EditQuestion;
use gimlet::guided::reply::{self, Block};
use gimlet::guided::show::EditForm;
use gimlet::message::Message;
use gimlet::model::{Model, ModelError, ModelEvent, Reply, ReplyBuilder, Request, Sampling};
use gimlet::parse::{Intent, parse};
use gimlet::tool::{Manner, ToolSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::families::{Action, Calls, Evidence, Profile, Tier};

/// What a model showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scorecard {
    /// Which model.
    pub model: String,
    /// Native tool calls with the right arguments.
    pub native: Grade,
    /// A call written as JSON in its text.
    pub json: Grade,
    /// Python in a fence.
    pub code: Grade,
    /// A whole file, changed as asked, in a fence; none in cards of earlier versions.
    #[serde(default)]
    pub edit: Grade,
    /// Mending its format after being told.
    pub correction: Grade,
    /// Tokens written a second.
    pub speed: Option<f32>,
}

/// So many right of so many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grade {
    /// Right ones.
    pub right: u32,
    /// All of them.
    pub of: u32,
}

impl Grade {
    /// Whether it can be relied on.
    pub fn is_reliable(self) -> bool {
        self.of > 0 && self.right * 3 >= self.of * 2
    }

    fn add(&mut self, right: bool) {
        self.right += u32::from(right);
        self.of += 1;
    }
}

impl Scorecard {
    /// How the model calls tools best.
    pub fn calls(&self) -> Calls {
        if self.native.is_reliable() { Calls::Native } else { Calls::Text }
    }

    /// How it acts best, given how its family and size would have it, and why.
    pub fn action(&self, usual: Action) -> (Action, &'static str) {
        let guides = self.edit.is_reliable();
        if self.native.is_reliable() {
            (Action::Tools, "the probe saw dependable native tool calls")
        } else if guides && usual == Action::Guided {
            (Action::Guided, "the probe saw whole files and no dependable native tool calls")
        } else if self.json.is_reliable() {
            (Action::Tools, "the probe saw tool calls as JSON")
        } else if guides {
            (Action::Guided, "the probe saw whole files and no tool calls")
        } else if self.code.is_reliable() {
            (Action::Code, "the probe saw Python and no tool calls")
        } else {
            (usual, "the probe saw no format that it keeps")
        }
    }

    /// The best tier that is left for it: one that keeps no format cannot be relied on, whatever its family.
    fn best_tier(&self) -> Tier {
        let all = [self.native, self.json, self.code, self.edit, self.correction];
        let formats = [self.native, self.json, self.code, self.edit];
        if all.iter().all(|grade| grade.right == 0) {
            Tier::Unfit
        } else if !formats.iter().any(|grade| grade.is_reliable()) {
            Tier::Limited
        } else if !self.native.is_reliable() && !self.json.is_reliable() {
            Tier::Usable
        } else {
            Tier::Best
        }
    }

    /// The card, for people.
    pub fn render(&self) -> String {
        let line = |what: &str, grade: Grade| {
            let (full, empty) =
                ("●".repeat(grade.right as usize), "○".repeat((grade.of - grade.right) as usize));
            format!("  {what:<24}{full}{empty}\n")
        };
        let mut card = format!("{}\n", self.model);
        card.push_str(&line("native tool calls", self.native));
        card.push_str(&line("tool calls as JSON", self.json));
        card.push_str(&line("code in a fence", self.code));
        if self.edit.of > 0 {
            card.push_str(&line("edit of a file", self.edit));
        }
        card.push_str(&line("follows a correction", self.correction));
        if let Some(speed) = self.speed {
            card.push_str(&format!("  {:<24}{speed:.0} tokens/s\n", "speed"));
        }
        card
    }
}

impl Profile {
    /// The profile, corrected by what the model showed.
    #[must_use]
    pub fn corrected(mut self, card: &Scorecard) -> Self {
        self.calls = card.calls();
        self.evidence = Evidence::Tried;
        let (action, why) = card.action(self.action);
        (self.action, self.why) = (action, why.to_owned());
        let best = card.best_tier();
        if best > self.tier {
            self.tier = best;
            self.defects.push("failed its probe".to_owned());
        }
        if !card.native.is_reliable() && !card.json.is_reliable() {
            self.constrain = Constrain::Always;
        }
        self
    }
}

/// Kinds of small tasks in a round of [`probe`].
pub const KINDS: u32 = 5;

/// Grades a model with so many rounds of the small tasks, one kind for each format and one for corrections.
pub async fn probe(model: &dyn Model, rounds: u32) -> Result<Scorecard, ModelError> {
    let mut card = Scorecard {
        model: model.id().to_owned(),
        native: Grade::default(),
        json: Grade::default(),
        code: Grade::default(),
        edit: Grade::default(),
        correction: Grade::default(),
        speed: None,
    };
    let mut speeds = Vec::new();
    for round in 0..rounds {
        let (a, b) = (2 + round, 3 + round);
        card.native.add(native(model, a, b).await?);
        let (reply, speed) = ask(model, vec![Message::system(JSON_RULE), task(a, b)], Vec::new()).await?;
        card.json.add(is_call(&reply.text, a, b));
        speeds.extend(speed);
        let prompt =
            format!("Write Python that prints the sum of {a} and {b}. Reply with one ```python block only.");
        let (reply, speed) = ask(model, vec![Message::user(prompt)], Vec::new()).await?;
        card.code.add(is_code(&reply.text));
        speeds.extend(speed);
        let (reply, speed) = ask(model, vec![Message::user(edit_task(a, b))], Vec::new()).await?;
        card.edit.add(is_edit(&reply.text, a, b));
        speeds.extend(speed);
        card.correction.add(correction(model, a, b).await?);
    }
    speeds.sort_by(f32::total_cmp);
    card.speed = speeds.get(speeds.len() / 2).copied();
    Ok(card)
}

const JSON_RULE: &str = "To use a tool, reply with one JSON object and nothing else: \
    {\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 1}}. The only tool is add: it adds two whole numbers.";

fn task(a: u32, b: u32) -> Message {
    Message::user(format!("Use the tool add to add {a} and {b}."))
}

/// A server that refuses tools for this model has answered the question.
async fn native(model: &dyn Model, a: u32, b: u32) -> Result<bool, ModelError> {
    let tool = ToolSpec {
        name: "add".to_owned(),
        description: "Adds two whole numbers.".to_owned(),
        input: json!({
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        }),
        output: None,
        manner: Manner::default(),
    };
    match ask(model, vec![task(a, b)], vec![Arc::new(tool)]).await {
        Ok((reply, _)) => {
            Ok(reply.calls.iter().any(|call| call.name == "add" && has_numbers(&call.args, a, b)))
        }
        Err(ModelError::Refused { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

async fn correction(model: &dyn Model, a: u32, b: u32) -> Result<bool, ModelError> {
    let conversation = vec![
        Message::system(JSON_RULE),
        task(a, b),
        Message::Assistant { text: format!("add {a} {b}"), thinking: Vec::new(), calls: Vec::new() },
        Message::user(
            "That was not understood. Reply with one JSON object: {\"name\": \"add\", \"arguments\": {\"a\": …, \"b\": …}}",
        ),
    ];
    let (reply, _) = ask(model, conversation, Vec::new()).await?;
    Ok(is_call(&reply.text, a, b))
}

/// A reply, and how many tokens a second it was written with.
async fn ask(
    model: &dyn Model,
    messages: Vec<Message>,
    tools: Vec<Arc<ToolSpec>>,
) -> Result<(Reply, Option<f32>), ModelError> {
    let request = Request {
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: tools.into(),
        sampling: Sampling { max_tokens: Some(256), ..Sampling::default() },
    };
    let mut stream = model.stream(request).await?;
    let mut reply = ReplyBuilder::default();
    let mut first = None;
    while let Some(event) = stream.next().await {
        let event = event?;
        if matches!(event, ModelEvent::Text(_) | ModelEvent::Thinking(_)) {
            first.get_or_insert_with(Instant::now);
        }
        reply.push(event);
    }
    let reply = reply.finish()?;
    let seconds = first.map(|first| first.elapsed().as_secs_f32()).filter(|seconds| *seconds > 0.0);
    // The first token was written before the clock started.
    let speed = seconds
        .map(|seconds| reply.usage.output.saturating_sub(1) as f32 / seconds)
        .filter(|speed| *speed > 0.0);
    Ok((reply, speed))
}

/// Whether a text holds the call, read as a run would read it.
fn is_call(text: &str, a: u32, b: u32) -> bool {
    match parse(text, ActionFormat::Tools, &["add"]).intent {
        Intent::Calls(calls) => {
            calls.first().is_some_and(|call| call.name == "add" && has_numbers(&call.args, a, b))
        }
        Intent::Code(_) | Intent::Answer(_) | Intent::Empty | Intent::Malformed(_) => false,
    }
}

/// Whether the arguments are right; numbers in quotes count, since validation mends them.
fn has_numbers(args: &Value, a: u32, b: u32) -> bool {
    let is = |value: &Value, number: u32| {
        value.as_f64() == Some(f64::from(number))
            || value.as_str().and_then(|text| text.parse().ok()) == Some(number)
    };
    (is(&args["a"], a) && is(&args["b"], b)) || (is(&args["a"], b) && is(&args["b"], a))
}

fn is_code(text: &str) -> bool {
    let Some((_, block)) = text.split_once("```") else { return false };
    let Some((code, _)) = block.split_once("```") else { return false };
    code.contains("print(")
}

/// A question as guided work asks it: a file, what is to change, and the form of the reply.
fn edit_task(a: u32, b: u32) -> String {
    let text = format!("LIMIT = {a}\n\n\ndef fits(n):\n    return n < LIMIT\n");
    let question = EditQuestion {
        task: &format!("Set LIMIT to {b}{a}, and let fits accept LIMIT itself."),
        notes: "",
        tests: Vec::new(),
        files: vec![("limit.py".to_owned(), Some(text), EditForm::Whole)],
        problem: None,
    };
    question.text()
}

/// Whether a reply holds the file with both changes, read as guided work reads it.
fn is_edit(text: &str, a: u32, b: u32) -> bool {
    let limit = format!("LIMIT = {b}{a}");
    reply::parse(text, &["limit.py"]).iter().any(|block| match block {
        Block::Whole { text, .. } => {
            text.contains(&limit) && (text.contains("n <= LIMIT") || text.contains("LIMIT >= n"))
        }
        Block::Replace { .. } | Block::Delete { .. } => false,
    })
}

/// Cards that were made before, in a file.
#[derive(Debug, Default)]
pub struct Scorecards {
    path: PathBuf,
    cards: BTreeMap<String, Scorecard>,
}

/// Why cards cannot be kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the scorecards in {path}: {source}")]
pub struct ScorecardsError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub source: std::io::Error,
}

impl Scorecards {
    /// Reads the cards of a file. A missing file is none, and so is one from another version.
    pub fn load(path: &Path) -> Result<Self, ScorecardsError> {
        let cards = match std::fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(source) => return Err(ScorecardsError { path: path.to_owned(), source }),
        };
        Ok(Scorecards { path: path.to_owned(), cards })
    }

    /// The card of these weights.
    pub fn get(&self, digest: &str) -> Option<&Scorecard> {
        self.cards.get(digest)
    }

    /// Forgets the card of these weights, or all. Returns how many there were.
    pub fn forget(&mut self, digest: Option<&str>) -> Result<usize, ScorecardsError> {
        let before = self.cards.len();
        match digest {
            Some(digest) => drop(self.cards.remove(digest)),
            None => self.cards.clear(),
        }
        self.save()?;
        Ok(before - self.cards.len())
    }

    /// Keeps a card. The file is replaced whole, so that a crash leaves the old one.
    pub fn insert(&mut self, digest: impl Into<String>, card: Scorecard) -> Result<(), ScorecardsError> {
        self.cards.insert(digest.into(), card);
        self.save()
    }

    fn save(&self) -> Result<(), ScorecardsError> {
        let failed = |source| ScorecardsError { path: self.path.clone(), source };
        let bytes = serde_json::to_vec_pretty(&self.cards).map_err(|error| failed(error.into()))?;
        let fresh = self.path.with_extension("new");
        std::fs::write(&fresh, bytes).and_then(|()| std::fs::rename(&fresh, &self.path)).map_err(failed)
    }
}
