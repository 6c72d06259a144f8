//! The jail in Seatbelt's words, for macOS: a profile in which the last rule that fits counts. It is made and tested as a text;
//! nobody has run it on a Mac yet.

use std::fmt::Write;
use std::path::Path;

use gimlet::command::{Network, Profile};

use crate::jail::masks::Masks;
use crate::jail::order::Order;
use crate::jail::places::protected;

/// What every program needs: to start others, to ask the kernel about itself, and to look up users and names.
const BASE: &str = r#"(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow file-read-metadata)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow file-read* file-write-data (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty"))
(allow file-read* (literal "/dev/random") (literal "/dev/urandom") (literal "/"))
"#;
/// The system's own folders.
const SYSTEM: &[&str] = &[
    "/Applications/Xcode.app",
    "/Library",
    "/System",
    "/bin",
    "/opt",
    "/private/etc",
    "/private/var/db/timezone",
    "/sbin",
    "/usr",
];

/// The profile of a command's jail.
pub(crate) fn profile(order: &Order, temporary: &Path, masks: &Masks) -> String {
    let mut text = BASE.to_owned();
    for folder in SYSTEM {
        rule(&mut text, "allow file-read*", Path::new(folder));
    }
    // The home is not named, so that nothing of it is seen but the toolchain.
    for folder in order.read.iter().chain(&order.cache).chain([&order.root]) {
        rule(&mut text, "allow file-read*", folder);
    }
    rule(&mut text, "allow file-read* file-write*", temporary);
    for folder in order.cache.iter().filter(|_| order.keeps_cache()) {
        rule(&mut text, "allow file-write*", folder);
    }
    match order.permissions.profile {
        Profile::ReadOnly => {}
        Profile::WorkspaceWrite | Profile::Unrestricted => {
            for folder in order.write.iter().chain([&order.root]) {
                rule(&mut text, "allow file-write*", folder);
            }
            for path in protected(order) {
                rule(&mut text, "deny file-write*", &path);
            }
        }
    }
    for path in masks.paths().chain(&order.hidden) {
        rule(&mut text, "deny file-read* file-write*", path);
    }
    match order.permissions.network {
        Network::Blocked => {}
        Network::Allowed => text.push_str("(allow network*)\n(allow system-socket)\n"),
    }
    text
}

/// A rule for a path and all that is below it.
fn rule(text: &mut String, verb: &str, path: &Path) {
    // A path that is no text cannot be named in a profile. What is not named is denied; a path to deny is then named by the
    // nearest folder above it that can be.
    let named = match path.to_str() {
        Some(named) => named,
        None if verb.starts_with("allow") => return,
        None => path.ancestors().find_map(Path::to_str).unwrap_or("/"),
    };
    let quoted = named.replace('\\', r"\\").replace('"', "\\\"");
    // Writing to a text does not fail.
    let _ = writeln!(text, "({verb} (subpath \"{quoted}\"))");
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use gimlet::command::Permissions;

    use super::*;
    use crate::jail::detect::Mechanism;
    use crate::jail::order::{self, Limits, Purpose};

    fn order(profile: Profile, network: Network) -> Order {
        Order {
            version: order::VERSION.to_owned(),
            parent: 1,
            purpose: Purpose::Command,
            mechanism: Mechanism::Seatbelt("/usr/bin/sandbox-exec".into()),
            root: "/Users/me/a \"quoted\" project".into(),
            cwd: "/Users/me/a \"quoted\" project".into(),
            home: Some("/Users/me".into()),
            hidden: vec!["/Users/me/.gimlet".into()],
            secrets: Vec::new(),
            public: Vec::new(),
            read: vec!["/Users/me/.cargo/bin".into()],
            write: Vec::new(),
            cache: None,
            unset: Vec::new(),
            permissions: Permissions { profile, network, ..Permissions::default() },
            limits: Limits::default(),
        }
    }

    fn text(order: &Order) -> String {
        let mut masks = Masks::default();
        masks.files.insert(PathBuf::from("/Users/me/a \"quoted\" project/.env"));
        profile(order, Path::new("/private/tmp/gimlet-jail-1"), &masks)
    }

    #[test]
    fn the_profile_of_a_command() {
        insta::assert_snapshot!(text(&order(Profile::WorkspaceWrite, Network::Blocked)));
    }

    #[test]
    fn what_is_read_only_is_written_nowhere_but_in_the_temporary_folder() {
        let text = text(&order(Profile::ReadOnly, Network::Blocked));
        let writes: Vec<&str> =
            text.lines().filter(|line| line.starts_with("(allow") && line.contains("file-write*")).collect();
        assert_eq!(writes, ["(allow file-read* file-write* (subpath \"/private/tmp/gimlet-jail-1\"))"]);
        assert!(!text.contains("network"), "{text}");
    }

    #[test]
    fn the_network_is_there_where_it_is_allowed_and_secrets_are_denied_last() {
        let text = text(&order(Profile::WorkspaceWrite, Network::Allowed));
        assert!(text.ends_with("(allow network*)\n(allow system-socket)\n"), "{text}");
        let (project, secret) = (text.rfind("allow file-write*").unwrap(), text.find(".env").unwrap());
        assert!(project < secret, "{text}");
    }

    #[test]
    fn a_path_that_is_no_text_is_denied_with_what_is_around_it() {
        use std::os::unix::ffi::OsStrExt;
        let odd = Path::new("/Users/me/project").join(std::ffi::OsStr::from_bytes(b"\xff"));
        let mut text = String::new();
        rule(&mut text, "allow file-read*", &odd);
        assert_eq!(text, "");
        rule(&mut text, "deny file-read*", &odd);
        assert_eq!(text, "(deny file-read* (subpath \"/Users/me/project\"))\n");
    }
}
