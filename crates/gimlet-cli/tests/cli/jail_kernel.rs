//! What the jail has the kernel refuse, through the real binary: system calls, mounts, and what is measured.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::jail::{Scene, assert_gone, has_python, scenes};

/// Scenes in which programs can be written in Python.
fn with_python() -> impl Iterator<Item = Scene> {
    scenes().into_iter().filter(|_| has_python())
}

impl Scene {
    /// The command that runs a program in Python.
    fn python(&self, text: &str) -> String {
        fs::write(self.path("project/src/program.py"), text).unwrap();
        "/usr/bin/python3 src/program.py".to_owned()
    }

    fn who(&self, result: &Value) -> String {
        format!("{} as {:?}: {result}", self.jail, self.user)
    }

    /// The words that call a tool, for a command that is changed before it is started.
    fn asking(&self, script: &str) -> Command {
        let args = json!({ "cmd": self.script(script) }).to_string();
        self.gimlet(&["tools", "call", "run_cmd", &args, "--approve", "all"])
    }
}

fn answer(mut command: Command) -> Value {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn other_processes_keep_their_limits_and_their_turn() {
    let program = "import ctypes, os, resource
own = os.getppid()
def refused(what, *args):
    try: what(*args)
    except PermissionError: return
    except ProcessLookupError: return
    raise SystemExit(f'{what.__name__}{args}')
refused(os.sched_setaffinity, own, {0})
refused(os.sched_setscheduler, own, os.SCHED_BATCH, os.sched_param(0))
refused(os.setpriority, os.PRIO_PROCESS, own, 5)
refused(os.setpriority, os.PRIO_USER, 0, 5)
if os.uname().machine == 'x86_64' and ctypes.CDLL(None).syscall(251, 3, 0, 2 << 13 | 4) == 0: raise SystemExit('ioprio')
refused(resource.prlimit, own, resource.RLIMIT_CPU, (0, 0))
os.sched_setaffinity(0, os.sched_getaffinity(0))
os.setpriority(os.PRIO_PROCESS, 0, 5)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
";
    for scene in with_python().filter(|scene| scene.jail == "landlock") {
        // The parent of the program is the supervisor.
        let tried = scene.run(&format!(
            "setsid sleep 98771 & nice true && prlimit --nofile=64 true || exit 4; exec {}",
            scene.python(program)
        ));
        assert_eq!(tried["exit"], 0, "{}", scene.who(&tried));
        assert_gone("98771");
    }
}

#[test]
fn no_file_gives_rights_to_who_runs_it() {
    let program = "import ctypes, os
def refused(what, *args):
    try: what(*args)
    except PermissionError: return
    raise SystemExit(f'{what.__name__}{args}')
os.chdir('src')
os.umask(0)
kernel = ctypes.CDLL(None, use_errno=True)
for bit in (0o4000, 0o2000):
    refused(os.chmod, 'a.txt', bit | 0o755)
    file = os.open('a.txt', os.O_RDONLY)
    refused(os.chmod, file, bit | 0o755)
    refused(os.mknod, f'node{bit}', bit | 0o100755)
    refused(os.open, f'made{bit}', os.O_CREAT | os.O_WRONLY, bit | 0o755)
    refused(os.open, '.', os.O_TMPFILE | os.O_WRONLY, bit | 0o755)
    assert kernel.syscall(452, -100, b'a.txt', bit | 0o755, 0) == -1
    if os.uname().machine == 'x86_64':
        for call, *args in ((85, b'creat', bit | 0o755), (90, b'a.txt', bit | 0o755), (2, b'open', 0o101, bit | 0o755)):
            assert kernel.syscall(call, *args) == -1, call
    how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, bit | 0o755, 0)
    assert kernel.syscall(437, -100, b'second', how, 24) == -1
# Where no file is made, what stands for a mode is none.
assert kernel.syscall(257, -100, b'a.txt', 0, 0o4755) >= 0 or os.uname().machine != 'x86_64'
os.chmod('a.txt', 0o755)
os.mkdir('sticky', 0o1777)
os.close(os.open('made', os.O_CREAT | os.O_WRONLY, 0o777))
";
    for scene in with_python() {
        scene.allowed(&scene.python(program));
        scene.refused("cp /bin/true src/t && chmod u+s src/t");
        scene.allowed("install -m 755 /bin/true src/t && src/t");
        for entry in fs::read_dir(scene.path("project/src")).unwrap().flatten() {
            let mode = fs::symlink_metadata(entry.path()).unwrap().permissions().mode();
            assert_eq!(mode & 0o6000, 0, "{:?} of {}", entry.path(), scene.jail);
        }
    }
}

