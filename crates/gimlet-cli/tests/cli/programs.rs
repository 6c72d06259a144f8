//! The programs that every executor runs in the same way, and what a CPython says differently. Shared by the tests of the
//! Docker executor and of the jailed one.

use serde_json::Value;

/// What both executors must agree on: prints, values, errors, tools, answers.
pub(crate) const PROGRAMS: &[&str] = &[
    "5*7",
    "sum([1, 2, 3, 4, 5])",
    "import math\nmath.sqrt(16)",
    "x = 5\ndef double(n):\n    return n * 2\nclass C:\n    k = 3\ndouble(x) + C.k",
    "None",
    "'text'",
    "import sys\nprint('a', 1, sep='-')\nprint('b', file=sys.stderr)\nprint('c', end='')",
    "import io, contextlib\nb = io.StringIO()\nwith contextlib.redirect_stdout(b):\n    print('x')\nb.getvalue()",
    "1/0",
    "def f(d):\n    return d['missing']\ndef g():\n    try:\n        f({})\n    except KeyError as e:\n        raise ValueError('no') from e\ng()",
    "nothing_like_it[0]",
    "[1, 2, 3][9]",
    "int('x')",
    "class E(Exception): pass\nraise E('own')",
    "assert 1 == 2, 'unequal'",
    "final_answer({'a': (1, 2)})",
    "try:\n    final_answer(5)\nexcept:\n    pass\nprint('after')",
    "while True:\n    try:\n        final_answer(5)\n    except BaseException:\n        pass",
    "final_answer(2**100)",
    "read_file(path='calc.py')['path'] if isinstance(read_file(path='calc.py'), dict) else type(read_file(path='calc.py')).__name__",
    "try:\n    read_file(path='none.py')\nexcept ToolError as e:\n    kind = (type(e).__name__, e.error)\nkind",
    "read_file(path='none.py')",
    "try:\n    read_file(path='none.py')\nexcept ToolError as e:\n    told = (str(e), e.message, e.tool, e.context, e.recovery_suggestion, e.advice)\ntold",
    "read_file()",
    "read_file = 5",
    "import json, re, collections, itertools, statistics\n[json.dumps({'a': [1, None]}), re.findall(r'\\d+', 'a1b22'), collections.Counter('hello').most_common(1), statistics.mean([1, 2, 3])]",
];

/// Cells of one session: what earlier ones left, what they printed, and how they failed.
pub(crate) const CELLS: &[&str] = &[
    "total = 0\ndef add(n):\n    global total\n    total += n\n    return total\nadd(2)",
    "add(40)\nprint(total)",
    "rows = [{'n': n, 'square': n * n} for n in range(4)]\nrows",
    "rows[9]",
    "print(len(rows), total)",
    "print('long ' * 40_000)",
    "def deep(n):\n    return deep(n + 1)\ntry:\n    deep(0)\nexcept RecursionError:\n    print('too deep')",
    "for n in range(20):\n    read_file(path='calc.py', start_line=1)\nprint(n)",
    "import collections\nseen = collections.Counter(str(total))\ndel rows",
    "def rows_of(text):\n    return text.split()\nrows_of('a b'), seen.most_common(1)",
];

/// Cells of the embedded executor's acceptance tests: errors, tools, limits, odd objects.
pub(crate) const ACCEPTANCE: &[&str] = &[
    "if True\n    x = 1",
    "1/0",
    "int('x')",
    "input('name? ')",
    "breakpoint()",
    "class final_answer: pass",
    "read_file('a', 1, 2, 3, 4)",
    "read_file(pth='a')",
    "read_file(path='a', start=1)",
    "match 5:\n    case read_file: pass",
    "read_file(object())",
    "[n for n in [1] if (read_file := n)]",
    "read_file({1: {2, 3}, 'n': float('nan')})",
    "def f():\n    global read_file\n    read_file = 1",
    "read_file(2**70)",
    "read_file('\\ud800')",
    "x = (1,\n",
    "raise SystemExit",
    "def f(a, b): pass\nf(1)",
    "return 5",
    "try:\n    1/0\nexcept Exception:\n    undefined",
    "e = ValueError('v')\ne.add_note('a note')\nraise e",
    "raise ValueError('\\ud800')",
    "raise ValueError('z' * 30000)",
    "print('\\ud800')",
    "import sys\nsys.argv",
    "final_answer()",
    "final_answer(1, 2)",
    "sum = 0\nfor i in [1, 2]:\n    sum += i\nlist = [sum]\nlist",
    "del sum, list",
    "def f(read_file):\n    repo_info = read_file + 1\n    return repo_info\nf(1)",
    "globals()[1] = 2",
    "class P:\n    @property\n    def __class__(self): raise RuntimeError('no')\np = P()",
];

/// What an executor says differently, and why: the end of what a CPython says.
pub(crate) const DIFFERENCES: &[(&str, &str)] = &[
    // It has files, modules and processes of its own.
    ("open('none.txt')", "FileNotFoundError: [Errno 2] No such file or directory: 'none.txt'\n"),
    ("import nothing_like_it", "ModuleNotFoundError: No module named 'nothing_like_it'\n"),
    // CPython draws a group of exceptions; the runner's own frames count as recursion.
    (
        "raise ExceptionGroup('many', [ValueError(1)])",
        "    | ValueError: 1\n    +------------------------------------\n",
    ),
    ("def f(n):\n    return f(n + 1)\nf(0)", "RecursionError: maximum recursion depth exceeded\n"),
];

/// Takes more memory than there is. It is measured while it runs, so it does not end by itself.
pub(crate) const TOO_MUCH: &str = "b = b'x' * (700 << 20)\nwhile True: pass";
/// What every executor says then: the interpreter is ended and the session is rebuilt.
pub(crate) const TOO_MUCH_TOLD: &str = "MemoryError: the code needed more than 512 MB; the session was restored as it was before this code; lost or reset: b\n";

/// The scripted replies of a code agent that runs these cells one after the other, then answers.
pub(crate) fn replies(cells: &[impl AsRef<str>]) -> String {
    let cells = cells.iter().map(|cell| format!("```python\n{}\n```", cell.as_ref()));
    let last = "```python\nfinal_answer('done')\n```".to_owned();
    let texts = cells.chain([last]).map(|text| format!("[[reply]]\ntext = {}\n", Value::from(text)));
    format!("order = \"turns\"\n{}", texts.collect::<String>())
}

/// Waits for an approval in the middle of a line. WORD is an expression.
pub(crate) const WAITS: &str = r#"
[[reply]]
text = '''
```python
import uuid
lines = read_file(path="calc.py")["total_lines"]
word = WORD
done = run_cmd(cmd="touch " + word)
final_answer([lines, done["exit"]])
```
'''
"#;
