//! Asking a server what it has: names, sizes, windows, abilities.
//!
//! A server that does not answer is an error; a server without models is an empty list. The two are never mixed up.

use futures_util::{StreamExt, TryStreamExt, stream};
use gimlet::model::ModelError;
use reqwest::{Method, Url};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::status::Failure;
use crate::transport::Transport;
use crate::wire::Wire;

/// Largest answer about models.
const MAX_BODY: usize = 16 * 1024 * 1024;
/// Questions about single models at once.
const AT_ONCE: usize = 4;

/// A server of models.
#[derive(Debug, Clone)]
pub struct Server {
    wire: Wire,
    base: Url,
    transport: Transport,
    free_memory: Option<u64>,
}

/// A model on a server. What is `None`, the server did not say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Installed {
    /// Its exact name there.
    pub name: String,
    /// Bytes of its weights.
    pub bytes: Option<u64>,
    /// Parameters.
    pub parameters: Option<u64>,
    /// How its weights are stored, such as `Q4_K_M`.
    pub quantisation: Option<String>,
    /// The window it was trained for.
    pub context: Option<u32>,
    /// The window its server set for it.
    pub set_context: Option<u32>,
    /// The window it is running with now, where a request may ask for another.
    pub loaded_context: Option<u32>,
    /// Bytes of memory that a token takes in its window.
    pub token_bytes: Option<u64>,
    /// Free memory of the machine it runs on, where that is this one.
    pub free_memory: Option<u64>,
    /// Whether its server offers native tool calls.
    pub tools: Option<bool>,
    /// Whether it reasons before it answers.
    pub thinks: Option<bool>,
    /// Whether it writes text at all.
    pub writes: Option<bool>,
    /// Identifies the exact weights.
    pub digest: Option<String>,
}

impl Installed {
    /// A model of which only the name is known.
    pub fn named(name: impl Into<String>) -> Self {
        Installed { name: name.into(), ..Installed::default() }
    }

    /// Billions of parameters, by the server or by the name.
    pub fn billions(&self) -> Option<f64> {
        self.parameters.map(|count| count as f64 / 1e9).or_else(|| size_in_name(&self.name))
    }
}

/// A size in a name: `qwen3:8b` is 8, `Qwen2.5-Coder-1.5B` is 1.5, `smollm2:135m` is 0.135.
fn size_in_name(name: &str) -> Option<f64> {
    name.split([':', '-', '_', '/']).find_map(parse_size)
}

fn parse_size(text: &str) -> Option<f64> {
    let text = text.trim().to_ascii_lowercase();
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let scale = match unit {
        "b" => 1.0,
        "m" => 1e-3,
        _ => return None,
    };
    digits.parse::<f64>().ok().filter(|size| size.is_finite() && *size > 0.0).map(|size| size * scale)
}

impl Server {
    /// The server at an address.
    pub fn new(wire: Wire, base: Url, transport: Transport) -> Self {
        let transport = match wire {
            Wire::Anthropic => transport.with_header("anthropic-version", "2023-06-01"),
            Wire::Ollama | Wire::OpenAi => transport,
        };
        Server { wire, base, transport, free_memory: None }
    }

    /// The same server, on this machine, which has so many bytes of memory free.
    #[must_use]
    pub fn with_memory(self, free: Option<u64>) -> Self {
        Server { free_memory: free, ..self }
    }

    /// Its address, without credentials.
    pub fn host(&self) -> &str {
        self.transport.host()
    }

    /// The protocol it speaks.
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// Everything it has, with names and whatever the list itself tells.
    pub async fn names(&self) -> Result<Vec<Installed>, ModelError> {
        match self.wire {
            Wire::Ollama => {
                let tags: Tags = self.get("/api/tags").await?;
                Ok(tags.models.into_iter().map(Tag::read).collect())
            }
            Wire::OpenAi | Wire::Anthropic => {
                let list: ModelList = self.get("/v1/models").await?;
                Ok(list.data.into_iter().map(ListedModel::read).collect())
            }
        }
    }

