//! The program a jailed command starts in. Two processes stand around the command: the outer one belongs to the runner,
//! which may kill it at any time, and the supervisor, in a session of its own, outlives that just long enough to end
//! every process the command has started, daemons included.

mod aside;
mod bubblewrap;
mod landlock;
mod mounts;
mod scratch;
mod seatbelt;
mod seccomp;
mod supervisor;
#[expect(unsafe_code, reason = "the kernel's own calls; each block says why it is sound")]
mod sys;
mod tree;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use gimlet::command::{GitFolder, Network, Profile};
use rustix::process::Resource;

pub(crate) use self::aside::Watched;
use self::scratch::Scratch;
use self::tree::Depth;
use super::detect::{Mechanism, Outside};
use super::masks::{Masks, Reach};
use super::order::{self, Errand, Limits, Order, Purpose};

/// How often the tree is measured.
pub const TICK: Duration = Duration::from_millis(25);
/// How often that of a server is, which may be idle for hours.
const SLOW_TICK: Duration = Duration::from_millis(500);
/// How often that of an interpreter is, which is idle while the model writes.
pub const WORKER_TICK: Duration = Duration::from_millis(50);
/// Every how many times the files are looked at that are nowhere but in memory.
const LOOKS: u32 = 8;
/// How many threads a process has on average before the kernel refuses more, or, to root, the supervisor.
const TASKS: usize = 8;
/// Exit code when the jail itself could not be built; nothing of the command has run.
pub(crate) const BROKEN: u8 = 125;
/// Exit code when the command's program cannot be started.
const NOT_STARTED: u8 = 127;
/// Exit code of a command that was stopped from outside.
const STOPPED: u8 = 143;
/// Exit code of a command that was killed by a limit, as for SIGKILL.
const LIMITED: u8 = 137;
/// Exit code of a command whose processor time was used up, as for SIGXCPU.
const OUT_OF_TIME: u8 = 128 + libc::SIGXCPU as u8;
/// What the helper says begins with this.
pub(crate) const MARK: &str = "gimlet jail: ";
/// The first argument of a helper that only watches over a program, without a jail.
pub(crate) const SUPERVISE: &str = "supervise";
/// The variable with a word that only the runner and the helper know, and that stands before the reason when nothing has
/// run: a command can say anything else. Not an argument, for those can be read by every process.
pub(crate) const WORD: &str = "GIMLET_JAIL_WORD";

/// The helper's whole life: `ORDER -- PROGRAM ARGUMENTS…`. Must run before the program has started a thread.
pub fn main(args: impl IntoIterator<Item = OsString>) -> std::process::ExitCode {
    std::process::ExitCode::from(outer(args).unwrap_or_else(|error| broken(&error)))
}

/// The version of Landlock that the kernel speaks; 0 or less if none.
pub(crate) fn landlock_version() -> i32 {
    sys::landlock_version()
}

/// Whether a command can be kept from changing files outside otherwise than by writing them.
pub(crate) fn mounts_are_allowed() -> bool {
    mounts::are_allowed()
}

/// What it means if not, in words.
pub(crate) fn on_owned_files() -> &'static str {
    if sys::is_root() {
        "this machine allows no mounts of its own to a command, so one can change the permissions, owner and times of \
         every file of root: commands of root are not confined in this"
    } else {
        "this machine allows no mounts of its own to a command, so one can change the permissions and times of your files \
         outside of the project"
    }
}

/// Removes what helpers that were killed have left behind.
pub(crate) fn sweep(temporary: &Path) {
    scratch::sweep(temporary);
}

/// Whether the kernel says what a process has started.
pub(crate) fn lists_children() -> bool {
    tree::lists_children(Path::new("/proc"))
}

/// The owner of a folder in which root, once its capabilities are gone, could not write.
pub(crate) fn foreign_owner(root: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let owner = std::fs::metadata(root).ok()?.uid();
    (sys::is_root() && owner != 0).then_some(owner)
}

fn broken(error: &io::Error) -> u8 {
    let word = std::env::var(WORD).unwrap_or_default();
    say(&format!("{word}the jail cannot be built: {error}"));
    BROKEN
}

