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
fn the_imports_can_be_changed() {
    let project = Project::new();
    let code = "import linecache\nimport json";
    let said = project.say(&["python", "-c", code]);
    assert!(
        said.stderr.contains("import of 'linecache' is not allowed; there are no files here"),
        "{}",
        said.stderr
    );
    let said = project.say(&["python", "--imports", "+linecache,-json", "-c", code]);
    assert!(said.stderr.contains("line 2") && said.stderr.contains("import of 'json'"), "{}", said.stderr);
    let said = project.say(&["python", "--imports", "-jsno", "-c", "1"]);
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("`jsno` cannot be taken off the imports") && said.stderr.contains("hint: "));
}

#[test]
fn files_change_the_imports_and_a_project_only_adds_when_trusted() {
    let project = Project::new();
    let user = |text: &str| project.config(text);
    let import = |name: &str, more: &[&str]| {
        let code = format!("import {name}");
        project.say(&[&["python", "-c", &code][..], more].concat())
    };
    user("[python]\nimports = [\"+linecache\", \"-json\"]\n");
    assert_eq!(import("linecache", &[]).code, 0, "{}", import("linecache", &[]).stderr);
    assert!(import("json", &[]).stderr.contains("import of 'json' is not allowed"));
    assert_eq!(import("json", &["--imports", "+json"]).code, 0, "the command line comes last");
    let script = "[[reply]]\ntext = \"\"\"\n```python\nimport linecache\nfinal_answer(linecache.__name__)\n```\n\"\"\"\n";
    let (code, events) = project.events(script, &["-a", "code"]);
    assert_eq!((code, &of_type(&events, "run.finished")[0]["answer"]), (0, &json!("linecache")));

    user("[python]\nimports = [\"-jsno\"]\n");
    let said = import("json", &[]);
    assert_eq!(said.code, 2);
    assert!(said.stderr.contains("config.toml line 1: [python] imports: `jsno` cannot"), "{}", said.stderr);
    user("[python]\nimport = []\n");
    let said = import("json", &[]);
    assert!(
        said.code == 2 && said.stderr.contains("line 2") && said.stderr.contains("`import`"),
        "{}",
        said.stderr
    );

    user("[python]\nimports = [\"-json\"]\n");
    project.file("gimlet.toml", "[python]\nimports = [\"-json\", \"-csv\"]\n");
    assert!(
        import("csv", &[]).stderr.contains("ImportError: import of 'csv' is not allowed"),
        "taking away needs no trust"
    );
    project.file("gimlet.toml", "[python]\nimports = [\"json\"]\n");
    let said = import("re", &[]);
    assert_eq!(said.code, 2);
    assert!(
        said.stderr.contains("gimlet.toml line 1 lets code import `json`, and is not trusted"),
        "{}",
        said.stderr
    );
    assert_eq!(project.say(&["trust", "gimlet.toml", "--yes"]).code, 0);
    assert_eq!(import("json", &[]).code, 0);
}

#[test]
fn a_resumed_run_may_import_what_it_could_before() {
    let project = Project::new();
    let reply = |code: &str| format!("[[reply]]\ntext = \"\"\"\n```python\n{code}\n```\n\"\"\"\n");
    let first = format!("order = \"turns\"\n{}", reply("import linecache\nprint(linecache.__name__)"));
    let script = format!("{first}[[reply]]\nfault = {{ kind = \"status\", status = 500 }}\n");
    let (code, events) = project.events(&script, &["-a", "code", "--imports", "linecache"]);
    assert_eq!(code, 1, "{events:#?}");
    assert_eq!(of_type(&events, "run.started")[0]["executor"], json!({"imports": ["+linecache"]}));
    project.script(&format!("{first}{}", reply("final_answer(linecache.__name__)")));
    let said = project.say(&["resume", "last", "-q"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "linecache\n"), "{}", said.stderr);
}

/// A kernel without Landlock, for this thread and what it starts.
fn without_landlock() {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
    const LANDLOCK_CREATE_RULESET: i64 = 444;
    const ENOSYS: u32 = 38;
    let filter = SeccompFilter::new(
        [(LANDLOCK_CREATE_RULESET, Vec::new())].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(ENOSYS),
        std::env::consts::ARCH.try_into().unwrap(),
    );
    apply_filter(&BpfProgram::try_from(filter.unwrap()).unwrap()).unwrap();
}

#[test]
fn a_layer_that_the_kernel_lacks_is_said() {
    const WORDS: &str = "Landlock is not supported by this kernel";
    let told = std::thread::spawn(|| {
        without_landlock();
        let project = Project::new();
        let said = project.say(&["python", "-c", "print(1)"]);
        assert_eq!((said.code, said.stdout.as_str()), (0, "1\n"), "{}", said.stderr);
        assert!(said.stderr.contains(&format!("warning: {WORDS}")), "{}", said.stderr);
        let script = "order = \"turns\"\n[[reply]]\ntext = \"```python\\nfinal_answer(1)\\n```\"\n";
        let (_, events) = project.events(script, &["-a", "code"]);
        let place = |kind: &str| events.iter().position(|event| event["type"] == kind).unwrap();
        assert!(place("warning") < place("cell.started"), "said before any code runs");
        assert_eq!(of_type(&events, "warning")[0]["message"], WORDS);
    });
    told.join().unwrap();
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
