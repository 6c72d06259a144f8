//! `import` as the code sees it: an allowlist in front of the interpreter's own machinery.
//!
//! Modules of the standard library import what they need (they get stand-ins without a host behind them); code
//! that is not one of them gets what the allowlist names.

use std::cell::RefCell;

use rustpython_vm::builtins::{PyBaseExceptionRef, PyDict, PyStr, PyTuple};
use rustpython_vm::function::FuncArgs;
use rustpython_vm::{AsObject, PyObject, PyObjectRef, PyResult, VirtualMachine};

use super::host;
use crate::imports::Verdict;

thread_local! {
    /// The interpreter's own `__import__`.
    static ORIGINAL: RefCell<Option<PyObjectRef>> = const { RefCell::new(None) };
}

/// Puts the allowlist in front of `__import__`.
pub(crate) fn install(vm: &VirtualMachine) -> PyResult<()> {
    let original = vm.builtins.get_attr("__import__", vm)?;
    ORIGINAL.with(|slot| *slot.borrow_mut() = Some(original));
    let guarded = vm.import("_gimlet", 0)?.get_attr("guarded_import", vm)?;
    vm.builtins.set_attr("__import__", guarded, vm)
}

/// `__import__(name, globals, locals, fromlist, level)`.
pub(crate) fn import(args: FuncArgs, vm: &VirtualMachine) -> PyResult {
    let argument = |place: usize, name: &str| -> Option<PyObjectRef> {
        args.args.get(place).cloned().or_else(|| args.kwargs.get(name).cloned())
    };
    let globals = argument(1, "globals");
    if !is_library(globals.as_deref(), vm)
        && let Some(name) = argument(0, "name").and_then(|name| text(&name))
    {
        check(&name, argument(3, "fromlist"), vm)?;
    }
    let original = ORIGINAL.with(|slot| slot.borrow().clone());
    let original = original.ok_or_else(|| vm.new_runtime_error("import is not set up".to_owned()))?;
    original.call(args, vm)
}

/// Whether these globals are those of a module that the interpreter itself loaded.
fn is_library(globals: Option<&PyObject>, vm: &VirtualMachine) -> bool {
    let found = || -> Option<bool> {
        let globals = globals?.downcast_ref::<PyDict>()?;
        let modules = vm.sys_module.get_attr("modules", vm).ok()?;
        let is_module = |name: PyObjectRef| -> Option<bool> {
            let name = text(&name).filter(|name| name != "__main__")?;
            Some(modules.get_item(name.as_str(), vm).ok()?.dict()?.is(globals.as_object()))
        };
        let own = globals.get_item_opt("__name__", vm).ok().flatten().and_then(is_module);
        // A module may go by another name than it was loaded by: `_pydecimal` calls itself `decimal`.
        let loaded = || is_module(globals.get_item_opt("__spec__", vm).ok()??.get_attr("name", vm).ok()?);
        Some(own == Some(true) || loaded() == Some(true))
    };
    found().unwrap_or(false)
}

fn check(name: &str, fromlist: Option<PyObjectRef>, vm: &VirtualMachine) -> PyResult<()> {
    let imports = host::imports();
    match imports.judge(name) {
        Verdict::Allowed => Ok(()),
        Verdict::Parent => {
            // `from urllib import parse`: the package stands for its allowed modules only.
            let wanted = fromlist.as_deref().and_then(|list| list.downcast_ref::<PyTuple>());
            for part in
                wanted.map(|tuple| tuple.as_slice()).unwrap_or_default().iter().filter_map(|part| text(part))
            {
                let full = format!("{name}.{part}");
                if let Verdict::Refused(message) = imports.judge(&full) {
                    return Err(refused(message, &full, vm));
                }
            }
            Ok(())
        }
        Verdict::Refused(message) => Err(refused(message, name, vm)),
    }
}

fn refused(message: String, name: &str, vm: &VirtualMachine) -> PyBaseExceptionRef {
    vm.new_import_error(message, vm.ctx.new_utf8_str(name))
}

fn text(object: &PyObject) -> Option<String> {
    object.downcast_ref::<PyStr>().map(|text| text.to_string_lossy().into_owned())
}
