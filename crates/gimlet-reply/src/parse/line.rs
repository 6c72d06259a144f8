//! What can be told of a reply while it is being written: whether a line may begin an action. Whoever shows a reply as
//! it comes shows nothing from there on before the whole was read.

use gimlet_event::event::ActionFormat;

/// What begins a call in the middle of a line.
const INSIDE: [&str; 6] =
    ["{\"name\"", "{ \"name\"", "{\"tool\"", "{\"function\"", "<tool_call", "[TOOL_CALLS]"];

/// Whether a line, perhaps not complete yet, may begin an action in this format.
pub fn begins_action(line: &str, format: ActionFormat) -> bool {
    let line = line.trim_start();
    line.starts_with(['{', '<'])
        || line.starts_with("[{")
        || INSIDE.iter().any(|mark| line.contains(mark))
        || match format {
            ActionFormat::Code => line.starts_with("```"),
            // What is written there is for the program; a person sees what comes of it.
            ActionFormat::Guided => true,
            ActionFormat::Tools => line.starts_with("```json") || line.starts_with("```tool"),
        }
}

/// The words of a reply that may be cut off, up to where an action may begin.
pub fn words_before_action(text: &str, format: ActionFormat) -> &str {
    let mut end = 0;
    let mut open = None;
    for line in text.split_inclusive('\n') {
        if begins_action(line, format) {
            // A fence without a language is part of the call in it.
            return &text[..open.unwrap_or(end)];
        }
        open = (line.trim() == "```").then_some(end);
        end += line.len();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_where_an_action_may_begin() {
        let tools = |text| words_before_action(text, ActionFormat::Tools);
        assert_eq!(tools("I look.\n\n{\"name\": \"read"), "I look.\n\n");
        assert_eq!(tools("I look: {\"name\": \"read"), "");
        assert_eq!(tools("One.\n```\n{\"name\": 1}\n```\n"), "One.\n");
        assert_eq!(tools("One.\n```sh\nls\n```\nTwo"), "One.\n```sh\nls\n```\nTwo");
        assert_eq!(words_before_action("One.\n```py\nx", ActionFormat::Code), "One.\n");
        assert_eq!(words_before_action("One.", ActionFormat::Guided), "");
    }
}
