//! The runner of containers, in this machine's own Python: it keeps the session that the embedded interpreter keeps.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "what fails here fails the test")]

mod common;

use common::{config, run, session};
use gimlet_python::{Limits, Program, PythonConfig};

const RUNNER: &str =
    concat!(include_str!("../standins/_gimlet_errors.py"), include_str!("../../../docker/runner.py"));
const BOOT: &str = "import sys; exec(compile(sys.argv.pop(1), '<gimlet>', 'exec'))";

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
];

/// Cells that end differently, and what a container says: its Python is CPython, of the image's version.
const DIFFERENT: &[(&str, &str)] = &[
    // Where there is a file system, a network and whatever the image has.
    ("import os", ""),
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
