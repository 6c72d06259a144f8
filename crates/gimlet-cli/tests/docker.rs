//! The Docker sandbox against a real engine, through the real binary. `GIMLET_TEST_DOCKER` names the engine's address;
//! the image `gimlet-sandbox:latest` must be there.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    dead_code,
    reason = "a test fails by panicking; support is shared"
)]

#[path = "docker/images.rs"]
mod images;
#[path = "docker/loose.rs"]
mod loose;
#[path = "docker/patches.rs"]
mod patches;
#[path = "cli/programs.rs"]
mod programs;
#[path = "docker/runner.rs"]
mod runner;
#[path = "cli/support.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use programs::{CELLS, PROGRAMS, WAITS, replies};
use serde_json::{Value, json};
use support::{Said, of_type};

/// A project, and an engine to use it with.
struct Project {
    inner: support::Project,
    host: String,
}

impl Project {
    fn new() -> Self {
        let host = std::env::var("GIMLET_TEST_DOCKER").expect("GIMLET_TEST_DOCKER names no Docker engine");
        Project { inner: support::Project::new(), host }
    }

    fn path(&self) -> &Path {
        self.inner.repo.path()
    }

    fn gimlet(&self, args: &[&str]) -> Command {
        let mut command = self.inner.gimlet(args);
        command.env("DOCKER_HOST", &self.host);
        command
    }

    fn say(&self, args: &[&str]) -> Said {
        Said::from(self.gimlet(args).output().unwrap())
    }

    /// Another image, by the user's own file.
    fn name_image(&self, image: &str) {
        self.inner.config(&format!("[sandbox]\nimage = \"{image}\"\n"));
    }

