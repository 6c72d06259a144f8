//! The questions, as short as they can be: a small model's window is precious. What stays the same between questions of
//! a task comes first, so that a server's prefix cache holds.

use std::sync::Arc;

use serde_json::{Value, json};

use super::record::{Aim, Candidate};
use super::reply::DELETE;
use super::show::{EditForm, fenced};
use gimlet_event::message::Message;

/// What a model picks for a file that does not exist yet.
pub const NEW_FILE: &str = "a new file";
/// Bytes of a task that the short questions quote, from its beginning and from its end.
const HEAD: usize = 900;
const TAIL: usize = 500;

/// How a task is sorted. It is told in turns of its own: a small model sorts by examples where it does not by
/// descriptions, and takes what it is said to have replied for its own way.
const AIM_RULE: &str = "Sort what a person says to a coding agent. {\"aim\": \"change\"}: files are to be written or edited, \
    or a fault is reported. {\"aim\": \"answer\"}: a question is to be answered, or something explained. \
    {\"aim\": \"run\"}: a command is to be run, and no file is to be written. Reply with JSON.";
const AIM_EXAMPLES: [(&str, &str); 14] = [
    ("Why does login fail?", "answer"),
    ("Login fails with an empty name", "change"),
    ("Run the linter", "run"),
    ("Describe the module", "answer"),
    ("Traceback (most recent call last):\n  File \"a.py\", line 3\nKeyError: 'id'", "change"),
    ("Which modules import os?", "answer"),
    ("Put the code into sum.py and check it with make test", "change"),
    ("Wo wird die Version gelesen?", "answer"),
    ("Escribe una función que sume", "change"),
    ("Warum stürzt das Programm ab?", "answer"),
    ("Users want to filter the list by name.", "change"),
    ("What happens when the build breaks?", "answer"),
    ("The build breaks", "change"),
    ("main.py 做什么？", "answer"),
];

/// The question for what the task wants: its messages, and the schema of the reply.
pub fn aim(task: &str) -> (Vec<Message>, Value) {
    let mut messages = vec![Message::system(AIM_RULE)];
    for (said, aim) in AIM_EXAMPLES {
        messages.push(Message::user(said));
        let text = format!("{{\"aim\": \"{aim}\"}}");
        messages.push(Message::Assistant { text, thinking: Vec::new(), calls: Vec::new() });
    }
    messages.push(Message::user(clipped(task)));
    let schema = json!({
        "type": "object", "required": ["aim"], "additionalProperties": false,
        "properties": {"aim": {"type": "string", "enum": ["change", "answer", "run"]}},
    });
    (messages, schema)
}

/// Whether a conversation with this system prompt asks what a task wants.
pub fn is_aim(system: &str) -> bool {
    system == AIM_RULE
}

/// The aim a reply names.
pub fn read_aim(reply: &str) -> Option<Aim> {
    let named = crate::parse::value_in(reply).and_then(|value| value["aim"].as_str().map(str::to_owned));
    let word = named.unwrap_or_else(|| reply.trim().trim_matches(['"', '.', '`']).to_owned());
    match word.to_ascii_lowercase().as_str() {
        "change" => Some(Aim::Change),
        "answer" => Some(Aim::Answer),
        "run" => Some(Aim::Run),
        _ => None,
    }
}

/// The question for the files to change, and the schema whose choices are the list.
pub fn pick(task: &str, candidates: &[Candidate]) -> (String, Value) {
    let list: Vec<String> = candidates
        .iter()
        .enumerate()
        .map(|(at, candidate)| {
            let why = if candidate.why.is_empty() { String::new() } else { format!(" ({})", candidate.why) };
            format!("{}. {}{why}", at + 1, candidate.path)
        })
        .collect();
    let text = format!(
        "Task:\n{}\n\nFiles of the project:\n{}\n\nWhich files must be changed for this task? As few as possible. \
         Reply with JSON: {{\"files\": [\"path\"]}}. If the task needs a new file: \
         {{\"files\": [\"{NEW_FILE}\"], \"new_file\": \"path\"}}",
        clipped(task),
        list.join("\n")
    );
    let mut choices: Vec<&str> = candidates.iter().map(|candidate| candidate.path.as_str()).collect();
    choices.push(NEW_FILE);
    let schema = json!({
        "type": "object", "required": ["files"], "additionalProperties": false,
        "properties": {
            "files": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "enum": choices}},
            "new_file": {"type": "string", "maxLength": 120},
        },
    });
    (text, schema)
}

/// The files a reply picks; none if it picks nothing of the list.
pub fn read_pick(reply: &str, candidates: &[Candidate]) -> Vec<String> {
    let Some(value) = crate::parse::value_in(reply) else { return Vec::new() };
    let named = value["files"].as_array().cloned().unwrap_or_default();
    let mut picked: Vec<String> = Vec::new();
    for path in named.iter().filter_map(Value::as_str) {
        if candidates.iter().any(|candidate| candidate.path == path)
            && !picked.iter().any(|known| known == path)
        {
            picked.push(path.to_owned());
        }
    }
    let new = value["new_file"].as_str().map(|path| path.trim().trim_start_matches("./")).unwrap_or_default();
    if named.iter().any(|path| path.as_str() == Some(NEW_FILE)) && !new.is_empty() {
        picked.push(new.to_owned());
    }
    picked
}

/// What a question for an edit shows and says.
#[derive(Debug, Clone)]
pub struct EditQuestion<'a> {
    /// The task.
    pub task: &'a str,
    /// What the project tells agents.
    pub notes: &'a str,
    /// Test files, with the text that is shown.
    pub tests: Vec<(String, String)>,
    /// Files to change, with the text that is shown; none for a new file.
    pub files: Vec<(String, Option<String>, EditForm)>,
    /// What is wrong with the files as they are shown, or with the last reply.
    pub problem: Option<String>,
}

