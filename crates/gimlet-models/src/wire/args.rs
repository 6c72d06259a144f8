//! Messages, arguments and tools as the wires write them, borrowed from the request.

use std::sync::Arc;

use gimlet::message::{Message, Thinking};
use gimlet::model::Request;
use gimlet::tool::ToolSpec;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::{Reasoning, WireOptions};

/// The conversation of a wire that writes one object a message, as Ollama and OpenAI do.
pub(super) struct Messages<'a, L> {
    pub(super) request: &'a Request,
    pub(super) options: &'a WireOptions,
    /// Writes one message.
    pub(super) line: fn(&'a Message, &WireOptions) -> L,
}

impl<L: Serialize> Serialize for Messages<'_, L> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.request.messages.iter().map(|message| (self.line)(message, self.options)))
    }
}

/// Reasoning, where it goes back to the server.
pub(super) fn reasoning(thinking: &[Thinking], options: &WireOptions) -> Option<String> {
    (options.quirks.reasoning == Reasoning::Return && !thinking.is_empty())
        .then(|| thinking.iter().map(|thought| thought.text.as_str()).collect())
}

/// Arguments as an object. What a model wrote instead of one is shown to it as text: servers parse this field and
/// refuse the whole conversation otherwise.
pub(super) struct Object<'a>(pub(super) &'a Value);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(map) => map.serialize(serializer),
            other => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("_raw", other)?;
                map.end()
            }
        }
    }
}

/// Arguments as JSON inside a string.
pub(super) struct Text<'a>(pub(super) &'a Value);

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = serde_json::to_string(&Object(self.0)).map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(&text)
    }
}

/// Tools as `{"type": "function", "function": {…}}`, which Ollama and OpenAI share.
pub(super) struct Functions<'a>(pub(super) &'a [Arc<ToolSpec>]);

impl Serialize for Functions<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct Tool<'a> {
            r#type: &'static str,
            function: Function<'a>,
        }
        #[derive(serde::Serialize)]
        struct Function<'a> {
            name: &'a str,
            description: &'a str,
            parameters: &'a Value,
        }
        serializer.collect_seq(self.0.iter().map(|tool| Tool {
            r#type: "function",
            function: Function { name: &tool.name, description: &tool.description, parameters: &tool.input },
        }))
    }
}