    /// The result of a tool.
    fn call(&self, tool: &str, args: &Value, more: &[&str]) -> Value {
        let args = args.to_string();
        let mut words = vec!["tools", "call", tool, args.as_str(), "--approve", "all"];
        words.extend(more);
        let said = self.say(&words);
        serde_json::from_str(&said.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", said.stdout, said.stderr))
    }

    /// A Python program as a command in the container; what is in it is the sandbox's business alone.
    fn python(&self, code: &str) -> Value {
        self.inner.file("program.py", code);
        let result = self.call("run_cmd", &json!({"cmd": "python3 program.py"}), &["--sandbox", "docker"]);
        self.assert_nothing_left();
        result
    }

    /// What the engine's own program says.
    fn docker(&self, args: &[&str]) -> Said {
        Said::from(Command::new("docker").args(args).env("DOCKER_HOST", &self.host).output().unwrap())
    }

    fn containers(&self) -> String {
        let filter = ["--filter", "label=dev.gimlet.sandbox"];
        let listed = self.docker(&[&["ps", "--all", "--quiet", "--no-trunc"], &filter[..]].concat());
        assert_eq!(listed.code, 0, "{}", listed.stderr);
        listed.stdout
    }

    /// A container that nobody has started, with a label; its id.
    fn labelled(&self, label: &str) -> String {
        let made =
            self.docker(&["create", "--network", "none", "--label", label, "gimlet-sandbox:latest", "true"]);
        assert_eq!(made.code, 0, "{}", made.stderr);
        made.stdout.trim().to_owned()
    }

    /// A run whose command sleeps in a container, and the container's id.
    fn asleep(&self, cmd: &str) -> (Child, String) {
        let cmd = json!(cmd);
        let script = format!("[[reply]]\ncalls = [{{ name = \"run_cmd\", args = {{ cmd = {cmd} }} }}]\n");
        let model = self.inner.script(&script);
        let args = ["--model", &model, "what is wrong?", "--approve", "all", "--sandbox", "docker"];
        let parent = self.gimlet(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        let mut container = String::new();
        while container.is_empty()
            || self.docker(&["exec", &container, "python3", "-c", IS_ASLEEP]).stdout != "True\n"
        {
            assert!(begun.elapsed() < Duration::from_secs(30), "the command does not run");
            std::thread::sleep(Duration::from_millis(100));
            container = self.containers().trim().to_owned();
        }
        (parent, container)
    }

    fn assert_nothing_left(&self) {
        let begun = Instant::now();
        while !self.containers().is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(30), "a container is left");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Project {
    /// A run of code in containers.
    fn run(&self, script: &str, more: &[&str]) -> Said {
        let model = self.inner.script(script);
        let mut args = vec!["--model", &model, "--action", "code", "--executor", "docker", "look"];
        args.extend(more);
        self.say(&args)
    }

    /// Says yes to the only question there is.
    fn approve(&self) {
        let waiting: Value = serde_json::from_str(&self.say(&["approvals", "--json"]).stdout).unwrap();
        let id = waiting[0]["request"]["id"].as_str().unwrap();
        assert_eq!(self.say(&["approve", id]).code, 0);
    }

    /// The last run's events.
    fn events(&self) -> Vec<Value> {
        self.say(&["runs", "show", "last", "--json"]).events()
    }
}

fn text(result: &Value) -> String {
    format!(
        "{}{}",
        result["stdout_tail"].as_str().unwrap_or(""),
        result["stderr_tail"].as_str().unwrap_or("")
    )
}

/// Wants two processors until it is throttled, for so long that even a busy machine may have given it what it may have.
const HOG: &str = "import os, time
def read(name):
    for folder in ('/sys/fs/cgroup', '/sys/fs/cgroup/cpu'):
        try: return open(f'{folder}/{name}').read()
        except OSError: pass
    return ''
print('quota', read('cpu.max') or read('cpu.cfs_quota_us'), flush=True)
begun = time.monotonic()
child = os.fork()
while time.monotonic() < begun + 20 and 'nr_throttled 0\\n' in read('cpu.stat'):
    sum(range(1_000_000))
if child == 0: os._exit(0)
os.wait()
print(read('cpu.stat'))
print('used', sum(os.times()[:4]) / (time.monotonic() - begun))
";

/// Tries to make a file in every folder there is.
const WRITABLE: &str = "import os
found = []
for folder, names, _ in os.walk('/'):
    names[:] = [name for name in names if folder != '/' or name not in ('proc', 'sys')]
    try:
        os.close(os.open(f'{folder}/probe', os.O_CREAT | os.O_WRONLY))
        room = os.statvfs(folder)
        found.append((folder, room.f_blocks * room.f_frsize >> 20))
    except OSError:
        pass
print(sorted(found))";

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

    let result = python(HOG);
    assert!(text(&result).starts_with("quota 50000"), "{result}");
    let throttled =
        text(&result).lines().find_map(|line| line.strip_prefix("nr_throttled ")?.parse::<u64>().ok());
    assert!(throttled.is_some_and(|times| times > 0), "{result}");

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let result = python(&format!(
        "import socket\nprint([name for _, name in socket.if_nameindex()])\nfor to in [('192.0.2.1', 53), ('127.0.0.1', {port})]:\n    try: socket.create_connection(to, 3)\n    except OSError as error: print(error.strerror)"
    ));
    assert_eq!(text(&result), "['lo']\nNetwork is unreachable\nConnection refused\n", "{result}");
    assert!(listener.accept().is_err(), "the machine's own addresses are not there");

    for place in ["/x", "/etc/x", "/usr/x", "/workspace/x"] {
        let result = python(&format!("open('{place}', 'w')"));
        assert!(text(&result).contains("Read-only file system"), "{place}: {result}");
    }
    // The rest is the container's own memory, which counts as such.
    assert_eq!(text(&python(WRITABLE)), "[('/dev/mqueue', 0), ('/dev/shm', 64), ('/tmp', 64)]\n");
    let result = python("open('/dev/shm/x', 'wb').write(b'x' * (65 << 20))");
    assert!(text(&result).contains("No space left on device"), "{result}");

    let tests = json!({"test_cmd": "python3 program.py"});
    project.inner.file("program.py", "open('x', 'w')");
    let result = project.call("run_tests", &tests, &["--sandbox", "docker"]);
    assert_eq!((&result["exit"], &result["ran_in"]), (&json!(1), &json!("docker (read-only)")), "{result}");

    let begun = Instant::now();
    let result =
        project.call("run_cmd", &json!({"cmd": "sleep 31", "timeout": 60}), &["--sandbox", "docker"]);
    assert_eq!(result["error"], "CMD_TIMEOUT", "{result}");
    assert_eq!(result["message"], "killed after 30 s, the longest a command may run in docker");
    assert!(begun.elapsed() >= Duration::from_secs(29), "{:?}", begun.elapsed());
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

/// Nothing is left to what a container does by itself, which the code in it may have a hand in.
#[test]
#[ignore = "needs a Docker engine"]
fn containers_are_gone_when_the_program_ends() {
    let project = Project::new();
    let hold = "import os\ntry:\n    hold = os.open('/proc/1/fd/0', os.O_WRONLY)\nexcept OSError:\n    pass\nprint(1)";
    let said = project.say(&["python", "--executor", "docker", "-c", hold]);
    assert_eq!(
        (said.code, said.stdout.as_str(), project.containers().as_str()),
        (0, "1\n", ""),
        "{}",
        said.stderr
    );
    let listed = project.call("run_cmd", &json!({"cmd": "ls"}), &["--sandbox", "docker"]);
    assert_eq!((&listed["exit"], project.containers().as_str()), (&json!(0), ""), "{listed}");
}

/// Whether something sleeps in a container, asked inside of it.
const IS_ASLEEP: &str = r"import glob
print(any(open(name).read().startswith('sleep\0') for name in glob.glob('/proc/[0-9]*/cmdline')))";

#[test]
#[ignore = "needs a Docker engine"]
fn an_interrupted_command_leaves_no_container() {
    let project = Project::new();
    let (mut parent, _) = project.asleep("sleep 25");
    assert!(Command::new("kill").args(["-INT", &parent.id().to_string()]).status().unwrap().success());
    assert_eq!(parent.wait().unwrap().code(), Some(130));
    project.assert_nothing_left();
}

/// A folder in memory, mounted until the test ends.
struct Mounted(PathBuf);

impl Mounted {
    fn at(path: PathBuf) -> Self {
        std::fs::create_dir(&path).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "mode=777", "none"]).arg(&path).status();
        assert!(mounted.unwrap().success());
        Mounted(path)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[test]
#[ignore = "needs a Docker engine"]
fn what_is_mounted_in_the_project_cannot_be_written_either() {
    let project = Project::new();
    let mounted = Mounted::at(project.path().join("inner"));
    let result = project.python("open('inner/x', 'w')");
    assert!(text(&result).contains("Read-only file system"), "{result}");
    assert!(!mounted.0.join("x").exists());
}

/// Nobody is asked for what no container gives.
#[test]
#[ignore = "needs a Docker engine"]
fn permissions_that_no_container_has_are_refused_and_named() {
    let project = Project::new();
    let args = json!({"cmd": "python3 -V", "permissions": ["network"]}).to_string();
    for mode in ["all", "never"] {
        let said =
            project.say(&["tools", "call", "run_cmd", &args, "--approve", mode, "--sandbox", "docker"]);
        assert!(said.stdout.contains("PERMISSION_UNAVAILABLE"), "{}{}", said.stdout, said.stderr);
        assert!(said.stdout.contains("`--sandbox workspace-write`"), "{}", said.stdout);
    }
    let result = project.python("open('x', 'w')");
    assert_eq!(result["missing"][0]["permission"], "write-workspace", "{result}");
    let result = project.python("import socket\nsocket.create_connection(('1.1.1.1', 53), 3)");
    assert_eq!(result["missing"][0]["permission"], "network", "{result}");
    assert!(
        result["missing"][0]["because"].as_str().unwrap().contains("nobody can allow them more"),
        "{result}"
    );
}

#[test]
#[ignore = "needs a Docker engine"]
fn the_engine_keeps_no_log_of_what_a_container_says() {
    let project = Project::new();
    let (mut parent, container) = project.asleep("sleep 25");
    let kept = project.docker(&["inspect", "--format", "{{.HostConfig.LogConfig.Type}}", &container]).stdout;
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert_eq!(kept, "none\n");
    project.assert_nothing_left();
}

#[test]
#[ignore = "needs a Docker engine"]
fn what_a_killed_parent_left_is_removed_by_the_next() {
    let project = Project::new();
    let (mut parent, container) = project.asleep("sleep 25");
    // Stopped, its first process cannot see that its input has closed, which would end it by itself.
    let stopped = project.docker(&["kill", "--signal", "STOP", &container]);
    assert_eq!(stopped.code, 0, "{}", stopped.stderr);
    parent.kill().unwrap();
    parent.wait().unwrap();
    std::thread::sleep(Duration::from_secs(2));
    assert!(project.containers().contains(&container), "it went by itself");
    assert_eq!(project.say(&["sandbox", "status"]).code, 0);
    project.assert_nothing_left();
}

/// A process as the labels of its containers name it.
fn label(process: u32, started: &str) -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap();
    format!("dev.gimlet.sandbox={process}:{started}:{}:{}", boot.trim(), namespace.display())
}

#[test]
#[ignore = "needs a Docker engine"]
fn containers_of_the_dead_are_removed_and_those_of_the_living_stay() {
    let project = Project::new();
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let started = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19)).unwrap();
    let dead = project.labelled(&label(gone.id(), "1"));
    let living = project.labelled(&label(std::process::id(), started));
    assert_eq!(project.containers().lines().count(), 2);
    assert_eq!(project.say(&["sandbox", "status"]).code, 0);
    let left = project.containers();
    assert_eq!(project.docker(&["rm", "--force", &living]).code, 0);
    assert!(!left.contains(&dead) && left.contains(&living), "{left}");
    project.assert_nothing_left();
}

