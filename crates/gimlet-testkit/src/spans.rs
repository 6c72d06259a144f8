//! Keeps spans in memory, so that a test can look at what a trace backend would be sent.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

/// Collects every span of the subscriber it is part of. Clones share what they collect.
#[derive(Debug, Clone, Default)]
pub struct SpanCollector {
    spans: Arc<Mutex<Vec<SpanData>>>,
}

/// A span as it was seen.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanData {
    /// Its name.
    pub name: String,
    /// Its target, the module by default.
    pub target: String,
    /// Its fields, at creation and later; the last value of each counts.
    pub fields: Map<String, Value>,
    /// Its events: their fields, in order.
    pub events: Vec<Map<String, Value>>,
    /// The span it belongs to, as a place in the list of all spans.
    pub parent: Option<usize>,
    /// Whether it has ended.
    pub finished: bool,
}

impl SpanData {
    /// A field as text: a string as it is, anything else as JSON.
    pub fn field(&self, name: &str) -> Option<String> {
        self.fields.get(name).map(plain)
    }
}

/// The place of a span in the list. Ids of ended spans are given again, so they cannot be the key.
struct Place(usize);

impl SpanCollector {
    /// An empty collector.
    pub fn new() -> Self {
        Self::default()
    }

    /// A subscriber that does nothing but collect, for `tracing::subscriber::set_default` or `with_subscriber`.
    pub fn subscriber(&self) -> impl Subscriber + Send + Sync + use<> {
        Registry::default().with(self.clone())
    }

    /// Every span so far, in the order in which they began.
    pub fn spans(&self) -> Vec<SpanData> {
        self.lock().clone()
    }

    /// The spans of a name.
    pub fn named(&self, name: &str) -> Vec<SpanData> {
        self.lock().iter().filter(|span| span.name == name).cloned().collect()
    }

    /// The only span of a name; panics when there is none or more than one.
    #[track_caller]
    pub fn only(&self, name: &str) -> SpanData {
        let mut found = self.named(name);
        assert!(found.len() == 1, "{} spans are named {name}:\n{}", found.len(), self.tree());
        found.remove(0)
    }

    /// The spans directly inside the span at a place of [`spans`](Self::spans).
    pub fn children(&self, parent: usize) -> Vec<SpanData> {
        self.lock().iter().filter(|span| span.parent == Some(parent)).cloned().collect()
    }

    /// All spans as an indented tree, one a line with their fields; what has not ended says so.
    pub fn tree(&self) -> String {
        let spans = self.spans();
        let mut text = String::new();
        write_level(&spans, None, 0, &mut text);
        text
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SpanData>> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(
        &self,
        id: &Id,
        cx: &Context<'_, impl Subscriber + for<'a> LookupSpan<'a>>,
        change: impl FnOnce(&mut SpanData),
    ) {
        let place = cx.span(id).and_then(|span| span.extensions().get::<Place>().map(|place| place.0));
        if let Some(span) = place.and_then(|place| self.lock().get_mut(place).map(change)) {
            span
        }
    }
}

fn write_level(spans: &[SpanData], parent: Option<usize>, depth: usize, text: &mut String) {
    for (index, span) in spans.iter().enumerate().filter(|(_, span)| span.parent == parent) {
        text.push_str(&"  ".repeat(depth));
        text.push_str(&span.name);
        for (name, value) in &span.fields {
            // Writing to a string cannot fail.
            let _written = write!(text, " {name}={}", plain(value));
        }
        text.push_str(if span.finished { "\n" } else { " (open)\n" });
        write_level(spans, Some(index), depth + 1, text);
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanCollector {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        let Some(span) = cx.span(id) else { return };
        let parent = span.parent().and_then(|parent| parent.extensions().get::<Place>().map(|place| place.0));
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let data = SpanData {
            name: attributes.metadata().name().to_owned(),
            target: attributes.metadata().target().to_owned(),
            fields: fields.0,
            events: Vec::new(),
            parent,
            finished: false,
        };
        let place = {
            let mut spans = self.lock();
            spans.push(data);
            spans.len() - 1
        };
        span.extensions_mut().insert(Place(place));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, cx: Context<'_, S>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        self.change(id, &cx, |span| span.fields.extend(fields.0));
    }

    fn on_event(&self, event: &Event<'_>, cx: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        if let Some(span) = cx.event_span(event) {
            self.change(&span.id(), &cx, |span| span.events.push(fields.0));
        }
    }

    fn on_close(&self, id: Id, cx: Context<'_, S>) {
        self.change(&id, &cx, |span| span.finished = true);
    }
}

/// Turns fields into JSON.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }
}
