//! Exceptions as CPython prints them, with the cell's own source lines.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use rustpython_vm::builtins::{PyBaseExceptionRef, PyInt, PyList, PyStr, PyTuple};
use rustpython_vm::suggestion::offer_suggestions;
use rustpython_vm::{AsObject, PyObject, PyObjectRef, VirtualMachine};

/// Frames that would only confuse.
const HIDDEN: [&str; 3] =
    ["_gimlet_boot", "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>"];
/// How many equal lines in a row are shown, as in CPython.
const REPEATS: usize = 3;

/// The source of every cell so far, by the file name tracebacks give it.
#[derive(Default)]
pub(crate) struct Sources {
    cells: HashMap<String, String>,
}

impl Sources {
    /// Keeps a cell's source; returns its file name.
    pub(crate) fn add(&mut self, number: u32, code: &str) -> String {
        let file = format!("<cell {number}>");
        self.cells.insert(file.clone(), code.to_owned());
        file
    }

    fn line(&self, file: &str, line: usize) -> Option<&str> {
        self.cells
            .get(file)?
            .split('\n')
            .nth(line.checked_sub(1)?)
            .map(str::trim)
            .filter(|line| !line.is_empty())
    }
}

/// The whole report.
pub(crate) fn format(exception: &PyBaseExceptionRef, sources: &Sources, vm: &VirtualMachine) -> String {
    let mut report = Report { sources, vm, seen: HashSet::new(), text: String::new() };
    report.chain(exception);
    report.text
}

/// The name of an exception's class, with its module where that is not obvious.
pub(crate) fn class_name(exception: &PyBaseExceptionRef, vm: &VirtualMachine) -> String {
    let class = exception.class();
    let attribute =
        |name: &'static str| class.as_object().get_attr(name, vm).ok().and_then(|value| text(&value));
    let name = attribute("__qualname__").unwrap_or_else(|| class.name().to_string());
    match attribute("__module__").as_deref() {
        None | Some("builtins" | "__main__" | "gimlet") => name,
        Some(module) => format!("{module}.{name}"),
    }
}

/// The innermost line of a cell that an exception passed through.
pub(crate) fn line_in(exception: &PyBaseExceptionRef, file: &str, vm: &VirtualMachine) -> Option<u32> {
    let mut at = exception.as_object().get_attr("__traceback__", vm).ok();
    while let Some(entry) = at.filter(|entry| !vm.is_none(entry)) {
        let (place, _, line) = place(&entry, vm)?;
        if place == file {
            return u32::try_from(line).ok();
        }
        at = entry.get_attr("tb_next", vm).ok();
    }
    None
}

struct Report<'a> {
    sources: &'a Sources,
    vm: &'a VirtualMachine,
    seen: HashSet<usize>,
    text: String,
}

