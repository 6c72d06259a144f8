//! The standing instructions. Short on purpose: rules that must hold are enforced by the guard, and a small model's
//! window is precious. Templates are files, so that they can be read and counted.

use std::sync::Arc;

use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, context};
use serde::Serialize;

use crate::signature::{example, signature};
use gimlet_event::event::{ActionFormat, Dialect};
use gimlet_event::tool::ToolSpec;

#[derive(Serialize)]
struct Entry {
    signature: String,
    description: String,
}

/// The system prompt of an agent. Tools are part of it only where they are not sent natively.
pub fn system_prompt(
    action: ActionFormat,
    dialect: Dialect,
    tools: &[Arc<ToolSpec>],
    instructions: &str,
) -> Result<String, minijinja::Error> {
    let template = match (action, dialect) {
        (ActionFormat::Code, _) => include_str!("../prompts/code.md"),
        (ActionFormat::Tools, Dialect::Native) => include_str!("../prompts/tools.md"),
        (ActionFormat::Tools, Dialect::Text) => include_str!("../prompts/text.md"),
        (ActionFormat::Guided, _) => include_str!("../prompts/guided.md"),
    };
    let example = example(tools);
    let tools: Vec<Entry> = tools
        .iter()
        .map(|spec| Entry { signature: signature(spec), description: one_line(&spec.description) })
        .collect();
    let mut environment = Environment::empty();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let body = environment.render_str(template, context! { tools => Serde(tools), example })?;
    let instructions = instructions.trim();
    Ok(if instructions.is_empty() {
        body.trim().into()
    } else {
        format!("{}\n\n{instructions}", body.trim())
    })
}

/// Texts at which a reply ends: where a model that writes its actions as text would go on to make up their results.
pub fn stops(action: ActionFormat, dialect: Dialect) -> Vec<String> {
    match (action, dialect) {
        (ActionFormat::Tools, Dialect::Native) | (ActionFormat::Guided, _) => Vec::new(),
        (ActionFormat::Code, _) | (ActionFormat::Tools, Dialect::Text) => {
            vec!["\nObservation:".to_owned(), "<tool_response>".to_owned()]
        }
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_body_is_longer_than_fifty_words() {
        for (action, dialect) in [
            (ActionFormat::Tools, Dialect::Native),
            (ActionFormat::Tools, Dialect::Text),
            (ActionFormat::Code, Dialect::Text),
            (ActionFormat::Guided, Dialect::Text),
        ] {
            let body = system_prompt(action, dialect, &[], "").unwrap();
            let words = body.split_whitespace().count();
            assert!((20..=50).contains(&words), "{words} words: {body}");
        }
    }

    #[test]
    fn instructions_follow_the_body() {
        let prompt =
            system_prompt(ActionFormat::Tools, Dialect::Native, &[], "  Answer in French.\n").unwrap();
        assert!(prompt.ends_with("final answer.\n\nAnswer in French."), "{prompt}");
    }
}
