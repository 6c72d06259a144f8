//! Whose container it is: a label names the process it belongs to, so that the next one can tell what is left over.

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// This process, as a label says it: its number, when it started, and where that number means something.
pub(crate) fn own_name() -> String {
    let id = std::process::id();
    format!("{id}:{}:{}", started(id).unwrap_or_default(), place())
}

/// What can be seen of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sight {
    /// There is none of that number.
    Nothing,
    /// There is one, which started then.
    Started(String),
    /// There is one, and this user may not know more.
    Hidden,
}

/// Whether the process a label names is known to be gone. One of another place cannot be looked for, and is left alone.
pub(crate) fn is_gone(owner: &str, here: &str, look: impl FnOnce(u32) -> Sight) -> bool {
    let mut parts = owner.splitn(3, ':');
    let (Some(id), Some(start), Some(place)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let Ok(id) = id.parse() else { return false };
    place == here
        && match look(id) {
            Sight::Nothing => true,
            Sight::Started(started) => started != start,
            Sight::Hidden => false,
        }
}

/// Looks for a process of this place.
pub(crate) fn look(process: u32) -> Sight {
    if let Some(started) = started(process) {
        return Sight::Started(started);
    }
    // Not by its files in `/proc`, which may be hidden from others (`hidepid`).
    let id = i32::try_from(process).ok().and_then(Pid::from_raw);
    match id.map(test_kill_process) {
        None | Some(Err(Errno::SRCH)) => Sight::Nothing,
        Some(Ok(()) | Err(_)) => Sight::Hidden,
    }
}

fn started(process: u32) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in brackets may hold anything; what follows it are plain fields, of which the state is the third.
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(19).map(str::to_owned)
}

/// Where a process's number means something: since this boot, in this namespace. All containers of a machine have the
/// same boot, and each its own numbers.
pub(crate) fn place() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let numbers = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{}:{}", boot.trim(), numbers.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_tells_whether_its_owner_is_gone() {
        let own = std::process::id();
        let here = place();
        assert!(here.contains(":pid:["), "{here}");
        assert!(!is_gone(&own_name(), &here, look));
        assert!(is_gone(&format!("{own}:1:{here}"), &here, look), "another process had that number");

        let owner = "7:100:boot:pid:[1]";
        let gone = |owner: &str, here: &str, sight: Sight| is_gone(owner, here, |_| sight);
        assert!(gone(owner, "boot:pid:[1]", Sight::Nothing));
        assert!(gone(owner, "boot:pid:[1]", Sight::Started("200".into())));
        assert!(!gone(owner, "boot:pid:[1]", Sight::Started("100".into())));
        assert!(!gone(owner, "boot:pid:[1]", Sight::Hidden));
        for elsewhere in ["boot:pid:[2]", "other:pid:[1]"] {
            assert!(!gone(owner, elsewhere, Sight::Nothing), "{elsewhere}");
        }
        for foreign in ["", "7", "7:100", "7:100:boot", "x:100:boot:pid:[1]"] {
            assert!(!gone(foreign, "boot:pid:[1]", Sight::Nothing), "{foreign}");
        }
    }

    #[test]
    fn a_process_that_has_ended_is_seen_as_none() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(look(child.id()), Sight::Nothing);
        assert!(matches!(look(std::process::id()), Sight::Started(_)));
    }
}
