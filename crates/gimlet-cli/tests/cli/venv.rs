//! `--executor venv`: the user's own CPython in the jail of commands. The same programs as the other two executors, the same
//! rules of replay, and the corpora of attempts to get out and to take everything.

use std::io::BufRead;
use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::jail::scenes;
use crate::programs::{ACCEPTANCE, CELLS, DIFFERENCES, PROGRAMS, TOO_MUCH, TOO_MUCH_TOLD, WAITS, replies};
use crate::support::{Project, Said, has_python, of_type};

const ESCAPES: &str = include_str!("../../../gimlet-python/tests/corpus/escapes.py.txt");
const DENIALS: &str = include_str!("../../../gimlet-python/tests/corpus/denials.py.txt");
/// What must never show up in anything the code gets.
const TREASURE: &str = "treasure-8f1d3c";

/// The cases of a corpus: a name after `### `, then the code.
fn cases(corpus: &str) -> Vec<(&str, &str)> {
    corpus.split("\n### ").skip(1).map(|case| case.split_once('\n').unwrap()).collect()
}

impl Project {
    fn python(&self, executor: &str, code: &str) -> Said {
        self.say(&["python", "--tools", "--value", "--executor", executor, "-c", code])
    }

    /// How a run's cells ended on an executor, without what differs between runs.
    fn cells(&self, executor: &str, cells: &[&str]) -> Vec<Value> {
        let model = self.script(&replies(cells));
        let args =
            ["--model", &model, "--action", "code", "--executor", executor, "--max-steps", "99", "look"];
        let said = self.say(&args);
        assert_eq!((said.code, said.stdout.as_str()), (0, "done\n"), "{executor}: {}", said.stderr);
        let ended = self.last_events().into_iter().filter(|event| event["type"] == "cell.finished");
        let plain = ended.map(|mut cell| {
            for private in ["seq", "time", "run", "seconds"] {
                cell.as_object_mut().unwrap().remove(private);
            }
            cell
        });
        plain.collect()
    }

    fn last_events(&self) -> Vec<Value> {
        self.say(&["runs", "show", "last", "--json"]).events()
    }

    /// Says yes to the only question there is.
    fn approve_only(&self) {
        let waiting: Value = serde_json::from_str(&self.say(&["approvals", "--json"]).stdout).unwrap();
        let id = waiting[0]["request"]["id"].as_str().unwrap();
        assert_eq!(self.say(&["approve", id]).code, 0);
    }
}

fn shown(said: Said) -> (i32, String, String) {
    (said.code, said.stdout, said.stderr)
}

#[test]
fn the_same_programs_end_in_the_same_way() {
    if !has_python() {
        return;
    }
    let project = Project::new();
    for code in PROGRAMS {
        let (ours, theirs) = (project.python("python", code), project.python("venv", code));
        assert_eq!(shown(ours), shown(theirs), "{code}");
    }
    for cells in [CELLS, ACCEPTANCE] {
        let ours = Project::new().cells("python", cells);
        let theirs = Project::new().cells("venv", cells);
        assert_eq!(ours.len(), cells.len() + 1);
        for ((ours, theirs), code) in ours.iter().zip(&theirs).zip(cells) {
            assert_eq!(ours, theirs, "{code}");
        }
    }
    for (code, end) in DIFFERENCES {
        let theirs = project.python("venv", code);
        assert!(theirs.stderr.ends_with(end), "{code}: {}", theirs.stderr);
    }
    for executor in ["venv", "python"] {
        assert_eq!(project.python(executor, TOO_MUCH).stderr, TOO_MUCH_TOLD, "{executor}");
    }
}