    /// Everything it has, with all it tells about each.
    pub async fn list(&self) -> Result<Vec<Installed>, ModelError> {
        let names = self.names().await?;
        let running = self.running().await;
        let describe = |model| self.described(model, &running);
        stream::iter(names).map(describe).buffered(AT_ONCE).try_collect().await
    }

    /// Adds what the server tells about one model. A server that does not know the question changes nothing.
    pub async fn describe(&self, model: Installed) -> Result<Installed, ModelError> {
        let running = self.running().await;
        self.described(model, &running).await
    }

    /// The models that run now, as far as the server tells.
    async fn running(&self) -> Vec<RunningModel> {
        match self.wire {
            Wire::Ollama => self.get::<Running>("/api/ps").await.map(|list| list.models).unwrap_or_default(),
            Wire::OpenAi | Wire::Anthropic => Vec::new(),
        }
    }

    async fn described(
        &self,
        mut model: Installed,
        running: &[RunningModel],
    ) -> Result<Installed, ModelError> {
        model.free_memory = self.free_memory;
        match self.wire {
            Wire::Ollama => match self.post::<Show>("/api/show", json!({ "model": model.name })).await {
                Ok(show) => show.add_to(&mut model),
                Err(error) if error.is_retryable() => return Err(error),
                Err(_not_told) => {}
            },
            Wire::OpenAi | Wire::Anthropic => match self.get::<Props>("/props").await {
                Ok(props) => props.add_to(&mut model),
                Err(ModelError::Connect { host, reason }) => {
                    return Err(ModelError::Connect { host, reason });
                }
                // LM Studio tells more at an address of its own.
                Err(_not_llama_cpp) if model.set_context.is_none() => {
                    if let Ok(list) = self.get::<StudioModels>("/api/v0/models").await
                        && let Some(found) = list.data.into_iter().find(|found| found.id == model.name)
                    {
                        found.add_to(&mut model);
                    }
                }
                Err(_not_llama_cpp) => {}
            },
        }
        if let Some(found) = running.iter().find(|found| found.name == model.name) {
            model.loaded_context = found.context_length.filter(|window| *window > 0);
        }
        Ok(model)
    }

    async fn get<T: for<'de> Deserialize<'de>>(&self, path: &str) -> Result<T, ModelError> {
        self.ask(Method::GET, path, None).await
    }

    pub(crate) async fn post<T: for<'de> Deserialize<'de>>(
        &self,
        path: &str,
        body: Value,
    ) -> Result<T, ModelError> {
        self.ask(Method::POST, path, Some(body.to_string().into_bytes())).await
    }

    async fn ask<T: for<'de> Deserialize<'de>>(
        &self,
        method: Method,
        path: &str,
        body: Option<Vec<u8>>,
    ) -> Result<T, ModelError> {
        let url = self.url(path);
        let mut answer = self.transport.send(method, &url, body).await?;
        let body = answer.read(&self.transport, MAX_BODY).await;
        let failure = Failure {
            status: answer.status(),
            content_type: answer.header("content-type").unwrap_or_default(),
            retry_after: answer.header("retry-after"),
            date: answer.header("date"),
            location: answer.header("location"),
            body: &body,
            model: "",
        };
        if !(200..300).contains(&failure.status) {
            return Err(failure.error());
        }
        serde_json::from_slice(&body)
            .map_err(|error| ModelError::Protocol(format!("{} ({error}) at {url}", failure.message())))
    }

    /// An endpoint of this server, whose base people write with or without a version.
    fn url(&self, path: &str) -> Url {
        let base = self.base.path().trim_end_matches('/');
        let path = match (self.wire, path) {
            // A versioned base is where the protocol's own endpoints are; properties are at the root.
            (Wire::OpenAi, "/v1/models") if !base.is_empty() => format!("{base}/models"),
            (Wire::OpenAi, "/v1/embeddings") if !base.is_empty() => format!("{base}/embeddings"),
            _ => {
                let root = ["/v1", "/api"].iter().find_map(|end| base.strip_suffix(end)).unwrap_or(base);
                format!("{root}{path}")
            }
        };
        let mut url = self.base.clone();
        url.set_path(&path);
        url
    }
}

