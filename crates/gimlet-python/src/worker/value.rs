//! Values across the border: Python objects to JSON and back.

use rustpython_vm::builtins::{PyBool, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PySet, PyStr, PyTuple};
use rustpython_vm::{AsObject, PyObject, PyObjectRef, PyResult, VirtualMachine};
use serde_json::{Map, Number, Value};

/// What to do with an object that JSON has no word for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// Raise `TypeError`: an argument must arrive as what it is.
    Refuse,
    /// Send its `str()`: an answer in words is better than none.
    Describe,
}

/// A Python object as JSON.
pub(crate) fn to_json(object: &PyObject, unknown: Unknown, vm: &VirtualMachine) -> PyResult<Value> {
    vm.with_recursion("while converting a value to JSON", || {
        if vm.is_none(object) {
            return Ok(Value::Null);
        }
        if let Some(text) = object.downcast_ref::<PyStr>() {
            return Ok(Value::String(text.to_string_lossy().into_owned()));
        }
        if object.downcast_ref::<PyBool>().is_some() || object.class().is(vm.ctx.types.bool_type) {
            return Ok(Value::Bool(object.to_owned().try_to_bool(vm)?));
        }
        if let Some(int) = object.downcast_ref::<PyInt>() {
            return int_to_json(int, unknown, vm);
        }
        if let Some(float) = object.downcast_ref::<PyFloat>() {
            return float_to_json(float.to_f64(), unknown, vm);
        }
        if let Some(list) = object.downcast_ref::<PyList>() {
            let items = list.borrow_vec().to_vec();
            return sequence(&items, unknown, vm);
        }
        if let Some(tuple) = object.downcast_ref::<PyTuple>() {
            return sequence(tuple.as_slice(), unknown, vm);
        }
        if object.downcast_ref::<PySet>().is_some() || object.downcast_ref::<PyFrozenSet>().is_some() {
            let items: Vec<PyObjectRef> = object.try_to_value(vm)?;
            return sequence(&items, unknown, vm);
        }
        if let Some(dict) = object.downcast_ref::<PyDict>() {
            let mut map = Map::new();
            let pairs: Vec<(PyObjectRef, PyObjectRef)> = dict.into_iter().collect();
            for (key, value) in pairs {
                map.insert(key_to_json(&key, unknown, vm)?, to_json(&value, unknown, vm)?);
            }
            return Ok(Value::Object(map));
        }
        match unknown {
            Unknown::Refuse => Err(vm.new_type_error(format!(
                "Object of type {} is not JSON serializable",
                object.class().name()
            ))),
            Unknown::Describe => Ok(Value::String(object.str(vm)?.to_string_lossy().into_owned())),
        }
    })
}

fn sequence(items: &[PyObjectRef], unknown: Unknown, vm: &VirtualMachine) -> PyResult<Value> {
    items.iter().map(|item| to_json(item, unknown, vm)).collect::<PyResult<Vec<_>>>().map(Value::Array)
}

fn int_to_json(int: &PyInt, unknown: Unknown, vm: &VirtualMachine) -> PyResult<Value> {
    let big = int.as_bigint();
    if let Ok(small) = i64::try_from(big) {
        return Ok(small.into());
    }
    if let Ok(large) = u64::try_from(big) {
        return Ok(large.into());
    }
    match unknown {
        Unknown::Refuse => {
            Err(vm.new_overflow_error("this int has more than 64 bits; pass it as a string".to_owned()))
        }
        Unknown::Describe => Ok(Value::String(big.to_string())),
    }
}

fn float_to_json(float: f64, unknown: Unknown, vm: &VirtualMachine) -> PyResult<Value> {
    match (Number::from_f64(float), unknown) {
        (Some(number), _) => Ok(Value::Number(number)),
        (None, Unknown::Refuse) => {
            Err(vm.new_value_error(format!("{float} is not a number that JSON has; pass it as a string")))
        }
        (None, Unknown::Describe) => Ok(Value::String(float.to_string().to_lowercase())),
    }
}

/// Keys as `json.dumps` writes them.
fn key_to_json(key: &PyObject, unknown: Unknown, vm: &VirtualMachine) -> PyResult<String> {
    if let Some(text) = key.downcast_ref::<PyStr>() {
        return Ok(text.to_string_lossy().into_owned());
    }
    if vm.is_none(key) {
        return Ok("null".into());
    }
    if key.class().is(vm.ctx.types.bool_type) {
        return Ok(key.to_owned().try_to_bool(vm)?.to_string());
    }
    let plain = key.downcast_ref::<PyInt>().is_some() || key.downcast_ref::<PyFloat>().is_some();
    if plain || unknown == Unknown::Describe {
        return Ok(key.str(vm)?.to_string_lossy().into_owned());
    }
    Err(vm.new_type_error(format!("keys must be str, int, float, bool or None, not {}", key.class().name())))
}

/// JSON as a Python object.
pub(crate) fn from_json(value: &Value, vm: &VirtualMachine) -> PyResult {
    Ok(match value {
        Value::Null => vm.ctx.none(),
        Value::Bool(truth) => vm.ctx.new_bool(*truth).into(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => vm.ctx.new_int(int).into(),
            (None, Some(int)) => vm.ctx.new_int(int).into(),
            (None, None) => vm.ctx.new_float(number.as_f64().unwrap_or(f64::NAN)).into(),
        },
        Value::String(text) => vm.ctx.new_str(text.as_str()).into(),
        Value::Array(items) => {
            let items = items.iter().map(|item| from_json(item, vm)).collect::<PyResult<Vec<_>>>()?;
            vm.ctx.new_list(items).into()
        }
        Value::Object(map) => {
            let dict = vm.ctx.new_dict();
            for (key, value) in map {
                dict.set_item(key.as_str(), from_json(value, vm)?, vm)?;
            }
            dict.into()
        }
    })
}
