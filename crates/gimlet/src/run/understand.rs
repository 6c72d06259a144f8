//! Turns a reply into what the loop records: native calls first, then whatever the text holds.

use serde_json::Value;

use crate::agent::Agent;
use crate::event::{ActionFormat, Dialect, ModelMessage};
use crate::message::{Finish, Thinking, ToolCall};
use crate::model::Reply;
use crate::parse::{Intent, Parsed, parse, without_thinking};
use crate::signature::easiest;
use crate::state::{State, result_text};

/// The name by which a model may give its final answer as if it were a call.
const FINAL_ANSWER: &str = "final_answer";

pub(super) fn understand(reply: Reply, step: u32, agent: &Agent, state: &State) -> ModelMessage {
    if state.action == ActionFormat::Guided {
        return guided(reply, step);
    }
    let known: Vec<&str> = agent.toolbox.callable().iter().map(|spec| spec.name.as_str()).collect();
    let parsed = parse(&reply.text, state.action, &known);
    let mut message = ModelMessage {
        step,
        thinking: reply.thinking,
        usage: reply.usage,
        finish: reply.finish,
        ..ModelMessage::default()
    };
    if let Some(text) = parsed.thinking.clone() {
        message.thinking.push(Thinking { text, signature: None });
    }
    if let Some(cut) = cut_call(&reply.calls, reply.finish) {
        message.text = parsed.prose;
        message.problem = Some(cut);
    } else if reply.calls.is_empty() {
        let thought = thought_call(&message.thinking, &parsed.intent, state.action, &known);
        read_text(&mut message, parsed, agent, state);
        if thought.is_some() {
            message.text = "(only thinking)".to_owned();
            message.problem = thought;
        }
    } else {
        message.text = parsed.prose;
        read_calls(&mut message, reply.calls);
    }
    repair_ids(&mut message.tool_calls, step, state);
    message
}

/// What is said about a native call that was cut off at the token limit: its arguments end in the middle. The calls
/// before it are not made either, since the model would not know which were.
fn cut_call(calls: &[ToolCall], finish: Finish) -> Option<String> {
    let last = calls.last().filter(|call| finish == Finish::Length && !call.args.is_object())?;
    Some(format!(
        "Your call of {} was cut off at the token limit, so nothing was done. Call it again with less text: change \
         fewer lines at a time.",
        last.name
    ))
}

/// What is said about a reply that is nothing but thinking with an action in it.
fn thought_call(
    thinking: &[Thinking],
    intent: &Intent,
    action: ActionFormat,
    known: &[&str],
) -> Option<String> {
    match intent {
        Intent::Empty => {}
        Intent::Calls(_) | Intent::Code(_) | Intent::Answer(_) | Intent::Malformed(_) => return None,
    }
    let thought: String = thinking.iter().map(|thought| thought.text.as_str()).collect();
    let what = match parse(&thought, action, known).intent {
        Intent::Calls(calls) => format!("call of {}", calls.first()?.name),
        Intent::Code(_) => "program".to_owned(),
        Intent::Answer(_) | Intent::Empty | Intent::Malformed(_) => return None,
    };
    Some(format!(
        "Your {what} was inside your thinking, where nothing is executed. Write it again in your reply, after the \
         thinking."
    ))
}

/// A reply to a question of guided work: its words, read by whoever asked.
fn guided(reply: Reply, step: u32) -> ModelMessage {
    let (thought, text) = without_thinking(&reply.text);
    let mut thinking = reply.thinking;
    thinking.extend(thought.map(|text| Thinking { text, signature: None }));
    let (usage, finish) = (reply.usage, reply.finish);
    ModelMessage { step, text, thinking, usage, finish, ..ModelMessage::default() }
}

fn read_calls(message: &mut ModelMessage, calls: Vec<ToolCall>) {
    let (finals, others): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| call.name == FINAL_ANSWER);
    match finals.into_iter().next() {
        // With other calls beside it the answer is premature: the model has not seen their results.
        Some(call) if others.is_empty() => {
            let value = final_answer(&call);
            let answer = result_text(value);
            message.text.clone_from(&answer);
            message.answer = Some(answer);
            message.value = (!value.is_string()).then(|| value.clone());
        }
        _ => message.tool_calls = others,
    }
}

fn final_answer(call: &ToolCall) -> &Value {
    let value = call.args.as_object().and_then(|args| args.get("answer").or_else(|| args.values().next()));
    value.unwrap_or(&call.args)
}

