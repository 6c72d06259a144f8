//! Decides what of a reply may be shown while it is still being written: whole lines, and nothing that may turn out to be
//! an action instead of words.

use gimlet::event::{ActionFormat, ModelMessage};
use gimlet::parse::{begins_action, parse};

/// A reply as far as it came.
#[derive(Debug)]
pub(crate) struct Stream {
    action: ActionFormat,
    /// What came and is not shown yet.
    waiting: String,
    /// What is shown.
    shown: String,
    /// Whether what is shown ends inside a fence.
    fenced: bool,
    /// Whether something came that may be an action: from there on the whole reply is waited for.
    held: bool,
}

impl Stream {
    pub(crate) fn new(action: ActionFormat) -> Self {
        Stream { action, waiting: String::new(), shown: String::new(), fenced: false, held: false }
    }

    /// A reply begins.
    pub(crate) fn begin(&mut self) {
        *self = Stream::new(self.action);
    }

    /// Takes in a piece; returns the lines that are complete now.
    pub(crate) fn feed(&mut self, piece: &str) -> Option<String> {
        self.waiting.push_str(piece);
        let end = self.complete();
        let rest = self.waiting.split_off(end);
        let lines = std::mem::replace(&mut self.waiting, rest);
        self.shown.push_str(&lines);
        (!lines.is_empty()).then_some(lines)
    }

    /// The last words that came and are not shown yet, for a glimpse of them.
    pub(crate) fn glimpse(&self) -> &str {
        let words = self.waiting.rsplit('\n').next().unwrap_or_default();
        match (self.held, self.fenced) {
            (true, _) => "",
            (false, true) => words.trim(),
            // What may become a call is none of the words.
            (false, false) => words.split('{').next().unwrap_or_default().trim(),
        }
    }

    /// All words that came so far, shown or not. Nothing that may be an action.
    pub(crate) fn so_far(&self) -> String {
        let waiting = if self.held { "" } else { &self.waiting };
        format!("{}{waiting}", self.shown)
    }

    /// The reply ends here, complete or not: what came of it and is not shown yet. Nothing that may be an action.
    pub(crate) fn stop(&mut self) -> Option<String> {
        let rest = if self.held { String::new() } else { std::mem::take(&mut self.waiting) };
        self.begin();
        (!rest.trim().is_empty()).then_some(rest)
    }

    /// The reply is complete: what is still to be shown of it. Begins anew for the next one.
    pub(crate) fn finish(&mut self, message: &ModelMessage) -> Option<String> {
        let shown = std::mem::take(&mut self.shown);
        self.begin();
        let whole = match &message.answer {
            Some(answer) => answer.clone(),
            None if !message.tool_calls.is_empty() => beside_calls(message),
            None => return None,
        };
        // Should the parser have understood something else than what was shown, the whole is shown again.
        let rest = whole.trim_start().strip_prefix(shown.trim()).unwrap_or(&whole);
        (!rest.trim().is_empty()).then(|| rest.strip_prefix('\n').unwrap_or(rest).to_owned())
    }

    /// Where the last complete line ends that may be shown.
    fn complete(&mut self) -> usize {
        let mut end = 0;
        // Where a fence without a language begins whose first line is not there yet: it may hold a call.
        let mut unknown = None;
        for line in self.waiting.split_inclusive('\n') {
            if self.held {
                break;
            }
            let words = line.trim();
            let is_fence = words.starts_with("```");
            if let Some(at) = unknown.take() {
                if words.starts_with(['{', '[']) {
                    (self.held, end) = (true, at);
                    break;
                }
                self.fenced = true;
            }
            if !self.fenced && begins_action(line, self.action) {
                self.held = true;
                break;
            }
            if !line.ends_with('\n') {
                break;
            }
            if words == "```" && !self.fenced {
                unknown = Some(end);
            } else if is_fence {
                self.fenced = !self.fenced;
            }
            end += line.len();
        }
        unknown.unwrap_or(end)
    }
}

/// What a model said beside its calls, without the calls themselves where they are part of its text.
pub(super) fn beside_calls(message: &ModelMessage) -> String {
    let names: Vec<&str> = message.tool_calls.iter().map(|call| call.name.as_str()).collect();
    parse(&message.text, ActionFormat::Tools, &names).prose
}

#[cfg(test)]
mod tests {
    use super::*;
    use gimlet::message::ToolCall;

    fn answer(text: &str) -> ModelMessage {
        ModelMessage { text: text.into(), answer: Some(text.into()), ..ModelMessage::default() }
    }

    fn shown(action: ActionFormat, text: &str, size: usize, message: &ModelMessage) -> String {
        let mut stream = Stream::new(action);
        let mut out = String::new();
        let chars: Vec<char> = text.chars().collect();
        for piece in chars.chunks(size) {
            out.extend(stream.feed(&piece.iter().collect::<String>()));
        }
        out.extend(stream.finish(message));
        out
    }

    #[test]
    fn every_word_of_an_answer_is_shown_once_however_it_is_cut() {
        let text =
            "One.\n\nTwo has\ntwo lines.\n\n```sh\nls\n\nls\n```\n\n- a\n- b\n\n```\nplain\n```\nThree.";
        for size in 1..text.len() {
            let seen = shown(ActionFormat::Tools, text, size, &answer(text));
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&seen), words(text), "pieces of {size}: {seen}");
        }
    }

    #[test]
    fn lines_are_shown_before_the_reply_is_complete() {
        let mut stream = Stream::new(ActionFormat::Tools);
        assert_eq!(stream.feed("One"), None);
        assert_eq!(stream.feed(".\nTw"), Some("One.\n".into()));
        assert_eq!(stream.glimpse(), "Tw");
        assert_eq!(stream.feed("o:\n```py\nx = {\n"), Some("Two:\n```py\nx = {\n".into()), "inside a fence");
        assert_eq!(
            stream.feed("```\n```\n"),
            Some("```\n".into()),
            "what a bare fence holds is not known yet"
        );
        assert_eq!(stream.feed("a\n"), Some("```\na\n".into()));
    }

    #[test]
    fn fault_13_a_reply_that_is_stopped_shows_what_there_is() {
        let mut stream = Stream::new(ActionFormat::Tools);
        assert_eq!(stream.feed("One.\n\nTwo is not"), Some("One.\n\n".into()));
        assert_eq!(stream.stop(), Some("Two is not".into()));
        assert_eq!(stream.stop(), None, "once");
        assert_eq!(stream.feed("{\"name\": \"read_f"), None);
        assert_eq!(stream.stop(), None, "half a call is no answer");
    }

    #[test]
    fn what_may_be_an_action_is_not_shown() {
        let code = "I look.\n\n```python\nprint(1)\n```\n";
        let message =
            ModelMessage { text: code.into(), code: Some("print(1)".into()), ..ModelMessage::default() };
        assert_eq!(shown(ActionFormat::Code, code, 3, &message), "I look.\n\n");
        for call in [
            "{\"name\": \"read_file\", \"arguments\": {}}",
            "```\n{\"name\": \"read_file\", \"arguments\": {}}\n```",
        ] {
            let text = format!("I look.\n\n{call}");
            let message = ModelMessage {
                text: text.clone(),
                tool_calls: vec![ToolCall {
                    id: "1".into(),
                    name: "read_file".into(),
                    args: Default::default(),
                }],
                ..ModelMessage::default()
            };
            for size in 1..text.len() {
                assert_eq!(shown(ActionFormat::Tools, &text, size, &message), "I look.\n\n", "{size}");
            }
        }
    }
}
