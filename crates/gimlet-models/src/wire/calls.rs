//! Putting tool calls together from what servers really send: pieces with an index, pieces without one, pieces
//! without an id, a new id for each piece, the same index for every call, or whole calls at once.
//!
//! The rule behind all of them: a piece belongs to the call it names; a piece that begins again (a name, after
//! arguments that are already complete) is a new call; anything else continues the last one.

use gimlet::message::ToolCall;
use serde_json::Value;

/// A piece of a tool call.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) index: Option<u64>,
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) args: Args,
}

/// The arguments in a piece.
#[derive(Debug, Default)]
pub(super) enum Args {
    #[default]
    None,
    /// A piece of JSON text.
    Text(String),
    /// The whole value.
    Whole(Value),
}

/// Calls under construction, in the order they began.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: Vec<Open>,
}

#[derive(Debug, Default)]
struct Open {
    index: Option<u64>,
    id: String,
    name: String,
    text: String,
    whole: Option<Value>,
}

impl Calls {
    /// Adds a piece.
    pub(super) fn push(&mut self, mut piece: Piece) {
        piece.id = piece.id.take().filter(|id| !id.is_empty());
        piece.name = piece.name.take().filter(|name| !name.is_empty());
        if matches!(&piece.args, Args::Text(text) if text.is_empty()) {
            piece.args = Args::None;
        }
        let slot = match self.find(&piece) {
            Some(slot) => slot,
            None => {
                self.open.push(Open { index: piece.index, ..Open::default() });
                self.open.len() - 1
            }
        };
        self.open[slot].add(piece);
    }

    /// The finished calls, in order.
    pub(super) fn finish(&mut self) -> impl Iterator<Item = ToolCall> + use<> {
        std::mem::take(&mut self.open).into_iter().filter(|open| !open.is_void()).map(Open::finish)
    }

    /// The call a piece continues, or none when it begins one.
    fn find(&self, piece: &Piece) -> Option<usize> {
        if let Some(id) = &piece.id
            && let Some(slot) =
                self.open.iter().rposition(|open| open.id == *id && open.may_be_at(piece.index))
        {
            // A model that gives two calls one id: the loop mends the ids, the calls must not melt together.
            let begins =
                piece.name.is_some() && !matches!(piece.args, Args::None) && self.open[slot].is_complete();
            return (!begins).then_some(slot);
        }
        let slot = match piece.index {
            Some(index) => self.open.iter().rposition(|open| open.index == Some(index))?,
            None => self.open.len().checked_sub(1)?,
        };
        let open = &self.open[slot];
        let begins = match (&piece.id, &piece.name) {
            // A new id with a name is a new call, even where the index says otherwise; without a name it is a
            // server that makes up an id for each piece.
            (Some(_), Some(_)) => !open.id.is_empty() || open.is_complete(),
            (_, None) => false,
            // A repeated or continued name does not begin a call; a name after complete arguments does.
            (None, Some(name)) => match piece.index {
                Some(_) => open.is_complete(),
                None => open.is_complete() || open.name != *name || matches!(piece.args, Args::None),
            },
        };
        (!begins).then_some(slot)
    }
}

impl Open {
    fn add(&mut self, piece: Piece) {
        if let Some(id) = piece.id
            && self.id.is_empty()
        {
            self.id = id;
        }
        if let Some(name) = piece.name
            && self.name != name
            && self.text.is_empty()
        {
            self.name.push_str(&name);
        }
        match piece.args {
            Args::None => {}
            Args::Text(text) => self.text.push_str(&text),
            Args::Whole(value) => self.whole = Some(value),
        }
    }

    fn may_be_at(&self, index: Option<u64>) -> bool {
        self.index.is_none() || index.is_none() || self.index == index
    }

    fn is_complete(&self) -> bool {
        self.whole.is_some() || serde_json::from_str::<serde::de::IgnoredAny>(&self.text).is_ok()
    }

    fn is_void(&self) -> bool {
        self.name.is_empty() && self.text.is_empty() && self.whole.is_none()
    }

    fn finish(self) -> ToolCall {
        let args = match self.whole {
            Some(Value::String(text)) => read_args(text),
            Some(value) => whole_args(value),
            None => read_args(self.text),
        };
        ToolCall { id: self.id, name: self.name, args }
    }
}

/// Arguments as an object, or as the raw text where they are none.
pub(super) fn read_args(text: String) -> Value {
    if text.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    match serde_json::from_str::<Value>(&text) {
        Ok(value @ Value::Object(_)) => value,
        Ok(Value::Null) => Value::Object(serde_json::Map::new()),
        // Some servers encode the arguments twice.
        Ok(Value::String(inner)) => match serde_json::from_str::<Value>(&inner) {
            Ok(value @ Value::Object(_)) => value,
            Ok(_) | Err(_) => Value::String(inner),
        },
        Ok(_) | Err(_) => Value::String(text),
    }
}

