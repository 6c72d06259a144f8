//! What a cell can do: variables, prints, values, tools, answers, errors.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "what fails here fails the test")]

mod common;

use common::{config, once, run, session};
use gimlet::cell::CellEnd;
use serde_json::json;

#[tokio::test]
async fn everything_lives_on_from_cell_to_cell() {
    let mut session = session(config()).await;
    let first =
        run(&mut *session, "import math\nx = 5\ndef double(n):\n    return n * 2\nclass C:\n    k = 3").await;
    assert_eq!(first.end, CellEnd::Done { value: None });
    assert_eq!(run(&mut *session, "double(x) + C.k + math.floor(2.9)").await.value(), "15");
    assert_eq!(run(&mut *session, "x += 1\nx").await.value(), "6");
    assert_eq!(run(&mut *session, "'text'").await.value(), "'text'");
    assert_eq!(run(&mut *session, "None").await.end, CellEnd::Done { value: None });
    assert_eq!(run(&mut *session, "y: int = 4").await.end, CellEnd::Done { value: None });
    assert_eq!(run(&mut *session, "__name__").await.value(), "'__main__'");
}

#[tokio::test]
async fn variables_are_told_by_name_type_and_size() {
    let mut session = session(config()).await;
    let code = "import math\nrows = [1, 2]\ntext = 'äbc'\n_hidden = 1\nclass Long:\n    def __len__(self):\n        raise ValueError\nlong = Long()\nn = 4\nd = {1: 2}\nrows = [1]";
    assert_eq!(run(&mut *session, code).await.end, CellEnd::Done { value: None });
    let told = |session: &dyn gimlet::cell::Session| {
        let one = |v: gimlet::context::Variable| format!("{} {} {:?}", v.name, v.kind, v.size);
        session.variables().into_iter().map(one).collect::<Vec<_>>()
    };
    let expected = [
        "rows list Some(1)",
        "text str Some(3)",
        "Long type None",
        "long Long None",
        "n int None",
        "d dict Some(1)",
    ];
    assert_eq!(told(&*session), expected);
    run(&mut *session, "del rows, Long, long, d\n1 / 0").await;
    assert_eq!(told(&*session), ["text str Some(3)", "n int None"]);
    let many = run(&mut *session, "for i in range(200):\n    globals()[f'v{i}'] = i").await;
    assert_eq!(many.end, CellEnd::Done { value: None });
    assert_eq!(session.variables().len(), 50, "the latest");
}

#[tokio::test]
async fn names_in_loops_are_the_names_of_the_cell() {
    let mut session = session(config()).await;
    let code = "\"\"\"Doc.\"\"\"\nfrom __future__ import annotations\nimport math\ntotal: float = 0\nfor i in range(3):\n    square = i * i\n    total += math.sqrt(square)\nclass C:\n    i = 7\n    both = [i, total]\nd = {k: v for k, v in zip('ab', range(2)) if (last := v) >= 0}\ndef f(i):\n    return [i + j for j in range(2)]\nfor sum in [1]:\n    pass\ndel square\n(i, total, last, C.both, d, f(5), sum, __doc__, [n in globals() for n in ['k', 'v', 'j', 'square', 'x']])";
    assert_eq!(
        run(&mut *session, code).await.value(),
        "(2, 3.0, 1, [7, 3.0], {'a': 0, 'b': 1}, [5, 6], 1, 'Doc.', [False, False, False, False, False])"
    );
    assert_eq!(run(&mut *session, "del sum\nfor n in [1]:\n    n = sum([n, i])\nn").await.value(), "3");
    let outcome = run(&mut *session, "for i in [1]:\n    print(unknwon)").await;
    assert!(
        outcome.traceback().contains("line 2, in <module>\n    print(unknwon)\nNameError: name 'unknwon'")
    );
    let outcome = run(&mut *session, "for i in [1]:\n    len = len('ab')\nlen").await;
    assert_eq!(outcome.value(), "2");
    let outcome = run(&mut *session, "for i in [1]:\n    if '\\d' is '\\d': pass").await;
    assert_eq!(outcome.stderr.matches("SyntaxWarning").count(), 3, "{outcome:?}");
}