fn read_text(message: &mut ModelMessage, parsed: Parsed, agent: &Agent, state: &State) {
    let cut = message.finish == Finish::Length;
    match parsed.intent {
        // Only code that was closed, or a complete call, is known to be whole.
        Intent::Answer(_) | Intent::Code(_) | Intent::Malformed(_) | Intent::Empty if cut => {
            message.problem = Some(cut_off(&parsed.content, agent, state.action));
            message.text = parsed.content;
        }
        // JSON that was asked for as an answer is no attempt at a call.
        Intent::Calls(_) | Intent::Malformed(_) if is_typed_answer(&parsed.content, agent) => {
            message.answer = Some(parsed.content.clone());
            message.text = parsed.content;
        }
        Intent::Calls(calls) => {
            message.text = if state.is_native() { parsed.prose } else { parsed.content };
            message.tool_calls = calls
                .into_iter()
                .map(|call| ToolCall { id: String::new(), name: call.name, args: call.args })
                .collect();
        }
        Intent::Code(code) => {
            message.text = parsed.content;
            message.code = Some(code);
        }
        Intent::Answer(answer) => {
            message.text = parsed.content;
            let words = words_as_code(&answer, state).filter(|_| !is_typed_answer(&answer, agent));
            match (announced(&answer, agent, state), words) {
                (Some(tool), _) => {
                    message.problem = Some(format!("You spoke of {tool} but did not call it."));
                }
                // Python will say what is wrong with it.
                (None, Some(words)) if calls_something(&words, agent) => message.code = Some(words),
                (None, Some(_)) if is_patient(state) => message.problem = Some(NOT_PYTHON.into()),
                (None, words) => message.answer = Some(words.unwrap_or(answer)),
            }
        }
        Intent::Malformed(problem) => {
            message.text = parsed.content;
            message.problem = Some(problem);
        }
        Intent::Empty => message.problem = Some("The reply was empty.".into()),
    }
}

/// Whether a text is an answer of the form that is asked for, and no call of a tool the agent has.
fn is_typed_answer(text: &str, agent: &Agent) -> bool {
    let Some(form) = &agent.form else { return false };
    let Ok(value) = form.fit(text, None) else { return false };
    !value.is_string() && !value["name"].as_str().is_some_and(|name| agent.toolbox.has(name))
}

/// The tool a model says it would use, when it has used none yet: small models announce a call, or explain it to the
/// user, instead of making it.
fn announced<'a>(answer: &str, agent: &'a Agent, state: &State) -> Option<&'a str> {
    let in_text = state.action == ActionFormat::Tools && state.dialect == Dialect::Text;
    if !in_text || !state.history.is_empty() || !is_patient(state) {
        return None;
    }
    let mut words = answer.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let tools = agent.toolbox.specs();
    words.find_map(|word| {
        // A name without an underscore is an everyday word as well.
        let spec = tools.iter().find(|spec| spec.name == word && word.contains('_'))?;
        Some(spec.name.as_str())
    })
}

/// Whether something that looks like no action is taken for a slip. Said three times it is what the model means.
fn is_patient(state: &State) -> bool {
    state.closing.is_none() && state.malformed <= 1
}

/// What is said about a reply that came to no end. Small models write the tools anew before they use them, and never get
/// to that: they are shown a call to be taken to the letter. Not in a fence, for what they are shown in one they work out.
fn cut_off(text: &str, agent: &Agent, action: ActionFormat) -> String {
    const CUT: &str = "Your reply was cut off at the token limit.";
    let defines = |name: &str| action == ActionFormat::Code && text.contains(&format!("def {name}("));
    let Some(tool) = agent.toolbox.callable().iter().find(|spec| defines(&spec.name)) else {
        return format!("{CUT} Reply again, much shorter.");
    };
    let easy = easiest(agent.toolbox.specs()).filter(|(_, needed)| needed.is_empty());
    let such_as = easy.map(|(spec, _)| format!(", such as print({}())", spec.name)).unwrap_or_default();
    format!(
        "{CUT} {} is there already: do not define it. Reply with a program of one line{such_as}.",
        tool.name
    )
}

/// Said to a model that was held to the form of a program and put words into it.
const NOT_PYTHON: &str = "There is no Python in `code`, only words. Write Python that calls the functions; \
                          final_answer(\"…\") in it gives the answer.";

/// The words that a reply in the form of a program holds instead of one.
fn words_as_code(answer: &str, state: &State) -> Option<String> {
    let fields: serde_json::Map<String, serde_json::Value> = match state.action {
        ActionFormat::Code => serde_json::from_str(answer).ok()?,
        ActionFormat::Tools | ActionFormat::Guided => return None,
    };
    let words = fields.get("code").filter(|_| fields.len() == 1)?;
    words.as_str().map(str::to_owned)
}

/// Whether words have a call in them, and are a program that is only broken.
fn calls_something(words: &str, agent: &Agent) -> bool {
    let specs = agent.toolbox.callable();
    let mut names = specs.iter().map(|spec| spec.name.as_str()).chain([FINAL_ANSWER]);
    names.any(|name| words.contains(&format!("{name}(")))
}

/// Gives a fresh id to every call whose own is empty, taken, or not fit to be part of a path.
fn repair_ids(calls: &mut [ToolCall], step: u32, state: &State) {
    let mut taken = std::collections::HashSet::new();
    for (index, call) in calls.iter_mut().enumerate() {
        let fit = !call.id.is_empty()
            && call.id.len() <= 80
            && call.id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if !fit || state.knows_call(&call.id) || taken.contains(&call.id) {
            call.id = format!("call_{step}_{index}");
        }
        taken.insert(call.id.clone());
    }
}
