//! About how many tokens something is. Nobody but the server knows; its last count corrects the estimate.

use serde_json::Value;

use crate::message::Message;
use crate::tool::ToolSpec;

/// What a message costs beside its text: its role and the marks around it.
const FRAME: usize = 16;
/// Bytes of a token, times ten. Low for English and about right for code: an estimate should err towards too many.
const TENTHS: usize = 33;

/// How large a message is, in bytes as a model reads it.
pub fn bytes(message: &Message) -> usize {
    FRAME
        + match message {
            Message::System { text } | Message::User { text } | Message::Tool { text, .. } => text.len(),
            Message::Assistant { text, calls, .. } => {
                text.len()
                    + calls.iter().map(|call| call.name.len() + FRAME + json(&call.args)).sum::<usize>()
            }
        }
}

/// How large several messages are.
pub(super) fn whole(messages: &[std::sync::Arc<Message>]) -> usize {
    messages.iter().map(|message| bytes(message)).sum()
}

/// How large the description of native tools is.
pub(crate) fn tool_bytes(tools: &[std::sync::Arc<ToolSpec>]) -> usize {
    tools.iter().map(|tool| FRAME + tool.name.len() + tool.description.len() + json(&tool.input)).sum()
}

/// About how many tokens so many bytes are.
pub(super) fn tokens(bytes: usize) -> u64 {
    (bytes as u64).saturating_mul(10).div_ceil(TENTHS as u64)
}

/// The length of a value as JSON, without writing it.
fn json(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| json(item) + 1).sum::<usize>(),
        Value::Object(map) => 2 + map.iter().map(|(key, value)| key.len() + 4 + json(value)).sum::<usize>(),
    }
}

/// What a server said a prompt cost, beside the size that prompt had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Tokens, by the server.
    pub tokens: u64,
    /// Bytes of the messages, by [`bytes`].
    pub bytes: usize,
}

impl Measured {
    /// An estimate, corrected by what this server counted. Within bounds: a server that counts only what it had not
    /// cached must not make a long conversation look short.
    pub(crate) fn correct(measured: Option<Self>, bytes: usize, tools: usize) -> u64 {
        let estimate = tokens(bytes + tools);
        let Some(Measured { tokens: counted, bytes: then }) = measured else { return estimate };
        let then = tokens(then + tools).max(1);
        let counted = counted.clamp(then.div_ceil(2), then.saturating_mul(2));
        estimate.saturating_mul(counted) / then
    }

    /// Whether a later, longer prompt was counted as fewer tokens, or so long a prompt as so few that part of it
    /// cannot have been read.
    pub(crate) fn lost_some(self, before: Option<Self>) -> bool {
        // No tokenizer packs twenty bytes of a long text into a token.
        const MOST_BYTES: usize = 20;
        let too_few = self.bytes > 8192 && self.tokens.saturating_mul(MOST_BYTES as u64) < self.bytes as u64;
        // Models behind one name may count a little differently.
        let fewer = |before: u64| before.saturating_mul(95) / 100 > self.tokens;
        let shrank = before.is_some_and(|before| before.bytes <= self.bytes && fewer(before.tokens));
        too_few || shrank
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_size_of_a_value_is_about_its_json() {
        for value in [json!({"path": "a.py", "n": 12345678, "deep": [1, {"x": null}]}), json!([]), json!("ä")]
        {
            let (about, real) = (super::json(&value), value.to_string().len());
            assert!(about >= real && about <= real + 32, "{value}: {about}");
        }
    }

    #[test]
    fn a_count_corrects_the_estimate_within_bounds() {
        let estimate = tokens(3300);
        assert_eq!(Measured::correct(None, 3300, 0), estimate);
        let counted = |tokens| Some(Measured { tokens, bytes: 3300 });
        assert_eq!(Measured::correct(counted(1200), 6600, 0), 2400);
        assert_eq!(Measured::correct(counted(1), 6600, 0), estimate, "a count of what was not cached");
    }

    #[test]
    fn a_prompt_that_grew_cannot_cost_less() {
        let at = |tokens, bytes| Measured { tokens, bytes };
        assert!(!at(500, 2000).lost_some(None));
        assert!(!at(600, 2400).lost_some(Some(at(500, 2000))));
        assert!(at(400, 2400).lost_some(Some(at(500, 2000))));
        assert!(!at(400, 1500).lost_some(Some(at(500, 2000))), "it was pruned");
        assert!(at(2048, 90_000).lost_some(None), "a window filled to its brim, and a prompt that is longer");
    }
}