#[test]
fn files_outside_keep_their_mode_and_times() {
    let outside = ["home/.ssh", "home/.ssh/id_rsa", "gimlet", "gimlet/grants"];
    let kept = ["project/.git/hooks/sample", "project/.env", "project/.git"];
    for scene in scenes() {
        let look = |name: &str| {
            let known = fs::metadata(scene.path(name)).unwrap();
            (known.permissions().mode(), known.modified().unwrap())
        };
        for name in outside.iter().chain(&kept) {
            let before = look(name);
            let place = scene.path(name).display().to_string();
            scene.refused(&format!("chmod 777 {place}"));
            scene.run(&format!("touch -c -d 2001-01-01 {place}"));
            assert_eq!(look(name), before, "{name} of {} as {:?}", scene.jail, scene.user);
        }
        fs::write(scene.path("project/.git/note"), "").unwrap();
        let denied = scene.run("chmod 700 .git/note");
        assert_eq!(denied["missing"][0]["permission"], "write-git", "{}", scene.who(&denied));
        // What a command may write it may still change in every way, and it is where it was started.
        scene.allowed(
            "chmod 700 src/a.txt && touch -d 2001-01-01 src/a.txt && mkdir -p src/d && mv src/a.txt src/d && mv src/d/a.txt src
            test -f src/script.sh && echo x > /dev/null && echo x > $TMPDIR/x && chmod 700 $TMPDIR/x && cat /proc/self/status /proc/mounts > $TMPDIR/y",
        );
        let asked = json!({"cmd": scene.script("touch .git/index && chmod 600 .git/index && mv .git/index .git/x"), "permissions": ["write-git"]});
        let done = scene.call(&asked, &["--approve", "all"]);
        assert_eq!(done["exit"], 0, "{}", scene.who(&done));
        let fixed = scene.call(
            &json!({"cmd": scene.script("chmod 777 src/a.txt")}),
            &["--approve", "all", "--sandbox", "read-only"],
        );
        assert_ne!(fixed["exit"], 0, "{}", scene.who(&fixed));
    }
}

/// The same command where nobody may have namespaces of its own.
fn run_inside(scene: &Scene, like: &Command) -> Command {
    let mut command = Command::new("/usr/bin/bwrap");
    command.args(["--unshare-user", "--disable-userns", "--cap-drop", "ALL", "--dev-bind", "/", "/"]);
    command.arg("--").arg(like.get_program()).args(like.get_args()).env_clear();
    command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(scene.path("project")).stdin(Stdio::null());
    if let Some(user) = scene.user {
        command.uid(user).gid(user);
    }
    command
}

/// A machine that allows no mounts is made with bubblewrap, which can forbid them.
#[test]
fn where_mounts_are_refused_it_is_said() {
    for scene in scenes().into_iter().filter(|scene| scene.jail == "landlock") {
        if !std::path::Path::new("/usr/bin/bwrap").exists() {
            continue;
        }
        let said = run_inside(&scene, &scene.gimlet(&["sandbox"])).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        assert!(
            said.contains("allows no mounts of its own to a command, so one can change the permissions"),
            "{said}"
        );
        let done = answer(run_inside(&scene, &scene.asking("echo x >> src/a.txt")));
        assert_eq!(done["exit"], 0, "{}", scene.who(&done));
        let said = String::from_utf8(scene.gimlet(&["sandbox"]).output().unwrap().stdout).unwrap();
        assert!(!said.contains("allows no mounts"), "{said}");
    }
}

