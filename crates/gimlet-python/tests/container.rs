//! The runner of containers, in this machine's own Python: it keeps the session that the embedded interpreter keeps.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "what fails here fails the test")]

mod common;

use std::io::Write;
use std::process::Stdio;

use common::{Outcome, config, run, session};
use gimlet::cell::{CellEnd, CellEvent};
use gimlet_python::protocol::{FromWorker, ToWorker, read_frame, write_frame};
use gimlet_python::{Limits, Program, PythonConfig};

const RUNNER: &str = concat!(
    include_str!("../standins/_gimlet_errors.py"),
    include_str!("../../gimlet-sandbox/container/runner.py")
);
const BOOT: &str =
    "import sys; sys.path[:] = filter(None, sys.path); exec(compile(sys.argv.pop(1), '<gimlet>', 'exec'))";

/// A crate is published with its own files alone, so there are two of this one.
#[test]
fn the_runner_has_the_same_errors_as_the_interpreter() {
    let copy = include_str!("../../gimlet-sandbox/container/_gimlet_errors.py");
    assert_eq!(copy, include_str!("../standins/_gimlet_errors.py"));
}

fn runner() -> PythonConfig {
    let path = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join("python3"))
        .find(|path| path.exists())
        .unwrap();
    let args = ["-X", "no_debug_ranges", "-c", BOOT, RUNNER, "0", ""];
    PythonConfig::new(Program { path, args: args.map(Into::into).into() })
}

fn limited(change: impl FnOnce(&mut Limits)) -> PythonConfig {
    let mut config = runner();
    change(&mut config.limits);
    config
}

async fn once(code: &str) -> Outcome {
    run(&mut *session(runner()).await, code).await
}

/// Cells that both must end in the same way, to the letter.
const SAME: &[&str] = &[
    "if True\n    x = 1",
    "1/0",
    "[1, 2, 3][9]",
    "int('x')",
    "input('name? ')",
    "breakpoint()",
    "read_file()",
    "read_file('a', 1, 2)",
    "read_file(pth='a')",
    "read_file(strat=1)",
    "read_file(start_line=1)",
    "read_file(path='a', colour=1)",
    "echo(object())",
    "echo({1: {2, 3}, 'n': float('nan')})",
    "echo(float('-inf'))",
    "echo(2**70)",
    "echo({(1, 2): 3})",
    "echo('\\ud800')",
    "read_file = 5",
    "class final_answer: pass",
    "match 5:\n    case read_file: pass",
    "match [5]:\n    case [*echo]: pass",
    "match {}:\n    case {**echo}: pass",
    "[last for n in [1] if (echo := n)]",
    "global echo\necho = 4",
    "def f():\n    global echo\n    echo = 1",
    "import json as echo",
    "from json import loads as echo",
    "try: pass\nexcept Exception as echo: pass",
    "del echo",
    "fail()",
    "raise SystemExit",
    "assert 1 == 2, 'unequal'",
    "def f(a, b): pass\nf(1)",
    "x = (1,\n",
    "return 5",
    "class E(Exception): pass\nraise E('own')",
    "try:\n    1/0\nexcept Exception:\n    undefined",
    "e = ValueError('v')\ne.add_note('a note')\nraise e",
    "raise ValueError('\\ud800')",
    "raise ValueError('z' * 30000)",
    "'y' * 30000",
    "print('\\ud800')",
    "print('x' * 300_000)",
    "import sys\nsys.argv",
    "final_answer({'a': (1, {2})})",
    "final_answer(answer=None)",
    "final_answer(result=True)",
    "final_answer()",
    "final_answer(1, 2)",
    "final_answer(other=1)",
    "import datetime\nfinal_answer(datetime.date(2024, 5, 1))",
    "final_answer(2**100)",
    "final_answer(float('inf'))",
    "final_answer(float('nan'))",
    "final_answer({(1, 2): 3, None: 1, 1.5: True})",
    "final_answer('\\ud800')",
    "try:\n    final_answer(5)\nexcept:\n    pass\nprint('after')",
    "while True:\n    try:\n        final_answer(5)\n    except BaseException:\n        pass",
    "import contextlib\nwith contextlib.suppress(BaseException):\n    final_answer(5)\nprint('after')",
    "def g():\n    while True:\n        try:\n            yield final_answer(5)\n        except:\n            pass\nlist(g())",
    "n = 0\nwhile True:\n    try:\n        echo(n)\n    except:\n        pass\n    n += 1",
    "sum = 0\nfor i in [1, 2]:\n    sum += i\nlist = [sum]\nlist",
    "def f(read_file):\n    echo = read_file + 1\n    return echo\nf(1)",
    "a = read_file('x.py')\nb = read_file(start=3, path='y.py')\n(a, b)",
    "read_file.__name__, read_file.__doc__",
    "v = {'a': [1, 2.5, None, True, 'é'], 'b': {'c': (1, 2)}}\necho(v)",
    "globals()[1] = 2",
    "'kept'",
    "_ * 2",
];