#[test]
fn a_run_in_the_jail_is_resumed_there_in_the_middle_of_a_line() {
    if !has_python() {
        return;
    }
    let project = Project::new();
    let said = project.run(&WAITS.replace("WORD", "'made'"), &["--executor", "venv"]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    let started = project.last_events()[0].clone();
    assert_eq!(started["executor"], json!({ "kind": "venv" }));
    assert_eq!((&started["action"], &started["limits"]["max_steps"]), (&json!("code"), &json!(25)));
    let system = started["system"].as_str().unwrap();
    assert!(
        system.contains("The current folder of your code is the repository, and your code cannot change it")
    );
    let refused = project.say(&["resume", "last", "--executor", "python"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("the run's code ran in `venv`; it cannot go on in `python`"));
    project.approve_only();
    let said = project.say(&["resume", "last"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "[2,0]\n"), "{}", said.stderr);
    assert!(project.repo.path().join("made").exists(), "tools work on the project");
    let events = project.last_events();
    let count = |kind: &str| of_type(&events, kind).len();
    assert_eq!((count("tool.started"), count("run.resumed")), (2, 1), "the first call was not made again");
}

#[test]
fn code_that_does_something_else_when_it_is_replayed_suspends_the_run() {
    if !has_python() {
        return;
    }
    let project = Project::new();
    let said = project.run(&WAITS.replace("WORD", "uuid.uuid4().hex"), &["--executor", "venv"]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    project.approve_only();
    let said = project.say(&["resume", "last"]);
    assert_eq!((said.code, said.stdout.as_str()), (1, ""), "{}", said.stderr);
    let events = project.last_events();
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["reason"]), (&json!("run.suspended"), &json!("diverged")), "{last}");
}

#[test]
fn a_session_is_restored_after_a_limit() {
    if !has_python() {
        return;
    }
    let project = Project::new();
    let cells = [
        "kept = [1, 2]\ndef f(): return kept",
        "lost = 1\nsum(range(10**14))",
        "f()",
        "lost",
        TOO_MUCH,
        "f()",
    ];
    let model = project.script(&replies(&cells));
    let args = ["--model", &model, "--executor", "venv", "look"];
    let said = Said::from(project.gimlet(&args).env("SANDBOX_TIMEOUT", "3").output().unwrap());
    assert_eq!((said.code, said.stdout.as_str()), (0, "done\n"), "{}", said.stderr);
    let events = project.last_events();
    let ended = of_type(&events, "cell.finished");
    let told = |at: usize| ended[at]["observation"].to_string();
    assert!(
        told(1).contains("inside one operation") && told(1).contains("lost or reset: lost"),
        "{}",
        told(1)
    );
    assert!(told(2).contains("[1, 2]"), "{}", told(2));
    assert!(told(3).contains("NameError"), "{}", told(3));
    assert!(told(4).contains("MemoryError: the code needed more than 512 MB"), "{}", told(4));
    assert!(told(5).contains("[1, 2]"), "{}", told(5));
}

/// Each attempt in a process of its own, forked from the session: same jail, and the others are not disturbed. What one has
/// printed is searched here, for it may be more than code may print.
const TRIES: &str = "
import os, sys, tempfile, time, traceback
word = ''.join(['treasure', '-8f1d3c']).encode()
for name, code in CASES:
    printed = tempfile.TemporaryFile()
    child = os.fork()
    if child == 0:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
        sys.stdout = sys.stderr = open(1, 'w', closefd=False)
        try:
            exec(compile(code, name, 'exec'), {'__name__': '__main__'})
        except BaseException:
            traceback.print_exc(limit=1)
        finally:
            sys.stdout.flush()
            os._exit(0)
    ends = time.monotonic() + 10
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > ends:
            os.kill(child, 9)
            os.waitpid(child, 0)
            break
        time.sleep(0.002)
    printed.seek(0)
    text = printed.read()
    print('LEAKED' if word in text else 'kept', name, len(text))
'tried'
";

#[test]
fn nothing_gets_out() {
    if !has_python() {
        return;
    }
    for scene in scenes() {
        let (secret, target) = (scene.path("home/secret.txt"), scene.path("project/target"));
        std::fs::write(&secret, TREASURE).unwrap();
        std::fs::write(scene.path("project/.env"), format!("KEY={TREASURE}\n")).unwrap();
        scene.own();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let env = scene.path("project/.env");
        let mut tried = Vec::new();
        for (name, code) in cases(ESCAPES) {
            for hidden in [&secret, &env] {
                let code = code
                    .replace("SECRETMODULE", "secret")
                    .replace("SECRET", hidden.to_str().unwrap())
                    .replace("TARGET", target.to_str().unwrap())
                    .replace("PORT", &port);
                tried.push((name, code));
            }
        }
        assert!(tried.len() >= 200, "{}", tried.len());
        let count = tried.len();
        let code = TRIES.replace("CASES", &json!(tried).to_string());
        let args = ["python", "--executor", "venv", "--value", "--timeout", "300", "-c", &code];
        let said = Said::from(scene.gimlet(&args).output().unwrap());
        let who = format!("{} as {:?}", scene.jail, scene.user);
        assert!(said.stdout.ends_with("'tried'\n"), "{who}: {}{}", said.stdout, said.stderr);
        let kept: Vec<&str> = said.stdout.lines().filter(|line| line.starts_with("kept ")).collect();
        assert_eq!(kept.len(), count, "{who}: {}", said.stdout);
        assert!(kept.iter().filter(|line| !line.ends_with(" 0")).count() > 200, "{who}: {}", said.stdout);
        assert!(!target.exists(), "{who} wrote a file");
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), TREASURE, "{who}");
        assert!(listener.accept().is_err(), "{who} connected");
    }
}