/// Speaks to whoever reads the command's error output.
#[expect(clippy::disallowed_methods, reason = "it is the command's error output, which the runner reads")]
fn say(text: &str) {
    // Nobody is left to tell when this fails.
    let _ = writeln!(io::stderr(), "{MARK}{text}");
}

fn outer(args: impl IntoIterator<Item = OsString>) -> io::Result<u8> {
    // What whoever started gimlet had open is none of the command's.
    sys::forget_descriptors()?;
    let mut args = args.into_iter();
    let errand = args.next().unwrap_or_default();
    if errand == SUPERVISE {
        return supervisor::run(args);
    }
    let errand: Errand = serde_json::from_slice(errand.as_encoded_bytes())?;
    let order = &errand.order;
    if order.version != order::VERSION {
        let (own, other) = (order::VERSION, &order.version);
        return Err(io::Error::other(format!("its helper is version {own}, gimlet is {other}")));
    }
    let argv: Vec<OsString> = args.skip_while(|word| word == "--").collect();
    match order.purpose {
        Purpose::Server | Purpose::Worker => {
            return supervisor::stand_before(order.parent, |own| supervise(&errand, &argv, own));
        }
        Purpose::Command => sys::die_with_parent(libc::SIGKILL)?,
    }
    if sys::parent() != order.parent {
        return Err(gone());
    }
    let own = std::process::id();
    match sys::fork()? {
        sys::Fork::Child => {
            std::process::exit(supervise(&errand, &argv, own).unwrap_or_else(|error| broken(&error)).into())
        }
        sys::Fork::Parent(supervisor) => Ok(exit_code(sys::wait_for(supervisor)?)),
    }
}

fn gone() -> io::Error {
    io::Error::other("the program that asked for it is gone")
}

/// Runs the command and ends everything it has started.
fn supervise(errand: &Errand, argv: &[OsString], outer: u32) -> io::Result<u8> {
    sys::new_session()?;
    let signals = sys::Signals::block()?;
    sys::die_with_parent(libc::SIGTERM)?;
    if sys::parent() != outer {
        return Ok(STOPPED);
    }
    sys::adopt_orphans()?;
    let order = &errand.order;
    let mut scratch = Scratch::new()?;
    let watched = Watched::before(order)?;
    let mut masks = Masks::find(&order.root, &order.rules())?;
    // Whoever may write git's folder may log in somewhere with it.
    if order.permissions.git == GitFolder::ReadOnly {
        masks.replaced = super::urls::cleaned(&order.root);
    }
    if masks.reach == Reach::Part {
        say("the project is too large to be searched for secret files; some may be readable");
    }
    let command = match start(errand, argv, &mut scratch, &masks, &signals) {
        Ok(command) => command,
        Err(error) => return Ok(not_started(argv, &error)),
    };
    let (code, reason) = match watch(command, &signals, order) {
        Ok((code, limit)) => (code, limit.map(|limit| format!("it used {limit}"))),
        // Not the end of a jail that was never built: the command has run.
        Err(error) => (LIMITED, Some(format!("it cannot be watched: {error}"))),
    };
    tree::end(command);
    // After all that the command itself had to say, or it would be lost among that.
    if let Some(reason) = reason {
        say(&format!("killed: {reason}"));
    }
    for news in watched.restore() {
        say(&news);
    }
    for path in watched.changed() {
        say(&format!(
            "WARNING: {} is not as it was; do not use git here before it is removed",
            path.display()
        ));
    }
    Ok(code)
}

