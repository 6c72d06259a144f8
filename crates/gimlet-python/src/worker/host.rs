//! What the running code can reach: prints, host calls, the virtual clock, seeded randomness. Nothing else.
//!
//! Native functions of the interpreter carry no context, so the one session of this process lives in a
//! thread-local of the interpreter's thread.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;
use std::time::Instant;

use rustpython_vm::builtins::{PyBaseExceptionRef, PyTypeRef};
use rustpython_vm::{PyObjectRef, PyResult, VirtualMachine};
use serde_json::{Map, Value};

use super::bind::Signature;
use super::jail;
use super::output::Output;
use super::value::{Unknown, from_json, to_json};
use super::watch::{Stop, Watch};
use crate::eager::Eager;
use crate::imports::Imports;
use crate::limits::Limits;
use crate::protocol::{CallResult, FromWorker, Start, ToWorker, read_frame};

/// Reading the clock moves it on by this much, so that loops which wait for it end, and end the same way each time.
const TICK_NS: i64 = 100_000;

/// The session of this process.
pub(crate) struct Host {
    input: File,
    eager: Eager,
    output: Arc<Output>,
    watch: Arc<Watch>,
    signatures: HashMap<String, Signature>,
    imports: Arc<Imports>,
    limits: Limits,
    now_ns: i64,
    random: u64,
    calls: u64,
    answer: Option<Value>,
    stop_class: PyTypeRef,
    tool_error: Option<PyObjectRef>,
}

thread_local! {
    static HOST: RefCell<Option<Host>> = const { RefCell::new(None) };
}

/// Sets up what native functions need; no session has begun yet.
pub(crate) fn install(input: File, output: Arc<Output>, watch: Arc<Watch>, vm: &VirtualMachine) {
    let base = vm.ctx.exceptions.base_exception_type.to_owned();
    let host = Host {
        input,
        eager: Eager::default(),
        output,
        watch,
        signatures: HashMap::new(),
        imports: Arc::new(Imports::new(&[])),
        limits: Limits::default(),
        now_ns: 0,
        random: 0,
        calls: 0,
        answer: None,
        stop_class: vm.ctx.new_exception_type("gimlet", "Stop", Some(vec![base])),
        tool_error: None,
    };
    HOST.with(|slot| *slot.borrow_mut() = Some(host));
}

/// Takes other pipes, as a worker does that was just forked. Closes the ones it had.
pub(crate) fn connect(input: File, output: Arc<Output>) {
    with(|host| {
        host.input = input;
        host.output = output;
    });
}

/// The pipe to the parent.
pub(crate) fn output() -> Arc<Output> {
    with(|host| Arc::clone(&host.output))
}

/// Begins the session.
pub(crate) fn begin_session(start: &Start) {
    with(|host| {
        host.signatures = start.tools.iter().map(|tool| (tool.name.clone(), Signature::of(tool))).collect();
        let tools = start.tools.iter().map(|tool| tool.name.as_str());
        host.imports = Arc::new(Imports::new(&start.imports).beside(tools));
        host.limits = start.limits.clone();
        host.now_ns = start.epoch_ms.saturating_mul(1_000_000);
        host.random = start.seed;
    });
}

/// What code has taken of clock and chance so far; loading a module early must not change it.
pub(crate) fn taken() -> (i64, u64) {
    with(|host| (host.now_ns, host.random))
}

/// A copy of the descriptor that messages come in on.
pub(crate) fn input() -> std::io::Result<File> {
    with(|host| host.input.try_clone())
}

/// Short looks at the session; must not run Python code.
fn with<R>(look: impl FnOnce(&mut Host) -> R) -> R {
    HOST.with(|slot| match slot.borrow_mut().as_mut() {
        Some(host) => look(host),
        // Only the functions of a started session reach this.
        None => std::process::exit(70),
    })
}

/// Remembers the class that tool failures are raised as.
pub(crate) fn set_tool_error(class: PyObjectRef) {
    with(|host| host.tool_error = Some(class));
}

/// Starts a cell.
pub(crate) fn begin_cell() {
    with(|host| {
        host.calls = 0;
        host.answer = None;
        host.output.begin(host.limits.output);
        host.watch.clear();
        host.watch.run(host.limits.wall);
    });
}

/// The answer the cell gave, if it did.
pub(crate) fn take_answer() -> Option<Value> {
    with(|host| host.answer.take())
}

/// What may be imported.
pub(crate) fn imports() -> Arc<Imports> {
    with(|host| Arc::clone(&host.imports))
}

/// The exception that ends a cell.
pub(crate) fn stop_exception(vm: &VirtualMachine) -> PyBaseExceptionRef {
    let class = with(|host| host.stop_class.clone());
    vm.new_exception_msg(class, "the cell is being ended".into())
}

/// Ends the cell.
fn stop(reason: Stop, vm: &VirtualMachine) -> PyBaseExceptionRef {
    with(|host| host.watch.stop(reason));
    stop_exception(vm)
}

