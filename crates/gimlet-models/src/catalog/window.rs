//! How large a window a model gets: what its server has it loaded with, else as much as the model and the memory of the
//! machine allow. Where the number comes from is part of the result, so that a person can be told.

use super::discover::Installed;
use super::families::Family;

/// Windows that are tried, the largest first. A larger one than the first costs more than it brings: a small model
/// loses sight of what it read long before.
const STEPS: [u32; 4] = [65_536, 32_768, 16_384, 8192];
/// The least that an agent can work in. A server that has a model loaded with less is asked for more, where it can be.
const LEAST: u32 = 8192;
/// The window where neither the model's maximum nor the server's is known.
const UNKNOWN: u32 = 8192;
/// The largest window that is asked for where the memory is not known.
const WITHOUT_MEMORY: u32 = 32_768;
/// The part of the free memory that the window may take.
const SHARE: u64 = 4;
/// Bytes that a token takes in the window where the server does not tell: those of a model of 8 billion parameters.
const USUAL_BYTES: u64 = 128 * 1024;

/// A window, in tokens, and where the number comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelWindow {
    /// How many tokens.
    pub tokens: u32,
    /// Where the number comes from.
    pub source: WindowSource,
}

/// Where the size of a window comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowSource {
    /// The server has the model running with it.
    Running,
    /// The server is set to it: by its own options, or by the model's file there.
    Set,
    /// It is all that the model can take.
    Model,
    /// The model could take more, and the memory of this machine could not.
    Memory {
        /// The model's own maximum.
        most: u32,
    },
    /// The model could take more than is of use to it.
    Enough {
        /// The model's own maximum.
        most: u32,
    },
    /// Nobody knows the model's window; this is assumed.
    Assumed,
}

impl ModelWindow {
    /// The window of a model.
    pub(super) fn of(model: &Installed, family: Option<&Family>) -> ModelWindow {
        let most = model.context.or(family.and_then(|family| family.context));
        let least = most.map_or(LEAST, |most| most.min(LEAST));
        if let Some(tokens) = model.set_context {
            return ModelWindow { tokens, source: WindowSource::Set };
        }
        if let Some(tokens) = model.loaded_context.filter(|loaded| *loaded >= least) {
            return ModelWindow { tokens, source: WindowSource::Running };
        }
        let Some(most) = most else {
            return ModelWindow { tokens: UNKNOWN, source: WindowSource::Assumed };
        };
        let useful = most.min(STEPS[0]);
        let room = match model.free_memory {
            Some(free) => in_memory(model, free),
            None => WITHOUT_MEMORY,
        };
        if room >= useful {
            let source = if useful == most { WindowSource::Model } else { WindowSource::Enough { most } };
            return ModelWindow { tokens: useful, source };
        }
        let fits = STEPS.into_iter().find(|step| *step <= room.min(useful));
        ModelWindow { tokens: fits.unwrap_or(least), source: WindowSource::Memory { most } }
    }

    /// The size and why, for people.
    pub fn told(&self) -> String {
        let tokens = self.tokens;
        match self.source {
            WindowSource::Running => format!("{tokens} tokens, as the server has it loaded"),
            WindowSource::Set => format!("{tokens} tokens, as the server is set"),
            WindowSource::Model => format!("{tokens} tokens, all that the model can take"),
            WindowSource::Memory { most } => {
                format!("{tokens} of {most} tokens, by this machine's free memory")
            }
            WindowSource::Enough { most } => format!("{tokens} of {most} tokens"),
            WindowSource::Assumed => {
                format!("{tokens} tokens are assumed: the server does not tell the model's window")
            }
        }
    }

    /// Whether the program chose it, instead of reading it from the server.
    pub fn is_chosen(&self) -> bool {
        match self.source {
            WindowSource::Running | WindowSource::Set => false,
            WindowSource::Model
            | WindowSource::Memory { .. }
            | WindowSource::Enough { .. }
            | WindowSource::Assumed => true,
        }
    }
}

/// How many tokens fit the free memory beside the model's weights.
fn in_memory(model: &Installed, free: u64) -> u32 {
    // A running model has its weights in memory already.
    let weights = if model.loaded_context.is_some() { 0 } else { model.bytes.unwrap_or_default() };
    let room = free.saturating_sub(weights) / SHARE;
    let each = model.token_bytes.filter(|bytes| *bytes > 0).unwrap_or(USUAL_BYTES);
    u32::try_from(room / each).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn model() -> Installed {
        Installed { bytes: Some(5 * GIB), context: Some(131_072), ..Installed::named("qwen3:8b") }
    }

    fn window(model: &Installed) -> (u32, WindowSource) {
        let window = ModelWindow::of(model, None);
        (window.tokens, window.source)
    }

    #[test]
    fn the_server_is_believed_before_anything_is_chosen() {
        let set = Installed { set_context: Some(4096), loaded_context: Some(16_384), ..model() };
        assert_eq!(window(&set), (4096, WindowSource::Set));
        let running = Installed { loaded_context: Some(20_000), ..model() };
        assert_eq!(window(&running), (20_000, WindowSource::Running));
        let cramped = Installed { loaded_context: Some(4096), free_memory: Some(64 * GIB), ..model() };
        assert_eq!(window(&cramped), (65_536, WindowSource::Enough { most: 131_072 }));
        let tiny = Installed { context: Some(4096), loaded_context: Some(4096), ..model() };
        assert_eq!(window(&tiny), (4096, WindowSource::Running));
    }

    #[test]
    fn the_model_and_the_memory_decide_otherwise() {
        for (free, expected) in [
            (Some(64), (65_536, WindowSource::Enough { most: 131_072 })),
            (Some(22), (32_768, WindowSource::Memory { most: 131_072 })),
            (Some(14), (16_384, WindowSource::Memory { most: 131_072 })),
            (Some(4), (8192, WindowSource::Memory { most: 131_072 })),
            (None, (32_768, WindowSource::Memory { most: 131_072 })),
        ] {
            let model = Installed { free_memory: free.map(|free| free * GIB), ..model() };
            assert_eq!(window(&model), expected, "{free:?}");
        }
        let small = Installed { context: Some(40_960), free_memory: Some(64 * GIB), ..model() };
        assert_eq!(window(&small), (40_960, WindowSource::Model));
        let light = Installed { token_bytes: Some(28 * 1024), free_memory: Some(13 * GIB), ..model() };
        assert_eq!(window(&light), (65_536, WindowSource::Enough { most: 131_072 }));
        assert_eq!(window(&Installed::named("x")), (8192, WindowSource::Assumed));
    }
}
