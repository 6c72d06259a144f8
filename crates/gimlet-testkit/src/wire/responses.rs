//! OpenAI's other protocol: `/v1/responses` as server-sent events or as one object. A conversation there is a list of
//! items, of which a reply may leave several behind: what it said, and each call by itself.

use gimlet::message::{Finish, Usage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Answer, CREATED_UNIX, Chat, Content, Outgoing, Said, SaidCall, Streaming, args_text, call_id, pieces, sse,
};

#[derive(Deserialize)]
struct Request {
    instructions: Option<String>,
    input: Vec<Value>,
    #[serde(default)]
    stream: bool,
}

/// An item of a conversation. Read one by one, so that a wrong one is named.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item {
    Message {
        role: Role,
        content: Content,
    },
    FunctionCall {
        call_id: String,
        name: String,
        #[serde(rename = "arguments")]
        _arguments: String,
    },
    FunctionCallOutput {
        call_id: String,
        output: Content,
    },
    Reasoning {},
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    #[serde(alias = "developer")]
    System,
    User,
    Assistant,
}

pub(super) fn read(body: &Value) -> Result<Chat, String> {
    let request = Request::deserialize(body).map_err(|error| error.to_string())?;
    let system = request.instructions.map(|text| Said::System { text });
    let mut said = Vec::from_iter(system);
    for (index, item) in request.input.iter().enumerate() {
        let item = read_item(item).map_err(|error| format!("item {index}: {error}"))?;
        match item {
            Item::Message { role: Role::System, content } => said.push(Said::System { text: content.text() }),
            Item::Message { role: Role::User, content } => said.push(Said::User { text: content.text() }),
            Item::Message { role: Role::Assistant, content } => {
                said.push(Said::Assistant { text: content.text(), calls: Vec::new() });
            }
            Item::FunctionCall { call_id, name, .. } => {
                let call = SaidCall { id: Some(call_id), name };
                // What a reply says and the calls it makes are one message to everyone else.
                match said.last_mut() {
                    Some(Said::Assistant { calls, .. }) => calls.push(call),
                    _ => said.push(Said::Assistant { text: String::new(), calls: vec![call] }),
                }
            }
            Item::FunctionCallOutput { call_id, output } => {
                said.push(Said::Result { id: Some(call_id), name: None, text: output.text() });
            }
            Item::Reasoning {} => {}
        }
    }
    let mut raw: Vec<Value> =
        body.get("instructions").filter(|text| !text.is_null()).cloned().into_iter().collect();
    raw.extend(request.input);
    Ok(Chat {
        model: super::model_name(body),
        stream: if request.stream { Streaming::Events } else { Streaming::Whole },
        said,
        raw,
        tools: super::tools::check_flat_functions(body)?,
        objections: Vec::new(),
    })
}

/// An item; without a type it is a message.
fn read_item(item: &Value) -> Result<Item, String> {
    let mut item = item.clone();
    if let Some(fields) = item.as_object_mut() {
        fields.entry("type").or_insert_with(|| "message".into());
    }
    Item::deserialize(item).map_err(|error| error.to_string())
}

pub(super) fn write(out: &Outgoing<'_>) -> Answer {
    match out.stream {
        Streaming::Whole => {
            let whole = response(out, items(out), status(out.reply.finish()));
            Answer { content_type: "application/json", events: vec![whole.to_string().into_bytes()] }
        }
        Streaming::Events | Streaming::EventsAndUsage => {
            let numbered = events(out).into_iter().enumerate().map(|(number, mut event)| {
                event["sequence_number"] = number.into();
                let name = event["type"].as_str().unwrap_or_default().to_owned();
                sse(Some(&name), &event.to_string())
            });
            Answer { content_type: "text/event-stream", events: numbered.collect() }
        }
    }
}

/// The items a reply leaves behind.
fn items(out: &Outgoing<'_>) -> Vec<Value> {
    let (reply, turn) = (out.reply, out.turn);
    let mut items = Vec::new();
    if !reply.thinking.is_empty() {
        let summary = json!([{ "type": "summary_text", "text": reply.thinking }]);
        items.push(json!({ "type": "reasoning", "id": format!("rs_{turn}"), "summary": summary }));
    }
    if !reply.text.is_empty() || reply.calls.is_empty() {
        let content = json!([{ "type": "output_text", "text": reply.text, "annotations": [] }]);
        items.push(json!({
            "type": "message",
            "id": format!("msg_{turn}"),
            "role": "assistant",
            "status": status(reply.finish()),
            "content": content,
        }));
    }
    items.extend(reply.calls.iter().enumerate().map(|(index, call)| {
        json!({
            "type": "function_call",
            "id": format!("fc_{turn}_{index}"),
            "call_id": call_id(call, "call", turn, index),
            "name": call.name,
            "arguments": args_text(call),
            "status": "completed",
        })
    }));
    items
}

fn events(out: &Outgoing<'_>) -> Vec<Value> {
    let items = items(out);
    let mut events =
        vec![json!({ "type": "response.created", "response": response(out, vec![], "in_progress") })];
    for (index, item) in items.iter().enumerate() {
        let (id, mut empty) = (&item["id"], item.clone());
        let (delta, text) = match item["type"].as_str() {
            Some("function_call") => {
                empty["arguments"] = "".into();
                ("response.function_call_arguments.delta", &item["arguments"])
            }
            Some("message") => {
                empty["content"] = json!([]);
                ("response.output_text.delta", &item["content"][0]["text"])
            }
            _ => {
                empty["summary"] = json!([]);
                ("response.reasoning_summary_text.delta", &item["summary"][0]["text"])
            }
        };
        events.push(json!({ "type": "response.output_item.added", "output_index": index, "item": empty }));
        events.extend(pieces(text.as_str().unwrap_or_default()).into_iter().map(
            |piece| json!({ "type": delta, "item_id": id, "output_index": index, "content_index": 0, "delta": piece }),
        ));
        events.push(json!({ "type": "response.output_item.done", "output_index": index, "item": item }));
    }
    let status = status(out.reply.finish());
    events.push(json!({ "type": format!("response.{status}"), "response": response(out, items, status) }));
    events
}

fn response(out: &Outgoing<'_>, output: Vec<Value>, status: &str) -> Value {
    let mut response = json!({
        "id": format!("resp_{}", out.turn),
        "object": "response",
        "created_at": CREATED_UNIX,
        "model": out.model,
        "status": status,
        "output": output,
        "usage": if status == "in_progress" { Value::Null } else { usage(out.reply.usage) },
    });
    if status == "incomplete" {
        response["incomplete_details"] = json!({ "reason": reason(out.reply.finish()) });
    }
    response
}

fn status(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::ToolCalls => "completed",
        Finish::Length | Finish::Filtered => "incomplete",
    }
}

fn reason(finish: Finish) -> Option<&'static str> {
    match finish {
        Finish::Stop | Finish::ToolCalls => None,
        Finish::Length => Some("max_output_tokens"),
        Finish::Filtered => Some("content_filter"),
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": { "cached_tokens": usage.cached },
        "output_tokens": usage.output,
        "output_tokens_details": { "reasoning_tokens": usage.reasoning },
        "total_tokens": usage.total(),
    })
}