impl Project {
    /// The results of commands that one run gives one after the other to the same container.
    fn commands(&self, commands: &[&str]) -> Vec<Value> {
        let calls = commands.iter().map(|cmd| {
            format!(
                "[[reply]]\ncalls = [{{ name = \"run_cmd\", args = {{ cmd = {} }} }}]\n",
                Value::from(*cmd)
            )
        });
        let script = format!("order = \"turns\"\n{}[[reply]]\ntext = \"done\"\n", calls.collect::<String>());
        let model = self.inner.script(&script);
        let said = self.say(&["--model", &model, "look", "--approve", "all", "--sandbox", "docker"]);
        assert_eq!(said.code, 0, "{}", said.stderr);
        let events = self.events();
        of_type(&events, "tool.finished").into_iter().map(|event| event["result"].clone()).collect()
    }
}

/// Wants more than there is.
const LARGE: &str = "x = b'x' * (700 << 20)\n";

#[test]
#[ignore = "needs a Docker engine"]
fn memory_is_blamed_for_what_it_killed_and_nothing_else() {
    const TOLD: &str = "more than 512 MB of memory";
    let project = Project::new();
    project.inner.file("large.py", LARGE);
    let results = project.commands(&[
        "python3 large.py",
        "sh -c 'kill -9 $$'",
        "sh -c 'python3 large.py; echo after $?'",
        "kill -INT 1; sleep 5",
        "echo fine",
    ]);
    let told: Vec<bool> = results.iter().map(|result| text(result).contains(TOLD)).collect();
    assert_eq!(told, [true, false, true, false, false], "{results:#?}");
    assert_eq!((&results[1]["exit"], &results[2]["exit"]), (&json!(137), &json!(0)), "{results:#?}");
    assert_eq!(results[2]["stdout_tail"], "after 137\n");
    assert_eq!(results[4]["stdout_tail"], "fine\n", "a new container was started");
    project.assert_nothing_left();
}