/// The command's first process, which leads a group of its own.
fn start(
    errand: &Errand,
    argv: &[OsString],
    scratch: &mut Scratch,
    masks: &Masks,
    signals: &sys::Signals,
) -> io::Result<u32> {
    let order = &errand.order;
    let Some(words) = argv.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program"));
    };
    // Before the fork: the supervisor removes the folders that this makes.
    let wrapped = match &order.mechanism {
        Mechanism::Bubblewrap(program) => Some(in_bubblewrap(program, order, argv, scratch, masks)?),
        Mechanism::Landlock(_) if masks.is_empty() => None,
        Mechanism::Landlock(_) => {
            drop(scratch.cover(masks)?);
            None
        }
        Mechanism::Seatbelt(program) => Some(in_seatbelt(program, order, argv, scratch, masks)),
    };
    match sys::fork()? {
        sys::Fork::Child => {
            let ready = || -> io::Result<Command> {
                signals.unblock()?;
                sys::lead_group(0)?;
                // Not of the supervisor, which must outlive a command that sleeps longer than it may compute.
                limit(&order.limits)?;
                match wrapped {
                    Some(command) => kept_apart(order, command),
                    None => locked_in(errand, words, scratch, masks),
                }
            };
            let error = match ready() {
                Ok(mut command) => command.exec(),
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

fn not_started(argv: &[OsString], error: &io::Error) -> u8 {
    say(&format!("{} cannot be started: {error}", argv.first().cloned().unwrap_or_default().display()));
    NOT_STARTED
}

/// Waits for the command's end, a signal from outside, or a limit: the exit code, and which limit it was.
fn watch(command: u32, signals: &sys::Signals, order: &Order) -> io::Result<(u8, Option<String>)> {
    let limits = &order.limits;
    let tick = match order.purpose {
        Purpose::Command => TICK,
        Purpose::Server => SLOW_TICK,
        Purpose::Worker => WORKER_TICK,
    };
    let mut measured = Instant::now();
    let mut usual = sys::tasks();
    let mut looks = 0;
    loop {
        // By the clock, not by silence: a command whose children end all the time must not put the measuring off.
        match signals.wait(tick.saturating_sub(measured.elapsed()))? {
            Some(libc::SIGCHLD) => {
                if let Some(status) = sys::reap_but(command) {
                    let code = exit_code(status);
                    let late = || format!("more than {} s of processor time", limits.cpu);
                    return Ok((code, (code == OUT_OF_TIME).then(late)));
                }
            }
            Some(_) => return Ok((STOPPED, None)),
            None => {}
        }
        if measured.elapsed() < tick {
            continue;
        }
        // Counting takes longer the more there are, and a fork bomb grows meanwhile: it must hold still first.
        let crowd = sys::tasks().saturating_sub(usual) > limits.processes;
        if crowd {
            sys::signal_group(command, libc::SIGSTOP);
        }
        looks += 1;
        let depth = if looks % LOOKS == 0 { Depth::Files } else { Depth::Processes };
        if let Some(limit) = exceeded(tree::measure(limits.memory, depth), limits) {
            return Ok((LIMITED, Some(limit)));
        }
        if crowd {
            // It was threads, or somebody else.
            usual = sys::tasks();
            sys::signal_group(command, libc::SIGCONT);
        }
        measured = Instant::now();
    }
}

/// The limit that is not kept, in words.
fn exceeded(used: tree::Used, limits: &Limits) -> Option<String> {
    if used.processes > limits.processes {
        Some(format!("more than {} processes at the same time", limits.processes))
    } else if used.threads > TASKS * limits.processes {
        Some(format!("more than {} threads at the same time", TASKS * limits.processes))
    } else if used.memory > limits.memory {
        Some(format!("more than {} MB of memory", limits.memory >> 20))
    } else {
        None
    }
}

fn exit_code(status: i32) -> u8 {
    let code =
        if libc::WIFSIGNALED(status) { 128 + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) };
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Bounds what this process and all it starts may use.
fn limit(limits: &Limits) -> io::Result<()> {
    sys::limit(Resource::Core, 0)?;
    sys::limit(Resource::Fsize, limits.file)?;
    // Counted over all that the user runs, so this leaves room for as many as there can be and then some. Root has no bound.
    let room = (sys::tasks() + TASKS * limits.processes) as u64;
    sys::limit(Resource::Nproc, room)?;
    // A process that outlives the signal is killed a second later.
    sys::soft_limit(Resource::Cpu, limits.cpu, limits.cpu.saturating_add(1))
}

/// The command inside bubblewrap.
fn in_bubblewrap(
    bubblewrap: &Path,
    order: &Order,
    argv: &[OsString],
    scratch: &mut Scratch,
    masks: &Masks,
) -> io::Result<Command> {
    let mut command = Command::new(bubblewrap);
    command.args(bubblewrap::arguments(order, scratch, masks)?).env_remove(WORD);
    for filter in seccomp::filters(&order.mechanism, order.permissions.network)? {
        command.arg("--add-seccomp-fd").arg(sys::readable(&filter)?.to_string());
    }
    command.arg("--").args(argv);
    Ok(command)
}

/// The command inside Seatbelt.
fn in_seatbelt(
    seatbelt: &Path,
    order: &Order,
    argv: &[OsString],
    scratch: &Scratch,
    masks: &Masks,
) -> Command {
    let mut command = Command::new(seatbelt);
    command.arg("-p").arg(seatbelt::profile(order, scratch.temporary(), masks)).args(argv);
    command.current_dir(&order.cwd).env("TMPDIR", scratch.temporary()).env_remove(WORD);
    for name in &order.unset {
        command.env_remove(name);
    }
    command
}

/// With the network of the machine come the sockets on it that are no files; they stay out of the command's reach.
fn kept_apart(order: &Order, command: Command) -> io::Result<Command> {
    match (&order.mechanism, order.permissions.network) {
        (Mechanism::Bubblewrap(program), Network::Allowed) if landlock::keeps_names(program) => {
            landlock::keep_names()?;
        }
        (Mechanism::Bubblewrap(_) | Mechanism::Landlock(_) | Mechanism::Seatbelt(_), _) => {}
    }
    Ok(command)
}

/// Locks this process in; what comes back is the command for it to become.
fn locked_in(
    errand: &Errand,
    argv: (&OsString, &[OsString]),
    scratch: &Scratch,
    masks: &Masks,
) -> io::Result<Command> {
    let order = &errand.order;
    // First, for whoever is locked in mounts nothing.
    match errand.outside {
        Outside::Mounted => mounts::enter(order, scratch, masks)?,
        Outside::Owned => {}
    }
    let filters = seccomp::filters(&order.mechanism, order.permissions.network)?;
    let masked = match errand.outside {
        Outside::Mounted => Vec::new(),
        Outside::Owned => masks.paths().cloned().collect(),
    };
    let rules = landlock::rules(order, scratch, &masked)?;
    sys::no_new_privileges()?;
    sys::drop_capabilities()?;
    landlock::enforce(rules)?;
    for filter in &filters {
        seccompiler::apply_filter(filter).map_err(io::Error::other)?;
    }
    let (program, arguments) = argv;
    let mut command = Command::new(program);
    command.args(arguments).env("TMPDIR", scratch.temporary()).env_remove(WORD);
    // Closed like the rest of the home, and git gives up at a file that is there and may not be read.
    command.env("XDG_CONFIG_HOME", scratch.temporary());
    if order.permissions.profile == Profile::ReadOnly {
        command.env("PYTHONDONTWRITEBYTECODE", "1");
    }
    match order.permissions.git {
        GitFolder::ReadOnly => drop(command.env("GIT_CONFIG_GLOBAL", "/dev/null")),
        GitFolder::Writable => without_closed_files(&mut command),
    }
    for name in &order.unset {
        command.env_remove(name);
    }
    Ok(command)
}

/// Has git not look for the files in the closed home that `.gitconfig` may name.
fn without_closed_files(command: &mut Command) {
    let count = std::env::var("GIT_CONFIG_COUNT").ok().and_then(|count| count.parse().ok()).unwrap_or(0_u32);
    let closed = ["core.excludesFile", "core.attributesFile"];
    for (index, name) in (count..).zip(closed) {
        command.env(format!("GIT_CONFIG_KEY_{index}"), name);
        command.env(format!("GIT_CONFIG_VALUE_{index}"), "/dev/null");
    }
    command.env("GIT_CONFIG_COUNT", (count + closed.len() as u32).to_string());
}