impl Report<'_> {
    fn push(&mut self, line: impl std::fmt::Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{line}");
    }

    fn chain(&mut self, exception: &PyBaseExceptionRef) {
        self.seen.insert(exception.get_id());
        let suppressed = exception
            .as_object()
            .get_attr("__suppress_context__", self.vm)
            .and_then(|value| value.try_to_bool(self.vm))
            .unwrap_or(false);
        let earlier = match (exception.__cause__(), exception.__context__()) {
            (Some(cause), _) => {
                Some((cause, "The above exception was the direct cause of the following exception:"))
            }
            (None, Some(context)) if !suppressed => {
                Some((context, "During handling of the above exception, another exception occurred:"))
            }
            (None, _) => None,
        };
        if let Some((earlier, between)) = earlier
            && !self.seen.contains(&earlier.get_id())
            && self.seen.len() < 50
        {
            self.chain(&earlier);
            self.push(format_args!("\n{between}\n"));
        }
        self.one(exception);
    }

    fn one(&mut self, exception: &PyBaseExceptionRef) {
        self.frames(exception);
        let vm = self.vm;
        let name = class_name(exception, vm);
        let message = match exception.as_object().str(vm) {
            Ok(text) => text.to_string_lossy().trim_end().to_owned(),
            Err(_) => "<exception str() failed>".to_owned(),
        };
        if exception.fast_isinstance(vm.ctx.exceptions.syntax_error) {
            self.syntax_error(exception, &name);
        } else if message.is_empty() {
            self.push(name);
        } else {
            match offer_suggestions(exception, vm).map(|near| near.to_string_lossy().into_owned()) {
                Some(near) if !message.contains("Did you mean") => {
                    self.push(format_args!("{name}: {message}. Did you mean: '{near}'?"));
                }
                _ => self.push(format_args!("{name}: {message}")),
            }
        }
        self.notes(exception);
        self.group(exception);
    }

    fn frames(&mut self, exception: &PyBaseExceptionRef) {
        let vm = self.vm;
        let mut places: Vec<(String, String, usize)> = Vec::new();
        let mut at = exception.as_object().get_attr("__traceback__", vm).ok();
        while let Some(entry) = at.filter(|entry| !vm.is_none(entry)) {
            if let Some(found) = place(&entry, vm).filter(|(file, _, _)| !HIDDEN.contains(&file.as_str())) {
                places.push(found);
            }
            at = entry.get_attr("tb_next", vm).ok();
        }
        if places.is_empty() {
            return;
        }
        self.push("Traceback (most recent call last):");
        let mut rest = places.as_slice();
        while let [first, ..] = rest {
            let equal = rest.iter().take_while(|place| *place == first).count();
            for (file, function, line) in &rest[..equal.min(REPEATS)] {
                self.push(format_args!("  File \"{file}\", line {line}, in {function}"));
                if let Some(source) = self.sources.line(file, *line).map(str::to_owned) {
                    self.push(format_args!("    {source}"));
                }
            }
            if equal > REPEATS {
                let more = equal - REPEATS;
                let plural = if more == 1 { "" } else { "s" };
                self.push(format_args!("  [Previous line repeated {more} more time{plural}]"));
            }
            rest = &rest[equal..];
        }
    }

    fn syntax_error(&mut self, exception: &PyBaseExceptionRef, name: &str) {
        let vm = self.vm;
        let get = |attribute: &'static str| exception.as_object().get_attr(attribute, vm).ok();
        let number = |attribute: &'static str| get(attribute).and_then(|value| int(&value));
        let file = get("filename").and_then(|value| text(&value)).unwrap_or_else(|| "<cell>".to_owned());
        let line = number("lineno").unwrap_or(1);
        self.push(format_args!("  File \"{file}\", line {line}"));
        let source = get("text")
            .and_then(|value| text(&value))
            .or_else(|| self.sources.line(&file, line).map(str::to_owned));
        if let Some(source) = source {
            let source = source.trim_end();
            let stripped = source.trim_start();
            self.push(format_args!("    {stripped}"));
            if let Some(offset) = number("offset").filter(|offset| *offset > 0) {
                let indent = source.chars().count() - stripped.chars().count();
                let end = if number("end_lineno") == Some(line) { number("end_offset") } else { None };
                let start = (offset - 1).saturating_sub(indent).min(stripped.chars().count());
                let width = end.unwrap_or(0).saturating_sub(offset).max(1);
                self.push(format_args!("    {}{}", " ".repeat(start), "^".repeat(width)));
            }
        }
        let message =
            get("msg").and_then(|value| text(&value)).unwrap_or_else(|| "invalid syntax".to_owned());
        self.push(format_args!("{name}: {message}"));
    }

    fn notes(&mut self, exception: &PyBaseExceptionRef) {
        let Ok(notes) = exception.as_object().get_attr("__notes__", self.vm) else { return };
        let Some(notes) = notes.downcast_ref::<PyList>().map(|list| list.borrow_vec().to_vec()) else {
            return;
        };
        for note in notes.iter().filter_map(|note| text(note)) {
            self.push(note);
        }
    }

    fn group(&mut self, exception: &PyBaseExceptionRef) {
        let Ok(members) = exception.as_object().get_attr("exceptions", self.vm) else { return };
        let Some(members) = members.downcast_ref::<PyTuple>().map(|tuple| tuple.as_slice().to_vec()) else {
            return;
        };
        for (place, member) in members.into_iter().enumerate() {
            if let Ok(member) = member.downcast() {
                self.push(format_args!("  +---------------- {} ----------------", place + 1));
                if self.seen.insert(member_id(&member)) {
                    self.one(&member);
                }
            }
        }
    }
}

fn member_id(exception: &PyBaseExceptionRef) -> usize {
    exception.get_id()
}

/// File, function and line of a traceback entry.
fn place(entry: &PyObjectRef, vm: &VirtualMachine) -> Option<(String, String, usize)> {
    let line = entry.get_attr("tb_lineno", vm).ok().and_then(|line| int(&line))?;
    let code = entry.get_attr("tb_frame", vm).ok()?.get_attr("f_code", vm).ok()?;
    let file = code.get_attr("co_filename", vm).ok().and_then(|file| text(&file))?;
    let function = code.get_attr("co_name", vm).ok().and_then(|function| text(&function))?;
    Some((file, function, line))
}

fn text(object: &PyObject) -> Option<String> {
    object.downcast_ref::<PyStr>().map(|text| text.to_string_lossy().into_owned())
}

fn int(object: &PyObject) -> Option<usize> {
    object.downcast_ref::<PyInt>().and_then(|int| usize::try_from(int.as_bigint()).ok())
}
