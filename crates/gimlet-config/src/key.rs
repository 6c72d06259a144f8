//! Every setting: how it is called on the command line, in the environment and in a file, and what it is unless said
//! otherwise. `config show`, `config init`, `.env.example` and the reference are all read off this table.

/// A setting.
#[derive(Debug, PartialEq, Eq)]
pub struct Key {
    /// Its name in the environment and in `.env`.
    pub variable: &'static str,
    /// Its place in a file: `table.key`, or a key of the whole file.
    pub path: &'static str,
    /// The flag that sets it, where there is one.
    pub flag: Option<&'static str>,
    /// What holds when nobody says anything: a value as it is written in a file, or words in brackets.
    pub default: &'static str,
    /// An example for a file, where the default is words.
    pub example: &'static str,
    /// What it is for, in one line.
    pub about: &'static str,
}

impl Key {
    /// The table it is in, and its name there.
    pub fn place(&self) -> (Option<&'static str>, &'static str) {
        match self.path.split_once('.') {
            Some((table, name)) => (Some(table), name),
            None => (None, self.path),
        }
    }
}

macro_rules! keys {
    ($($name:ident: $variable:literal, $path:literal, $flag:expr, $default:literal, $example:literal, $about:literal;)*) => {
        $(#[doc = concat!("The setting `", $path, "`.")]
        pub const $name: Key = Key {
            variable: $variable, path: $path, flag: $flag, default: $default, example: $example, about: $about,
        };)*
        /// All of them, in the order people read them.
        pub const ALL: &[&Key] = &[$(&$name),*];
    };
}