/// A machine on which neither mechanism works.
#[test]
fn where_no_jail_can_be_had_it_is_said_and_everything_asks() {
    for mut scene in scenes().into_iter().filter(|scene| scene.jail == "bubblewrap") {
        let said = run_inside(&scene, &scene.gimlet(&["sandbox"])).output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        assert!(
            said.contains("no jail, so every command asks: this machine can enforce none: bubblewrap: ")
                && said.contains("hint: install bubblewrap"),
            "{said}"
        );
        let args = json!({"cmd": "ls"}).to_string();
        let asked = scene.gimlet(&["tools", "call", "run_cmd", &args, "--approve", "never"]);
        assert_eq!(answer(run_inside(&scene, &asked))["error"], "APPROVAL_DENIED");
        scene.jail = "auto";
        let refused = answer(run_inside(&scene, &scene.asking("cat ../home/.ssh/id_rsa")));
        assert!(refused["ran_in"].as_str().unwrap().starts_with("landlock"), "{refused}");
    }
}

#[test]
fn only_the_helper_says_that_nothing_has_run() {
    for scene in scenes() {
        let spoofed = scene.run("echo 'gimlet jail: the jail cannot be built: x' >&2; exit 125");
        assert_eq!(spoofed["exit"], 125, "{}", scene.who(&spoofed));
        // With Landlock the parent is the supervisor.
        scene.refused("{ env; cat /proc/$PPID/environ /proc/$PPID/cmdline; } | grep -aq GIMLET_JAIL_WORD=");
        let mut command = scene.asking("echo ran");
        command.env("TMPDIR", scene.path("nowhere"));
        let broken = answer(command);
        let said = broken["message"].as_str().unwrap_or_else(|| panic!("{}", scene.who(&broken)));
        assert!(said.contains("the jail cannot be built: No such file"), "{}", scene.who(&broken));
        assert!(!said.contains("gimlet jail"), "{}", scene.who(&broken));
    }
}

#[test]
fn memory_of_other_programs_is_not_shared() {
    let make = "import ctypes; print(ctypes.CDLL(None).shmget(0, 4096, 0o1600))";
    let attach = "import ctypes, sys
kernel = ctypes.CDLL(None)
kernel.shmat.restype = ctypes.c_void_p
sys.exit(3 if kernel.shmat(int(sys.argv[1]), None, 0) == ctypes.c_void_p(-1).value else 0)";
    for scene in with_python() {
        let mut host = Command::new("/usr/bin/python3");
        host.args(["-c", make]);
        if let Some(user) = scene.user {
            host.uid(user).gid(user);
        }
        let number = String::from_utf8(host.output().unwrap().stdout).unwrap();
        let tried = scene.run(&format!("{} {number}", scene.python(attach)));
        let removed = Command::new("ipcrm").args(["-m", number.trim()]).status().unwrap();
        assert!(removed.success());
        assert_eq!(tried["exit"], 3, "{}", scene.who(&tried));
    }
}