fn whole_args(value: Value) -> Value {
    match value {
        Value::Object(_) => value,
        Value::Null => Value::Object(serde_json::Map::new()),
        other => Value::String(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn piece(index: Option<u64>, id: &str, name: &str, args: &str) -> Piece {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Piece { index, id: some(id), name: some(name), args: Args::Text(args.to_owned()) }
    }

    fn assemble(pieces: impl IntoIterator<Item = Piece>) -> Vec<(String, String, Value)> {
        let mut calls = Calls::default();
        pieces.into_iter().for_each(|piece| calls.push(piece));
        calls.finish().map(|call| (call.id, call.name, call.args)).collect()
    }

    fn call(id: &str, name: &str, args: Value) -> (String, String, Value) {
        (id.to_owned(), name.to_owned(), args)
    }

    #[test]
    fn every_shape_gives_the_same_two_calls() {
        let expected = vec![call("1", "read", json!({"path": "a"})), call("2", "read", json!({"path": "b"}))];
        let with_index = vec![
            piece(Some(0), "1", "read", ""),
            piece(Some(0), "", "", "{\"path\":"),
            piece(Some(0), "", "", "\"a\"}"),
            piece(Some(1), "2", "read", ""),
            piece(Some(1), "", "", "{\"path\":\"b\"}"),
        ];
        let interleaved = vec![
            piece(Some(0), "1", "read", "{\"path\":"),
            piece(Some(1), "2", "read", "{\"path\":"),
            piece(Some(0), "", "", "\"a\"}"),
            piece(Some(1), "", "", "\"b\"}"),
        ];
        let no_index = vec![
            piece(None, "1", "read", "{\"path\":"),
            piece(None, "", "", "\"a\"}"),
            piece(None, "2", "read", "{\"path\":\"b\"}"),
        ];
        let whole_same_index = vec![
            piece(Some(0), "1", "read", "{\"path\":\"a\"}"),
            piece(Some(0), "2", "read", "{\"path\":\"b\"}"),
        ];
        let id_in_every_piece = vec![
            piece(None, "1", "read", "{\"path\":"),
            piece(None, "2", "read", "{\"path\":"),
            piece(None, "1", "read", "\"a\"}"),
            piece(None, "2", "read", "\"b\"}"),
        ];
        let fresh_ids = vec![
            piece(Some(0), "1", "read", ""),
            piece(Some(0), "x", "", "{\"path\":\"a\"}"),
            piece(Some(1), "2", "read", ""),
            piece(Some(1), "y", "", "{\"path\":\"b\"}"),
        ];
        for pieces in [with_index, interleaved, no_index, whole_same_index, id_in_every_piece, fresh_ids] {
            assert_eq!(assemble(pieces), expected);
        }
    }

    #[test]
    fn calls_without_ids_stay_apart() {
        let expected = vec![call("", "read", json!({"path": "a"})), call("", "read", json!({"path": "b"}))];
        for index in [None, Some(0)] {
            let whole =
                [piece(index, "", "read", "{\"path\":\"a\"}"), piece(index, "", "read", "{\"path\":\"b\"}")];
            assert_eq!(assemble(whole), expected);
        }
        let pieces = [
            piece(Some(0), "", "read", "{\"path\":"),
            piece(Some(0), "", "read", "\"a\"}"),
            piece(Some(1), "", "read", "{\"path\":\"b\"}"),
        ];
        assert_eq!(assemble(pieces), expected);
        assert_eq!(assemble([piece(None, "", "status", ""), piece(None, "", "status", "")]).len(), 2);
    }

    #[test]
    fn calls_that_share_an_id_stay_apart() {
        let expected = vec![call("1", "read", json!({"path": "a"})), call("1", "read", json!({"path": "b"}))];
        for indices in [(None, None), (Some(0), Some(0)), (Some(0), Some(1))] {
            let whole = [
                piece(indices.0, "1", "read", "{\"path\":\"a\"}"),
                piece(indices.1, "1", "read", "{\"path\":\"b\"}"),
            ];
            assert_eq!(assemble(whole), expected);
        }
    }

    #[test]
    fn arguments_are_an_object_or_the_raw_text() {
        for (text, args) in [
            ("", json!({})),
            ("null", json!({})),
            ("{}", json!({})),
            (r#""{\"a\":1}""#, json!({"a": 1})),
            ("[1]", json!("[1]")),
            ("{\"a\":", json!("{\"a\":")),
        ] {
            assert_eq!(assemble([piece(Some(0), "1", "f", text)]), [call("1", "f", args)], "{text}");
        }
        let whole =
            |value: Value| Piece { name: Some("f".into()), args: Args::Whole(value), ..Piece::default() };
        assert_eq!(assemble([whole(json!({"a": 1}))]), [call("", "f", json!({"a": 1}))]);
        assert_eq!(assemble([whole(json!("{\"a\":1}"))]), [call("", "f", json!({"a": 1}))]);
        assert_eq!(assemble([whole(json!([1]))]), [call("", "f", json!("[1]"))]);
    }

    #[test]
    fn a_name_in_pieces_is_joined_and_an_empty_piece_is_no_call() {
        let pieces =
            [piece(Some(0), "1", "read_", ""), piece(Some(0), "", "file", ""), piece(Some(0), "", "", "{}")];
        assert_eq!(assemble(pieces), [call("1", "read_file", json!({}))]);
        assert_eq!(assemble([piece(Some(0), "", "", "")]), []);
    }
}
