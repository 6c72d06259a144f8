//! The session's variables by name, type and size. Nothing of the code's own runs for it: sizes are those of Python's
//! own types only.

use gimlet::context::Variable;
use rustpython_vm::builtins::{
    PyBytes, PyDict, PyDictRef, PyFrozenSet, PyList, PyModule, PySet, PyStr, PyTuple,
};
use rustpython_vm::{AsObject, PyObject, VirtualMachine};

use crate::limits::VARIABLES;

/// What code has bound at its top level, in the order it was first bound.
pub(crate) fn bound(globals: &PyDictRef, _vm: &VirtualMachine) -> Vec<Variable> {
    let mut found: Vec<Variable> = globals
        .into_iter()
        .filter_map(|(name, value)| {
            let name = name.downcast_ref::<PyStr>()?.to_string_lossy().into_owned();
            let hidden = name.starts_with('_') || value.downcast_ref::<PyModule>().is_some();
            (!hidden).then(|| Variable { name, kind: value.class().name().to_string(), size: size(&value) })
        })
        .collect();
    found.drain(..found.len().saturating_sub(VARIABLES));
    found
}

fn size(value: &PyObject) -> Option<u64> {
    let length = if let Some(text) = value.downcast_ref::<PyStr>() {
        text.char_len()
    } else if let Some(list) = value.downcast_ref::<PyList>() {
        list.borrow_vec().len()
    } else if let Some(tuple) = value.downcast_ref::<PyTuple>() {
        tuple.as_slice().len()
    } else if let Some(dict) = value.downcast_ref::<PyDict>() {
        dict.__len__()
    } else if let Some(bytes) = value.downcast_ref::<PyBytes>() {
        bytes.as_bytes().len()
    } else if let Some(set) = value.downcast_ref::<PySet>() {
        set.elements().len()
    } else if let Some(set) = value.downcast_ref::<PyFrozenSet>() {
        set.elements().len()
    } else {
        return None;
    };
    u64::try_from(length).ok()
}
