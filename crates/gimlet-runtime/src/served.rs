//! What a server tells of the model that was named, or of the best one it has: its exact name, and how it wants to be
//! asked. What is known of its family fills the gaps; what a probe showed overrules both.

use gimlet::constrain::Constrain;
use gimlet::event::{ActionFormat, Dialect};
use gimlet::model::ModelError;
use gimlet_models::catalog::{
    Action, Calls, Choice, ChooseError, Families, Installed, Profile, Scorecards, Server, choose,
};

use crate::models::scorecards;
use gimlet_config::UsageError;
use gimlet_config::{Failure, Process};

/// A model on its server.
pub struct Served {
    /// The model, with its exact name there.
    pub model: Installed,
    /// How to treat it.
    pub profile: Profile,
    /// Why this one.
    pub why: String,
}

/// How a model wants to be asked.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// How it acts.
    pub action: ActionFormat,
    /// How tools are written into its conversation.
    pub dialect: Dialect,
    /// When its replies are constrained to the form of an action.
    pub constrain: Constrain,
    /// Which tools it has when nobody says.
    pub tools: ToolSet,
    /// Whether the program takes the lead where a change was asked for and the model made none.
    pub takes_over: bool,
}

/// The built-in tools of an agent that names none. Tools of servers and of the memory are there in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolSet {
    /// At most ten, for models that run locally: each costs room in a small window, and the choice among many is hard.
    Lean,
    /// All of them.
    All,
}

impl Default for Manner {
    /// As hosted models want it.
    fn default() -> Self {
        Manner {
            action: ActionFormat::Tools,
            dialect: Dialect::Native,
            constrain: Constrain::default(),
            tools: ToolSet::All,
            takes_over: false,
        }
    }
}

impl From<&Profile> for Manner {
    fn from(profile: &Profile) -> Manner {
        Manner {
            action: match profile.action {
                Action::Tools => ActionFormat::Tools,
                Action::Code => ActionFormat::Code,
                Action::Guided => ActionFormat::Guided,
            },
            dialect: match profile.calls {
                Calls::Native => Dialect::Native,
                Calls::Text => Dialect::Text,
            },
            constrain: profile.constrain,
            tools: ToolSet::Lean,
            takes_over: true,
        }
    }
}

/// Why a server tells nothing of a model.
pub enum Untold {
    /// It cannot be asked.
    Server(ModelError),
    /// It has no such model.
    Choice(ChooseError),
    /// The list of families is broken.
    Families(anyhow::Error),
}

impl Untold {
    /// As a person reads it.
    pub fn error(self, named: bool) -> anyhow::Error {
        match self {
            Untold::Families(error) => error,
            Untold::Choice(error) => {
                let hint = error.hint();
                UsageError::new(error.to_string()).maybe_hint(hint).into()
            }
            Untold::Server(error) => unreachable_server(&error, named),
        }
    }
}

/// A server that cannot be asked, as a person reads it.
pub fn unreachable_server(error: &ModelError, named: bool) -> anyhow::Error {
    let hint = match named {
        false => "start Ollama, or name a model of another provider with --model",
        true => error.hint().unwrap_or("is the model server running?"),
    };
    Failure::new(error.to_string(), hint).into()
}

/// Asks a server about a model.
pub async fn served(process: &Process, server: &Server, wanted: Option<&str>) -> Result<Served, Untold> {
    let families = Families::built_in().map_err(|error| Untold::Families(error.into()))?;
    let installed = match wanted {
        // Only the names matter for finding one that was named.
        Some(_) => server.names().await,
        None => server.list().await,
    };
    let installed = installed.map_err(Untold::Server)?;
    let cards = scorecards(process).ok();
    let profile = |model: &Installed| graded(&families, cards.as_ref(), model);
    let Choice { model, why } = choose(wanted, &installed, &families, profile, server.wire(), server.host())
        .map_err(Untold::Choice)?;
    let model = server.describe(model).await.map_err(Untold::Server)?;
    let profile = profile(&model);
    Ok(Served { model, profile, why })
}

/// How to treat a model: as its family wants it, or as it showed when it was graded.
pub fn graded(families: &Families, cards: Option<&Scorecards>, model: &Installed) -> Profile {
    let profile = families.profile(model);
    match model.digest.as_deref().and_then(|digest| cards?.get(digest)) {
        Some(card) => profile.corrected(card),
        None => profile,
    }
}