#[test]
fn nothing_takes_everything() {
    if !has_python() {
        return;
    }
    let project = Project::new();
    let cases = std::sync::Mutex::new(cases(DENIALS));
    assert!(cases.lock().unwrap().len() >= 60);
    let next = || cases.lock().unwrap().pop();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((name, code)) = next() {
                    let begun = Instant::now();
                    let args =
                        ["python", "--executor", "venv", "--timeout", "0.5", "--memory", "128", "-c", code];
                    let said = project.say(&args);
                    let took = begun.elapsed();
                    // The limit, the grace before the kill and the rebuilding, on a machine that may be busy.
                    assert!(took < Duration::from_secs(30), "{name} took {took:?}");
                    assert!([0, 1, 4].contains(&said.code), "{name}: {} {}", said.code, said.stderr);
                    assert!(said.stdout.len() < 1 << 20, "{name}");
                }
            });
        }
    });
}

#[test]
fn the_project_is_read_only_unless_a_setting_says_otherwise() {
    if !has_python() {
        return;
    }
    for scene in scenes() {
        let who = format!("{} as {:?}", scene.jail, scene.user);
        let code = "import os\nfor name in ['src/a.txt', 'top', '.git/config', 'gimlet.toml', '../home/x']:\n    try:\n        open(name, 'a').write('!')\n        print(name)\n    except OSError:\n        pass\nprint(os.path.basename(os.getcwd()), open('src/a.txt').read()[0])";
        let args = ["python", "--executor", "venv", "-c", code];
        let said = Said::from(scene.gimlet(&args).output().unwrap());
        // An empty home of its own is what bubblewrap has.
        let home = if scene.jail == "bubblewrap" { "../home/x\n" } else { "" };
        assert_eq!((said.stdout, said.stderr), (format!("{home}project a\n"), String::new()), "{who}");
        assert_eq!(std::fs::read_to_string(scene.path("project/src/a.txt")).unwrap(), "a\n", "{who}");
        let mut command = scene.gimlet(&args);
        let said = Said::from(command.env("SANDBOX_PYTHON_WRITES", "true").output().unwrap());
        assert_eq!(said.stdout, format!("src/a.txt\n{home}project a\n"), "{who}: {}", said.stderr);
        assert_eq!(std::fs::read_to_string(scene.path("project/src/a.txt")).unwrap(), "a\n!", "{who}");
        assert!(!scene.path("home/x").exists() && !scene.path("project/top").exists(), "{who}");
    }
}

