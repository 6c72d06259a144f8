//! The child's side: one process, one session, one interpreter.
//!
//! The interpreter runs on the main thread, and a watchdog on another. Nothing is read from the pipe but frames;
//! nothing of the host is reachable once [`jail::filter`] has returned.

mod bind;
mod cell;
mod globals;
mod host;
mod importer;
mod interpreter;
#[expect(unsafe_code, reason = "the kernel's own calls; each block says why it is sound")]
pub mod jail;
mod native;
#[expect(unsafe_code, reason = "fork; the block says why it is sound")]
mod nest;
mod output;
mod set_order;
mod sort;
mod traceback;
mod value;
mod variables;
mod watch;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;

use rustpython_vm::signal::user_signal_channel;
use rustpython_vm::{PyResult, VirtualMachine};

use self::output::Output;
use self::watch::Watch;
use crate::protocol::{FromWorker, Start, ToWorker};
use crate::source;

/// How far the interpreter's stack may grow.
const STACK: u64 = 64 << 20;
/// Stack of the watchdog, which does little.
const WATCHDOG_STACK: usize = 256 << 10;

/// The worker's whole life: serves one session on standard input and output, or forks workers that do.
pub fn main() -> ExitCode {
    match serve() {
        Ok(never) => match never {},
        Err(error) => fail(&error.to_string()),
    }
}

#[expect(clippy::disallowed_methods, reason = "the parent reads messages here, not a terminal")]
fn serve() -> io::Result<std::convert::Infallible> {
    jail::forget_descriptors();
    jail::allow_deep_stack(STACK);
    // The parser asks once where the stack ends, which the jail will not tell; not knowing, it would take a new stack for
    // every parse.
    source::bindings("");
    let input = File::from(own(io::stdin())?);
    let output = Arc::new(Output::new(File::from(own(io::stdout())?)));
    jail::divert_standard_streams();
    let (sender, receiver) = user_signal_channel();
    let watch = Arc::new(Watch::new(sender));
    interpreter::build(receiver).enter(|vm| {
        host::install(input, output, Arc::clone(&watch), vm);
        expect(interpreter::prepare(vm), vm);
        let input = host::input()?;
        expect(interpreter::warm_up(|| jail::has_input(&input), vm), vm);
        let mut message = host::next_message()?;
        if message == Some(ToWorker::Nest) {
            let warm_up = |control: &File| expect(interpreter::warm_up(|| jail::has_input(control), vm), vm);
            // Comes back once in every worker it forks, never in the nest itself.
            let pipes = nest::serve(input, warm_up)?;
            host::connect(pipes.input, Arc::new(Output::new(pipes.output)));
            message = host::next_message()?;
        }
        match message {
            Some(ToWorker::Start(start)) => session(&start, &watch, vm),
            Some(other) => Err(io::Error::other(format!("expected the session's start, got {other:?}"))),
            None => std::process::exit(0),
        }
    })
}

/// A descriptor of our own, so that the standard library's buffers stay out of the way.
fn own(descriptor: impl AsFd) -> io::Result<OwnedFd> {
    descriptor.as_fd().try_clone_to_owned()
}

/// Closes the jail and serves the session in it until the parent is done.
fn session(start: &Start, watch: &Arc<Watch>, vm: &VirtualMachine) -> io::Result<std::convert::Infallible> {
    host::begin_session(start);
    let scope = expect(interpreter::begin(start, vm).and_then(|()| vm.new_scope_with_main()), vm);
    let output = host::output();
    let weaknesses = close_door(start, watch, &output)?;
    output.send(&FromWorker::Ready { weaknesses })?;
    let tools = start.tools.iter().map(|tool| tool.name.clone());
    let mut session = cell::Session::new(scope, start.limits.clone(), tools);
    loop {
        match host::next_message()? {
            Some(ToWorker::Cell { number, code }) => {
                host::begin_cell();
                let end = session.run(number, &code, watch, vm);
                watch.pause();
                output.finish();
                output.send(&end)?;
            }
            Some(other) => return Err(io::Error::other(format!("unexpected between two cells: {other:?}"))),
            None => std::process::exit(0),
        }
    }
}

/// Takes everything away from this process, in the one order that works: what must be opened first, then what
/// threads inherit, then the last thread, then what reaches all threads at once.
fn close_door(start: &Start, watch: &Arc<Watch>, output: &Arc<Output>) -> io::Result<Vec<String>> {
    let mut weaknesses = Vec::new();
    if let Err(error) = watch.limit_memory(start.limits.memory) {
        weaknesses.push(format!("memory is limited only by the address space: {error}"));
    }
    let address_space = jail::address_space();
    weaknesses.extend(jail::enter());
    let (watch, output) = (Arc::clone(watch), Arc::clone(output));
    let (awake, woken) = std::sync::mpsc::channel();
    std::thread::Builder::new().name("watchdog".into()).stack_size(WATCHDOG_STACK).spawn(move || {
        let _ = awake.send(());
        watch.keep(&output)
    })?;
    // A thread that is only half started would need what the filter forbids.
    woken.recv().map_err(io::Error::other)?;
    weaknesses.extend(jail::limit(&start.limits, address_space));
    weaknesses.extend(jail::filter());
    Ok(weaknesses)
}

/// The value, or the end of the process: before a session stands there is nobody to raise to.
fn expect<T>(result: PyResult<T>, vm: &VirtualMachine) -> T {
    result.unwrap_or_else(|error| {
        let text = traceback::format(&error, &traceback::Sources::default(), vm);
        fail(&format!("the session cannot be prepared:\n{text}"))
    })
}

/// Ends the process with a last word on standard error.
#[expect(clippy::disallowed_methods, reason = "the parent reads this")]
fn fail(message: &str) -> ! {
    let _ = io::Write::write_all(&mut io::stderr(), format!("python worker: {message}\n").as_bytes());
    std::process::exit(70)
}