/// Starts something that belongs to nobody, and ends the shells that would have ended it.
const DAEMON: &str = "import glob, os, signal
if os.fork() == 0:
    os.setsid()
    null = os.open('/dev/null', os.O_RDWR)
    for stream in range(3): os.dup2(null, stream)
    os.execvp('sleep', ['sleep', '1000'])
open('/tmp/made', 'w')
for name in sorted(glob.glob('/proc/[0-9]*/comm')):
    if open(name).read() == 'sh\\n': os.kill(int(name.split('/')[2]), signal.SIGKILL)
";

#[test]
#[ignore = "needs a Docker engine"]
fn a_warm_container_keeps_nothing_running() {
    let project = Project::new();
    project.inner.file("daemon.py", DAEMON);
    project.inner.file("asleep.py", IS_ASLEEP);
    let results = project.commands(&["python3 daemon.py", "python3 asleep.py", "ls /tmp/made"]);
    assert_eq!(results[0]["exit"], 137, "{results:#?}");
    assert_eq!(results[1]["stdout_tail"], "False\n", "{results:#?}");
    assert_eq!(results[2]["exit"], 0, "it was another container: {results:#?}");
    project.assert_nothing_left();
}

#[test]
#[ignore = "needs a Docker engine"]
fn both_executors_agree() {
    let project = Project::new();
    for code in PROGRAMS {
        let run = |executor: &str| {
            let Said { code, stdout, stderr } =
                project.say(&["python", "--tools", "--value", "--executor", executor, "-c", code]);
            (code, stdout, stderr)
        };
        assert_eq!(run("docker"), run("python"), "{code}");
    }
    project.assert_nothing_left();
}