#[test]
fn without_a_jail_or_a_python_it_is_refused() {
    let project = Project::new();
    let refused = |name: &str, value: &str, args: &[&str]| {
        Said::from(project.gimlet(args).env(name, value).output().unwrap())
    };
    let model = project.script("[[reply]]\ntext = \"No.\"\n");
    for args in
        [&["python", "--executor", "venv", "-c", "1"][..], &["-m", &model, "--executor", "venv", "hi"]]
    {
        let said = refused("SANDBOX_JAIL", "off", args);
        assert_eq!(said.code, 2, "{}", said.stderr);
        assert_eq!(
            said.stderr,
            "error: `--executor venv` runs code in a jail, and there is none: the jail is switched off\n\
             hint: unset SANDBOX_JAIL to have one again\n"
        );
        let said = refused("SANDBOX_PYTHON", "none/bin/python", args);
        assert_eq!(said.code, 2, "{}", said.stderr);
        assert!(said.stderr.starts_with("error: there is no interpreter at "), "{}", said.stderr);
        let said = refused("PATH", "/nowhere", args);
        assert_eq!(said.code, 2, "{}", said.stderr);
        assert!(
            said.stderr.contains("finds no Python") && said.stderr.contains("\nhint: "),
            "{}",
            said.stderr
        );
    }
    for (more, says) in [
        (["--action", "tools"], "`--executor venv` runs code, and this agent acts by tools"),
        (["--imports", "numpy"], "`--imports` is for the Python sandbox"),
    ] {
        let said = project.say(&[&["-m", model.as_str(), "hi", "--executor", "venv"], &more[..]].concat());
        assert_eq!(said.code, 2, "{}", said.stderr);
        assert!(said.stderr.contains(says) && said.stderr.contains("\nhint: "), "{}", said.stderr);
    }
}

/// A project's own file is not the user's word.
#[test]
fn an_untrusted_project_names_no_interpreter_and_allows_no_writing() {
    let project = Project::new();
    for (setting, says) in [
        ("python = \"tool/python\"", "names the interpreter tool/python"),
        ("python_writes = true", "lets code change the project"),
    ] {
        project.file("gimlet.toml", &format!("[sandbox]\n{setting}\n"));
        let said = project.say(&["python", "--executor", "venv", "-c", "1"]);
        assert_eq!(said.code, 2, "{}", said.stderr);
        assert!(said.stderr.contains(says), "{}", said.stderr);
    }
}

#[test]
fn the_environment_of_the_project_is_taken_and_a_named_one_before_it() {
    if !has_python() {
        return;
    }
    let project = Project::new();
    let make = |folder: &str| {
        let path = project.repo.path().join(folder);
        let made =
            std::process::Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&path).status();
        assert!(made.unwrap().success());
        path
    };
    let (own, other) = (make(".venv"), make("other"));
    let prefix = ["python", "--executor", "venv", "-c", "import sys\nprint(sys.prefix)"];
    let said = project.say(&prefix);
    assert_eq!(said.stdout, format!("{}\n", own.canonicalize().unwrap().display()), "{}", said.stderr);
    let other_prefix = format!("{}\n", other.canonicalize().unwrap().display());
    for (name, value) in [("VIRTUAL_ENV", other.to_str().unwrap()), ("SANDBOX_PYTHON", "other/bin/python")] {
        let said = Said::from(project.gimlet(&prefix).env(name, value).output().unwrap());
        assert_eq!(said.stdout, other_prefix, "{name}: {}", said.stderr);
    }
    let status = project.say(&["sandbox"]).stdout;
    let row = status.lines().find(|line| line.contains(" venv ")).unwrap_or_else(|| panic!("{status}"));
    assert!(row.starts_with("✓ venv ") && row.contains(".venv/bin/python; at most 512 MB"), "{row}");
}

