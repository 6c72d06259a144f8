//! A nest: a worker that has loaded everything and forks others, which share its memory and start at once.
//!
//! It runs no code of a model and is not jailed; every worker it forks closes its own jail before it reads any.
//! Its process has a single thread, which is what makes forking it sound.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, setpgid, wait};

use super::jail;
use crate::protocol::{NEST_ALIVE, NEST_FORK, NEST_KILL, NEST_ORDER, NEST_STATUS};

/// What a forked worker talks through.
pub(super) struct Pipes {
    pub(super) input: File,
    pub(super) output: File,
}

/// How many ended workers a nest can still tell about: their parent asks at once, if at all.
const REMEMBERED: usize = 1024;

/// Obeys orders until the parent is gone, and is idle between them. Returns only in a forked worker.
pub(super) fn serve(mut control: File, idle: impl Fn(&File)) -> io::Result<Pipes> {
    let mut children = HashSet::new();
    let mut ended: VecDeque<(Pid, u32)> = VecDeque::new();
    loop {
        idle(&control);
        let Some((order, descriptors)) = receive(&control)? else { std::process::exit(0) };
        // A worker that has ended keeps its id until it is waited for, so an id in `children` is never another's.
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            children.remove(&pid);
            ended.truncate(REMEMBERED - 1);
            ended.push_front((pid, status.as_raw() as u32));
        }
        let [kind, pid @ ..] = order;
        match (kind, <[OwnedFd; 3]>::try_from(descriptors)) {
            (NEST_FORK, Ok([input, output, errors])) => {
                // SAFETY: this process has one thread, so the child finds no lock held and may go on as its parent
                // would.
                let child = unsafe { libc::fork() };
                if child == 0 {
                    drop(control);
                    return settle(input, output, errors);
                }
                children.extend(Pid::from_raw(child));
                control.write_all(&child.max(0).to_le_bytes())?;
            }
            (NEST_KILL, _) => {
                if let Some(pid) = Pid::from_raw(i32::from_le_bytes(pid)).filter(|pid| children.contains(pid))
                {
                    // It fails only when the worker has already ended.
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
            (NEST_STATUS, _) => {
                let asked = Pid::from_raw(i32::from_le_bytes(pid));
                let known = ended.iter().find(|(pid, _)| Some(*pid) == asked);
                control.write_all(&known.map_or(NEST_ALIVE, |(_, status)| *status).to_le_bytes())?;
            }
            (_, _) => return Err(io::Error::other("an order that is none")),
        }
    }
}

/// Makes a forked process a worker like any other.
fn settle(input: OwnedFd, output: OwnedFd, errors: OwnedFd) -> io::Result<Pipes> {
    rustix::stdio::dup2_stderr(&errors)?;
    jail::divert_standard_streams();
    setpgid(None, None)?;
    Ok(Pipes { input: input.into(), output: output.into() })
}

/// One order with its descriptors; `None` when the parent has closed the socket.
fn receive(control: &File) -> io::Result<Option<([u8; NEST_ORDER], Vec<OwnedFd>)>> {
    let mut order = [0; NEST_ORDER];
    let mut descriptors = Vec::new();
    let mut read = 0;
    while read < NEST_ORDER {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let got = recvmsg(
            control,
            &mut [IoSliceMut::new(&mut order[read..])],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        if got.bytes == 0 {
            return Ok(None);
        }
        read += got.bytes;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
    }
    Ok(Some((order, descriptors)))
}