#[test]
#[ignore = "needs a Docker engine"]
fn both_executors_keep_the_same_session() {
    let script = replies(CELLS);
    let run = |executor: &str| {
        let project = Project::new();
        let model = project.inner.script(&script);
        let said = project.say(&[
            "--model",
            &model,
            "--action",
            "code",
            "--executor",
            executor,
            "--max-steps",
            "20",
            "look",
        ]);
        assert_eq!((said.code, said.stdout.as_str()), (0, "done\n"), "{executor}: {}", said.stderr);
        let events = project.events();
        let ended = of_type(&events, "cell.finished").into_iter().map(|cell| {
            let mut cell = cell.clone();
            for private in ["seq", "time", "run", "seconds"] {
                cell.as_object_mut().unwrap().remove(private);
            }
            cell
        });
        let ended: Vec<Value> = ended.collect();
        project.assert_nothing_left();
        ended
    };
    let (ours, theirs) = (run("python"), run("docker"));
    assert_eq!(ours.len(), CELLS.len() + 1);
    for ((ours, theirs), code) in ours.iter().zip(&theirs).zip(CELLS) {
        assert_eq!(ours, theirs, "{code}");
    }
}

/// The programs that the embedded executor passes, each with its tests, as cells of runs in containers.
#[test]
#[ignore = "needs a Docker engine"]
fn human_eval_in_containers() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/humaneval.jsonl.gz");
    let unpacked = Command::new("gzip").arg("-dc").arg(file).output().unwrap();
    let lines = String::from_utf8(unpacked.stdout).unwrap();
    let programs: Vec<String> = lines
        .lines()
        .map(|line| {
            let case: Value = serde_json::from_str(line).unwrap();
            let [prompt, solution, test, entry] = ["prompt", "canonical_solution", "test", "entry_point"]
                .map(|name| case[name].as_str().unwrap().to_owned());
            format!("{prompt}{solution}\n{test}\ncheck({entry})\n")
        })
        .collect();
    assert_eq!(programs.len(), 164);
    for some in programs.chunks(12) {
        let project = Project::new();
        let said = project.run(&replies(some), &["--max-steps", "20"]);
        assert_eq!((said.code, said.stdout.as_str()), (0, "done\n"), "{}", said.stderr);
        let events = project.events();
        let ended = of_type(&events, "cell.finished");
        assert_eq!(ended.len(), some.len() + 1);
        for (ended, program) in ended.iter().zip(some) {
            assert_eq!(ended["end"], "done", "{program}\n{ended}");
        }
    }
    Project::new().assert_nothing_left();
}

#[test]
#[ignore = "needs a Docker engine"]
fn code_has_a_copy_of_the_project_and_limits() {
    let project = Project::new();
    let run = |code: &str, more: &[&str]| {
        let mut args = vec!["python", "--executor", "docker", "-c", code];
        args.extend(more);
        project.say(&args)
    };
    let Said { code, stdout, stderr } = run(
        "import calc, subprocess\nopen('new.txt', 'w').write('x')\nprint(calc.add(3, 1), subprocess.run(['id', '-u'], capture_output=True, text=True).stdout)",
        &[],
    );
    assert_eq!((code, stdout.as_str()), (0, "2 65534\n\n"), "{stderr}");
    assert!(!project.path().join("new.txt").exists());
    for name in ["secrets.yaml", ".pgpass", "terraform.tfstate", "kept.yaml"] {
        project.inner.file(name, "x");
    }
    let files = run("import os\nprint(sorted(os.listdir('.')))", &[]);
    assert_eq!(files.stdout, "['README.md', 'calc.py', 'kept.yaml']\n", "{}", files.stderr);
    let late = run("while True: pass", &["--timeout", "1"]);
    assert!(late.code == 4 && late.stderr.contains("TimeoutError"), "{late:?}");
    let large = run("x = b'x' * (700 << 20)", &[]);
    assert!(large.code == 4 && large.stderr.contains("MemoryError"), "{large:?}");
    project.assert_nothing_left();
}

