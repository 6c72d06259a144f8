//! The module `_gimlet`: the only functions through which Python code reaches this process.
//!
//! Everything here is harmless in the hands of model code; that is the condition for adding to it.

pub(crate) use _gimlet::module_def;

#[rustpython_vm::pymodule]
mod _gimlet {
    use gimlet::cell::Stream;
    use rustpython_vm::builtins::{PyBytesRef, PyDictRef, PyStrRef, PyTupleRef};
    use rustpython_vm::function::FuncArgs;
    use rustpython_vm::{PyObjectRef, PyResult, VirtualMachine};

    use crate::worker::{host, importer, interpreter};

    #[pyfunction]
    fn write(stream: i32, text: PyStrRef) {
        let stream = if stream == 2 { Stream::Stderr } else { Stream::Stdout };
        host::print(stream, &text.to_string_lossy());
    }

    #[pyfunction]
    fn call(name: PyStrRef, args: PyTupleRef, kwargs: PyDictRef, vm: &VirtualMachine) -> PyResult {
        let mut keywords = Vec::new();
        for (key, value) in kwargs {
            let key: PyStrRef = key.try_into_value(vm)?;
            keywords.push((key.to_string_lossy().into_owned(), value));
        }
        host::call(&name.to_string_lossy(), args.as_slice().to_vec(), keywords, vm)
    }

    #[pyfunction]
    fn answer(value: PyObjectRef, vm: &VirtualMachine) -> PyResult {
        host::answer(&value, vm)
    }

    #[pyfunction]
    fn now_ns() -> i64 {
        host::now_ns()
    }

    #[pyfunction]
    fn sleep(seconds: f64, vm: &VirtualMachine) -> PyResult<()> {
        if seconds.is_nan() {
            return Err(vm.new_value_error("Invalid value NaN (not a number)".to_owned()));
        }
        if seconds < 0.0 {
            return Err(vm.new_value_error("sleep length must be non-negative".to_owned()));
        }
        host::sleep_ns((seconds * 1e9) as i64);
        Ok(())
    }

    #[pyfunction]
    fn random() -> u64 {
        host::random()
    }

    #[pyfunction]
    fn urandom(size: usize, vm: &VirtualMachine) -> PyResult<PyBytesRef> {
        if size > 1 << 24 {
            return Err(vm.new_value_error("so many random bytes at once are not available here".to_owned()));
        }
        let mut bytes = Vec::with_capacity(size + 8);
        while bytes.len() < size {
            bytes.extend_from_slice(&host::random().to_le_bytes());
        }
        bytes.truncate(size);
        Ok(vm.ctx.new_bytes(bytes))
    }

    #[pyfunction]
    fn rename_code(code: PyObjectRef, changes: PyDictRef, vm: &VirtualMachine) -> PyResult {
        interpreter::rename_code(&code, changes, vm)
    }

    #[pyfunction]
    fn guarded_import(args: FuncArgs, vm: &VirtualMachine) -> PyResult {
        importer::import(args, vm)
    }
}
