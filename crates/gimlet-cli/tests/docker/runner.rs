//! The runner in a container: what it keeps from the code, and the session it keeps for it.

use super::programs::{ACCEPTANCE, DIFFERENCES, TOO_MUCH, TOO_MUCH_TOLD};
use super::*;

impl Project {
    /// One piece of code in a container.
    fn code(&self, code: &str) -> Said {
        self.say(&["python", "--tools", "--value", "--executor", "docker", "-c", code])
    }

    /// How a run's cells ended on an executor, without what differs between runs.
    fn cells(&self, executor: &str, cells: &[&str]) -> Vec<Value> {
        let model = self.inner.script(&replies(cells));
        let args =
            ["--model", &model, "--action", "code", "--executor", executor, "--max-steps", "99", "look"];
        let said = self.say(&args);
        assert_eq!((said.code, said.stdout.as_str()), (0, "done\n"), "{executor}: {}", said.stderr);
        let ended = self.events().into_iter().filter(|event| event["type"] == "cell.finished");
        let plain = ended.map(|mut cell| {
            for private in ["seq", "time", "run", "seconds"] {
                cell.as_object_mut().unwrap().remove(private);
            }
            cell
        });
        plain.collect()
    }
}

/// Opens whatever it can of every process, to keep the container's input from closing.
const HOLDS: &str = "import glob, os
held = []
for name in glob.glob('/proc/[0-9]*/fd/*'):
    try:
        held.append(os.open(name, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        pass
try:
    os.open('/proc/1/fd/0', os.O_WRONLY)
except PermissionError:
    print('refused', flush=True)
";

#[test]
#[ignore = "needs a Docker engine"]
fn code_cannot_keep_its_container() {
    use std::io::BufRead;
    let project = Project::new();
    let code = format!("{HOLDS}while True: pass");
    let mut command = project.gimlet(&["python", "--executor", "docker", "-c", &code]);
    let mut parent = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    std::io::BufReader::new(parent.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "refused\n");
    parent.kill().unwrap();
    parent.wait().unwrap();
    project.assert_nothing_left();
    assert_eq!(text(&project.python(HOLDS)), "refused\n", "nor can a command");
    // The very first thing that a new container does, ten times: the first process is closed before anything else runs.
    project.inner.file("hold.sh", "sleep 600 9>/proc/1/fd/0 || sleep 600\n");
    for _ in 0..10 {
        let (mut parent, _) = project.asleep("sh hold.sh");
        parent.kill().unwrap();
        parent.wait().unwrap();
        project.assert_nothing_left();
    }
}

/// Finds the runner's own pipe and speaks for it.
const FORGES: &str = "import gc
pipe = next(one for one in gc.get_objects() if type(one).__name__ == 'Pipe')
";

#[test]
#[ignore = "needs a Docker engine"]
fn code_that_speaks_for_its_runner_is_held_to_the_limits() {
    let project = Project::new();
    let prints = "while True: pipe.send(type='printed', stream='stdout', text='x' * 10_000)";
    let said = project.code(&format!("{FORGES}{prints}"));
    assert_eq!(said.code, 4, "{}", said.stderr);
    assert!(said.stderr.contains("the code printed more than 200000 characters"), "{}", said.stderr);
    assert!(said.stdout.len() <= 200_100, "{}", said.stdout.len());
    let value = "pipe.send(type='ended', number=1, end={'end': 'done', 'value': 'x' * 1_000_000}, fate='whole', health='good')\nwhile True: pass";
    let said = project.code(&format!("{FORGES}{value}"));
    assert!(said.stdout.len() < 21_000, "{}", said.stdout.len());
    project.assert_nothing_left();
}

#[test]
#[ignore = "needs a Docker engine"]
fn both_executors_pass_the_same_acceptance() {
    let ours = Project::new().cells("python", ACCEPTANCE);
    let theirs = Project::new().cells("docker", ACCEPTANCE);
    assert_eq!(ours.len(), ACCEPTANCE.len() + 1);
    for ((ours, theirs), code) in ours.iter().zip(&theirs).zip(ACCEPTANCE) {
        assert_eq!(ours, theirs, "{code}");
    }
    let project = Project::new();
    for (code, end) in DIFFERENCES {
        let theirs = project.code(code);
        assert!(theirs.stderr.ends_with(end), "{code}: {}", theirs.stderr);
        let ours = project.say(&["python", "--tools", "--value", "-c", code]);
        assert_ne!(ours.stderr, theirs.stderr, "{code}: no difference any more");
    }
    let ours = project.say(&["python", "--tools", "--value", "-c", TOO_MUCH]);
    assert_eq!(
        (project.code(TOO_MUCH).stderr.as_str(), ours.stderr.as_str()),
        (TOO_MUCH_TOLD, TOO_MUCH_TOLD)
    );
    for code in [
        "final_answer({'a': (1, {2})})",
        "final_answer(answer=None)",
        "final_answer(result=True)",
        "import datetime\nfinal_answer(datetime.date(2024, 5, 1))",
        "final_answer(float('inf'))",
        "final_answer({(1, 2): 3, None: 1})",
        "final_answer('\\ud800')",
        "n = 0\nwhile True:\n    try:\n        read_file('calc.py')\n    except:\n        pass\n    n += 1",
        &format!("x = {}{}", "[".repeat(101), "]".repeat(101)),
        &format!("x = {}1", "-".repeat(50_000)),
        &(0..300).map(|depth| format!("{}if 1:\n", " ".repeat(depth))).collect::<String>(),
    ] {
        let ours = project.say(&["python", "--tools", "--value", "-c", code]);
        let theirs = project.code(code);
        let shown = |said: &Said| (said.code, said.stdout.clone(), said.stderr.clone());
        assert_eq!(shown(&ours), shown(&theirs), "{code}");
    }
    project.assert_nothing_left();
}

#[test]
#[ignore = "needs a Docker engine"]
fn threads_and_processes_of_the_code_are_of_one_session() {
    let project = Project::new();
    let threads = "from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool:
    lines = list(pool.map(lambda n: read_file('calc.py')['total_lines'], range(40)))
lines == [2] * 40";
    let said = project.code(threads);
    assert_eq!((said.code, said.stdout.as_str()), (0, "True\n"), "{}", said.stderr);
    let cells = [
        "import os\nchild = os.fork()\nif child:\n    os.waitpid(child, 0)\nelse:\n    print('child')\n'forked'",
        "'next'",
        "import subprocess\nsubprocess.run(['sh', '-c', 'echo out; echo err >&2'])\nprint('after')",
    ];
    let ended = project.cells("docker", &cells);
    let values: Vec<&Value> = ended.iter().map(|cell| &cell["value"]).collect();
    assert_eq!(values[..2], [&json!("'forked'"), &json!("'next'")], "{ended:?}");
    assert_eq!(ended[0]["observation"], "Output:\nchild\nValue: 'forked'");
    assert_eq!(ended[2]["observation"], "Output:\nout\nerr\nafter");
    project.assert_nothing_left();
}

#[test]
#[ignore = "needs a Docker engine"]
fn the_copy_is_like_the_project_and_the_model_knows_that_it_is_one() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let project = Project::new();
    std::fs::create_dir(project.path().join("bin")).unwrap();
    project.inner.file("bin/tool", "#!/bin/sh\necho ran\n");
    let place = |name: &str| project.path().join(name);
    std::fs::set_permissions(place("bin/tool"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::create_dir(place("empty")).unwrap();
    symlink("bin/tool", place("tool")).unwrap();
    symlink("/etc/hostname", place("out")).unwrap();
    let said = project.code("import os, subprocess\nsubprocess.run('./tool')\nsorted(os.listdir())");
    assert_eq!(
        (said.code, said.stdout.as_str()),
        (0, "ran\n['README.md', 'bin', 'calc.py', 'empty', 'tool']\n"),
        "{}",
        said.stderr
    );
    assert!(said.stderr.contains("out: it leads out of the project"), "{}", said.stderr);
    project.cells("docker", &["1"]);
    let started = project.events()[0].clone();
    let system = started["system"].as_str().unwrap_or_else(|| panic!("{started}"));
    assert!(system.contains("The current folder of your code is a copy of the repository."), "{system}");
    project.cells("python", &["1"]);
    assert!(!project.events()[0]["system"].as_str().unwrap().contains("copy"));
    project.assert_nothing_left();
}

/// Code has as long as a command, however long it asks for, also where nothing but an end of its process ends it.
#[test]
#[ignore = "needs a Docker engine"]
fn code_is_stopped_in_time() {
    let project = Project::new();
    for (code, seconds, said) in [
        ("import time\ntime.sleep(31)", "60", "TimeoutError: the code ran longer than 30 s"),
        ("sum(range(10**14))", "2", "inside one operation"),
    ] {
        let begun = Instant::now();
        let stopped = project.say(&["python", "--executor", "docker", "--timeout", seconds, "-c", code]);
        assert!(stopped.code != 0 && stopped.stderr.contains(said), "{code}: {}", stopped.stderr);
        assert!(begun.elapsed() >= Duration::from_secs(2), "{code}");
        project.assert_nothing_left();
    }
    let cells = ["kept = [1, 2]\ndef f(): return kept", "lost = 1\nsum(range(10**14))", "f()", "lost"];
    let model = project.inner.script(&replies(&cells));
    let args = ["--model", &model, "--action", "code", "--executor", "docker", "look"];
    let said = Said::from(project.gimlet(&args).env("SANDBOX_TIMEOUT", "3").output().unwrap());
    assert_eq!((said.code, said.stdout.as_str()), (0, "done\n"), "{}", said.stderr);
    let events = project.events();
    let ended = of_type(&events, "cell.finished");
    let told = |at: usize| ended[at]["observation"].to_string();
    assert!(
        told(1).contains("inside one operation") && told(1).contains("lost or reset: lost"),
        "{}",
        told(1)
    );
    assert!(told(2).contains("[1, 2]"), "{}", told(2));
    assert!(told(3).contains("NameError"), "{}", told(3));
    project.assert_nothing_left();
}