/// Cells that end differently, and what a container says: its Python is CPython, of the image's version.
const DIFFERENT: &[(&str, &str)] = &[
    // Where there is a file system, a network and whatever the image has.
    ("import shutil", ""),
    ("open('no.txt').read()", "FileNotFoundError: [Errno 2] No such file or directory: 'no.txt'"),
    ("import nothing_like_it", "ModuleNotFoundError: No module named 'nothing_like_it'"),
    // CPython draws the parts of a group.
    ("raise ExceptionGroup('many', [ValueError(1), TypeError('t')])", "    | TypeError: t"),
    // The runner's own frames count.
    ("def f(n):\n    return f(n + 1)\nf(0)", "RecursionError: maximum recursion depth exceeded"),
];

#[tokio::test]
async fn both_interpreters_end_a_cell_in_the_same_way() {
    let mut config = config();
    config.limits.calls = 20;
    let (mut ours, mut theirs) = (session(config).await, session(limited(|limits| limits.calls = 20)).await);
    for code in SAME {
        let (ours, theirs) = (run(&mut *ours, code).await, run(&mut *theirs, code).await);
        assert_eq!(ours, theirs, "{code}");
    }
    for deep in [
        format!("x = {}{}", "[".repeat(101), "]".repeat(101)),
        format!("x = '{}'", "[".repeat(500)),
        format!("x = {}1", "-".repeat(200_000)),
        format!("x = {}", "[".repeat(100_000)),
        (0..300).map(|depth| format!("{}if 1:\n", " ".repeat(depth))).collect::<String>(),
        format!("# {}\n1", "x".repeat(2 << 20)),
    ] {
        let (ours, theirs) = (run(&mut *ours, &deep).await, run(&mut *theirs, &deep).await);
        assert_eq!(ours, theirs, "{}", &deep[..100]);
    }
    assert_eq!(ours.variables(), theirs.variables());
    for (code, said) in DIFFERENT {
        let (ours, theirs) = (run(&mut *ours, code).await, run(&mut *theirs, code).await);
        assert_ne!(ours.end, theirs.end, "{code}");
        if !said.is_empty() {
            assert!(theirs.traceback().contains(said), "{code}: {theirs:?}");
        }
    }
}

#[tokio::test]
async fn threads_call_tools_one_after_the_other() {
    let mut session = session(runner()).await;
    let code = "from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool:
    got = list(pool.map(lambda n: echo(n), range(200)))
got == list(range(200))";
    let outcome = run(&mut *session, code).await;
    assert_eq!((outcome.value(), outcome.calls.len()), ("True", 200));

    // Nobody listens to a thread that goes on after its cell, until there is another.
    let folder = tempfile::tempdir().unwrap();
    let (go, gone) = (folder.path().join("go"), folder.path().join("gone"));
    let late = format!(
        "import os, threading, time
def late():
    while not os.path.exists({go:?}):
        time.sleep(0.01)
    try:
        echo(1)
    except RuntimeError as error:
        print(error)
    open({gone:?}, 'w')
thread = threading.Thread(target=late)
thread.start()
'first'"
    );
    assert_eq!(run(&mut *session, &late).await.value(), "'first'");
    std::fs::write(go, "").unwrap();
    while !gone.exists() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let outcome = run(&mut *session, "'second'").await;
    assert_eq!(
        (outcome.value(), outcome.stdout.as_str()),
        ("'second'", "echo() is not possible once the code has ended; wait for its threads\n")
    );
}

