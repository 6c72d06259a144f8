//! Reads the action of a reply whose thinking is gone: which blocks act, and what is left to say.

use std::ops::Range;

use gimlet_event::event::ActionFormat;

use super::block::{Block, End, Finder, Kind, Language};
use super::call::{self, Certainty, FINAL_ANSWER};
use super::json::{self, Reading as Json};
use super::{Intent, ParsedCall, function, observation, program};

/// A reply, read.
pub(super) struct Reading {
    pub(super) content: String,
    pub(super) prose: String,
    pub(super) intent: Intent,
}

/// A block that acts.
struct Action {
    span: Range<usize>,
    deed: Deed,
}

enum Deed {
    Code(String),
    Calls(Vec<ParsedCall>, Certainty),
    /// Meant as a call, but not readable; says why.
    Broken(String),
}

/// Reads a reply.
pub(super) fn read(text: &str, format: ActionFormat, known: &[&str]) -> Reading {
    let text = text.trim_end();
    let text = &text[blank_lines(text)..];
    if text.is_empty() {
        return Reading { content: String::new(), prose: String::new(), intent: Intent::Empty };
    }
    if format == ActionFormat::Code {
        let end = observation::find_in_code(text).unwrap_or(text.len());
        if program::is_program(&text[..end], known) {
            let code = tidy(&text[..end]);
            return Reading { content: code.clone(), prose: String::new(), intent: Intent::Code(code) };
        }
    }
    let mut finder = Finder::new(text, format);
    let mut blocks = finder.all();
    blocks.iter_mut().for_each(|block| end_at_observation(text, block));
    let mut actions: Vec<_> = blocks.iter().filter_map(|block| act(text, block, format, known)).collect();
    if actions.iter().any(|action| matches!(action.deed, Deed::Code(_))) {
        actions.retain(|action| matches!(action.deed, Deed::Code(_)));
    } else if actions.is_empty() {
        actions.extend(finder.dangling.and_then(|at| dangling(text, at, known)));
    }
    let mut end = made_up(text, &actions, &blocks);
    // Data that merely looks like a call is one only when the reply says nothing else.
    let is_slip = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '}' | ']');
    if !without(text, end, &actions).chars().all(is_slip) {
        actions.retain(|action| !matches!(action.deed, Deed::Calls(_, Certainty::Alone)));
        end = made_up(text, &actions, &blocks);
    }
    actions.retain(|action| action.span.start < end);
    let content = text[..end].trim_end().to_owned();
    let prose = without(text, end, &actions).trim().to_owned();
    let intent = intent(actions).unwrap_or_else(|| answer(&content, format, known));
    Reading { content, prose, intent }
}

/// What a block does, if it does anything in this format.
fn act(text: &str, block: &Block, format: ActionFormat, known: &[&str]) -> Option<Action> {
    let body = &text[block.body.clone()];
    let trimmed = body.trim();
    let is_json = trimmed.starts_with(['{', '[']);
    let deed = match (block.kind, format) {
        (Kind::CallTag, _) => Some(marked(trimmed, known)),
        (Kind::Json, _) => data(trimmed, format, known),
        // A program may begin with a bracket, so in code what is no call for certain stays a program.
        (Kind::Fence(Language::Python) | Kind::CodeTag, ActionFormat::Code) if is_json => {
            match data(trimmed, format, known) {
                Some(deed @ (Deed::Calls(_, Certainty::Named) | Deed::Code(_))) => Some(deed),
                _ => code(body),
            }
        }
        (Kind::Fence(_) | Kind::CodeTag, _) if is_json => data(trimmed, format, known),
        (Kind::Fence(Language::Python), ActionFormat::Code) => code(body),
        (Kind::Fence(Language::Unsaid), ActionFormat::Code) if program::is_fenced_program(body) => code(body),
        // `<code>` in the middle of a sentence is HTML, unless it holds a program.
        (Kind::CodeTag, ActionFormat::Code)
            if starts_line(text, block.outer.start) || program::is_fenced_program(body) =>
        {
            code(body)
        }
        (Kind::Fence(_) | Kind::CodeTag, _) => None,
    }?;
    Some(Action { span: block.outer.clone(), deed })
}

fn code(body: &str) -> Option<Deed> {
    let code = tidy(unwrap(body));
    (!code.is_empty()).then_some(Deed::Code(code))
}

/// A program that nothing closes ends where its output is made up.
fn end_at_observation(text: &str, block: &mut Block) {
    let holds_code = matches!(block.kind, Kind::CodeTag | Kind::Fence(Language::Python | Language::Unsaid));
    if holds_code
        && block.end == End::Open
        && let Some(cut) = observation::find_in_code(&text[block.body.clone()])
    {
        block.body.end = block.body.start + cut;
        block.outer.end = block.body.end;
    }
}

/// A block that says it is a call.
fn marked(body: &str, known: &[&str]) -> Deed {
    let calls = if body.starts_with(function::OPEN) {
        function::read(body)
    } else {
        call::in_marked(unwrap(body), known)
    };
    match calls {
        Ok(calls) => Deed::Calls(calls, Certainty::Named),
        Err(problem) => Deed::Broken(problem),
    }
}