#[test]
#[ignore = "needs a Docker engine"]
fn status_tells_what_is_there_and_what_is_missing() {
    let project = Project::new();
    let said = |command: &mut Command| Said::from(command.output().unwrap()).stdout;
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

/// Nothing runs in a container that the engine would not hold to its limits, and everybody is told.
#[test]
#[ignore = "needs a Docker engine"]
fn an_engine_that_drops_limits_is_refused() {
    const WHY: &str = "does not limit what a container uses: memory, processors, processes";
    let mut project = Project::new();
    let folder = tempfile::tempdir().unwrap();
    project.host = loose::engine(&folder.path().join("sock"), &project.host);
    let status = project.say(&["sandbox", "status"]).stdout;
    assert!(status.contains(WHY) && status.contains("hint: run the engine as root"), "{status}");
    let command = project.call("run_cmd", &json!({"cmd": "ls"}), &["--sandbox", "docker"]);
    assert!(command.to_string().contains(WHY), "{command}");
    let code = project.say(&["python", "--executor", "docker", "-c", "print(1)"]);
    assert!(code.code != 0 && code.stderr.contains(WHY), "{}{}", code.stdout, code.stderr);
    let diff = "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n";
    let patch = json!({"intent": "add", "unified_diff": diff});
    let refused = project.call("propose_patch_unified", &patch, &["--validation", "docker"]);
    assert!(refused.to_string().contains(WHY), "{refused}");
    let checked = project.call("propose_patch_unified", &patch, &["--validation", "auto"]);
    let by = checked["validated_by"].as_str().unwrap_or_else(|| panic!("{checked}"));
    assert!(by.contains("in a scratch folder (not in Docker: ") && by.contains(WHY), "{by}");
    project.assert_nothing_left();
}

/// Tools of an MCP server are functions in the container, and run on the host behind the guard.
#[test]
#[ignore = "needs a Docker engine"]
fn foreign_tools_are_functions_in_a_container() {
    let project = Project::new();
    let server = json!({
        "command": assert_cmd::cargo::cargo_bin!("gimlet"),
        "args": ["mcp", "serve", "--root", project.path(), "--approve", "all"],
        "env": {"GIMLET_HOME": project.inner.home.path().join("server")},
    });
    let servers = project.inner.home.path().join("servers.json");
    std::fs::write(&servers, json!({"mcpServers": {"g": server}}).to_string()).unwrap();
    let script = r#"
[[reply]]
text = '''
```python
import os
page = g__read_file("calc.py")
done = g__run_cmd(cmd="echo from $PWD")
try:
    g__read_file(path="nope.py")
except ToolError as error:
    final_answer([type(page).__name__, page["total_lines"], os.getcwd(), done["stdout_tail"], error.error])
```
'''
"#;
    let servers = servers.display().to_string();
    let Said { code, stdout, stderr } = project.run(script, &["--approve", "all", "--mcp", &servers]);
    assert_eq!(code, 0, "{stderr}");
    let answer: Value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"));
    let host = format!("from {}\n", project.inner.root());
    assert_eq!(answer, json!(["dict", 2, "/workspace", host, "MCP_TOOL_FAILED"]));

    let waits = project.run(script, &["--mcp", &servers]);
    assert_eq!(waits.code, 3, "without a person it waits: {}", waits.stderr);
    assert!(waits.stderr.contains("`read_file` of MCP server `g`"), "{}", waits.stderr);
    project.assert_nothing_left();
}

#[test]
#[ignore = "needs a Docker engine"]
fn a_suspended_run_goes_on_in_a_new_container_in_the_middle_of_a_line() {
    let project = Project::new();
    let said = project.run(&WAITS.replace("WORD", "'made'"), &[]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    project.assert_nothing_left();
    project.approve();
    let said = project.say(&["resume", "last"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "[2,0]\n"), "{}", said.stderr);
    assert!(project.path().join("made").exists());
    let events = project.events();
    let count = |kind: &str| of_type(&events, kind).len();
    assert_eq!((count("tool.started"), count("run.resumed")), (2, 1), "the first call was not made again");
    project.assert_nothing_left();
}

#[test]
#[ignore = "needs a Docker engine"]
fn code_that_does_something_else_when_it_is_replayed_suspends_the_run() {
    let project = Project::new();
    let said = project.run(&WAITS.replace("WORD", "uuid.uuid4().hex"), &[]);
    assert_eq!(said.code, 3, "{}", said.stderr);
    project.approve();
    for _ in 0..2 {
        let said = project.say(&["resume", "last"]);
        assert_eq!((said.code, said.stdout.as_str()), (1, ""), "{}", said.stderr);
        let events = project.events();
        let last = events.last().unwrap();
        assert_eq!((&last["type"], &last["reason"]), (&json!("run.suspended"), &json!("diverged")), "{last}");
    }
    let files = std::fs::read_dir(project.path()).unwrap().count();
    assert_eq!(files, 3, "only .git and the two files that were there: nothing ran");
    project.assert_nothing_left();
}

/// An engine of this test's own, which may be killed.
struct OwnEngine {
    folder: tempfile::TempDir,
    daemon: std::process::Child,
}

impl OwnEngine {
    /// One that has the image of another.
    fn start(other: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let engine = OwnEngine { daemon: OwnEngine::daemon(folder.path()), folder };
        engine.wait_until_ready();
        let mut save = Command::new("docker")
            .args(["--host", other, "save", "gimlet-sandbox:latest"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let loaded =
            engine.docker(&["load"]).stdin(save.stdout.take().unwrap()).stdout(Stdio::null()).status();
        assert!(loaded.unwrap().success() && save.wait().unwrap().success());
        engine
    }

    fn daemon(folder: &Path) -> std::process::Child {
        let place = |name: &str| folder.join(name).display().to_string();
        // Of a crash these are left, and the numbers in them may be those of processes that nobody has reaped.
        for left in ["pid", "exec/containerd/containerd.pid"] {
            let _ = std::fs::remove_file(place(left));
        }
        Command::new("dockerd")
            .args(["--host", &format!("unix://{}", place("sock"))])
            .args(["--data-root", &place("data"), "--exec-root", &place("exec"), "--pidfile", &place("pid")])
            .args(["--iptables=false", "--ip-forward=false", "--ip-masq=false", "--bridge=none"])
            .args(["--storage-driver=overlay2"])
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(place("log")).unwrap())
            .spawn()
            .unwrap()
    }

    fn host(&self) -> String {
        format!("unix://{}", self.folder.path().join("sock").display())
    }

    fn docker(&self, args: &[&str]) -> Command {
        let mut command = Command::new("docker");
        command.args(["--host", &self.host()]).args(args);
        command
    }

    fn wait_until_ready(&self) {
        let begun = Instant::now();
        while !self.docker(&["version"]).output().unwrap().status.success() {
            let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(begun.elapsed() < Duration::from_secs(60), "{log}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Kills it as a crash does, and starts it anew.
    fn crash(&mut self, meanwhile: impl FnOnce()) {
        self.daemon.kill().unwrap();
        self.daemon.wait().unwrap();
        meanwhile();
        self.daemon = OwnEngine::daemon(self.folder.path());
        self.wait_until_ready();
    }
}

impl Drop for OwnEngine {
    fn drop(&mut self) {
        // Asked to stop, it ends its containers and unmounts what it mounted.
        let _ = Command::new("kill").arg(self.daemon.id().to_string()).status();
        let _ = self.daemon.wait();
    }
}

#[test]
#[ignore = "needs a Docker engine"]
fn an_engine_that_was_started_anew_keeps_no_orphan_and_serves_on() {
    let mut project = Project::new();
    let mut engine = OwnEngine::start(&project.host);
    project.host = engine.host();
    let forever = ["python", "--executor", "docker", "-c", "while True: pass"];
    let mut parent = project.gimlet(&forever).spawn().unwrap();
    while project.containers().is_empty() {
        std::thread::sleep(Duration::from_millis(50));
    }
    engine.crash(|| {
        parent.kill().unwrap();
        parent.wait().unwrap();
    });
    // Whoever uses the engine next removes what is left.
    let said = project.say(&["python", "--executor", "docker", "-c", "print(1)"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "1\n"), "{}", said.stderr);
    project.assert_nothing_left();
}