/// Its answer is the thread's, not the next cell's.
#[tokio::test]
async fn a_cell_ends_after_the_calls_of_its_threads() {
    let mut session = session(runner()).await;
    let folder = tempfile::tempdir().unwrap();
    let called = folder.path().join("called");
    let code = format!(
        "import os, threading, time
got = []
thread = threading.Thread(target=lambda: got.append(echo(5)))
thread.start()
while not os.path.exists({called:?}):
    time.sleep(0.01)"
    );
    let mut cell = session.cell(&code).await.unwrap();
    let CellEvent::HostCall { id, args, .. } = cell.next().await.unwrap() else { panic!() };
    std::fs::write(called, "").unwrap();
    // Meanwhile the cell comes to its end.
    tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    cell.resume(id, Ok(args["value"].clone())).await.unwrap();
    assert_eq!(cell.next().await.unwrap(), CellEvent::Ended(CellEnd::Done { value: None }));
    drop(cell);
    assert_eq!(run(&mut *session, "thread.join()\ngot").await.value(), "[5]");
}

#[tokio::test]
async fn a_forked_process_does_not_speak_for_the_session() {
    let mut session = session(runner()).await;
    let code = "import os
print('once')
child = os.fork()
if child:
    os.waitpid(child, 0)
    print('parent')
else:
    print('child')
    try:
        echo(1)
    except RuntimeError as error:
        print(error)
'first'";
    let outcome = run(&mut *session, code).await;
    assert_eq!(outcome.value(), "'first'");
    assert_eq!(
        outcome.stdout,
        "once\nchild\necho() is not possible in a process of its own; call it where the code runs\nparent\n"
    );
    assert_eq!(run(&mut *session, "'second'").await.value(), "'second'");
    let pool = "import multiprocessing
def work(n):
    print('at', n, 'of', 'forty')
    return n * n
context = multiprocessing.get_context('fork')
print('begin')
with context.Pool(2) as pool:
    squares = pool.map(work, range(40), 1)
squares == [n * n for n in range(40)]";
    let outcome = run(&mut *session, pool).await;
    assert_eq!(outcome.value(), "True");
    let mut lines: Vec<&str> = outcome.stdout.lines().collect();
    lines.sort_unstable();
    let mut expected: Vec<String> = (0..40).map(|n| format!("at {n} of forty")).collect();
    expected.extend(["begin".to_owned()]);
    expected.sort_unstable();
    assert_eq!(lines, expected, "lines of processes that print at once stay whole");
    let failing = "import os\nif os.fork() == 0:\n    1/0\nos.wait()[1] >> 8";
    let outcome = run(&mut *session, failing).await;
    assert_eq!(outcome.value(), "1");
    assert!(outcome.stderr.ends_with("ZeroDivisionError: division by zero\n"), "{outcome:?}");
}

#[tokio::test]
async fn odd_objects_do_not_end_the_session() {
    let mut session = session(runner()).await;
    for code in [
        "class P:\n    @property\n    def __class__(self): raise RuntimeError('no')\np = P()",
        "class M(type):\n    @property\n    def __name__(cls): raise RuntimeError('no')\n    def __eq__(cls, other): raise RuntimeError('no')\n    __hash__ = type.__hash__\nclass Q(metaclass=M): pass\nq = Q()",
        "class E(Exception):\n    @property\n    def __cause__(self): raise RuntimeError('no')\nraise E",
        "class E(Exception):\n    __module__ = 5\n    __qualname__ = 'E'\nraise E",
        "one = 1\ntotal = TERMS",
    ] {
        let code = code.replace("TERMS", &["one"; 2000].join(" + "));
        let outcome = run(&mut *session, &code).await;
        assert!(!matches!(outcome.end, CellEnd::Crashed { .. }), "{code}: {outcome:?}");
    }
    assert_eq!(run(&mut *session, "q is not p").await.value(), "True");
}

