//! Sorting by plain keys, which is most sorting, without asking the interpreter at every comparison.
//!
//! `list.sort` and `sorted` look at their keys first. Ints that fit a machine word, floats that are numbers, and strings
//! are compared by the machine; everything else goes to the interpreter's own sort. Both are stable, so nobody can tell
//! which of the two worked but by the time it took.

use std::cmp::Ordering;
use std::mem;

use rustpython_vm::builtins::{PyFloat, PyInt, PyList, PyStr, PyTuple, PyTupleRef};
use rustpython_vm::function::{FuncArgs, ItemDoc, KwArgs, PyMethodFlags};
use rustpython_vm::{AsObject, PyObject, PyObjectRef, PyResult, VirtualMachine};

/// Puts ours in front of the interpreter's.
pub(crate) fn install(vm: &VirtualMachine) -> PyResult<()> {
    let class = vm.ctx.types.list_type;
    let name = vm.ctx.intern_str("sort");
    let theirs = class.as_object().get_attr(name, vm)?;
    let method = theirs.clone();
    let sort = move |args: FuncArgs, vm: &VirtualMachine| match Order::asked(&args, vm) {
        Some((list, order)) if list.downcast_ref::<PyList>().is_some() => order.sort_list(&list, &method, vm),
        Some(_) | None => method.call(args, vm),
    };
    let method = vm.ctx.new_method_def("sort", sort, PyMethodFlags::METHOD, ItemDoc::NONE);
    class.set_attr(name, method.build_method(class, vm).into());

    let builtin = vm.builtins.get_attr("sorted", vm)?;
    let sorted = move |args: FuncArgs, vm: &VirtualMachine| match Order::asked(&args, vm) {
        Some((iterable, order)) => {
            // The class itself is asked, since it knows the order of a set.
            let list = vm.ctx.types.list_type.as_object().call((iterable,), vm)?;
            order.sort_list(&list, &theirs, vm)?;
            Ok(list)
        }
        None => builtin.call(args, vm),
    };
    vm.builtins.set_attr(vm.ctx.intern_str("sorted"), vm.new_function("sorted", sorted), vm)
}

/// How a list is to be sorted.
struct Order {
    key: Option<PyObjectRef>,
    reverse: bool,
}

impl Order {
    /// What is to be sorted and how, if the call has the plain form; anything else is the interpreter's to judge.
    fn asked(args: &FuncArgs, vm: &VirtualMachine) -> Option<(PyObjectRef, Order)> {
        let [subject] = args.args.as_slice() else { return None };
        let mut order = Order { key: None, reverse: false };
        for (name, value) in &args.kwargs {
            match name.as_str() {
                Ok("key") => order.key = (!vm.is_none(value)).then(|| value.clone()),
                Ok("reverse") if value.is(&vm.ctx.true_value) => order.reverse = true,
                Ok("reverse") if value.is(&vm.ctx.false_value) => {}
                Ok(_) | Err(_) => return None,
            }
        }
        Some((subject.clone(), order))
    }

    /// Sorts in place. The list is empty meanwhile, so that a key function which touches it is noticed.
    fn sort_list(&self, list: &PyObject, theirs: &PyObject, vm: &VirtualMachine) -> PyResult {
        let Some(list) = list.downcast_ref::<PyList>() else {
            return Err(vm.new_type_error("only a list can be sorted in place".to_owned()));
        };
        let mut values = mem::take(&mut *list.borrow_vec_mut());
        let sorted = self.sort(&mut values, theirs, vm);
        let meanwhile = mem::replace(&mut *list.borrow_vec_mut(), values);
        sorted?;
        // A vector that never held anything has no room either.
        if meanwhile.capacity() > 0 {
            return Err(vm.new_value_error("list modified during sort".to_owned()));
        }
        Ok(vm.ctx.none())
    }