#[tokio::test]
async fn prints_arrive_in_order_and_on_their_stream() {
    let outcome =
        once("import sys\nprint('a', 1, sep='-')\nprint('b', file=sys.stderr)\nprint('c', end='')").await;
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("a-1\nc", "b\n"));
}

#[tokio::test]
async fn prints_can_be_caught() {
    let code = "import io, contextlib\nbuffer = io.StringIO()\nwith contextlib.redirect_stdout(buffer):\n    print('x')\nbuffer.getvalue()";
    assert_eq!(once(code).await.value(), r"'x\n'");
}

#[tokio::test]
async fn output_is_capped_and_said() {
    let mut session = session(common::with_limits(|limits| limits.output = 100)).await;
    let outcome = run(&mut *session, "for i in range(1000):\n    print('0123456789')").await;
    assert_eq!(
        outcome.stdout.split_once("\n[").unwrap().1,
        "output limit reached: 10900 more characters were not kept]\n"
    );
    assert_eq!(run(&mut *session, "print('again')").await.stdout, "again\n");
}

#[tokio::test]
async fn a_traceback_looks_like_pythons() {
    let mut session = session(config()).await;
    run(&mut *session, "def inner(d):\n    return d['missing']").await;
    let code = "def outer():\n    try:\n        inner({})\n    except KeyError as e:\n        raise ValueError('no') from e\n\nouter()";
    let outcome = run(&mut *session, code).await;
    insta::assert_snapshot!(outcome.traceback());
}

#[tokio::test]
async fn errors_help() {
    let mut session = session(config()).await;
    let cases = [
        "results = [1]\nresult[0]",
        "'abc'.uper()",
        "if True\n    x = 1",
        "1/0",
        "def f(n):\n    return f(n + 1)\nf(0)",
        "[1, 2, 3][9]",
        "int('x')",
        "import shutil",
        "import os\nos.listdir('.')",
        "import os\nos.path.exists('x.txt')",
        "import os\nos.spawnl",
        "import numpy as np",
        "from urllib import request",
        "open('x.txt').read()",
        "input('name? ')",
        "read_file()",
        "read_file('a', 1, 2)",
        "read_file(pth='a')",
        "echo(object())",
        "echo({1: {2, 3}, 'n': float('nan')})",
        "read_file = 5",
        "def final_answer(x): pass",
        "fail()",
        "raise SystemExit",
        "assert 1 == 2, 'unequal'",
        "def f(a, b): pass\nf(1)",
        "x = (1,\n",
        "class E(Exception): pass\nraise E('own')",
        "try:\n    1/0\nexcept Exception:\n    undefined",
        "raise ExceptionGroup('many', [ValueError(1), TypeError('t')])",
        "e = ValueError('v')\ne.add_note('a note')\nraise e",
    ];
    let mut shown = String::new();
    for code in cases {
        let outcome = run(&mut *session, code).await;
        shown.push_str(&format!(">>> {}\n{}\n", code.replace('\n', "\n... "), outcome.traceback()));
    }
    insta::assert_snapshot!(shown);
}

#[tokio::test]
async fn tools_are_functions() {
    let mut session = session(config()).await;
    let outcome =
        run(&mut *session, "a = read_file('x.py')\nb = read_file(start=3, path='y.py')\n(a, b)").await;
    assert_eq!(outcome.value(), "('text of x.py', 'text of y.py')");
    assert_eq!(
        outcome.calls,
        [
            ("read_file".into(), json!({"path": "x.py"})),
            ("read_file".into(), json!({"start": 3, "path": "y.py"})),
        ]
    );
    let round_trip = "v = {'a': [1, 2.5, None, True, 'é'], 'b': {'c': (1, 2)}}\necho(v) == {'a': [1, 2.5, None, True, 'é'], 'b': {'c': [1, 2]}}";
    assert_eq!(run(&mut *session, round_trip).await.value(), "True");
    assert_eq!(
        run(&mut *session, "read_file.__name__, read_file.__doc__").await.value(),
        r"('read_file', 'read_file(path, start=...)\n\nThe tool read_file.')"
    );
    assert_eq!(run(&mut *session, "[f(1) for f in [echo]]").await.value(), "[1]");
}

