//! Running one cell from its source to its end.

use gimlet::cell::CellEnd;
use rustpython_vm::compiler::Mode;
use rustpython_vm::scope::Scope;
use rustpython_vm::{AsObject, PyObjectRef, PyResult, VirtualMachine};

use super::traceback::{self, Sources};
use super::watch::{Stop, Watch};
use super::{globals, host, variables};
use crate::limits::Limits;
use crate::protocol::{Fate, FromWorker, Health};
use crate::source::{self, VALUE};

/// What outlives a cell.
pub(crate) struct Session {
    /// The variables.
    scope: Scope,
    sources: Sources,
    limits: Limits,
    /// Names that code must not bind.
    protected: Vec<String>,
}

impl Session {
    pub(crate) fn new(scope: Scope, limits: Limits, tools: impl Iterator<Item = String>) -> Self {
        let protected = tools.chain(["final_answer".to_owned()]).collect();
        Session { scope, sources: Sources::default(), limits, protected }
    }

    /// Runs a cell to its end.
    pub(crate) fn run(&mut self, number: u32, code: &str, watch: &Watch, vm: &VirtualMachine) -> FromWorker {
        let file = self.sources.add(number, code);
        if let Err(refusal) = self.admit(&file, code) {
            let variables = variables::bound(&self.scope.globals, vm);
            return FromWorker::Ended {
                number,
                end: refusal,
                fate: Fate::Whole,
                health: Health::Good,
                variables,
            };
        }
        let result = self.execute(&file, code, vm);
        let stopped = watch.stopped();
        // From here on nothing may raise by itself; the parent's clock still runs.
        watch.clear();
        let end = match (stopped, result) {
            (Some(Stop::Asked), result) => {
                let line = result.err().and_then(|raised| traceback::line_in(&raised, &file, vm));
                return FromWorker::Stopped { line };
            }
            (Some(reason), _) => self.stopped(reason),
            (None, Ok(value)) => CellEnd::Done { value },
            (None, Err(raised)) => CellEnd::Raised {
                kind: traceback::class_name(&raised, vm),
                traceback: shorten(
                    &traceback::format(&raised, &self.sources, vm),
                    self.limits.value,
                    Keep::End,
                ),
            },
        };
        let health = match stopped {
            Some(Stop::Memory) if watch.is_short_of_memory() => Health::Spent,
            _ => Health::Good,
        };
        let fate = match stopped {
            Some(Stop::Time | Stop::Memory | Stop::Asked) => Fate::Cut,
            Some(Stop::Answer | Stop::Calls) | None => Fate::Whole,
        };
        FromWorker::Ended { number, end, fate, health, variables: variables::bound(&self.scope.globals, vm) }
    }

    /// What is refused before anything runs.
    fn admit(&self, file: &str, code: &str) -> Result<(), CellEnd> {
        let syntax_error = |line: u32, message: String| {
            let shown = code.split('\n').nth(line as usize - 1).unwrap_or_default().trim();
            let shown = shorten(shown, 200, Keep::Start);
            CellEnd::Raised {
                kind: "SyntaxError".into(),
                traceback: format!("  File \"{file}\", line {line}\n    {shown}\nSyntaxError: {message}\n"),
            }
        };
        if code.len() > self.limits.source {
            return Err(syntax_error(1, format!("the source is longer than {} bytes", self.limits.source)));
        }
        source::check_depth(code, self.limits.nesting)
            .map_err(|deep| syntax_error(deep.line, deep.message.to_owned()))?;
        match source::bindings(code).into_iter().find(|binding| self.protected.contains(&binding.name)) {
            Some(binding) => {
                let (name, line) = (binding.name, code.split('\n').nth(binding.line as usize - 1));
                let defines = ["def ", "async def ", "class "];
                let message = if line
                    .is_some_and(|line| defines.iter().any(|word| line.trim().starts_with(word)))
                {
                    format!(
                        "cannot define '{name}': it is a tool and ready to call; leave this definition out and call \
                         {name}(...)"
                    )
                } else {
                    format!(
                        "cannot assign to '{name}': it is a tool and ready to call; choose another name for what is \
                         new, such as '{name}_result'"
                    )
                };
                Err(syntax_error(binding.line, message))
            }
            None => Ok(()),
        }
    }

    /// Compiles and runs; the `repr` of the last expression unless it is None.
    fn execute(&self, file: &str, code: &str, vm: &VirtualMachine) -> PyResult<Option<String>> {
        let rewritten = source::keep_last_value(code);
        let text = rewritten.as_deref().unwrap_or(code);
        let compiled =
            vm.compile(text, Mode::Exec, file).map_err(|error| error.into_pyexception(vm, Some(code)))?;
        let compiled = globals::compile(text, file, vm).unwrap_or(compiled);
        vm.run_code_obj(compiled, self.scope.clone())?;
        if rewritten.is_none() {
            return Ok(None);
        }
        let Ok(value) = self.scope.globals.get_item(VALUE, vm) else { return Ok(None) };
        self.scope.globals.del_item(VALUE, vm)?;
        if vm.is_none(&value) {
            return Ok(None);
        }
        let shown = self.shown(&value, vm)?;
        // As where people type Python.
        self.scope.globals.set_item("_", value, vm)?;
        Ok(Some(shown))
    }

    fn shown(&self, value: &PyObjectRef, vm: &VirtualMachine) -> PyResult<String> {
        let text = value.as_object().repr(vm)?.to_string_lossy().into_owned();
        Ok(shorten(&text, self.limits.value, Keep::Start))
    }

    fn stopped(&self, reason: Stop) -> CellEnd {
        let limits = &self.limits;
        let message = match reason {
            Stop::Answer => match host::take_answer() {
                Some(value) => return CellEnd::Answer { value },
                None => "the answer was lost".to_owned(),
            },
            Stop::Time => format!(
                "TimeoutError: the code ran longer than {} s and was stopped; variables keep the values they had",
                limits.wall.as_secs_f32()
            ),
            Stop::Memory => {
                format!("MemoryError: the code used more than {} MB and was stopped", limits.memory >> 20)
            }
            Stop::Calls => format!(
                "the code made more than {} tool calls in one cell and was stopped; variables keep the values they had",
                limits.calls
            ),
            Stop::Asked => "the cell was ended from outside".to_owned(),
        };
        CellEnd::Limited { message }
    }
}

#[derive(Clone, Copy)]
enum Keep {
    Start,
    End,
}

/// Cuts a long text and says so.
fn shorten(text: &str, most: usize, keep: Keep) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let cut = length - most;
    match keep {
        Keep::Start => format!("{}… [{cut} more characters]", text.chars().take(most).collect::<String>()),
        Keep::End => format!("[{cut} characters cut] …{}", text.chars().skip(cut).collect::<String>()),
    }
}
