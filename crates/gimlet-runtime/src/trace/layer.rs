//! Turns the spans of the core into what OpenTelemetry exports.
//!
//! The same layer serves a run while it happens and a run told again from its log, so both have the same attributes;
//! and ids are made from the run's id and a span's place in it, so both have the same ids, and a backend that knows a
//! span already has nothing new to keep.

use std::collections::HashMap;
use std::fmt;
use std::time::SystemTime;

use gimlet::digest::digest;
use gimlet::telemetry::Payloads;
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SpanData, SpanEvents, SpanLinks};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::config::Content;

/// Takes each span as it ends. Called on the run's path: it must not wait.
pub(crate) type Sink = Box<dyn Fn(SpanData) + Send + Sync>;
/// Tells the time.
pub(crate) type Clock = Box<dyn Fn() -> SystemTime + Send + Sync>;

/// Listens to the core's spans.
pub(crate) struct SpanLayer {
    pub(crate) sink: Sink,
    pub(crate) clock: Clock,
    pub(crate) content: Content,
}

/// A span that has not ended; kept by the registry with the span itself.
struct Open {
    trace: TraceId,
    id: SpanId,
    parent: SpanId,
    name: String,
    start: SystemTime,
    fields: Fields,
    /// How many spans of each name began in it.
    children: HashMap<String, u32>,
}

/// Fields by name; the last value of each counts.
#[derive(Default)]
struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(known, _)| *known == name)?;
        Some(self.0.remove(at).1)
    }

    fn text(&self, name: &str) -> String {
        self.get(name).map(|value| value.as_str().into_owned()).unwrap_or_default()
    }

    fn set(&mut self, name: &'static str, value: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field.name(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field.name(), value.to_owned().into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field.name(), i64::try_from(value).unwrap_or(i64::MAX).into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field.name(), value.into());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        let Some(span) = cx.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let name = fields
            .take("otel.name")
            .map_or_else(|| attributes.metadata().name().to_owned(), |name| name.as_str().into_owned());
        let above = span.parent().and_then(|parent| {
            let mut kept = parent.extensions_mut();
            kept.get_mut::<Open>().map(|open| open.child(&name, &mut fields))
        });
        let (trace, id, parent) = above.unwrap_or_else(|| first(&fields));
        let open = Open { trace, id, parent, name, start: (self.clock)(), fields, children: HashMap::new() };
        span.extensions_mut().insert(open);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, cx: Context<'_, S>) {
        if let Some(span) = cx.span(id)
            && let Some(open) = span.extensions_mut().get_mut::<Open>()
        {
            values.record(&mut open.fields);
        }
    }

    fn on_close(&self, id: Id, cx: Context<'_, S>) {
        let open = cx.span(&id).and_then(|span| span.extensions_mut().remove::<Open>());
        if let Some(open) = open {
            (self.sink)(self.ended(open));
        }
    }
}

impl Open {
    /// Ids of a span that begins in this one, which shares its session.
    fn child(&mut self, name: &str, fields: &mut Fields) -> (TraceId, SpanId, SpanId) {
        if fields.get("session.id").is_none()
            && let Some(session) = self.fields.get("session.id")
        {
            fields.set("session.id", session.clone());
        }
        // Calls run side by side and are told apart by their own ids; everything else comes one after the other.
        let which = match fields.text("tool.call.id") {
            call if !call.is_empty() => call,
            _ => {
                let count = self.children.entry(name.to_owned()).or_default();
                *count += 1;
                count.to_string()
            }
        };
        let place = format!("{}\n{}\n{name}\n{which}", self.trace, self.id);
        (self.trace, span_id(&place), self.id)
    }
}

/// Ids of a span that begins nowhere: a run's follow from the run, others are random.
fn first(fields: &Fields) -> (TraceId, SpanId, SpanId) {
    let run = fields.text("run.id");
    if run.is_empty() {
        let random = RandomIdGenerator::default();
        return (random.new_trace_id(), random.new_span_id(), SpanId::INVALID);
    }
    let place = format!("{run}\n{}\n{}", fields.text("agent.path"), fields.text("run.resumes"));
    let trace = u128::from_str_radix(&digest(run.as_bytes())[..32], 16).unwrap_or(1);
    (TraceId::from_bytes(trace.to_be_bytes()), span_id(&place), SpanId::INVALID)
}

fn span_id(place: &str) -> SpanId {
    let id = u64::from_str_radix(&digest(place.as_bytes())[..16], 16).unwrap_or(1);
    SpanId::from_bytes(id.to_be_bytes())
}

impl SpanLayer {
    fn ended(&self, mut open: Open) -> SpanData {
        let kind = match open.fields.take("otel.kind") {
            Some(kind) if kind.as_str() == "client" => SpanKind::Client,
            Some(_) | None => SpanKind::Internal,
        };
        let status = match open.fields.get("result.ok") {
            Some(Value::Bool(true)) => Status::Ok,
            Some(Value::Bool(false)) => Status::error(open.fields.text("result.error_type")),
            Some(_) | None => Status::Unset,
        };
        let context =
            SpanContext::new(open.trace, open.id, TraceFlags::SAMPLED, false, TraceState::default());
        SpanData {
            span_context: context,
            parent_span_id: open.parent,
            parent_span_is_remote: false,
            span_kind: kind,
            name: open.name.into(),
            start_time: open.start,
            end_time: (self.clock)().max(open.start),
            attributes: self.attributes(open.fields),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status,
            instrumentation_scope: InstrumentationScope::builder("gimlet")
                .with_version(env!("CARGO_PKG_VERSION"))
                .build(),
        }
    }

    fn attributes(&self, fields: Fields) -> Vec<KeyValue> {
        let mut attributes = Vec::with_capacity(fields.0.len());
        for (name, value) in fields.0 {
            let shown = match name {
                "input.value" | "tool.parameters" | "llm.input_messages" | "approval.file" => {
                    self.content.inputs
                }
                "output.value" | "llm.output_messages" | "approval.feedback" => self.content.outputs,
                _ => Payloads::Shown,
            };
            match (shown, name) {
                (Payloads::Hidden, _) => {}
                (Payloads::Shown, "llm.input_messages" | "llm.output_messages") => {
                    let messages: Vec<serde_json::Value> =
                        serde_json::from_str(&value.as_str()).unwrap_or_default();
                    for (index, message) in messages.iter().enumerate() {
                        flatten(format!("{name}.{index}.message"), message, &mut attributes);
                    }
                }
                (Payloads::Shown, _) => attributes.push(KeyValue::new(name, value)),
            }
        }
        attributes
    }
}

/// A nested value as OpenInference writes it: one key for each leaf, `a.0.b`.
fn flatten(key: String, value: &serde_json::Value, attributes: &mut Vec<KeyValue>) {
    match value {
        serde_json::Value::Null => {}
        serde_json::Value::Object(map) => {
            map.iter().for_each(|(name, value)| flatten(format!("{key}.{name}"), value, attributes));
        }
        serde_json::Value::Array(items) => {
            let places = items.iter().enumerate();
            places.for_each(|(index, value)| flatten(format!("{key}.{index}"), value, attributes));
        }
        serde_json::Value::String(text) => attributes.push(KeyValue::new(key, text.clone())),
        serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {
            attributes.push(KeyValue::new(key, value.to_string()));
        }
    }
}

/// Whether a span is one of the core's. Other crates' spans cost nothing, and events are somebody else's business.
pub(crate) fn ours(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && metadata.target() == gimlet::telemetry::TARGET
}
