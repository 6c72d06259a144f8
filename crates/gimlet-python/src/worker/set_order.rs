//! Small sets of small ints iterate as in CPython.
//!
//! The interpreter keeps sets in the order of insertion; CPython keeps them in a hash table, and programs lean on
//! `{3, 1, 2}` showing as `{1, 2, 3}`. Where an order is about to be seen, the set is put into the order CPython's
//! table would have. Strings are left alone: CPython orders them differently in every process.

use std::sync::OnceLock;

use rustpython_vm::builtins::{PyInt, PySet, PyStrRef};
use rustpython_vm::{AsObject, PyObject, PyObjectRef, PyResult, VirtualMachine};

/// Larger sets stay as they are: ordering costs time at every look.
const MOST: usize = 4096;
/// CPython's constants.
const LINEAR_PROBES: usize = 9;
const PERTURB_SHIFT: u32 = 5;

type Iter = fn(PyObjectRef, &VirtualMachine) -> PyResult;
type Stringify = fn(&PyObject, &VirtualMachine) -> PyResult<PyStrRef>;
type VectorCall = fn(&PyObject, Vec<PyObjectRef>, usize, Option<&[PyObjectRef]>, &VirtualMachine) -> PyResult;

type Binary = fn(&PyObject, &PyObject, &VirtualMachine) -> PyResult;

static ITER: OnceLock<Iter> = OnceLock::new();
static REPR: OnceLock<Stringify> = OnceLock::new();
static LIST: OnceLock<VectorCall> = OnceLock::new();
static TUPLE: OnceLock<VectorCall> = OnceLock::new();
static SET: OnceLock<VectorCall> = OnceLock::new();
static AND: OnceLock<Binary> = OnceLock::new();
static OR: OnceLock<Binary> = OnceLock::new();
static SUBTRACT: OnceLock<Binary> = OnceLock::new();
static XOR: OnceLock<Binary> = OnceLock::new();

/// Takes a slot's function over, remembering the one it had.
macro_rules! wrap {
    ($slot:expr, $kept:ident, $ours:expr) => {
        if let Some(original) = $slot.load() {
            let _ = $kept.set(original);
            $slot.store(Some($ours));
        }
    };
}

/// Puts the ordering in front of what shows a set's order, and behind what makes a set, since the interpreter has
/// shortcuts that look straight into it.
pub(crate) fn install(vm: &VirtualMachine) {
    let types = &vm.ctx.types;
    let set = &types.set_type.slots;
    wrap!(set.iter, ITER, ordered_iter);
    wrap!(set.repr, REPR, ordered_repr);
    wrap!(set.vectorcall, SET, |class, args, count, names, vm| {
        ordered(SET.get().map_or_else(|| missing(vm), |set| set(class, args, count, names, vm)), vm)
    });
    wrap!(types.list_type.slots.vectorcall, LIST, list_of);
    wrap!(types.tuple_type.slots.vectorcall, TUPLE, tuple_of);
    wrap!(set.as_number.and, AND, |a, b, vm| ordered(
        AND.get().map_or_else(|| missing(vm), |and| and(a, b, vm)),
        vm
    ));
    wrap!(set.as_number.or, OR, |a, b, vm| ordered(
        OR.get().map_or_else(|| missing(vm), |or| or(a, b, vm)),
        vm
    ));
    wrap!(set.as_number.xor, XOR, |a, b, vm| ordered(
        XOR.get().map_or_else(|| missing(vm), |xor| xor(a, b, vm)),
        vm
    ));
    wrap!(set.as_number.subtract, SUBTRACT, |a, b, vm| {
        ordered(SUBTRACT.get().map_or_else(|| missing(vm), |subtract| subtract(a, b, vm)), vm)
    });
}

fn ordered(made: PyResult, vm: &VirtualMachine) -> PyResult {
    let made = made?;
    order(&made, vm)?;
    Ok(made)
}

fn missing<T>(vm: &VirtualMachine) -> PyResult<T> {
    Err(vm.new_runtime_error("sets are not set up".to_owned()))
}

fn ordered_iter(object: PyObjectRef, vm: &VirtualMachine) -> PyResult {
    order(&object, vm)?;
    ITER.get().map_or_else(|| missing(vm), |iter| iter(object, vm))
}

fn ordered_repr(object: &PyObject, vm: &VirtualMachine) -> PyResult<PyStrRef> {
    order(object, vm)?;
    REPR.get().map_or_else(|| missing(vm), |repr| repr(object, vm))
}

