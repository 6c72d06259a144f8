//! Starting a process on this machine: own process group, closed stdin, given environment, bounded memory.
//!
//! Whatever the process started is in its group and dies with it: at its end, at its timeout, when the call is cancelled
//! and when the future is dropped.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join};
use gimlet::command::{Captured, Command, CommandRunner, Confinement, End, Environment, Finished};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::sync::CancellationToken;

/// How long the streams are read on after everything in the group was killed. Only a process that left the group can
/// keep them open that long.
const DRAIN: Duration = Duration::from_secs(2);

/// What is said about commands that nothing confines.
const HOST: &str = "host";

/// Runs commands as the user, with nothing between them and the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostRunner;

impl CommandRunner for HostRunner {
    fn name(&self) -> &str {
        HOST
    }

    fn confinement(&self) -> Confinement {
        Confinement::None
    }

    fn run<'a>(
        &'a self,
        command: &'a Command,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, io::Result<Finished>> {
        let mut words = command.invocation.argv().into_iter();
        let Some(program) = words.next() else {
            return async { Err(io::Error::new(io::ErrorKind::InvalidInput, "no program")) }.boxed();
        };
        let process = Process {
            program,
            arguments: words.collect(),
            cwd: command.cwd.clone(),
            environment: command.environment.clone(),
            timeout: command.timeout,
            capture: Capture::Tail(command.keep),
        };
        async move { execute(&process, cancel).await }.boxed()
    }
}

/// A process to start.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) cwd: PathBuf,
    pub(crate) environment: Environment,
    pub(crate) timeout: Duration,
    pub(crate) capture: Capture,
}

/// Which end of a stream is kept, and how many bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Capture {
    Head(usize),
    Tail(usize),
}

/// Runs a process to its end.
pub(crate) async fn execute(process: &Process, cancel: &CancellationToken) -> io::Result<Finished> {
    let started = Instant::now();
    let mut child = tokio::process::Command::new(&process.program)
        .args(&process.arguments)
        .current_dir(&process.cwd)
        .env_clear()
        .envs(process.environment.iter())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let (mut stdout, mut stderr) = (Captured::default(), Captured::default());
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let end = {
        let reading =
            join(capture(out, process.capture, &mut stdout), capture(err, process.capture, &mut stderr));
        tokio::pin!(reading);
        let mut open = true;
        let timeout = tokio::time::sleep(process.timeout);
        tokio::pin!(timeout);
        let end = loop {
            tokio::select! {
                biased;
                () = cancel.cancelled() => break End::Cancelled,
                status = child.wait() => break ended(status?),
                () = &mut timeout => break End::TimedOut,
                _ = &mut reading, if open => open = false,
            }
        };
        group.kill();
        if open {
            // The result is no news: either the streams ended or their last owner cannot be reached.
            let _ = tokio::time::timeout(DRAIN, &mut reading).await;
        }
        end
    };
    if let Capture::Tail(limit) = process.capture {
        trim(&mut stdout, limit);
        trim(&mut stderr, limit);
    }
    child.wait().await?;
    Ok(Finished {
        end,
        stdout,
        stderr,
        duration: started.elapsed(),
        isolation: HOST.into(),
        missing: Vec::new(),
    })
}

fn ended(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Exited(code),
        (None, Some(signal)) => End::Signalled(signal),
        (None, None) => End::Exited(-1),
    }
}

/// A process group that is killed at the latest when its owner forgets it.
struct Group(Option<Pid>);

impl Group {
    fn kill(&self) {
        if let Some(group) = self.0 {
            // A group that is gone already is as good as killed.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads a stream to its end and keeps what was asked for.
async fn capture(stream: Option<impl AsyncRead + Unpin>, keep: Capture, kept: &mut Captured) {
    let Some(mut stream) = stream else { return };
    let mut chunk = vec![0u8; 64 * 1024];
    // An error reading a pipe of a dead process is its end.
    while let Ok(read) = stream.read(&mut chunk).await {
        if read == 0 {
            break;
        }
        add(kept, &chunk[..read], keep);
    }
}

/// Adds bytes. A tail may grow to twice its limit before its beginning is dropped, so that dropping is rare.
fn add(kept: &mut Captured, bytes: &[u8], keep: Capture) {
    match keep {
        Capture::Head(limit) => {
            let taken = bytes.len().min(limit.saturating_sub(kept.bytes.len()));
            kept.bytes.extend_from_slice(&bytes[..taken]);
            kept.dropped += (bytes.len() - taken) as u64;
        }
        Capture::Tail(limit) => {
            kept.bytes.extend_from_slice(bytes);
            if kept.bytes.len() > limit.saturating_mul(2) {
                trim(kept, limit);
            }
        }
    }
}

fn trim(kept: &mut Captured, limit: usize) {
    let excess = kept.bytes.len().saturating_sub(limit);
    kept.bytes.drain(..excess);
    kept.dropped += excess as u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_keeps_the_end_and_counts_the_rest() {
        let mut kept = Captured::default();
        for part in [&b"0123"[..], b"4567", b"89", b"abc"] {
            add(&mut kept, part, Capture::Tail(4));
        }
        trim(&mut kept, 4);
        assert_eq!((kept.bytes.as_slice(), kept.dropped), (&b"9abc"[..], 9));
        let mut kept = Captured::default();
        add(&mut kept, b"0123456", Capture::Head(4));
        add(&mut kept, b"789", Capture::Head(4));
        assert_eq!((kept.bytes.as_slice(), kept.dropped), (&b"0123"[..], 6));
    }
}
