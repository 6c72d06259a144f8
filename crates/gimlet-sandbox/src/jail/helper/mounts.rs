//! Everything but the places a command may write, behind a read-only mount of its own: Landlock does not govern who
//! changes the mode, times or attributes of a file. Made by every user whom the kernel lets have a namespace.

use std::io;
use std::path::PathBuf;

use gimlet::command::Profile;

use super::scratch::Scratch;
use super::sys::{self, Tree};
use crate::jail::masks::Masks;
use crate::jail::order::Order;
use crate::jail::places::{between, is_real, outermost, protected};

/// Whether the kernel lets this user have such mounts. Tried in a process of its own, which ends at once.
pub(crate) fn are_allowed() -> bool {
    sys::succeeds_elsewhere(|| {
        sys::unshare_mounts()?;
        let copy = Tree::copy(c"/")?;
        sys::set_read_only(c"/")?;
        copy.put(c"/")
    })
}

/// Leaves the command what it may write, and has the rest read-only.
pub(crate) fn enter(order: &Order, scratch: &Scratch, masks: &Masks) -> io::Result<()> {
    let user = sys::User::of_this_process();
    if sys::unshare_mounts()? == sys::Unshared::WithUser {
        user.keep()?;
    }
    let writes = order.permissions.profile != Profile::ReadOnly;
    // Copies of what is mounted there, taken while it is as it was: nothing that was read-only before becomes writable.
    let copies = writable(order, scratch, writes)
        .iter()
        .map(|place| sys::c_path(place))
        .map(|place| place.and_then(|place| Ok((Tree::copy(&place)?, place))))
        .collect::<io::Result<Vec<_>>>()?;
    sys::set_read_only(c"/")?;
    for (copy, place) in copies {
        copy.put(&place)?;
    }
    if writes {
        keep(order)?;
    }
    mask(scratch, masks)?;
    // The folder this process is in has been mounted over.
    std::env::set_current_dir(&order.cwd)
}

/// Has secret files be there and not be read.
fn mask(scratch: &Scratch, masks: &Masks) -> io::Result<()> {
    for (cover, path) in scratch.covers(masks) {
        let copy = Tree::copy(&sys::c_path(cover)?)?;
        copy.set_read_only()?;
        copy.put(&sys::c_path(path)?)?;
    }
    Ok(())
}

/// The places that a command may write and that are there, without those that are in others of them: between two mounts
/// nothing can be renamed.
fn writable(order: &Order, scratch: &Scratch, writes: bool) -> Vec<PathBuf> {
    let beside = order.write.iter().chain([&order.root]).filter(|_| writes);
    let cache = order.cache.iter().filter(|_| order.keeps_cache());
    let beside = beside.chain(cache).filter(|place| is_real(place)).cloned();
    outermost(beside.chain([scratch.temporary().to_owned()]).collect())
}

/// Has what is protected in there stay as it is, and where it is: what is mounted cannot be moved away.
fn keep(order: &Order) -> io::Result<()> {
    let kept = outermost(protected(order));
    for folder in between(order, &kept) {
        let place = sys::c_path(&folder)?;
        Tree::copy(&place)?.put(&place)?;
    }
    for path in kept.iter().filter(|path| is_real(path)) {
        let place = sys::c_path(path)?;
        let copy = Tree::copy(&place)?;
        copy.set_read_only()?;
        copy.put(&place)?;
    }
    Ok(())
}
