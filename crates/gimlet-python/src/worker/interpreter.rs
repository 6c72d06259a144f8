//! The interpreter as model code finds it: the standard library without a host, our stand-ins for what needs one,
//! and nothing left in the tables that could corrupt the process.

use std::cell::RefCell;

use rustpython_vm::builtins::{PyDictRef, PyStrRef, PyTypeRef};
use rustpython_vm::common::rc::PyRc;
use rustpython_vm::function::{FuncArgs, KwArgs};
use rustpython_vm::signal::UserSignalReceiver;
use rustpython_vm::{AsObject, Interpreter, PyObjectRef, PyResult, Settings, VirtualMachine};

use super::{host, importer, native, set_order, sort};
use crate::protocol::Start;

/// Native modules that reach around the language: crafted bytecode, raw object graphs, other interpreters.
const REMOVED: &[&str] = &[
    "_interpchannels",
    "_interpqueues",
    "_interpreters",
    "_opcode",
    "_pickle",
    "_remote_debugging",
    "_symtable",
    "_sysconfig",
    "_sysconfigdata",
    "_testinternalcapi",
    "atexit_native",
    "gc",
    "marshal",
    "posix",
    "_posixsubprocess",
];

/// Frozen modules that have no business here, or that would only fail later and less clearly.
const REMOVED_FROZEN: &[&str] =
    &["ctypes", "ensurepip", "idlelib", "multiprocessing", "pickle", "site", "tkinter", "venv", "zipimport"];

/// Attributes of code objects through which bytecode could be read, crafted or swapped.
const OPAQUE: &[&str] = &[
    "__new__",
    "__replace__",
    "replace",
    "co_code",
    "_co_code_adaptive",
    "co_exceptiontable",
    "co_linetable",
    "co_branches",
    "_varname_from_oparg",
];

/// Parts of `sys` that steer the interpreter itself.
const SYS_REMOVED: &[&str] = &[
    "_baserepl",
    "_current_exceptions",
    "_current_frames",
    "_setprofileallthreads",
    "_settraceallthreads",
    "addaudithook",
    "breakpointhook",
    "call_tracing",
    "monitoring",
    "setprofile",
    "settrace",
];

/// What most code imports, and what costs most to load.
const WARM: &[&str] = &[
    "collections",
    "re",
    "json",
    "datetime",
    "functools",
    "itertools",
    "math",
    "typing",
    "string",
    "copy",
    "enum",
    "contextlib",
    "dataclasses",
];

/// Builds an interpreter whose pending signals come from this channel.
pub(crate) fn build(signals: UserSignalReceiver) -> Interpreter {
    let mut settings = Settings::default();
    settings.isolated = true;
    settings.ignore_environment = true;
    settings.import_site = false;
    settings.user_site_directory = false;
    settings.install_signal_handlers = false;
    settings.allow_external_library = false;
    settings.write_bytecode = false;
    // Fixed for all sessions, so that a replay in another process hashes alike.
    settings.hash_seed = Some(0);
    let builder = Interpreter::builder(settings);
    let library = rustpython_stdlib::stdlib_module_defs(&builder.ctx);
    let own = native::module_def(&builder.ctx);
    builder
        .add_native_modules(&library)
        .add_native_module(own)
        .add_frozen_modules(rustpython_pylib::FROZEN_STDLIB)
        .add_frozen_modules(rustpython_vm::py_freeze!(dir = "../../standins"))
        .init_hook(move |vm| {
            prune(vm);
            vm.set_user_signal_channel(signals);
        })
        .build()
}

/// Takes modules out of the tables before anything is imported. The interpreter shares them only later, so this is
/// the one moment they can be changed.
fn prune(vm: &mut VirtualMachine) {
    let Some(state) = PyRc::get_mut(&mut vm.state) else { super::fail("the module tables cannot be closed") };
    for name in REMOVED {
        state.module_defs.remove(name);
    }
    // The stand-in `time` wraps the real one, whose clock is not ours.
    if let Some(time) = state.module_defs.remove("time") {
        state.module_defs.insert("_gimlet_time", time);
    }
    state.frozen.retain(|name, _| {
        let top = name.split('.').next().unwrap_or(name);
        !REMOVED_FROZEN.contains(&top)
    });
}

