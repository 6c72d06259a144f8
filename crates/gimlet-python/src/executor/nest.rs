//! The parent's side of a nest: a task that owns the process and its socket, and obeys orders from sessions.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot};

use super::Program;
use crate::protocol::{NEST_ALIVE, NEST_FORK, NEST_KILL, NEST_ORDER, NEST_STATUS, ToWorker, encode};

/// A worker's end of standard input, output and error.
pub(crate) type Descriptors = [OwnedFd; 3];

/// A handle to a nest; the nest ends when the last one is dropped.
#[derive(Clone)]
pub(crate) struct Nest {
    orders: mpsc::UnboundedSender<Order>,
}

enum Order {
    Fork { descriptors: Descriptors, answer: oneshot::Sender<io::Result<u32>> },
    Kill(u32),
    Status { pid: u32, answer: oneshot::Sender<Option<ExitStatus>> },
}

impl Nest {
    /// Starts a nest; it loads its modules while nobody waits.
    pub(crate) fn start(program: &Program) -> io::Result<Nest> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let control = UnixStream::from_std(ours)?;
        let child = Command::new(&program.path)
            .args(&program.args)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let (orders, received) = mpsc::unbounded_channel();
        tokio::spawn(keep(child, control, received));
        Ok(Nest { orders })
    }

    /// Forks a worker that talks through these descriptors; its process id.
    pub(crate) async fn fork(&self, descriptors: Descriptors) -> io::Result<u32> {
        let gone = || io::Error::other("the nest is gone");
        let (answer, answered) = oneshot::channel();
        self.orders.send(Order::Fork { descriptors, answer }).map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    /// Kills a worker of this nest.
    pub(crate) fn kill(&self, pid: u32) {
        // A nest that is gone has nobody left to kill with; its workers end when their pipes close.
        let _ = self.orders.send(Order::Kill(pid));
    }

    /// How a worker of this nest ended, if it has and the nest can still tell.
    pub(crate) async fn status(&self, pid: u32) -> Option<ExitStatus> {
        let (answer, answered) = oneshot::channel();
        self.orders.send(Order::Status { pid, answer }).ok()?;
        answered.await.ok().flatten()
    }
}

/// The nest's life: ends with the last handle, or when the process does not obey.
async fn keep(child: Child, mut control: UnixStream, mut orders: mpsc::UnboundedReceiver<Order>) {
    let obeyed = async {
        control.write_all(&encode(&ToWorker::Nest)?).await?;
        while let Some(order) = orders.recv().await {
            match order {
                Order::Fork { descriptors, answer } => {
                    let forked = fork(&mut control, &descriptors).await;
                    let failed = forked.is_err();
                    let _ = answer.send(forked);
                    if failed {
                        break;
                    }
                }
                Order::Kill(pid) => control.write_all(&about(NEST_KILL, pid)).await?,
                Order::Status { pid, answer } => {
                    control.write_all(&about(NEST_STATUS, pid)).await?;
                    let status = control.read_u32_le().await?;
                    let ended = (status != NEST_ALIVE).then(|| ExitStatus::from_raw(status as i32));
                    let _ = answer.send(ended);
                }
            }
        }
        io::Result::Ok(())
    };
    // Whoever waits for an answer sees the dropped sender.
    let _ = obeyed.await;
    drop(child);
}

/// An order about one worker.
fn about(kind: u8, pid: u32) -> [u8; NEST_ORDER] {
    let mut order = [0; NEST_ORDER];
    order[0] = kind;
    order[1..].copy_from_slice(&pid.to_le_bytes());
    order
}

async fn fork(control: &mut UnixStream, descriptors: &Descriptors) -> io::Result<u32> {
    let order = [NEST_FORK, 0, 0, 0, 0];
    let borrowed = [descriptors[0].as_fd(), descriptors[1].as_fd(), descriptors[2].as_fd()];
    let sent = control
        .async_io(Interest::WRITABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            if !ancillary.push(SendAncillaryMessage::ScmRights(&borrowed)) {
                return Err(io::Error::other("no room for descriptors"));
            }
            Ok(sendmsg(&*control, &[IoSlice::new(&order)], &mut ancillary, SendFlags::empty())?)
        })
        .await?;
    if sent != order.len() {
        control.write_all(&order[sent..]).await?;
    }
    match control.read_u32_le().await? {
        0 => Err(io::Error::other("the nest could not fork")),
        pid => Ok(pid),
    }
}
