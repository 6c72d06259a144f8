//! Programs that live as long as a session, such as MCP servers. Two processes stand around each: the outer one belongs to
//! whoever asked, and the supervisor ends everything that the program has started, daemons in sessions of their own included.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use super::{STOPPED, broken, exit_code, gone, not_started, sys, tree};

/// How often the outer process looks whether whoever asked is still there. The kernel's own signal for that comes when the
/// thread ends that asked, which may be long before its program does.
const LOOK: Duration = Duration::from_millis(500);
/// How long a program has to end by itself once it was asked to; whoever asks waits a little longer than that.
const GRACE: Duration = Duration::from_millis(1500);

/// Watches over a program without a jail: `PARENT -- PROGRAM ARGUMENTS…`.
pub(super) fn run(mut args: impl Iterator<Item = OsString>) -> io::Result<u8> {
    let parent = args.next().and_then(|word| word.to_str()?.parse().ok());
    let parent = parent.ok_or_else(|| io::Error::other("it is not said who asks"))?;
    let argv: Vec<OsString> = args.skip_while(|word| word == "--").collect();
    stand_before(parent, |own| supervise(&argv, own))
}

/// The outer process: passes on what it is asked to do, and is gone when whoever asked is.
pub(super) fn stand_before(parent: u32, supervise: impl FnOnce(u32) -> io::Result<u8>) -> io::Result<u8> {
    if sys::parent() != parent {
        return Err(gone());
    }
    let signals = sys::Signals::block()?;
    let own = std::process::id();
    let supervisor = match sys::fork()? {
        sys::Fork::Child => std::process::exit(supervise(own).unwrap_or_else(|error| broken(&error)).into()),
        sys::Fork::Parent(supervisor) => supervisor,
    };
    loop {
        match signals.wait(LOOK)? {
            Some(libc::SIGCHLD) => {
                if let Some(status) = sys::reap_but(supervisor) {
                    return Ok(exit_code(status));
                }
            }
            Some(_) => sys::ask_to_end(supervisor),
            // The supervisor hears of this process's end by a signal of its own.
            None if sys::parent() != parent => return Ok(STOPPED),
            None => {}
        }
    }
}

/// Runs the program as it is and ends everything it has started.
fn supervise(argv: &[OsString], outer: u32) -> io::Result<u8> {
    sys::new_session()?;
    let signals = sys::Signals::block()?;
    sys::die_with_parent(libc::SIGTERM)?;
    if sys::parent() != outer {
        return Ok(STOPPED);
    }
    sys::adopt_orphans()?;
    let command = match start(argv, &signals) {
        Ok(command) => command,
        Err(error) => return Ok(not_started(argv, &error)),
    };
    let code = loop {
        match signals.wait(LOOK)? {
            Some(libc::SIGCHLD) => {
                if let Some(status) = sys::reap_but(command) {
                    break exit_code(status);
                }
            }
            Some(_) => {
                // Whoever was killed has no time left to wait for anybody.
                if sys::parent() == outer {
                    end_in_peace(command, &signals)?;
                }
                break STOPPED;
            }
            None => {}
        }
    };
    tree::end(command);
    Ok(code)
}

fn start(argv: &[OsString], signals: &sys::Signals) -> io::Result<u32> {
    let Some((program, arguments)) = argv.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program"));
    };
    match sys::fork()? {
        sys::Fork::Child => {
            let ready = signals.unblock().and_then(|()| sys::lead_group(0));
            let error = match ready {
                Ok(()) => Command::new(program).args(arguments).exec(),
                Err(error) => error,
            };
            std::process::exit(not_started(argv, &error).into())
        }
        sys::Fork::Parent(command) => {
            // Whoever comes first; it fails where the child was, and that is as good.
            let _ = sys::lead_group(command);
            Ok(command)
        }
    }
}

/// Asks the program to end and gives it time for it.
fn end_in_peace(command: u32, signals: &sys::Signals) -> io::Result<()> {
    sys::signal_group(command, libc::SIGTERM);
    let asked = Instant::now();
    while asked.elapsed() < GRACE {
        let left = GRACE.saturating_sub(asked.elapsed());
        if signals.wait(left)? == Some(libc::SIGCHLD) && sys::reap_but(command).is_some() {
            break;
        }
    }
    Ok(())
}