#[derive(Deserialize)]
struct Tags {
    #[serde(default)]
    models: Vec<Tag>,
}

#[derive(Deserialize)]
struct Tag {
    name: String,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default)]
    digest: Option<String>,
    #[serde(default)]
    details: Option<Details>,
    #[serde(default)]
    capabilities: Option<Vec<String>>,
}

/// What Ollama's `/api/ps` tells.
#[derive(Deserialize)]
struct Running {
    #[serde(default)]
    models: Vec<RunningModel>,
}

#[derive(Deserialize)]
struct RunningModel {
    name: String,
    #[serde(default)]
    context_length: Option<u32>,
}

/// What LM Studio's own interface tells.
#[derive(Deserialize)]
struct StudioModels {
    #[serde(default)]
    data: Vec<StudioModel>,
}

#[derive(Deserialize)]
struct StudioModel {
    id: String,
    #[serde(default)]
    quantization: Option<String>,
    #[serde(default)]
    max_context_length: Option<u32>,
    #[serde(default)]
    loaded_context_length: Option<u32>,
    #[serde(default)]
    capabilities: Option<Vec<String>>,
}

impl StudioModel {
    fn add_to(self, model: &mut Installed) {
        model.context = self.max_context_length.or(model.context);
        model.set_context = self.loaded_context_length.filter(|window| *window > 0);
        model.quantisation = self.quantization.or(model.quantisation.take());
        if let Some(capabilities) = self.capabilities {
            model.tools = Some(capabilities.iter().any(|capability| capability == "tool_use"));
        }
    }
}

#[derive(Deserialize)]
struct Details {
    #[serde(default)]
    parameter_size: Option<String>,
    #[serde(default)]
    quantization_level: Option<String>,
}

impl Tag {
    fn read(self) -> Installed {
        let mut model = Installed { bytes: self.size, digest: self.digest, ..Installed::named(self.name) };
        if let Some(details) = self.details {
            details.add_to(&mut model);
        }
        add_capabilities(self.capabilities.as_deref(), &mut model);
        model
    }
}

impl Details {
    fn add_to(self, model: &mut Installed) {
        let count =
            self.parameter_size.as_deref().and_then(parse_size).map(|billions| (billions * 1e9) as u64);
        model.parameters = count.or(model.parameters);
        model.quantisation = self
            .quantization_level
            .filter(|level| !level.is_empty() && level != "unknown")
            .or(model.quantisation.take());
    }
}

fn add_capabilities(capabilities: Option<&[String]>, model: &mut Installed) {
    let Some(capabilities) = capabilities.filter(|list| !list.is_empty()) else { return };
    let can = |what: &str| Some(capabilities.iter().any(|capability| capability == what));
    model.tools = can("tools");
    model.thinks = can("thinking");
    model.writes = can("completion");
}

#[derive(Deserialize)]
struct Show {
    #[serde(default)]
    details: Option<Details>,
    #[serde(default)]
    model_info: Map<String, Value>,
    #[serde(default)]
    capabilities: Option<Vec<String>>,
    /// The settings of its Modelfile, one a line.
    #[serde(default)]
    parameters: Option<String>,
}

impl Show {
    fn add_to(self, model: &mut Installed) {
        if let Some(details) = self.details {
            details.add_to(model);
        }
        let info = |end: &str| {
            self.model_info.iter().find(|(key, _)| key.ends_with(end)).and_then(|(_, value)| value.as_u64())
        };
        model.context = info(".context_length").and_then(|length| u32::try_from(length).ok());
        model.token_bytes = token_bytes(&info);
        model.parameters = info("general.parameter_count").or(model.parameters);
        model.set_context = self.parameters.as_deref().and_then(|lines| {
            lines.lines().find_map(|line| line.trim().strip_prefix("num_ctx")?.trim().parse().ok())
        });
        add_capabilities(self.capabilities.as_deref(), model);
    }
}