/// Prepares what every session has: streams, seeded randomness, closed insides.
pub(crate) fn prepare(vm: &VirtualMachine) -> PyResult<()> {
    close_code_objects(vm);
    set_order::install(vm);
    sort::install(vm)?;
    let boot = vm.import("_gimlet_boot", 0)?;
    let patch = vm.new_function(
        "patch",
        |class: PyTypeRef, name: String, value: PyObjectRef, vm: &VirtualMachine| {
            class.set_attr(vm.ctx.intern_str(name), value);
        },
    );
    boot.get_attr("prepare", vm)?.call((patch,), vm)?;
    host::set_tool_error(boot.get_attr("ToolError", vm)?);
    for name in SYS_REMOVED {
        let _ = vm.sys_module.as_object().del_attr(vm.ctx.intern_str(*name), vm);
    }
    Ok(())
}

/// Loads what most code imports while nobody is waiting. None of it may touch the session's clock or chance, or a
/// session in a warm worker would differ from its replay in a cold one.
pub(crate) fn warm_up(until: impl Fn() -> bool, vm: &VirtualMachine) -> PyResult<()> {
    for name in WARM {
        if until() {
            break;
        }
        let before = host::taken();
        vm.import(*name, 0)?;
        if host::taken() != before {
            return Err(vm.new_runtime_error(format!("loading {name} early would change a session")));
        }
    }
    Ok(())
}

/// Gives the session its tools and guards its imports. No model code has run yet.
pub(crate) fn begin(start: &Start, vm: &VirtualMachine) -> PyResult<()> {
    vm.recursion_limit.set(start.limits.recursion);
    let boot = vm.import("_gimlet_boot", 0)?;
    let make = boot.get_attr("make_tool", vm)?;
    for tool in &start.tools {
        let shown = super::bind::Signature::of(tool).shown();
        let doc = format!("{shown}\n\n{}", tool.description);
        let function = make.call((tool.name.as_str().to_owned(), doc), vm)?;
        vm.builtins.set_attr(vm.ctx.intern_str(tool.name.as_str()), function, vm)?;
    }
    importer::install(vm)
}

thread_local! {
    /// The real `replace` of code objects, out of the code's reach.
    static REPLACE: RefCell<Option<PyObjectRef>> = const { RefCell::new(None) };
}

/// What the standard library needs of `replace`: other names, and the mark of a generator-based coroutine.
pub(crate) fn rename_code(code: &PyObjectRef, changes: PyDictRef, vm: &VirtualMachine) -> PyResult {
    const ITERABLE_COROUTINE: u32 = 0x100;
    let mut named = Vec::new();
    for (key, value) in changes {
        let key: PyStrRef = key.try_into_value(vm)?;
        let key = key.to_string_lossy().into_owned();
        let fine = match key.as_str() {
            "co_name" | "co_qualname" | "co_filename" | "co_firstlineno" => true,
            "co_flags" => {
                let before: u32 = code.get_attr("co_flags", vm)?.try_into_value(vm)?;
                let after: u32 = value.clone().try_into_value(vm)?;
                after == before | ITERABLE_COROUTINE
            }
            _ => false,
        };
        if !fine {
            return Err(vm.new_type_error(format!("'{key}' of code objects cannot be changed here")));
        }
        named.push((key, value));
    }
    let replace = REPLACE.with(|slot| slot.borrow().clone());
    let replace = replace.ok_or_else(|| vm.new_runtime_error("code objects are not set up".to_owned()))?;
    replace.call(FuncArgs::new(vec![code.clone()], named.into_iter().collect::<KwArgs>()), vm)
}

/// Code objects stay callable and nothing more.
fn close_code_objects(vm: &VirtualMachine) {
    let class = vm.ctx.types.code_type;
    REPLACE.with(|slot| *slot.borrow_mut() = class.attributes.get(vm.ctx.intern_str("replace")));
    for name in OPAQUE {
        class.attributes.remove(vm.ctx.intern_str(*name));
    }
    class.modified();
    class.slots.new.store(Some(|class: PyTypeRef, _: FuncArgs, vm: &VirtualMachine| -> PyResult {
        Err(vm.new_type_error(format!("cannot create '{}' instances", class.name())))
    }));
}
