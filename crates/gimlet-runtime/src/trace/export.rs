//! Sends spans by OTLP over HTTP, on a thread of its own. Nothing here is waited for while a run works: the queue is
//! bounded and drops what does not fit, and the program's end waits a bounded time for what is left.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{Protocol, RetryPolicy, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider, Span, SpanData, SpanExporter, SpanProcessor,
};

use super::config::{Lookup, Target};

/// Longest wait for the last spans when the program ends.
pub(crate) const FLUSH: Duration = Duration::from_millis(450);
/// How often spans are sent while a run works, so that it can be watched.
const EVERY: Duration = Duration::from_secs(1);

/// What became of the spans, shared by the thread that sends them and the one that tells.
pub(crate) type Failed = Arc<Mutex<Option<String>>>;

/// Sends batches to a collector. The HTTP client is made on first use, which is on the sending thread.
#[derive(Debug)]
pub(crate) struct Sender {
    target: Target,
    resource: Resource,
    client: OnceLock<Result<opentelemetry_otlp::SpanExporter, String>>,
    /// Why the last batch that failed did.
    failed: Failed,
}

impl Sender {
    pub(crate) fn new(target: Target, env: Lookup<'_>) -> Self {
        let resource = resource(env);
        Sender { target, resource, client: OnceLock::new(), failed: Failed::default() }
    }

    fn client(&self) -> Result<&opentelemetry_otlp::SpanExporter, String> {
        self.client.get_or_init(|| connect(&self.target, &self.resource)).as_ref().map_err(Clone::clone)
    }

    /// Sends spans now and waits for the answer; for spans of the past, where somebody waits to hear.
    pub(crate) fn send(&self, spans: &[SpanData]) -> Result<(), String> {
        for batch in spans.chunks(256) {
            futures_util::FutureExt::now_or_never(self.export(batch.to_vec()))
                // The client blocks, so its future is ready at once.
                .unwrap_or(Err(OTelSdkError::Timeout(self.target.timeout)))
                .map_err(|error| plain(&error))?;
        }
        Ok(())
    }
}

fn connect(target: &Target, resource: &Resource) -> Result<opentelemetry_otlp::SpanExporter, String> {
    let mut http = reqwest::blocking::Client::builder()
        .connect_timeout(target.timeout.min(Duration::from_secs(1)))
        .timeout(target.timeout)
        .redirect(reqwest::redirect::Policy::none());
    if gimlet_models::transport::is_loopback(&target.endpoint) {
        http = http.no_proxy();
    }
    let http = http.build().map_err(|error| error.to_string())?;
    let mut exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_http_client(http)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(target.endpoint.as_str())
        .with_timeout(target.timeout)
        // A log of the run remains, from which its spans can be sent again.
        .with_retry_policy(RetryPolicy::disabled())
        .build()
        .map_err(|error| error.to_string())?;
    exporter.set_resource(resource);
    Ok(exporter)
}

impl SpanExporter for Sender {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let sent = match self.client() {
            Ok(client) => client.export(batch).await,
            Err(error) => Err(OTelSdkError::InternalFailure(error)),
        };
        if let Err(error) = &sent {
            *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(plain(error));
        }
        sent
    }
}

/// An error in words, without what the library puts around it.
fn plain(error: &OTelSdkError) -> String {
    match error {
        OTelSdkError::InternalFailure(message) if message.ends_with("network error") => {
            "nothing answers there".to_owned()
        }
        OTelSdkError::InternalFailure(message) => message.clone(),
        OTelSdkError::Timeout(_) => "it did not answer in time".to_owned(),
        OTelSdkError::AlreadyShutdown => error.to_string(),
    }
}

/// The queue in front of a [`Sender`]. Clones are the same queue.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    processor: Arc<BatchSpanProcessor>,
    failed: Failed,
}

impl Queue {
    /// Starts the sending thread.
    pub(crate) fn start(sender: Sender, env: Lookup<'_>) -> Self {
        let failed = sender.failed.clone();
        let resource = sender.resource.clone();
        let mut batches = BatchConfigBuilder::default();
        if env("OTEL_BSP_SCHEDULE_DELAY").is_none() {
            batches = batches.with_scheduled_delay(EVERY);
        }
        let processor = BatchSpanProcessor::builder(sender).with_batch_config(batches.build()).build();
        let queue = Queue { processor: Arc::new(processor), failed };
        // Whoever speaks OpenTelemetry itself in this process joins in.
        let provider =
            SdkTracerProvider::builder().with_span_processor(queue.clone()).with_resource(resource).build();
        opentelemetry::global::set_tracer_provider(provider);
        queue
    }

    /// Takes a span; drops it when the queue is full.
    pub(crate) fn push(&self, span: SpanData) {
        self.processor.on_end(span);
    }

    /// Sends what is left, for a bounded time, and says why something was not sent.
    pub(crate) fn finish(&self) -> Result<(), String> {
        let ended = self.processor.shutdown_with_timeout(FLUSH);
        match self.failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(why) => Err(why),
            None => ended.map_err(|error| plain(&error)),
        }
    }
}

impl SpanProcessor for Queue {
    fn on_start(&self, span: &mut Span, cx: &Context) {
        self.processor.on_start(span, cx);
    }

    fn on_end(&self, span: SpanData) {
        self.push(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.processor.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.processor.shutdown_with_timeout(timeout)
    }
}

/// What is known about this program, the environment's word last and strongest.
fn resource(env: Lookup<'_>) -> Resource {
    let own = [
        KeyValue::new("service.name", "gimlet"),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new(PROJECT, "gimlet"),
    ];
    let mut resource = Resource::builder_empty()
        .with_attributes(own)
        .with_detector(Box::new(TelemetryResourceDetector))
        .with_detector(Box::new(EnvResourceDetector::new()));
    if let Some(name) = env("OTEL_SERVICE_NAME") {
        resource = resource.with_attribute(KeyValue::new("service.name", name));
    }
    if let Some(name) = env("PHOENIX_PROJECT_NAME") {
        resource = resource.with_attribute(KeyValue::new(PROJECT, name));
    }
    resource.build()
}

/// By this attribute Phoenix sorts traces into projects.
const PROJECT: &str = "openinference.project.name";
