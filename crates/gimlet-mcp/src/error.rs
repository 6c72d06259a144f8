//! Why a server cannot be used, told to a person.

use std::fmt::Write;

/// Why a server cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum McpError {
    /// Its program cannot be started, or its address is not one.
    #[error("MCP server `{server}` cannot be started: {reason}")]
    Start {
        /// Which.
        server: String,
        /// What the system said.
        reason: String,
        /// What may help.
        hint: String,
    },
    /// It took too long.
    #[error("MCP server `{server}` was not ready within {seconds} s{}", tail(.stderr))]
    NotReady {
        /// Which.
        server: String,
        /// How long was waited.
        seconds: u64,
        /// The last words of its process.
        stderr: String,
    },
    /// It ended or answered nonsense.
    #[error("MCP server `{server}` cannot be used: {reason}{}", tail(.stderr))]
    Broken {
        /// Which.
        server: String,
        /// What happened.
        reason: String,
        /// The last words of its process.
        stderr: String,
    },
    /// It wants to know who asks.
    #[error("MCP server `{server}` wants an authorization")]
    Unauthorized {
        /// Which.
        server: String,
    },
    /// It does not have what the configuration counts on.
    #[error("MCP server `{server}` does not offer the required {}", tools(.missing))]
    MissingTools {
        /// Which.
        server: String,
        /// What is missing.
        missing: Vec<String>,
        /// What it has.
        offered: Vec<String>,
    },
}

impl McpError {
    /// Which server.
    pub fn server(&self) -> &str {
        match self {
            McpError::Start { server, .. }
            | McpError::NotReady { server, .. }
            | McpError::Broken { server, .. }
            | McpError::Unauthorized { server }
            | McpError::MissingTools { server, .. } => server,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            McpError::Start { hint, .. } => hint.clone(),
            McpError::NotReady { .. } => {
                "start it by hand to see what it does, or raise its `connect_timeout`".into()
            }
            McpError::Broken { .. } => "start it by hand to see what it does".into(),
            McpError::Unauthorized { .. } => {
                "give it a key: headers = { Authorization = \"Bearer ${ITS_TOKEN}\" }".into()
            }
            McpError::MissingTools { offered, .. } if offered.is_empty() => {
                "it offers no tools at all".into()
            }
            McpError::MissingTools { offered, .. } => {
                format!(
                    "it offers {}; change `required`, `allow` or `deny`, or the server",
                    offered.join(", ")
                )
            }
        }
    }
}

fn tools(missing: &[String]) -> String {
    format!("tool{} {}", if missing.len() == 1 { "" } else { "s" }, missing.join(", "))
}

/// What a process wrote last, indented below the message.
fn tail(stderr: &str) -> String {
    let mut text = String::new();
    let lines: Vec<&str> = stderr.lines().collect();
    let last = &lines[lines.len().saturating_sub(12)..];
    if !last.is_empty() {
        text.push_str("\nIt wrote:");
    }
    for line in last {
        let _ =
            write!(text, "\n  {}", line.chars().filter(|c| !c.is_control()).take(300).collect::<String>());
    }
    text
}
