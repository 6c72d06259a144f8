//! Which models there are, what they are good for, and which one to take.

pub mod choose;
pub mod discover;
pub mod families;
pub mod probe;
pub mod table;
pub mod window;

pub use choose::{Choice, ChooseError, choose, tier_word};
pub use discover::{Installed, Server};
pub use families::{Action, Calls, Evidence, Families, Profile, Tier};
pub use probe::{KINDS, Scorecard, Scorecards, probe};
pub use window::{ModelWindow, WindowSource};
