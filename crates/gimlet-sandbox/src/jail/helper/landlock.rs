//! The jail in Landlock's words: nothing may be touched but what a rule names. A rule holds for everything below its
//! folder, so a folder with something protected in it is not named itself; what else is in it is, one by one.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use gimlet::command::{GitFolder, Network, Profile};
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::fs::{Mode, OFlags};

use super::scratch::Scratch;
use super::sys;
use crate::jail::order::Order;
use crate::jail::places::{RESOLVERS, SYSTEM, is_own_place, protected, secrets};

/// What is handled; an older kernel handles what it knows of it.
const VERSION: ABI = ABI::V5;
/// The first that keeps signals, and names of sockets, inside.
const SCOPES: ABI = ABI::V6;
/// Devices that are no one's.
const DEVICES: &[&str] = &["/dev/full", "/dev/null", "/dev/random", "/dev/tty", "/dev/urandom", "/dev/zero"];

/// A file or folder, held open, and what may be done there.
pub(crate) struct Rule {
    place: OwnedFd,
    access: BitFlags<AccessFs>,
}

/// The rules of a command's jail. The contents of what is masked are left out: a file that a command makes beside one of
/// those can then be written and not be read.
pub(crate) fn rules(order: &Order, scratch: &Scratch, masked: &[PathBuf]) -> io::Result<Vec<Rule>> {
    let (read, all) = (AccessFs::from_read(VERSION), AccessFs::from_all(VERSION));
    let mut rules = Rules::default();
    let mut hidden = order.hidden.clone();
    if sys::is_root() {
        hidden.extend(secrets());
    }
    let home = order.home.iter().filter(|home| is_own_place(home)).cloned();
    let beside_home: Vec<PathBuf> = hidden.iter().cloned().chain(home).collect();
    for path in SYSTEM.iter().map(Path::new).chain([Path::new("/proc"), Path::new("/sys")]) {
        rules.around(path, Links::Follow, &beside_home, read)?;
    }
    if order.permissions.network == Network::Allowed {
        for path in RESOLVERS {
            rules.around(Path::new(path), Links::Follow, &hidden, read)?;
        }
    }
    for path in DEVICES {
        rules.add(Path::new(path), Links::Follow, read | AccessFs::WriteFile)?;
    }
    for path in &order.read {
        rules.around(path, Links::Follow, &hidden, read)?;
    }
    rules.add(scratch.temporary(), Links::Leave, all)?;
    let contents = AccessFs::ReadFile | AccessFs::Execute;
    rules.add(&order.root, Links::Leave, read & !contents)?;
    rules.around(&order.root, Links::Leave, masked, contents)?;
    let changes = all & !contents;
    match (order.permissions.profile, order.permissions.git) {
        (Profile::ReadOnly, _) => {}
        (Profile::WorkspaceWrite | Profile::Unrestricted, GitFolder::ReadOnly) => {
            rules.around(&order.root, Links::Leave, &protected(order), changes)?;
        }
        // Git makes files at the top of its folder, and a rule for that is a rule for all of it.
        (Profile::WorkspaceWrite | Profile::Unrestricted, GitFolder::Writable) => {
            rules.add(&order.root, Links::Leave, changes)?;
        }
    }
    if order.permissions.profile != Profile::ReadOnly {
        for path in &order.write {
            rules.add(path, Links::Leave, all)?;
        }
    }
    for path in order.cache.iter().filter(|_| order.keeps_cache()) {
        rules.add(path, Links::Leave, all)?;
    }
    Ok(rules.0)
}

/// Whether [`keep_names`] works around this bubblewrap. One that is set-uid needs the privileges it would lose.
pub(crate) fn keeps_names(bubblewrap: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    sys::landlock_version() >= SCOPES as i32
        && std::fs::metadata(bubblewrap).is_ok_and(|known| known.permissions().mode() & libc::S_ISUID == 0)
}

/// Has this process and all it starts reach no socket of others that has a name and no file.
pub(crate) fn keep_names() -> io::Result<()> {
    let restrict = || -> Result<RulesetStatus, landlock::RulesetError> {
        let set = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .scope(Scope::AbstractUnixSocket)?
            .create()?;
        Ok(set.restrict_self()?.ruleset)
    };
    is_enforced(restrict())
}

/// Makes the rules hold for this process and all it starts, or fails.
pub(crate) fn enforce(rules: Vec<Rule>) -> io::Result<()> {
    let restrict = || -> Result<RulesetStatus, landlock::RulesetError> {
        let mut set = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(VERSION))?
            .scope(Scope::from_all(SCOPES))?
            .create()?;
        for rule in rules {
            set = set.add_rule(PathBeneath::new(rule.place, rule.access))?;
        }
        Ok(set.restrict_self()?.ruleset)
    };
    is_enforced(restrict())
}

fn is_enforced(status: Result<RulesetStatus, landlock::RulesetError>) -> io::Result<()> {
    match status.map_err(io::Error::other)? {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(io::Error::other("Landlock is not enforced")),
    }
}

/// Whether a link leads to what it names. One in the project must not: it could name anything.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Links {
    Follow,
    Leave,
}

#[derive(Default)]
struct Rules(Vec<Rule>);

impl Rules {
    /// Names a place, if it exists.
    fn add(&mut self, path: &Path, links: Links, access: BitFlags<AccessFs>) -> io::Result<()> {
        let mut flags = OFlags::PATH | OFlags::CLOEXEC;
        if links == Links::Leave {
            flags |= OFlags::NOFOLLOW;
        }
        let place = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(place) => place,
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::ACCESS | rustix::io::Errno::NOTDIR) => {
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let access = match rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&place)?.st_mode) {
            rustix::fs::FileType::Directory => access,
            rustix::fs::FileType::Symlink => return Ok(()),
            _ => access & AccessFs::from_file(VERSION),
        };
        self.0.push(Rule { place, access });
        Ok(())
    }

    /// Names a place, or everything in it but the holes.
    fn around(
        &mut self,
        path: &Path,
        links: Links,
        holes: &[PathBuf],
        access: BitFlags<AccessFs>,
    ) -> io::Result<()> {
        if holes.iter().any(|hole| path.starts_with(hole)) {
            return Ok(());
        }
        if !holes.iter().any(|hole| hole.starts_with(path)) {
            return self.add(path, links, access);
        }
        match std::fs::read_dir(path) {
            Ok(entries) => {
                for entry in entries {
                    self.around(&entry?.path(), links, holes, access)?;
                }
                Ok(())
            }
            // Not there, or not a folder: then nothing of the holes is in it.
            Err(_) => self.add(path, links, access),
        }
    }
}