    /// Sorts, or leaves some order of the same values if a key or a comparison fails.
    fn sort(&self, values: &mut Vec<PyObjectRef>, theirs: &PyObject, vm: &VirtualMachine) -> PyResult<()> {
        let Some(key) = &self.key else {
            match Plain::of(values, vm) {
                Some(Plain::Ints(keys)) => self.by(keys, values, i64::cmp),
                Some(Plain::Floats(keys)) => self.by(keys, values, f64_cmp),
                Some(Plain::Texts) => self.by(values.clone(), values, text_cmp),
                None => return self.by_theirs(values, None, theirs, vm),
            }
            return Ok(());
        };
        let keys = values.iter().map(|value| key.call((value.clone(),), vm)).collect::<PyResult<Vec<_>>>()?;
        match Plain::of(&keys, vm) {
            Some(Plain::Ints(keys)) => self.by(keys, values, i64::cmp),
            Some(Plain::Floats(keys)) => self.by(keys, values, f64_cmp),
            Some(Plain::Texts) => self.by(keys, values, text_cmp),
            None => return self.by_theirs(values, Some(keys), theirs, vm),
        }
        Ok(())
    }

    /// Sorts values by keys that compare without Python.
    fn by<K>(&self, keys: Vec<K>, values: &mut Vec<PyObjectRef>, compare: impl Fn(&K, &K) -> Ordering) {
        let compare = |a: &K, b: &K| if self.reverse { compare(b, a) } else { compare(a, b) };
        if keys.is_sorted_by(|a, b| compare(a, b).is_le()) {
            return;
        }
        // Equal ones would change places.
        if keys.is_sorted_by(|a, b| compare(a, b).is_gt()) {
            return values.reverse();
        }
        let mut keyed: Vec<(K, PyObjectRef)> = keys.into_iter().zip(values.drain(..)).collect();
        keyed.sort_by(|a, b| compare(&a.0, &b.0));
        values.extend(keyed.into_iter().map(|(_, value)| value));
    }

    /// The interpreter's sort, of a list that nothing else knows.
    fn by_theirs(
        &self,
        values: &mut Vec<PyObjectRef>,
        keys: Option<Vec<PyObjectRef>>,
        theirs: &PyObject,
        vm: &VirtualMachine,
    ) -> PyResult<()> {
        let mut named = vec![("reverse".to_owned(), vm.ctx.new_bool(self.reverse).into())];
        let list = match keys {
            None => mem::take(values),
            Some(keys) => {
                let first = vm.new_function("key", |pair: PyTupleRef| pair.as_slice()[0].clone());
                named.push(("key".to_owned(), first.into()));
                let pairs = keys.into_iter().zip(values.iter().cloned());
                pairs.map(|(key, value)| vm.ctx.new_tuple(vec![key, value]).into()).collect()
            }
        };
        let list = vm.ctx.new_list(list);
        let named = named.into_iter().collect::<KwArgs>();
        let sorted = theirs.call(FuncArgs::new(vec![list.clone().into()], named), vm);
        let list = mem::take(&mut *list.borrow_vec_mut());
        *values = match self.key {
            None => list,
            Some(_) => list
                .iter()
                .filter_map(|pair| pair.downcast_ref::<PyTuple>()?.as_slice().get(1).cloned())
                .collect(),
        };
        sorted.map(drop)
    }
}

/// Keys of one kind that compare without Python.
enum Plain {
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Texts,
}

impl Plain {
    fn of(keys: &[PyObjectRef], vm: &VirtualMachine) -> Option<Plain> {
        let types = &vm.ctx.types;
        let class = keys.first()?.class();
        if class.is(types.int_type) {
            let small =
                |key: &PyObjectRef| i64::try_from(key.downcast_ref_if_exact::<PyInt>(vm)?.as_bigint()).ok();
            keys.iter().map(small).collect::<Option<_>>().map(Plain::Ints)
        } else if class.is(types.float_type) {
            let number = |key: &PyObjectRef| Some(key.downcast_ref_if_exact::<PyFloat>(vm)?.to_f64());
            let number = |key: &PyObjectRef| number(key).filter(|number| !number.is_nan());
            keys.iter().map(number).collect::<Option<_>>().map(Plain::Floats)
        } else {
            keys.iter().all(|key| key.class().is(types.str_type)).then_some(Plain::Texts)
        }
    }
}

/// Unlike `total_cmp` this holds 0.0 and -0.0 for equal, as Python does.
fn f64_cmp(a: &f64, b: &f64) -> Ordering {
    a.partial_cmp(b).unwrap_or(Ordering::Equal)
}

/// The order of the bytes is that of the code points.
fn text_cmp(a: &PyObjectRef, b: &PyObjectRef) -> Ordering {
    fn text(object: &PyObject) -> Option<&[u8]> {
        object.downcast_ref::<PyStr>().map(|text| text.as_bytes())
    }
    text(a).cmp(&text(b))
}