#[tokio::test]
async fn what_other_processes_print_is_printed() {
    let code = "import os, subprocess, sys
print('one')
subprocess.run(['echo', 'two'])
os.system('echo three; echo four >&2')
print('five')
subprocess.run([sys.executable, '-c', 'print(chr(120) * 300_000)'])";
    let outcome = once(code).await;
    assert!(outcome.stdout.starts_with("one\ntwo\nthree\nfive\n"), "{outcome:?}");
    assert!(outcome.stdout.ends_with(" more characters were not kept]\n"));
    assert_eq!(outcome.stderr, "four\n");
}

#[tokio::test]
async fn what_is_flushed_has_left_the_process() {
    let outcome = once("print('a')\nprint('b', flush=True)\nimport os\nos._exit(1)").await;
    assert_eq!(outcome.stdout, "a\nb\n");
}

#[tokio::test]
async fn a_loop_is_stopped_whatever_it_catches_and_prints() {
    let mut session = session(limited(|limits| limits.wall = std::time::Duration::from_millis(300))).await;
    for code in [
        "while True:\n    try:\n        while True: pass\n    except:\n        pass",
        "while True: print('x' * 10_000, flush=True)",
        "import threading\nthreading.Thread(target=lambda: echo(1)).start()\nwhile True: pass",
    ] {
        let outcome = run(&mut *session, code).await;
        assert!(outcome.limit().starts_with("TimeoutError"), "{code}: {outcome:?}");
    }
    assert_eq!(run(&mut *session, "1 + 1").await.value(), "2");
}

#[tokio::test]
async fn a_cell_that_is_given_up_at_a_call_keeps_what_it_had_done() {
    let mut session = session(runner()).await;
    let mut cell = session.cell("a = 1\nb = echo(2)\nc = 3").await.unwrap();
    let CellEvent::HostCall { .. } = cell.next().await.unwrap() else { panic!() };
    drop(cell);
    assert_eq!(run(&mut *session, "a, 'b' in globals()").await.value(), "(1, False)");
}

/// What cannot be unpacked is named, and the rest is there.
#[test]
fn a_copy_with_a_gap_is_still_where_the_code_runs() {
    let folder = tempfile::tempdir().unwrap();
    let make = "import io, sys, tarfile
archive = tarfile.open(fileobj=sys.stdout.buffer, mode='w|')
for name in ('a', 'a/b', 'c'):
    archive.addfile(tarfile.TarInfo(name), io.BytesIO())
archive.close()";
    let archive = std::process::Command::new("python3").args(["-c", make]).output().unwrap().stdout;
    let runner = RUNNER.replace("\"/workspace\"", &format!("{:?}", folder.path()));
    let mut child = std::process::Command::new("python3")
        .args(["-c", BOOT, &runner, &archive.len().to_string(), "d: it cannot be read"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    input.write_all(&archive).unwrap();
    write_frame(&mut input, &ToWorker::Start(Box::default())).unwrap();
    let Some(FromWorker::Ready { weaknesses }) = read_frame(&mut output).unwrap() else { panic!() };
    assert_eq!(weaknesses.len(), 1);
    assert!(
        weaknesses[0].contains("a/b: ") && weaknesses[0].ends_with(", d: it cannot be read"),
        "{weaknesses:?}"
    );
    let code = "import os\nsorted(os.listdir('.'))".to_owned();
    write_frame(&mut input, &ToWorker::Cell { number: 1, code }).unwrap();
    let Some(FromWorker::Ended { end, .. }) = read_frame(&mut output).unwrap() else { panic!() };
    assert_eq!(end, CellEnd::Done { value: Some("['a', 'c']".into()) });
    drop(input);
    child.wait().unwrap();
}
