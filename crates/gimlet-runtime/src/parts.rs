//! The parts, for front ends that show one of them: the rules for commands, the catalogue of models, what is remembered.
//! Front ends name them through here, so that this crate alone decides which parts there are.

pub use gimlet_mcp as mcp;
pub use gimlet_memory as memory;
pub use gimlet_models as models;
pub use gimlet_policy as policy;
pub use gimlet_python as python;
pub use gimlet_repo as repo;
pub use gimlet_sandbox as sandbox;
pub use gimlet_store as store;
pub use gimlet_tools as tools;