keys! {
    MODEL_ID: "MODEL_ID", "model.id", Some("--model"), "(the best that is installed)",
        "\"ollama_chat/qwen2.5-coder:14b\"", "The model: provider/name, or a name of [models] or [routers].";
    MODEL_API_BASE: "MODEL_API_BASE", "model.api_base", Some("--api-base"), "(the provider's own)",
        "\"http://localhost:11434\"", "Address of the model server.";
    MODEL_TEMPERATURE: "MODEL_TEMPERATURE", "model.temperature", Some("--temperature"), "(0.1, or the model's own)",
        "0.1", "Randomness of the replies, from 0 to 2.";
    MODEL_MAX_TOKENS: "MODEL_MAX_TOKENS", "model.max_tokens", Some("--max-tokens"), "(1024 local, 4096 hosted)",
        "1024", "Most tokens of one reply.";
    MODEL_CONTEXT: "MODEL_CONTEXT", "model.context", Some("--context"),
        "(the server's, or by model and memory)", "32768", "Window of the model, in tokens.";
    MODEL_REQUESTS_PER_MINUTE: "MODEL_REQUESTS_PER_MINUTE", "model.requests_per_minute", None,
        "(no limit local, 60 hosted)", "60", "Most requests to the model in a minute.";
    AGENT_MAX_STEPS: "AGENT_MAX_STEPS", "agent.max_steps", Some("--max-steps"), "25", "", "Most steps of a run.";
    AGENT_MAX_DEPTH: "AGENT_MAX_DEPTH", "agent.max_depth", None, "4", "", "How deep agents may call agents.";
    AGENT_MAX_AGENTS: "AGENT_MAX_AGENTS", "agent.max_agents", None, "64", "",
        "Most agents that are called in a run for a task.";
    AGENT_PLAN: "AGENT_PLAN", "agent.plan", Some("--plan"), "false", "",
        "Have the model plan: true at the start, a number also every so many steps.";
    AGENT_INSTRUCTIONS: "AGENT_INSTRUCTIONS", "agent.instructions", Some("--no-instructions"), "true", "",
        "Offer the project's AGENTS.md to the model.";
    AGENT_APPROVE: "AGENT_APPROVE", "agent.approve", Some("--approve"), "\"ask\"", "",
        "What happens when an approval is needed: ask, edits, plan, auto, never or all.";
    MEMORY_ENABLED: "MEMORY_ENABLED", "memory.enabled", Some("--memory"), "false", "",
        "Let the agent remember things about the project from run to run.";
    MEMORY_EMBEDDINGS: "MEMORY_EMBEDDINGS", "memory.embeddings", None, "(none, words only)",
        "\"ollama/nomic-embed-text\"", "Embedding model that helps to find what was remembered.";
    GATE_ENABLED: "GATE_ENABLED", "gate.enabled", None, "true", "",
        "Refuse an answer to a task that asks for a change while nothing has changed.";
    PHOENIX_ENABLED: "PHOENIX_ENABLED", "trace.enabled", Some("--trace"), "true", "",
        "Send spans of a run to a collector, when one is there.";
    PHOENIX_ENDPOINT: "PHOENIX_ENDPOINT", "trace.endpoint", None, "\"http://localhost:6006/v1/traces\"", "",
        "Where spans go (OTLP over HTTP).";
    VALIDATION_MAX_CHARS: "VALIDATION_MAX_CHARS", "validation.max_chars", None, "5000", "",
        "Most characters of a result that is a bare text.";
    VALIDATION_MAX_LINES: "VALIDATION_MAX_LINES", "validation.max_lines", None, "200", "",
        "Most lines of a result that is a bare text.";
    VALIDATION_MAX_LINE_RANGE: "VALIDATION_MAX_LINE_RANGE", "validation.max_line_range", None, "1000", "",
        "Most lines a tool may be asked for at once.";
    TRUNCATION_MAX_CHARS: "TRUNCATION_MAX_CHARS", "truncation.max_chars", None, "3000", "",
        "Most characters of a text inside a structured result.";
    TRUNCATION_MAX_LINES: "TRUNCATION_MAX_LINES", "truncation.max_lines", None, "150", "",
        "Most lines of a text inside a structured result.";
    TRUNCATION_MAX_LIST_ITEMS: "TRUNCATION_MAX_LIST_ITEMS", "truncation.max_list_items", None, "100", "",
        "Most items of a list inside a structured result.";
    SANDBOX_IMAGE: "SANDBOX_IMAGE", "sandbox.image", None, "\"gimlet-sandbox:latest\"", "",
        "Image of the Docker sandbox.";
    SANDBOX_TIMEOUT: "SANDBOX_TIMEOUT", "sandbox.timeout", None, "30", "",
        "Longest computation in a sandbox, in seconds.";
    SANDBOX_PYTHON: "SANDBOX_PYTHON", "sandbox.python", None, "(VIRTUAL_ENV, .venv of the project, or python3)",
        "\"/home/me/envs/data/bin/python\"", "Interpreter of `--executor venv`; a relative path is below the project.";
    SANDBOX_PYTHON_WRITES: "SANDBOX_PYTHON_WRITES", "sandbox.python_writes", None, "false", "",
        "Let code of `--executor venv` change the project.";
    SANDBOX_TESTS: "SANDBOX_TESTS", "sandbox.tests", Some("--validation-tests"), "(none)", "\"pytest -q\"",
        "A command that must succeed with a patch in place, on a copy of the project, before the patch is offered.";
    LOG_LEVEL: "LOG_LEVEL", "log_level", None, "\"INFO\"", "",
        "Least severe diagnostics on standard error: TRACE, DEBUG, INFO, WARNING, ERROR or OFF.";
    SUPPRESS_WARNINGS: "SUPPRESS_WARNINGS", "suppress_warnings", None, "true", "",
        "Hide a run's warnings on standard error; its log always has them.";
    TERMINAL_NOTIFY: "TERMINAL_NOTIFY", "terminal.notify", None, "false", "",
        "Ring the bell and send a notification when a question waits, or a task of more than ten seconds is done.";
    TERMINAL_VI: "TERMINAL_VI", "terminal.vi", None, "false", "", "Edit lines of a session with the keys of vi.";
}

/// The key most like a misspelt name, if any is like it at all.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&name.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}
