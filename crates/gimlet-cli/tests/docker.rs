//! The Docker sandbox against a real engine, through the real binary. `GIMLET_TEST_DOCKER` names the engine's address;
//! the image `gimlet-sandbox:latest` must be there.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "a test fails by panicking")]

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use gimlet_testkit::GitRepo;
use serde_json::{Value, json};

struct Project {
    repo: GitRepo,
    home: tempfile::TempDir,
    host: String,
}

impl Project {
    fn new() -> Self {
        let host = std::env::var("GIMLET_TEST_DOCKER").expect("GIMLET_TEST_DOCKER names no Docker engine");
        let repo = GitRepo::new().file("calc.py", "def add(a, b):\n    return a - b\n").commit("first");
        Project { repo, home: tempfile::tempdir().unwrap(), host }
    }

    fn gimlet(&self, args: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("gimlet"));
        command
            .args(args)
            .current_dir(self.repo.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("GIMLET_HOME", self.home.path())
            .env("DOCKER_HOST", &self.host)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        command
    }

    fn say(&self, args: &[&str]) -> Output {
        self.gimlet(args).output().unwrap()
    }

    /// Another image, by the user's own file.
    fn name_image(&self, image: &str) {
        let settings = format!("[sandbox]\nimage = \"{image}\"\n");
        std::fs::write(self.home.path().join("config.toml"), settings).unwrap();
    }

    /// The result of a tool.
    fn call(&self, tool: &str, args: &Value, more: &[&str]) -> Value {
        let args = args.to_string();
        let mut words = vec!["tools", "call", tool, args.as_str(), "--approve", "all"];
        words.extend(more);
        let output = self.say(&words);
        let text = String::from_utf8(output.stdout).unwrap();
        serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)))
    }

    /// A Python program as a command in the container; what is in it is the sandbox's business alone.
    fn python(&self, code: &str) -> Value {
        std::fs::write(self.repo.path().join("program.py"), code).unwrap();
        let result = self.call("run_cmd", &json!({"cmd": "python3 program.py"}), &["--sandbox", "docker"]);
        self.assert_nothing_left();
        result
    }

    fn containers(&self) -> String {
        let listed = Command::new("docker")
            .args(["ps", "--all", "--quiet", "--filter", "label=dev.gimlet.sandbox"])
            .env("DOCKER_HOST", &self.host)
            .output()
            .unwrap();
        assert!(listed.status.success());
        String::from_utf8(listed.stdout).unwrap()
    }

    fn assert_nothing_left(&self) {
        let begun = Instant::now();
        while !self.containers().is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(30), "a container is left");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn text(result: &Value) -> String {
    format!(
        "{}{}",
        result["stdout_tail"].as_str().unwrap_or(""),
        result["stderr_tail"].as_str().unwrap_or("")
    )
}

/// One test, because containers of one would be left-overs to another.
#[test]
#[ignore = "needs a Docker engine"]
fn every_limit_bites_and_nothing_is_left() {
    let project = Project::new();
    let python = |code: &str| project.python(code);

    let result = python("import os; print(os.getuid(), os.getgid(), os.getcwd(), os.listdir('.'))");
    assert!(
        text(&result).starts_with("65534 65534 /workspace") && text(&result).contains("calc.py"),
        "{result}"
    );
    assert_eq!(result["ran_in"], "docker (read-only)");

    let result = python(
        "print([line for line in open('/proc/self/status') if line.startswith(('CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp:'))])",
    );
    let said = text(&result);
    assert!(
        said.contains("CapEff:\\t0000000000000000") && said.contains("CapBnd:\\t0000000000000000"),
        "{said}"
    );
    assert!(said.contains("NoNewPrivs:\\t1") && said.contains("Seccomp:\\t2"), "{said}");

    let result = python(
        "import os\nn = 0\ntry:\n    while True:\n        if os.fork() == 0:\n            import time; time.sleep(60)\n        n += 1\nexcept OSError as e:\n    print('stopped at', n, e)",
    );
    let stopped: u32 = text(&result).split_whitespace().nth(2).and_then(|n| n.parse().ok()).unwrap_or(999);
    assert!(stopped < 100, "{result}");

    let result = python("x = b'x' * (700 << 20)");
    assert_eq!(result["exit"], 137, "{result}");
    assert!(text(&result).contains("more than 512 MB of memory"), "{result}");

    let result = python(
        "import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass\nfor path in ('/sys/fs/cgroup/cpu.stat', '/sys/fs/cgroup/cpu/cpu.stat'):\n    try:\n        print(open(path).read())\n        break\n    except OSError: pass",
    );
    let throttled =
        text(&result).lines().find_map(|line| line.strip_prefix("nr_throttled ")?.parse::<u64>().ok());
    assert!(throttled.is_some_and(|times| times > 0), "{result}");

    let result = python("import socket\nsocket.create_connection(('1.1.1.1', 53), 3)");
    assert!(text(&result).contains("Network is unreachable"), "{result}");

    for place in ["/x", "/etc/x", "/usr/x", "/workspace/x"] {
        let result = python(&format!("open('{place}', 'w')"));
        assert!(text(&result).contains("Read-only file system"), "{place}: {result}");
    }

    let result =
        project.call("run_cmd", &json!({"cmd": "sleep 31", "timeout": 60}), &["--sandbox", "docker"]);
    assert_eq!(result["error"], "CMD_TIMEOUT", "{result}");
    project.assert_nothing_left();
}

