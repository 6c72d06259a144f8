//! Which model to take: the one that was named, exactly as it is installed, or the best there is.
//!
//! A named model is never replaced by another; only when none was named does Gimlet choose.

use std::cmp::Reverse;

use super::discover::Installed;
use super::families::{Families, Profile, Tier};
use crate::wire::Wire;

/// Largest model that is taken before smaller ones, in billions of parameters.
const COMFORTABLE: f64 = 16.0;

/// A model, and why this one.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The model, with its exact installed name.
    pub model: Installed,
    /// Why, for people.
    pub why: String,
}

/// Why no model can be taken. All of these are the user's to mend.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ChooseError {
    /// The named model is not there.
    #[error("the model `{wanted}` is not installed at {host}{}", nearest_words(.nearest))]
    Absent {
        /// What was named.
        wanted: String,
        /// Where.
        host: String,
        /// Installed models with the most similar names, the nearest first.
        nearest: Vec<String>,
        /// How to get it.
        pull: Option<String>,
    },
    /// A name that several models share.
    #[error("several models are called `{wanted}`: {}", .candidates.join(", "))]
    Ambiguous {
        /// What was named.
        wanted: String,
        /// What it may mean.
        candidates: Vec<String>,
    },
    /// The server is there but has nothing.
    #[error("the server at {host} runs, but has no models")]
    NothingInstalled {
        /// Where.
        host: String,
        /// How to get one.
        pull: Option<String>,
    },
    /// Only models that cannot do the work.
    #[error("none of the models at {host} can work as an agent: {}", .reasons.join("; "))]
    NothingFit {
        /// Where.
        host: String,
        /// What is wrong with each.
        reasons: Vec<String>,
        /// How to get a better one.
        pull: Option<String>,
    },
}

fn nearest_words(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        [first, ..] => format!("; the nearest is `{first}`"),
    }
}

impl ChooseError {
    /// What the person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            ChooseError::Absent { nearest, pull, .. } => match (pull, nearest.first()) {
                (Some(pull), _) => {
                    Some(format!("get it with `{pull}`, or name an installed model with --model"))
                }
                (None, Some(nearest)) => Some(format!("try --model {nearest}")),
                (None, None) => None,
            },
            ChooseError::Ambiguous { .. } => Some("name one of them exactly with --model".to_owned()),
            ChooseError::NothingInstalled { pull, .. } | ChooseError::NothingFit { pull, .. } => {
                pull.as_ref().map(|pull| format!("get one with `{pull}`"))
            }
        }
    }
}

/// Takes the named model, or the best one.
/// `profile` says how to treat a model: by its family, and by how it did when it was graded.
pub fn choose(
    wanted: Option<&str>,
    installed: &[Installed],
    families: &Families,
    profile: impl Fn(&Installed) -> Profile,
    wire: Wire,
    host: &str,
) -> Result<Choice, ChooseError> {
    let pull = |name: &str| (wire == Wire::Ollama).then(|| format!("ollama pull {name}"));
    match wanted {
        Some(wanted) => named(wanted, installed, host, pull(wanted)),
        None => {
            let suggestion = families.preferred().first().and_then(|name| pull(name));
            best(installed, families, profile, host, suggestion)
        }
    }
}

