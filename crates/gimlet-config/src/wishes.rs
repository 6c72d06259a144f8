//! What a project's file asks for beyond harmless settings: what the user agrees to with `gimlet trust`.

use std::collections::BTreeMap;
use std::path::Path;

use gimlet_models::Url;
use gimlet_models::transport::is_loopback;
use toml::Spanned;

use super::file::{ConfigFile, Source};
use super::value::{Raw, Value};
use super::{SECTIONS, dotenv, key};

/// Something that needs trust.
#[derive(Debug, PartialEq, Eq)]
pub struct Wish {
    /// Counted from 1.
    pub line: usize,
    /// In words.
    pub what: String,
}

/// What a file asks for, in the order of its lines.
pub fn ask_for(path: &Path, bytes: &[u8]) -> anyhow::Result<Vec<Wish>> {
    let mut wishes = Vec::new();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => {
            let source = Source::Project { path: path.canonicalize()?, trusted: false };
            let file = ConfigFile::new(source, bytes.to_vec())?;
            for key in [
                &key::MODEL_ID,
                &key::MODEL_API_BASE,
                &key::AGENT_MAX_STEPS,
                &key::AGENT_MAX_DEPTH,
                &key::AGENT_MAX_AGENTS,
                &key::MEMORY_EMBEDDINGS,
                &key::PHOENIX_ENDPOINT,
                &key::SANDBOX_IMAGE,
                &key::SANDBOX_TESTS,
                &key::SANDBOX_TIMEOUT,
                &key::VALIDATION_MAX_CHARS,
                &key::VALIDATION_MAX_LINES,
                &key::VALIDATION_MAX_LINE_RANGE,
                &key::TRUNCATION_MAX_CHARS,
                &key::TRUNCATION_MAX_LINES,
                &key::TRUNCATION_MAX_LIST_ITEMS,
            ] {
                if let Some((raw, line)) = file.raw(key)? {
                    wishes.extend(wish(key, &raw, line));
                }
            }
            // Rules for commands need no trust: a project's can only tighten.
            if let Some(part) = file.section::<BTreeMap<Spanned<String>, toml::Table>>("agents")? {
                wishes.extend(part.value.iter().map(|(name, table)| {
                    let text = toml::to_string(table).unwrap_or_default();
                    let what =
                        format!("defines the agent `{}`: {}", name.get_ref(), text.replace('\n', "; "));
                    Wish { line: file.spot(&name.span()).line, what }
                }));
            }
            for section in SECTIONS.iter().filter(|section| !matches!(**section, "policy" | "agents")) {
                if let Some(part) = file.section::<toml::Table>(section)? {
                    let line = file.line_of(section)?.unwrap_or(1);
                    let text = toml::to_string(&part.value).unwrap_or_default();
                    wishes.push(Wish {
                        line,
                        what: format!("defines [{section}]: {}", text.replace('\n', "; ")),
                    });
                }
            }
        }
        Some("md") => {
            let lines = String::from_utf8_lossy(bytes).lines().count();
            let kind = if path.ends_with("SKILL.md") { "a skill" } else { "a command" };
            wishes
                .push(Wish { line: 1, what: format!("is {kind}: the model is to follow its {lines} lines") });
        }
        Some("json") => {
            let text = String::from_utf8_lossy(bytes);
            let value: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
            let servers = value.get("mcpServers").or(value.get("servers")).is_some();
            let what = if servers { "defines servers" } else { "holds" };
            wishes.push(Wish { line: 1, what: format!("{what}: {text}") });
        }
        _ => {
            for line in dotenv::read(&String::from_utf8_lossy(bytes)) {
                let key = key::ALL.iter().find(|key| key.variable == line.name);
                wishes.extend(key.and_then(|key| wish(key, &Raw::Word(line.value.clone()), line.number)));
            }
        }
    }
    wishes.sort_by_key(|wish| wish.line);
    Ok(wishes)
}

fn wish(key: &key::Key, raw: &Raw, line: usize) -> Option<Wish> {
    let what = match key.variable {
        "MODEL_API_BASE" | "PHOENIX_ENDPOINT" => {
            let url = Url::read(raw).filter(|url| !is_loopback(url))?;
            let sent = if key.variable == "MODEL_API_BASE" { "conversations" } else { "spans" };
            format!("sends {sent} to {}", url.host_str().unwrap_or("?"))
        }
        "SANDBOX_IMAGE" => format!("runs code in the image {raw}"),
        "SANDBOX_TESTS" => format!("runs {raw} with every patch"),
        "MEMORY_EMBEDDINGS" => format!("has what was remembered read by the model {raw}"),
        "AGENT_MAX_DEPTH" => format!("has agents call agents {raw} deep"),
        "AGENT_MAX_AGENTS" => format!("has up to {raw} agents at work for a task"),
        "AGENT_MAX_STEPS" | "SANDBOX_TIMEOUT" => format!("sets {} to {raw}", key.path),
        name if name.starts_with("VALIDATION_MAX_") || name.starts_with("TRUNCATION_MAX_") => {
            format!("sets {} to {raw}", key.path)
        }
        "MODEL_ID" => format!("chooses the model {raw}"),
        _ => return None,
    };
    Some(Wish { line, what })
}