/// A module of the project that is called like one of Python's own is the code's, not the runner's.
#[test]
fn modules_of_the_project_can_be_imported_and_do_not_disturb_the_runner() {
    if !has_python() {
        return;
    }
    let project = Project::new();
    for name in ["json.py", "random.py", "traceback.py", "socket.py"] {
        project.file(name, "raise SystemExit('shadowed')\n");
    }
    let said = project.python("venv", "import calc\ncalc.add(5, 3)");
    assert_eq!((said.code, said.stdout.as_str()), (0, "2\n"), "{}", said.stderr);
}

#[test]
fn a_killed_parent_leaves_no_process() {
    if !has_python() {
        return;
    }
    let project = Project::new();
    let code = "import os, subprocess\nsleep = subprocess.Popen(['sleep', '7654'], start_new_session=True)\nprint('up', flush=True)\nwhile True: pass";
    let mut parent =
        project.gimlet(&["python", "--executor", "venv", "-c", code]).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    std::io::BufReader::new(parent.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "up\n");
    let root = project.root();
    let left = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let in_project = |entry: std::fs::DirEntry| {
            let cwd = std::fs::read_link(entry.path().join("cwd")).ok()?;
            cwd.starts_with(&root).then_some(())
        };
        processes.filter_map(in_project).count()
    };
    parent.kill().unwrap();
    parent.wait().unwrap();
    let begun = Instant::now();
    while left() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "a process is left");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The packages that people have: CI makes an environment with them.
#[test]
#[ignore = "needs an environment with numpy and pandas, which GIMLET_TEST_VENV names"]
fn numpy_and_pandas_work() {
    let environment =
        std::env::var("GIMLET_TEST_VENV").unwrap_or_else(|_| panic!("GIMLET_TEST_VENV names no environment"));
    for jail in ["bubblewrap", "landlock"] {
        let project = Project::new();
        project.file("sales.csv", "day,amount\nMon,3\nTue,4\nMon,5\n");
        let cells = [
            "import numpy as np, pandas as pd\nframe = pd.read_csv('sales.csv')\nframe.groupby('day').amount.sum().to_dict()",
            "matrix = np.arange(250_000, dtype=float).reshape(500, 500)\nprint(float((matrix @ matrix).trace()))",
            "rows = [read_file(path='sales.csv')['total_lines'], len(frame)]\nrows",
            "frame",
            "np.zeros((10**5, 10**5)).sum()",
            "float(np.linalg.det(np.eye(3))), rows",
            "final_answer({'sum': int(frame.amount.sum()), 'mean': float(np.mean(frame.amount))})",
        ];
        let model = project.script(&replies(&cells));
        let mut command = project.gimlet(&["--model", &model, "--executor", "venv", "look"]);
        let said =
            Said::from(command.env("VIRTUAL_ENV", &environment).env("SANDBOX_JAIL", jail).output().unwrap());
        assert_eq!(
            (said.code, said.stdout.as_str()),
            (0, "{\"sum\":12,\"mean\":4.0}\n"),
            "{jail}: {}",
            said.stderr
        );
        let events = project.last_events();
        let told: Vec<String> =
            of_type(&events, "cell.finished").iter().map(|cell| cell["observation"].to_string()).collect();
        assert!(told[0].contains("{'Mon': 8, 'Tue': 4}"), "{}", told[0]);
        assert!(told[1].contains("Output:"), "{}", told[1]);
        assert!(told[2].contains("[4, 3]"), "{}", told[2]);
        assert!(told[3].contains("amount") && told[3].contains("Tue"), "{}", told[3]);
        assert!(told[4].contains("MemoryError") || told[4].contains("TimeoutError"), "{}", told[4]);
        assert!(told[5].contains("(1.0, [4, 3])"), "the session was restored: {}", told[5]);
    }
}