impl EditQuestion<'_> {
    /// The question.
    pub fn text(&self) -> String {
        let mut parts = vec![format!("Task:\n{}", self.task.trim())];
        if !self.notes.is_empty() {
            parts.push(self.notes.to_owned());
        }
        if !self.tests.is_empty() {
            let shown: Vec<String> = self.tests.iter().map(|(path, text)| fenced(path, text)).collect();
            parts.push(format!("The test, which must pass and stays as it is:\n\n{}", shown.join("\n\n")));
        }
        let shown: Vec<String> = self
            .files
            .iter()
            .map(|(path, text, _)| match text {
                Some(text) => fenced(path, text),
                None => format!("{path} does not exist yet."),
            })
            .collect();
        if !shown.is_empty() {
            let heading = if shown.len() == 1 { "The file to write" } else { "The files to change" };
            parts.push(format!("{heading}:\n\n{}", shown.join("\n\n")));
        }
        if let Some(problem) = &self.problem {
            parts.push(problem.clone());
        }
        parts.push(self.format());
        parts.join("\n\n")
    }

    /// How the model shall write its edit.
    fn format(&self) -> String {
        let has_blocks = self.files.iter().any(|(_, _, form)| *form == EditForm::Blocks);
        let example =
            |path: &str| format!("{path}\n```{}\n(all lines of {path})\n```", super::show::language(path));
        let mut text = match self.files.as_slice() {
            [] => format!(
                "Write each new file as its path on a line of its own and then all its lines in a code block:\n\n{}",
                example("path/to/file.py")
            ),
            [(path, _, EditForm::Whole)] => {
                format!("Reply with the complete {path}, no other text:\n\n{}", example(path))
            }
            files if !has_blocks => {
                let first = files.first().map_or("", |(path, _, _)| path.as_str());
                format!(
                    "Reply with every file that changes, complete, no other text. For each file its path on a line of \
                     its own, then all its lines in a code block:\n\n{}",
                    example(first)
                )
            }
            files => {
                let first = files
                    .iter()
                    .find(|(_, _, form)| *form == EditForm::Blocks)
                    .map_or("", |(path, _, _)| path.as_str());
                format!(
                    "Reply with edit blocks, no other text. Copy the lines to replace exactly, with enough of them to \
                     be found once; one block for each place:\n\n\
                     {first}\n<<<<<<< SEARCH\n(lines as they are)\n=======\n(lines as they shall be)\n>>>>>>> REPLACE"
                )
            }
        };
        if self.files.len() > 1 {
            text.push_str(&format!("\n\nTo remove a file: {DELETE} path"));
        }
        text
    }
}

/// Said after a failed check.
pub fn failed_check(command: &str, output: &str) -> String {
    format!("With the files as shown, `{command}` fails:\n\n{}\n\nFind the cause and fix it.", output.trim())
}

/// Said after a reply that could not be used.
pub fn unusable(problem: &str) -> String {
    format!("Your last reply could not be used: {problem}.")
}

/// Said to continue a reply that was cut at the token limit.
pub const GO_ON: &str = "Your reply was cut off. Go on exactly where it stopped. Repeat nothing.";

/// The messages of a question, behind the first one of the conversation: each is asked for itself, and a reply that was
/// cut goes on.
pub fn conversation(first: Option<&Message>, partial: &str, question: &str) -> Vec<Arc<Message>> {
    let mut messages: Vec<Message> = match first {
        Some(Message::System { text }) => vec![Message::system(text)],
        Some(_) | None => Vec::new(),
    };
    messages.push(Message::user(question));
    if !partial.is_empty() {
        messages.push(Message::Assistant {
            text: partial.to_owned(),
            thinking: Vec::new(),
            calls: Vec::new(),
        });
        messages.push(Message::user(GO_ON));
    }
    messages.into_iter().map(Arc::new).collect()
}

/// A task's beginning and end, for questions that need no more of it.
fn clipped(task: &str) -> String {
    let task = task.trim();
    if task.len() <= HEAD + TAIL + 100 {
        return task.to_owned();
    }
    let floor = |mut at: usize| {
        while !task.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    format!("{}\n[…]\n{}", &task[..floor(HEAD)], &task[floor(task.len() - TAIL)..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aim_is_read_from_json_or_a_word() {
        assert_eq!(read_aim(r#"{"aim": "change"}"#), Some(Aim::Change));
        assert_eq!(read_aim("```json\n{\"aim\": \"run\"}\n```"), Some(Aim::Run));
        assert_eq!(read_aim("answer."), Some(Aim::Answer));
        assert_eq!(read_aim("I would change it"), None);
    }

    #[test]
    fn only_what_is_on_the_list_can_be_picked() {
        let candidates = [Candidate { path: "a.py".into(), why: String::new() }];
        assert_eq!(read_pick(r#"{"files": ["a.py", "a.py", "b.py"]}"#, &candidates), ["a.py"]);
        let new = format!(r#"{{"files": ["{NEW_FILE}"], "new_file": "./c.py"}}"#);
        assert_eq!(read_pick(&new, &candidates), ["c.py"]);
        assert!(read_pick("none", &candidates).is_empty());
    }

    #[test]
    fn a_long_task_is_clipped_between_characters() {
        let task = "ä".repeat(5000);
        let text = clipped(&task);
        assert!(text.len() < 1500 && text.contains("[…]"));
    }
}
