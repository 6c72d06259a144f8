//! Python through the real binary: `gimlet python`, and code agents.

use crate::support::{Project, of_type};
use serde_json::json;

#[test]
fn standard_output_is_exactly_what_the_code_printed() {
    let project = Project::new();
    let said = project.say(&["python", "-c", "print(5 * 7, 15 * 23, sum([1, 2, 3, 4, 5]))\n'unseen'"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "35 345 15\n"), "{}", said.stderr);
    let said = project.say(&["python", "--value", "-c", "import math\nmath.sqrt(16)"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "4.0\n"), "{}", said.stderr);
    let said = project.say(&["python", "-c", "print('before')\nraise ValueError('no')"]);
    assert_eq!((said.code, said.stdout.as_str()), (1, "before\n"));
    assert!(said.stderr.contains("ValueError: no") && said.stderr.contains("line 2"), "{}", said.stderr);
    project.file("program.py", "import sys\nprint('out')\nprint('err', file=sys.stderr)\n");
    let said = project.say(&["python", "program.py"]);
    assert_eq!((said.stdout.as_str(), said.stderr.as_str()), ("out\n", "err\n"));
}

#[test]
fn nothing_outside_can_be_touched() {
    let project = Project::new();
    for code in [
        "open('x', 'w').write('x')",
        "open('/etc/passwd').read()",
        "import subprocess; subprocess.run(['true'])",
        "import os; os.system('true')",
        "import socket; socket.socket()",
        "import ctypes; ctypes.CDLL(None)",
        "import pickle; pickle.loads(b'cos\\nsystem\\n(S\"true\"\\ntR.')",
    ] {
        let said = project.say(&["python", "-c", code]);
        assert_eq!(said.code, 1, "{code}: {} {}", said.stdout, said.stderr);
    }
    assert!(!project.repo.path().join("x").exists());
}

#[test]
fn limits_end_the_code_and_not_the_program() {
    let project = Project::new();
    let said = project.say(&["python", "--timeout", "0.3", "-c", "while True: pass"]);
    assert_eq!(said.code, 4, "{}", said.stderr);
    let said = project.say(&[
        "python",
        "--timeout",
        "0.3",
        "-c",
        "try:\n    while True: pass\nexcept BaseException:\n    while True: pass",
    ]);
    assert_eq!(said.code, 4, "{}", said.stderr);
}

#[test]
fn tools_are_functions_behind_the_guard() {
    let project = Project::new();
    let code = "print(read_file('calc.py')['total_lines'])\ntry:\n    read_file('nope.py')\nexcept ToolError as e:\n    print(e.error)";
    let said = project.say(&["python", "--tools", "-c", code]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "2\nFILE_NOT_FOUND\n"), "{}", said.stderr);
}

#[test]
fn a_code_agent_keeps_its_variables_and_answers_with_a_value() {
    let script = r#"
order = "turns"
[[reply]]
text = '''
<think>I will not run this: import os</think>
I look first.
```python
files = list_files("**/*.py")["files"]
print(len(files), "files")
```
'''
[[reply]]
expect = ["1 files"]
text = '''
```python
print(undefined_name)
```
'''
[[reply]]
expect = ["NameError"]
text = '''
```python
final_answer({"files": files, "lines": read_file(files[0])["total_lines"]})
```
'''
"#;
    let (code, events) = Project::new().events(script, &["-a", "code"]);
    assert_eq!(code, 0, "{events:#?}");
    let finished = of_type(&events, "run.finished")[0];
    assert_eq!(finished["value"], json!({"files": ["calc.py"], "lines": 2}));
    assert_eq!(of_type(&events, "cell.started").len(), 3);
    assert_eq!(of_type(&events, "cell.output")[0]["text"], "1 files\n");
    let requested = of_type(&events, "tool.requested");
    assert!(requested.iter().all(|event| event["cell"].is_number()), "calls know their cell");
}
