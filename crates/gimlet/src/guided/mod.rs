//! The `guided` action format as the loop sees it: the next step. What is asked, shown, read and told, and where guided
//! work stands, is `gimlet-reply`'s; the driver in `run/guided.rs` makes every effect a call through the toolbox.

mod next;

pub use gimlet_reply::guided::*;
pub use next::Step;
pub(crate) use next::next;
