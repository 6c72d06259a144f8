//! JSON that can be read back, whatever a model put into it.
//!
//! The parser stops at 128 levels, which a model's arguments may just reach by themselves; inside an event they would be
//! over it, and the log unreadable. So the limit here is our own: room for what is around them, and small enough for any
//! thread's stack. What is deeper is refused when it is written.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// How deep a text may nest.
const MAX_DEPTH: usize = 256;

/// Why a text is not written or not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JsonError {
    #[error("it nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

pub(crate) fn encode(value: &impl Serialize) -> Result<Vec<u8>, JsonError> {
    let text = serde_json::to_vec(value)?;
    if depth(&text) > MAX_DEPTH { Err(JsonError::TooDeep) } else { Ok(text) }
}

pub(crate) fn decode<T: DeserializeOwned>(text: &[u8]) -> Result<T, JsonError> {
    if depth(text) > MAX_DEPTH {
        return Err(JsonError::TooDeep);
    }
    let mut parser = serde_json::Deserializer::from_slice(text);
    parser.disable_recursion_limit();
    let value = T::deserialize(&mut parser)?;
    parser.end()?;
    Ok(value)
}

/// How deep the brackets of a JSON text nest. On what is not JSON it is some number, and at least as deep as a parser
/// gets before it notices.
fn depth(text: &[u8]) -> usize {
    let (mut now, mut most) = (0usize, 0usize);
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                now += 1;
                most = most.max(now);
            }
            b'}' | b']' => now = now.saturating_sub(1),
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
    }
    most
}

fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => {
                bytes.next();
            }
            b'"' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::from("]\\\"["), |inner, _| Value::from(vec![inner]))
    }

    #[test]
    fn what_is_written_can_be_read_up_to_the_limit() {
        for levels in [0, 1, 127, 128, MAX_DEPTH] {
            let text = encode(&nested(levels)).unwrap();
            assert_eq!(depth(&text), levels);
            assert_eq!(decode::<Value>(&text).unwrap(), nested(levels));
        }
        assert!(matches!(encode(&nested(MAX_DEPTH + 1)), Err(JsonError::TooDeep)));
        let deep = vec![b'['; 1_000_000];
        assert!(matches!(decode::<Value>(&deep), Err(JsonError::TooDeep)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = decode::<Value>(&bytes);
            prop_assert!(depth(&bytes) <= bytes.len());
        }
    }
}