/// JSON that may be a call.
fn data(body: &str, format: ActionFormat, known: &[&str]) -> Option<Deed> {
    match json::read(body) {
        Json::Values(values) => {
            if let (ActionFormat::Code, [only]) = (format, values.as_slice()) {
                // `{"thought": …, "code": …}`, as models trained on structured output write.
                let code = only
                    .get("code")
                    .and_then(|code| code.as_str())
                    .filter(|code| program::is_fenced_program(code));
                if let Some(code) = code {
                    return Some(Deed::Code(tidy(code)));
                }
            }
            call::all(&values, known).map(|found| Deed::Calls(found.calls, found.certainty))
        }
        Json::Broken(problem) if json::names_tool(body, known) => {
            Some(Deed::Broken(format!("it is not valid JSON: {problem}")))
        }
        Json::Broken(_) => None,
    }
}

/// JSON that begins at `at` and that nothing closes.
fn dangling(text: &str, at: usize, known: &[&str]) -> Option<Action> {
    let end = observation::find(text, at).unwrap_or(text.len());
    let body = text[at..end].trim_end();
    let deed = json::names_tool(body, known).then(|| match json::read_one(body) {
        Ok(value) => call::find(&value, known).map(|found| Deed::Calls(found.calls, found.certainty)),
        Err(problem) => Some(Deed::Broken(format!("it is not valid JSON: {problem}"))),
    })??;
    Some(Action { span: at..at + body.len(), deed })
}

/// Where the reply ends in truth: where the model begins to make up what its first action brought.
fn made_up(text: &str, actions: &[Action], blocks: &[Block]) -> usize {
    let Some(first) = actions.first() else { return text.len() };
    let mut at = first.span.end;
    for outer in blocks.iter().map(|block| &block.outer).filter(|outer| outer.start >= first.span.end) {
        if let Some(cut) = observation::find(&text[..outer.start], at) {
            return cut;
        }
        at = outer.end;
    }
    observation::find(text, at).unwrap_or(text.len())
}

/// What the actions amount to.
fn intent(actions: Vec<Action>) -> Option<Intent> {
    let (mut programs, mut calls) = (Vec::new(), Vec::new());
    for action in actions {
        match action.deed {
            Deed::Code(code) => programs.push(code),
            Deed::Calls(found, _) => calls.extend(found),
            // Running the others would leave the model unsure which of its calls happened.
            Deed::Broken(problem) => {
                return Some(Intent::Malformed(format!(
                    "The tool call could not be read and nothing was run: {problem}."
                )));
            }
        }
    }
    if !programs.is_empty() {
        return Some(Intent::Code(programs.join("\n\n")));
    }
    match calls.iter().position(|call: &ParsedCall| call.name == FINAL_ANSWER) {
        None => (!calls.is_empty()).then_some(Intent::Calls(calls)),
        Some(0) => Some(match call::answer(&calls[0].args) {
            Some(answer) => Intent::Answer(answer),
            None => Intent::Malformed("The call of final_answer has no answer in it.".into()),
        }),
        // An answer written before the results of the calls were seen is no answer yet.
        Some(first) => {
            calls.truncate(first);
            Some(Intent::Calls(calls))
        }
    }
}

/// A reply without an action.
fn answer(content: &str, format: ActionFormat, known: &[&str]) -> Intent {
    let last = content.lines().next_back().unwrap_or_default();
    if format == ActionFormat::Code
        && let Some(name) = program::stray_call(last.trim(), known)
    {
        return Intent::Malformed(format!("The call of {name} stands outside a code block and was not run."));
    }
    Intent::Answer(content.trim().to_owned())
}

/// The text up to `end` without the actions.
fn without(text: &str, end: usize, actions: &[Action]) -> String {
    let (mut left, mut at) = (String::new(), 0);
    for action in actions {
        left.push_str(&text[at..action.span.start]);
        at = action.span.end;
    }
    left.push_str(text.get(at..end).unwrap_or_default());
    left
}

/// What a fence inside a tag, or a tag inside a fence, holds.
fn unwrap(body: &str) -> &str {
    let trimmed = body.trim();
    if !trimmed.starts_with(['`', '~', '<']) {
        return body;
    }
    match Finder::new(trimmed, ActionFormat::Code).next(0, 1) {
        Some(Block { body: inner, kind: Kind::Fence(_) | Kind::CodeTag, outer, .. })
            if outer.end == trimmed.len() =>
        {
            &trimmed[inner]
        }
        _ => body,
    }
}

/// A program without the blank lines around it and the indentation that all its lines share.
fn tidy(code: &str) -> String {
    let code = code.trim_end();
    let code = &code[blank_lines(code)..];
    let lines = || code.lines().filter(|line| !line.trim().is_empty());
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let shared = lines().map(indent).min().unwrap_or(0);
    if shared == 0 {
        return code.to_owned();
    }
    let cut: Vec<_> = code.lines().map(|line| line.get(shared..).unwrap_or_default()).collect();
    cut.join("\n")
}

/// How many bytes the blank lines at the beginning take.
fn blank_lines(text: &str) -> usize {
    let spaces = text.len() - text.trim_start().len();
    text[..spaces].rfind('\n').map_or(0, |newline| newline + 1)
}

fn starts_line(text: &str, at: usize) -> bool {
    text[..at].trim_end_matches([' ', '\t']).chars().next_back().is_none_or(|c| c == '\n')
}