fn list_of(
    class: &PyObject,
    args: Vec<PyObjectRef>,
    count: usize,
    names: Option<&[PyObjectRef]>,
    vm: &VirtualMachine,
) -> PyResult {
    if let Some(first) = args.first() {
        order(first, vm)?;
    }
    LIST.get().map_or_else(|| missing(vm), |list| list(class, args, count, names, vm))
}

fn tuple_of(
    class: &PyObject,
    args: Vec<PyObjectRef>,
    count: usize,
    names: Option<&[PyObjectRef]>,
    vm: &VirtualMachine,
) -> PyResult {
    if let Some(first) = args.first() {
        order(first, vm)?;
    }
    TUPLE.get().map_or_else(|| missing(vm), |tuple| tuple(class, args, count, names, vm))
}

/// Puts a set of small ints into CPython's order; anything else stays as it is.
fn order(object: &PyObject, vm: &VirtualMachine) -> PyResult<()> {
    let Some(set) = object.downcast_ref::<PySet>() else { return Ok(()) };
    let elements = set.elements();
    if elements.len() < 2 || elements.len() > MOST {
        return Ok(());
    }
    let mut hashes = Vec::with_capacity(elements.len());
    for element in &elements {
        let Some(int) = element.downcast_ref::<PyInt>().filter(|_| element.class().is(vm.ctx.types.int_type))
        else {
            return Ok(());
        };
        match i64::try_from(int.as_bigint()) {
            Ok(-1) => hashes.push(-2),
            Ok(small) if small.unsigned_abs() < (1 << 61) - 1 => hashes.push(small),
            Ok(_) | Err(_) => return Ok(()),
        }
    }
    let places = table_order(&hashes);
    if places.iter().enumerate().all(|(place, from)| place == *from) {
        return Ok(());
    }
    set.clear();
    for from in places {
        set.add(elements[from].clone(), vm)?;
    }
    Ok(())
}

/// The order in which CPython's table would show elements with these hashes, added one by one.
fn table_order(hashes: &[i64]) -> Vec<usize> {
    let mut table: Vec<Option<usize>> = vec![None; 8];
    for (place, hash) in hashes.iter().enumerate() {
        insert(&mut table, place, *hash);
        let (fill, mask) = (place + 1, table.len() - 1);
        if fill * 5 >= mask * 3 {
            let least = if fill > 50_000 { fill * 2 } else { fill * 4 };
            let mut size = 8;
            while size <= least {
                size <<= 1;
            }
            let old = std::mem::replace(&mut table, vec![None; size]);
            for moved in old.into_iter().flatten() {
                insert(&mut table, moved, hashes[moved]);
            }
        }
    }
    table.into_iter().flatten().collect()
}

fn insert(table: &mut [Option<usize>], element: usize, hash: i64) {
    let mask = table.len() - 1;
    let mut perturb = hash as u64 as usize;
    let mut at = perturb & mask;
    loop {
        let probes = if at + LINEAR_PROBES <= mask { LINEAR_PROBES } else { 0 };
        if let Some(free) = (at..=at + probes).find(|place| table[*place].is_none()) {
            table[free] = Some(element);
            return;
        }
        perturb >>= PERTURB_SHIFT;
        at = at.wrapping_mul(5).wrapping_add(1).wrapping_add(perturb) & mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What CPython 3.11 shows for `list(set)` built by adding one by one.
    #[test]
    fn order_is_cpythons() {
        let shown = |values: &[i64]| {
            let hashes: Vec<i64> =
                values.iter().map(|value| if *value == -1 { -2 } else { *value }).collect();
            table_order(&hashes).into_iter().map(|place| values[place]).collect::<Vec<_>>()
        };
        assert_eq!(shown(&[3, 1, 2]), [1, 2, 3]);
        assert_eq!(shown(&[8, 0]), [8, 0]);
        assert_eq!(shown(&[100, 1, 50, 7]), [1, 50, 100, 7]);
        assert_eq!(shown(&[-1, -2, 5]), [5, -1, -2]);
        assert_eq!(shown(&[9, 17, 25, 33, 41]), [33, 9, 41, 17, 25]);
        assert_eq!(
            shown(&[1000, 2, 37, 64, 33, 128, 5, 6, 7, 8, 9, 10]),
            [64, 33, 2, 128, 37, 5, 6, 1000, 7, 8, 9, 10]
        );
    }
}