#[test]
fn shared_memory_and_threads_are_counted() {
    let anonymous = "import mmap, os, time
m = mmap.mmap(-1, 700 << 20)
for page in range(0, 700 << 20, 4096): m[page] = 1
time.sleep(60)";
    let unmapped = "import os, time
file = FILE
try:
    while os.fstat(file).st_size < 700 << 20: os.write(file, b'x' * (1 << 20))
except OSError: pass
time.sleep(60)";
    // What many have in common counts once, so this stays below the limit.
    let common = "import mmap, os, time
m = mmap.mmap(-1, 100 << 20)
for page in range(0, 100 << 20, 4096): m[page] = 1
for _ in range(8):
    if os.fork() == 0:
        sum(m[page] for page in range(0, 100 << 20, 4096)); time.sleep(1); os._exit(0)
for _ in range(8): os.wait()";
    let threads = "import threading, time
threading.stack_size(32768)
for _ in range(7000): threading.Thread(target=time.sleep, args=(20,), daemon=True).start()
print('all started')";
    for scene in with_python() {
        let limited = |program: &str| {
            let cmd = json!({ "cmd": scene.python(program) });
            scene.call(&cmd, &["--approve", "all", "--command-memory", "400"])
        };
        let killed = limited(anonymous);
        assert_eq!(killed["exit"], 137, "{}", scene.who(&killed));
        assert!(killed["stderr_tail"].as_str().unwrap().contains("more than 400 MB"), "{killed}");
        for file in ["os.memfd_create('x')", "os.open('/dev/shm/x', os.O_CREAT | os.O_WRONLY)"] {
            let killed = limited(&unmapped.replace("FILE", file));
            if scene.jail == "landlock" && file.contains("shm") {
                // There nothing is written at all.
                assert_eq!(killed["exit"], 1, "{}", scene.who(&killed));
                continue;
            }
            assert_eq!(killed["exit"], 137, "{}", scene.who(&killed));
            assert!(killed["stderr_tail"].as_str().unwrap().contains("more than 400 MB"), "{killed}");
        }
        let fits = limited(common);
        assert_eq!(fits["exit"], 0, "{}", scene.who(&fits));
        let many = scene.run(&format!("exec {}", scene.python(threads)));
        assert!(!many.to_string().contains("all started"), "{}", scene.who(&many));
    }
}

#[test]
fn the_network_is_no_way_to_sockets_without_a_file() {
    let connect = "import socket, sys
socket.socketpair()
try:
    s = socket.socket(socket.AF_UNIX)
    s.connect(chr(0) + sys.argv[1])
except OSError: sys.exit(3)";
    for scene in with_python() {
        let name = format!("gimlet-test-{}", scene.folder.path().display());
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        listener.set_nonblocking(true).unwrap();
        let cmd = scene.script(&format!("{} {name}", scene.python(connect)));
        for permissions in [json!([]), json!(["network"])] {
            let tried = scene.call(&json!({"cmd": cmd, "permissions": permissions}), &["--approve", "all"]);
            assert_eq!(tried["exit"], 3, "{}", scene.who(&tried));
            assert!(listener.accept().is_err());
        }
    }
}

#[test]
fn what_a_killed_supervisor_left_is_removed() {
    for scene in scenes() {
        let place = scene.path("temporary");
        fs::create_dir(&place).unwrap();
        let old = SystemTime::now() - Duration::from_secs(3600);
        let folder = |name: &str, time: SystemTime| {
            let path = place.join(name);
            fs::create_dir_all(path.join("in")).unwrap();
            let open = fs::File::open(&path).unwrap();
            open.set_modified(time).unwrap();
            open
        };
        folder("gimlet-jail-left", old);
        folder("gimlet-jail-young", SystemTime::now());
        folder("other", old);
        let used = folder("gimlet-jail-used", old);
        used.lock().unwrap();
        if let Some(user) = scene.user {
            for path in
                [".", "gimlet-jail-left", "gimlet-jail-left/in", "gimlet-jail-young", "gimlet-jail-used"]
            {
                std::os::unix::fs::chown(place.join(path), Some(user), Some(user)).unwrap();
            }
        }
        let mut command = scene.asking("true");
        command.env("TMPDIR", &place);
        assert_eq!(answer(command)["exit"], 0);
        let mut names: Vec<_> =
            fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["gimlet-jail-used", "gimlet-jail-young", "other"], "{}", scene.jail);
        drop(used);
    }
}