#[tokio::test]
async fn a_tools_failure_is_an_exception() {
    let code = "try:\n    fail()\nexcept Exception as e:\n    got = (type(e).__name__, e.error, e.message, e.context, e.recovery_suggestion, str(e))\ngot";
    assert_eq!(
        once(code).await.value(),
        "('ToolError', 'FILE_NOT_FOUND', 'no such file', {'path': 'x.py'}, None, 'FILE_NOT_FOUND: no such file')"
    );
    assert_eq!(once("try:\n    fail()\nexcept ToolError:\n    x = 1\nx").await.value(), "1");
}

#[tokio::test]
async fn nothing_swallows_the_final_answer() {
    let cases = [
        "final_answer(5)",
        "try:\n    final_answer(5)\nexcept:\n    pass\nprint('after')",
        "while True:\n    try:\n        final_answer(5)\n    except BaseException:\n        pass",
        "def f():\n    try:\n        final_answer(5)\n    finally:\n        return 1\nf()",
        "import contextlib\nwith contextlib.suppress(BaseException):\n    final_answer(5)\nprint('after')",
        "def g():\n    while True:\n        try:\n            yield final_answer(5)\n        except:\n            pass\nlist(g())",
    ];
    for code in cases {
        let outcome = once(code).await;
        assert_eq!(outcome.end, CellEnd::Answer { value: json!(5) }, "{code}");
        assert_eq!(outcome.stdout, "", "{code}");
    }
}

#[tokio::test]
async fn answers_are_plain_values() {
    let cases = [
        ("final_answer({'a': (1, {2})})", json!({"a": [1, [2]]})),
        ("final_answer(answer=None)", json!(null)),
        ("import datetime\nfinal_answer(datetime.date(2024, 5, 1))", json!("2024-05-01")),
        ("final_answer(2**100)", json!("1267650600228229401496703205376")),
        ("final_answer(float('inf'))", json!("inf")),
    ];
    for (code, value) in cases {
        assert_eq!(once(code).await.end, CellEnd::Answer { value }, "{code}");
    }
}

#[tokio::test]
async fn the_session_goes_on_after_an_answer() {
    let mut session = session(config()).await;
    run(&mut *session, "x = 1\nfinal_answer(x)").await;
    assert_eq!(run(&mut *session, "x + 1").await.value(), "2");
}

#[tokio::test]
async fn builtins_may_be_shadowed() {
    assert_eq!(once("sum = 0\nfor i in [1, 2]:\n    sum += i\nlist = [sum]\nlist").await.value(), "[3]");
}

#[tokio::test]
async fn local_names_like_a_tools_are_fine() {
    assert_eq!(once("def f(read_file):\n    echo = read_file + 1\n    return echo\nf(1)").await.value(), "2");
}

#[tokio::test]
async fn the_seeds_table_holds() {
    for (code, value) in [
        ("5*7", "35"),
        ("15*23", "345"),
        ("sum([1, 2, 3, 4, 5])", "15"),
        ("import math\nmath.sqrt(16)", "4.0"),
    ] {
        assert_eq!(once(code).await.value(), value);
    }
    for code in [
        "open('/tmp/x', 'w').write('x')",
        "open('/etc/passwd').read()",
        "import subprocess\nsubprocess.run(['ls'])",
        "import os\nos.system('ls')",
        "import socket\nsocket.socket()",
        "import ctypes",
        "import pickle",
    ] {
        assert!(matches!(once(code).await.end, CellEnd::Raised { .. }), "{code}");
    }
}

#[tokio::test]
async fn a_warm_worker_gives_the_same_session() {
    use gimlet::cell::Executor;
    let code = "import json, dataclasses, time, random, uuid, datetime\n[time.time(), random.random(), uuid.uuid4().hex, datetime.datetime.now().isoformat()]";
    let cold = once(code).await.value().to_owned();
    let mut config = config();
    config.warmth = gimlet_python::Warmth::Warm;
    let executor = gimlet_python::PythonExecutor::new(config);
    executor.warm_up();
    for _ in 0..3 {
        let mut session = executor.start(&common::spec()).await.unwrap();
        assert_eq!(run(&mut *session, code).await.value(), cold);
    }
}

#[tokio::test]
async fn sorting_is_pythons_whatever_the_keys_are() {
    let outcome = once(include_str!("programs/sorting.py")).await;
    assert_eq!(outcome.end, CellEnd::Done { value: None }, "{}", outcome.stdout);
    insta::assert_snapshot!(outcome.stdout);
}