#[test]
#[ignore = "needs a Docker engine"]
fn a_killed_parent_leaves_no_container() {
    let project = Project::new();
    for code in ["while True: pass", "sum(range(10**14))"] {
        let mut parent = project.gimlet(&["python", "--executor", "docker", "-c", code]).spawn().unwrap();
        while project.containers().is_empty() {
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(Duration::from_millis(500));
        parent.kill().unwrap();
        parent.wait().unwrap();
        project.assert_nothing_left();
    }
}

/// What both executors must agree on: prints, values, errors, tools, answers.
const PROGRAMS: &[&str] = &[
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
    "read_file()",
    "read_file = 5",
    "import json, re, collections, itertools, statistics\n[json.dumps({'a': [1, None]}), re.findall(r'\\d+', 'a1b22'), collections.Counter('hello').most_common(1), statistics.mean([1, 2, 3])]",
];

#[test]
#[ignore = "needs a Docker engine"]
fn both_executors_agree() {
    let project = Project::new();
    for code in PROGRAMS {
        let run = |executor: &str| {
            let output = project.say(&["python", "--tools", "--value", "--executor", executor, "-c", code]);
            let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (output.status.code(), words(&output.stdout), words(&output.stderr))
        };
        assert_eq!(run("docker"), run("python"), "{code}");
    }
    project.assert_nothing_left();
}

#[test]
#[ignore = "needs a Docker engine"]
fn code_has_a_copy_of_the_project_and_limits() {
    let project = Project::new();
    let run = |code: &str, more: &[&str]| {
        let mut args = vec!["python", "--executor", "docker", "-c", code];
        args.extend(more);
        let output = project.say(&args);
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, stdout, stderr) = run(
        "import calc, subprocess\nopen('new.txt', 'w').write('x')\nprint(calc.add(3, 1), subprocess.run(['id', '-u'], capture_output=True, text=True).stdout)",
        &[],
    );
    assert_eq!((code, stdout.as_str()), (Some(0), "2 65534\n\n"), "{stderr}");
    assert!(!project.repo.path().join("new.txt").exists());
    let (code, _, stderr) = run("while True: pass", &["--timeout", "1"]);
    assert!(code == Some(4) && stderr.contains("TimeoutError"), "{code:?} {stderr}");
    let (code, _, stderr) = run("x = b'x' * (700 << 20)", &[]);
    assert!(code == Some(4) && stderr.contains("MemoryError"), "{code:?} {stderr}");
    project.assert_nothing_left();
}

#[test]
#[ignore = "needs a Docker engine"]
fn patches_are_checked_in_a_container_and_the_result_says_so() {
    let project = Project::new();
    let diff = |line: &str| {
        format!(
            "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-{line}\n+    return a + b\n"
        )
    };
    for (validation, place) in [
        ("docker", "in a Docker container"),
        ("auto", "in a Docker container"),
        ("worktree", "in a scratch folder"),
    ] {
        let result = project.call(
            "propose_patch_unified",
            &json!({"intent": "add", "unified_diff": diff("    return a - b")}),
            &["--validation", validation],
        );
        assert!(result.get("error").is_none() && result.to_string().contains(place), "{result}");
    }
    project.name_image("no-such-image:none");
    let result = project.call(
        "propose_patch_unified",
        &json!({"intent": "add", "unified_diff": diff("    return a - b")}),
        &["--validation", "docker"],
    );
    assert!(result.to_string().contains("the image no-such-image:none is not there"), "{result}");
    let result = project.call(
        "propose_patch_unified",
        &json!({"intent": "add", "unified_diff": diff("    return a - b")}),
        &["--validation", "auto"],
    );
    assert!(
        result
            .to_string()
            .contains("in a scratch folder (not in Docker: the image no-such-image:none is not there)"),
        "{result}"
    );
    project.assert_nothing_left();
}

#[test]
#[ignore = "needs a Docker engine"]
fn status_tells_what_is_there_and_what_is_missing() {
    let project = Project::new();
    let said = |command: &mut Command| String::from_utf8(command.output().unwrap().stdout).unwrap();
    let there = said(&mut project.gimlet(&["sandbox", "status"]));
    assert!(there.contains("image gimlet-sandbox:latest"), "{there}");
    project.name_image("no-such-image:none");
    let missing = said(&mut project.gimlet(&["sandbox", "status"]));
    assert!(
        missing.contains("is not there") && missing.contains("hint: `gimlet sandbox build`"),
        "{missing}"
    );
    let nobody =
        said(project.gimlet(&["sandbox", "status"]).env("DOCKER_HOST", "unix:///nonexistent/docker.sock"));
    assert!(nobody.contains("no Docker engine answers"), "{nobody}");
}