/// Bytes of a token in the window: keys and values of two bytes each, of every layer and every head that has its own.
fn token_bytes(info: &impl Fn(&str) -> Option<u64>) -> Option<u64> {
    let (layers, heads) = (info(".block_count")?, info(".attention.head_count")?);
    let own_heads = info(".attention.head_count_kv").unwrap_or(heads);
    let length = match info(".attention.key_length") {
        Some(length) => length,
        None => info(".embedding_length")?.checked_div(heads)?,
    };
    layers.checked_mul(own_heads)?.checked_mul(length)?.checked_mul(4)
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<ListedModel>,
}

#[derive(Deserialize)]
struct ListedModel {
    id: String,
    /// vLLM's window.
    #[serde(default)]
    max_model_len: Option<u32>,
    /// OpenRouter's, Groq's and others' window.
    #[serde(default, alias = "context_window")]
    context_length: Option<u32>,
    /// llama.cpp's facts.
    #[serde(default)]
    meta: Option<Meta>,
}

#[derive(Default, Deserialize)]
struct Meta {
    #[serde(default)]
    n_ctx: Option<u32>,
    #[serde(default)]
    n_ctx_train: Option<u32>,
    #[serde(default)]
    n_params: Option<u64>,
    #[serde(default)]
    size: Option<u64>,
}

impl ListedModel {
    fn read(self) -> Installed {
        let meta = self.meta.unwrap_or_default();
        Installed {
            context: self.max_model_len.or(self.context_length).or(meta.n_ctx_train),
            set_context: self.max_model_len.or(meta.n_ctx),
            parameters: meta.n_params,
            bytes: meta.size,
            // A server of files names no digest; the very size and number of parameters tell weights apart as well.
            digest: meta.size.zip(meta.n_params).map(|(size, count)| {
                let name = self.id.rsplit(['/', '\\']).next().unwrap_or(&self.id);
                format!("file:{name}:{size}:{count}")
            }),
            ..Installed::named(self.id)
        }
    }
}

#[derive(Deserialize)]
struct Props {
    default_generation_settings: GenerationSettings,
    #[serde(default)]
    model_path: Option<String>,
}

#[derive(Deserialize)]
struct GenerationSettings {
    n_ctx: u32,
}

impl Props {
    fn add_to(self, model: &mut Installed) {
        model.set_context = Some(self.default_generation_settings.n_ctx).filter(|window| *window > 0);
        if model.quantisation.is_none() {
            model.quantisation = self.model_path.as_deref().and_then(quantisation_in_name);
        }
    }
}

/// `Q4_K_M` in a file's name.
fn quantisation_in_name(path: &str) -> Option<String> {
    let file = path.rsplit(['/', '\\']).next()?;
    let stem = file.strip_suffix(".gguf").unwrap_or(file);
    let level = stem.rsplit(['-', '.']).next()?.to_uppercase();
    let looks = ["Q", "IQ", "F16", "F32", "BF16"].iter().any(|start| level.starts_with(start));
    (looks && level.chars().any(|c| c.is_ascii_digit())).then_some(level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_from_names() {
        for (name, size) in [
            ("qwen3:8b", Some(8.0)),
            ("Qwen2.5-Coder-1.5B-Instruct", Some(1.5)),
            ("smollm2:135m", Some(0.135)),
            ("qwen3:latest", None),
            ("b", None),
            ("", None),
            ("modelé:7b", Some(7.0)),
        ] {
            assert_eq!(Installed::named(name).billions(), size, "{name}");
        }
        assert_eq!(quantisation_in_name("/m/llama-3.2-3b-instruct-q8_0.gguf").as_deref(), Some("Q8_0"));
        assert_eq!(quantisation_in_name("/m/plain.gguf"), None);
    }
}
