//! The file `gimlet config init` writes: every setting with what it is for, all of it commented out.

use std::fmt::Write;

use super::key::{ALL, Key};

/// Whose file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The project's.
    Project,
    /// The user's.
    User,
}

/// The commented file.
pub fn template(whose: Whose) -> String {
    let mut text = String::from(match whose {
        Whose::Project => {
            "# Settings of this project for gimlet. Flags, the environment and .env come before this file.\n\
             # Whoever opens the project need not trust it: an address off this machine, a hosted model, a sandbox image,\n\
             # named models and agents take effect only after `gimlet trust`.\n"
        }
        Whose::User => {
            "# Your settings for gimlet. Flags, the environment, .env and a project's gimlet.toml come before this file.\n\
             # Keys to model providers do not belong here: set them in the environment, or in keys.toml beside this file\n\
             # (one NAME = \"value\" a line, readable by you alone).\n"
        }
    });
    let (free, in_tables): (Vec<&&Key>, Vec<&&Key>) = ALL.iter().partition(|key| key.place().0.is_none());
    let mut table = None;
    for key in free.into_iter().chain(in_tables) {
        let (part, name) = key.place();
        if part != table {
            table = part;
            let _ = write!(text, "\n# [{}]", part.unwrap_or_default());
        }
        let value = if key.example.is_empty() { key.default } else { key.example };
        let default = if key.example.is_empty() {
            String::new()
        } else {
            format!(" Default: {}.", &key.default[1..key.default.len() - 1])
        };
        let _ = write!(text, "\n# {}{default}\n# {name} = {value}\n", key.about);
    }
    text.push_str(
        "\n# Models and routers by names of your own; `gimlet -m team` asks the router.\n\
         # [models.sonnet]\n\
         # id = \"anthropic/claude-sonnet-4-20250514\"\n\
         # temperature = 0.2\n\
         # max_tokens = 4096\n\
         # requests_per_minute = 60\n\
         #\n\
         # [routers.team]\n\
         # models = [\"sonnet\", \"ollama_chat/qwen3:8b\"]\n\
         # strategy = \"ordered\"  # or \"shuffle\"\n\
         \n\
         # Agents of your own: `gimlet --agent lead` is led by one, `gimlet agents` lists them. What a table does not say\n\
         # is as in a run without it.\n\
         # [agents.lead]\n\
         # action = \"code\"\n\
         # agents = [\"reader\"]\n\
         #\n\
         # [agents.reader]\n\
         # description = \"Reads code and tells how it works\"\n\
         # model = \"ollama_chat/qwen3:8b\"\n\
         # tools = [\"read_file\", \"rg_search\", \"git_*\"]\n\
         # max_steps = 5\n",
    );
    text
}