/// Prints.
pub(crate) fn print(stream: gimlet::cell::Stream, text: &str) {
    let output = with(|host| Arc::clone(&host.output));
    output.print(stream, text);
}

/// The clock, in nanoseconds of Unix time.
pub(crate) fn now_ns() -> i64 {
    with(|host| {
        host.now_ns = host.now_ns.saturating_add(TICK_NS);
        host.now_ns
    })
}

/// Sleeps without waiting: only the clock moves.
pub(crate) fn sleep_ns(nanoseconds: i64) {
    with(|host| host.now_ns = host.now_ns.saturating_add(nanoseconds.max(0)));
}

/// The next of the session's random numbers.
pub(crate) fn random() -> u64 {
    with(|host| splitmix(&mut host.random))
}

/// A small generator with a state of one word: enough for seeds, and the same on every machine.
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// `final_answer(value)`.
pub(crate) fn answer(value: &PyObjectRef, vm: &VirtualMachine) -> PyResult {
    let value = to_json(value, Unknown::Describe, vm)?;
    with(|host| host.answer = Some(value));
    Err(stop(Stop::Answer, vm))
}

/// Calls a tool and waits for what comes of it.
pub(crate) fn call(
    name: &str,
    positional: Vec<PyObjectRef>,
    keywords: Vec<(String, PyObjectRef)>,
    vm: &VirtualMachine,
) -> PyResult {
    let Some(signature) = with(|host| host.signatures.get(name).cloned()) else {
        return Err(vm.new_name_error(format!("name '{name}' is not defined"), vm.ctx.new_str(name)));
    };
    let bound = signature.bind(positional, keywords).map_err(|message| vm.new_type_error(message))?;
    let mut json = Map::new();
    for (parameter, value) in bound {
        let value = to_json(&value, Unknown::Refuse, vm)
            .map_err(|error| name_argument(error, name, &parameter, vm))?;
        json.insert(parameter, value);
    }
    let Some(id) = with(|host| {
        let id = host.calls;
        host.calls += 1;
        (id < host.limits.calls).then_some(id)
    }) else {
        return Err(stop(Stop::Calls, vm));
    };
    match exchange(id, name, Value::Object(json)) {
        Some(CallResult::Ok(value)) => from_json(&value, vm),
        Some(CallResult::Failed(failure)) => Err(tool_error(&failure, vm)),
        None => Err(stop(Stop::Asked, vm)),
    }
}

/// Says which argument a conversion failed for.
fn name_argument(
    error: PyBaseExceptionRef,
    tool: &str,
    parameter: &str,
    vm: &VirtualMachine,
) -> PyBaseExceptionRef {
    use rustpython_vm::AsObject;
    let Ok(text) = error.as_object().str(vm) else { return error };
    let message = format!("{tool}() argument '{parameter}': {}", text.to_string_lossy());
    vm.new_exception_msg(error.class().to_owned(), message.into())
}

/// Waits awake for an answer that may come at any moment.
fn stay_awake(host: &mut Host) {
    let Some(end) = host.eager.until() else { return };
    while !jail::has_input(&host.input) {
        if Instant::now() >= end {
            return host.eager.in_vain();
        }
        std::hint::spin_loop();
    }
}

/// One call over the pipe; `None` when the parent ends the cell here.
fn exchange(id: u64, tool: &str, args: Value) -> Option<CallResult> {
    with(|host| {
        let left = host.watch.pause();
        let sent = host.output.send(&FromWorker::Call { id, tool: tool.into(), args });
        let reply = sent.and_then(|()| {
            stay_awake(host);
            read_frame::<ToWorker>(&mut host.input)
        });
        host.watch.run(left);
        match reply {
            Ok(Some(ToWorker::Result { id: answered, result })) if answered == id => Some(result),
            Ok(Some(ToWorker::Stop)) => None,
            // A parent that is gone or speaks nonsense ends the worker.
            Ok(_) | Err(_) => std::process::exit(71),
        }
    })
}

fn tool_error(failure: &gimlet::tool::ToolFailure, vm: &VirtualMachine) -> PyBaseExceptionRef {
    let made = || -> PyResult<PyBaseExceptionRef> {
        let class =
            with(|host| host.tool_error.clone()).ok_or_else(|| vm.new_runtime_error("no ToolError"))?;
        let json = serde_json::to_value(failure).map_err(|error| vm.new_runtime_error(error.to_string()))?;
        let raised = class.call((from_json(&json, vm)?,), vm)?;
        raised.downcast().map_err(|_| vm.new_runtime_error("ToolError is not an exception"))
    };
    made().unwrap_or_else(|error| error)
}

/// Waits for the next message between two cells; `None` when the parent has closed the pipe.
pub(crate) fn next_message() -> std::io::Result<Option<ToWorker>> {
    with(|host| read_frame(&mut host.input))
}
