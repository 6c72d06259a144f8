//! Decides what of a reply may be shown while it is still being written: whole paragraphs, and nothing that may turn out
//! to be an action instead of words.

use gimlet::event::{ActionFormat, ModelMessage};

/// A reply as far as it came.
#[derive(Debug)]
pub(crate) struct Stream {
    action: ActionFormat,
    /// What came and is not shown yet.
    waiting: String,
    /// What is shown.
    shown: String,
    /// Whether something came that may be an action: from there on the whole reply is waited for.
    held: bool,
}

impl Stream {
    pub(crate) fn new(action: ActionFormat) -> Self {
        Stream { action, waiting: String::new(), shown: String::new(), held: false }
    }

    /// A reply begins.
    pub(crate) fn begin(&mut self) {
        self.waiting.clear();
        self.shown.clear();
        self.held = false;
    }

    /// Takes in a piece; returns the paragraphs that are complete now.
    pub(crate) fn feed(&mut self, piece: &str) -> Option<String> {
        self.waiting.push_str(piece);
        let end = self.complete()?;
        let rest = self.waiting.split_off(end);
        let block = std::mem::replace(&mut self.waiting, rest);
        self.shown.push_str(&block);
        (!block.trim().is_empty()).then_some(block)
    }

    /// The last words that came and are not shown yet, for a glimpse of them.
    pub(crate) fn glimpse(&self) -> &str {
        if self.held { "" } else { self.waiting.trim() }
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
            Some(answer) => answer.as_str(),
            None if !message.tool_calls.is_empty() => message.text.as_str(),
            None => return None,
        };
        // Should the parser have understood something else than what was shown, the whole is shown again.
        let rest = whole.trim_start().strip_prefix(shown.trim()).unwrap_or(whole);
        (!rest.trim().is_empty()).then(|| rest.trim_start_matches('\n').to_owned())
    }

    /// Where the last complete paragraph ends. A fence is closed before its paragraph can be.
    fn complete(&mut self) -> Option<usize> {
        let (mut end, mut at, mut fenced) = (None, 0, false);
        for line in self.waiting.split_inclusive('\n') {
            if self.held {
                break;
            }
            let words = line.trim();
            if words.starts_with("```") {
                if !fenced && self.is_action(words) {
                    self.held = true;
                    break;
                }
                fenced = !fenced;
            } else if !fenced && self.is_action(words) {
                self.held = true;
                break;
            }
            if !line.ends_with('\n') {
                break;
            }
            at += line.len();
            if !fenced && (words.is_empty() || words == "```") {
                end = Some(at);
            }
        }
        end
    }

    fn is_action(&self, line: &str) -> bool {
        line.starts_with(['{', '<'])
            || line.starts_with("[{")
            || match self.action {
                ActionFormat::Code => line.starts_with("```"),
                // What it writes is for the program; a person sees what comes of it.
                ActionFormat::Guided => true,
                ActionFormat::Tools => line.starts_with("```json") || line.starts_with("```tool"),
            }
    }
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
        let text = "One.\n\nTwo has\ntwo lines.\n\n```sh\nls\n\nls\n```\n\nThree.";
        for size in 1..text.len() {
            let seen = shown(ActionFormat::Tools, text, size, &answer(text));
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(words(&seen), words(text), "pieces of {size}: {seen}");
        }
    }

    #[test]
    fn paragraphs_are_shown_before_the_reply_is_complete() {
        let mut stream = Stream::new(ActionFormat::Tools);
        assert_eq!(stream.feed("One.\n"), None);
        assert_eq!(stream.feed("\nTw"), Some("One.\n\n".into()));
        assert_eq!(stream.glimpse(), "Tw");
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
        let call = "I look.\n\n{\"name\": \"read_file\"}";
        let message = ModelMessage {
            text: "I look.".into(),
            tool_calls: vec![ToolCall { id: "1".into(), name: "read_file".into(), args: Default::default() }],
            ..ModelMessage::default()
        };
        assert_eq!(shown(ActionFormat::Tools, call, 3, &message), "I look.\n\n");
    }
}