fn named(
    wanted: &str,
    installed: &[Installed],
    host: &str,
    pull: Option<String>,
) -> Result<Choice, ChooseError> {
    let take = |model: &Installed, why: String| Ok(Choice { model: model.clone(), why });
    if let Some(model) = installed.iter().find(|model| model.name == wanted) {
        return take(model, "named".to_owned());
    }
    // Servers of files call a model by its path, and people by the name of the file.
    let mut files =
        installed.iter().filter(|model| file_name(&model.name).eq_ignore_ascii_case(file_name(wanted)));
    if let (Some(model), None) = (files.next(), files.next()) {
        return take(model, "named, without its folder".to_owned());
    }
    if !wanted.contains(':') {
        let latest = format!("{wanted}:latest");
        if let Some(model) = installed.iter().find(|model| model.name == latest) {
            return take(model, "named, without its tag".to_owned());
        }
        let tagged = format!("{wanted}:");
        let same: Vec<_> = installed.iter().filter(|model| model.name.starts_with(&tagged)).collect();
        match same.as_slice() {
            [] => {}
            [only] => return take(only, format!("the only `{wanted}` installed")),
            several => {
                let candidates = several.iter().map(|model| model.name.clone()).collect();
                return Err(ChooseError::Ambiguous { wanted: wanted.to_owned(), candidates });
            }
        }
    }
    let mut nearest: Vec<(f64, &str)> = installed
        .iter()
        .map(|model| (strsim::jaro_winkler(&model.name, wanted), model.name.as_str()))
        .filter(|(likeness, _)| *likeness > 0.6)
        .collect();
    nearest.sort_by(|a, b| b.0.total_cmp(&a.0));
    Err(ChooseError::Absent {
        wanted: wanted.to_owned(),
        host: host.to_owned(),
        nearest: nearest.into_iter().take(3).map(|(_, name)| name.to_owned()).collect(),
        pull,
    })
}

/// `qwen2.5-coder-1.5b` of `/models/qwen2.5-coder-1.5b.gguf`.
fn file_name(name: &str) -> &str {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    file.strip_suffix(".gguf").unwrap_or(file)
}

fn best(
    installed: &[Installed],
    families: &Families,
    profile: impl Fn(&Installed) -> Profile,
    host: &str,
    pull: Option<String>,
) -> Result<Choice, ChooseError> {
    if installed.is_empty() {
        return Err(ChooseError::NothingInstalled { host: host.to_owned(), pull });
    }
    let best = installed.iter().map(|model| profile(model).tier).min();
    for preferred in families.preferred() {
        // `x:14b-instruct` is `x:14b` in other clothes.
        let variant = format!("{preferred}-");
        let found = installed
            .iter()
            .find(|model| model.name == *preferred)
            .or_else(|| installed.iter().find(|model| model.name.starts_with(&variant)));
        // A preference decides among equals: never for a model that is known, or was probed, to be worse than another.
        let is_fit = |model: &&Installed| {
            let tier = profile(model).tier;
            tier < Tier::Limited && Some(tier) == best
        };
        if let Some(model) = found.filter(is_fit) {
            let why = format!("the preferred one of those that are {}", tier_word(profile(model).tier));
            return Ok(Choice { model: model.clone(), why });
        }
    }
    let fit = installed
        .iter()
        .map(|model| (profile(model), model))
        .filter(|(profile, _)| profile.tier != Tier::Unfit)
        .min_by_key(|(profile, model)| rank(profile.tier, model, families));
    match fit {
        Some((profile, model)) => {
            let why = match profile.family {
                Some(family) => format!("the best installed ({family} is {})", tier_word(profile.tier)),
                None => "nothing better known is installed".to_owned(),
            };
            Ok(Choice { model: model.clone(), why })
        }
        None => Err(ChooseError::NothingFit {
            host: host.to_owned(),
            reasons: installed
                .iter()
                .map(|model| format!("{}: {}", model.name, profile(model).defects.join(", ")))
                .collect(),
            pull,
        }),
    }
}

/// Better tier first, then known families in their order, then the largest that is still comfortable.
fn rank(tier: Tier, model: &Installed, families: &Families) -> impl Ord + use<> {
    let place = families.find(&model.name).map_or(usize::MAX, |(place, _)| place);
    let millions = (model.billions().unwrap_or(COMFORTABLE) * 1000.0) as u64;
    let uncomfortable = millions > (COMFORTABLE * 1000.0) as u64;
    let by_size = if uncomfortable { Reverse(u64::MAX - millions) } else { Reverse(millions) };
    (tier, place, uncomfortable, by_size, model.name.clone())
}

/// The word for a tier.
pub fn tier_word(tier: Tier) -> &'static str {
    match tier {
        Tier::Best => "best",
        Tier::Good => "good",
        Tier::Usable => "usable",
        Tier::Limited => "limited",
        Tier::Unfit => "unfit",
    }
}
