//! The jail around commands, through the real binary: each mechanism, and where the tests run as root also as nobody.

mod masked;
mod planted;

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

const NOBODY: u32 = 65534;
const SECRET: &str = "TOPSECRET";
/// Of the environment. Not the same as in files: gimlet leaves it out of all it prints, whoever has read it.
const TOKEN: &str = "TOPTOKEN";

/// A project beside a home with secrets in it.
pub(crate) struct Scene {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) jail: &'static str,
    pub(crate) user: Option<u32>,
}

/// Every mechanism that works here, as every user that can be tried. What does not work is not tried: an attack would run
/// without a jail around it, or every test would tell the same.
pub(crate) fn scenes() -> Vec<Scene> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let users = if is_root { vec![None, Some(NOBODY)] } else { vec![None] };
    let all =
        ["landlock", "bubblewrap"].into_iter().flat_map(|jail| users.iter().map(move |user| (jail, *user)));
    let scenes: Vec<Scene> =
        all.map(|(jail, user)| Scene::new(jail, user)).filter(Scene::is_confined).collect();
    // The machine of the checks is prepared for both, and an ordinary user may lack namespaces there.
    let missing = is_root && std::env::var_os("CI").is_some() && scenes.len() < 4;
    assert!(!missing, "on CI both jails must work, as root and as nobody");
    scenes
}

impl Scene {
    fn new(jail: &'static str, user: Option<u32>) -> Self {
        let scene = Scene { folder: tempfile::tempdir().unwrap(), jail, user };
        fs::set_permissions(scene.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let files = [
            ("project/src/a.txt", "a\n"),
            ("project/.env", "KEY=1\n"),
            ("project/gimlet.toml", ""),
            ("project/mcp.json", "{}"),
            ("project/.git/config", "[core]\n"),
            ("project/.git/hooks/sample", ""),
            ("home/.ssh/id_rsa", SECRET),
            ("gimlet/grants", SECRET),
        ];
        for (name, text) in files {
            let path = scene.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        symlink("../home/.ssh", scene.path("project/link")).unwrap();
        symlink("../../home/.ssh", scene.path("project/src/link")).unwrap();
        if let Some(user) = user {
            give(scene.folder.path(), user);
        }
        scene
    }

    /// Whether commands of this scene are confined by its mechanism, by what the program says of itself.
    fn is_confined(&self) -> bool {
        let output = self.gimlet(&["sandbox", "status"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).contains(&format!("jailed by {}", self.jail))
    }

    /// Gives everything to the scene's user.
    pub(crate) fn own(&self) {
        if let Some(user) = self.user {
            give(self.folder.path(), user);
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn gimlet(&self, args: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("gimlet"));
        command
            .args(args)
            .current_dir(self.path("project"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("GIMLET_HOME", self.path("gimlet"))
            .env("SERVICE_TOKEN", TOKEN)
            .env("SANDBOX_JAIL", self.jail)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null());
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    pub(crate) fn call(&self, args: &Value, more: &[&str]) -> Value {
        self.call_tool("run_cmd", args, more)
    }

    fn call_tool(&self, tool: &str, args: &Value, more: &[&str]) -> Value {
        let args = args.to_string();
        let mut words = vec!["tools", "call", tool, args.as_str()];
        words.extend(more);
        let output = self.gimlet(&words).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)))
    }

    /// A command that runs a script: what is in it is the jail's business alone, no policy reads it.
    pub(crate) fn script(&self, text: &str) -> String {
        fs::write(self.path("project/src/script.sh"), text).unwrap();
        "sh src/script.sh".into()
    }

    /// Runs a script that was agreed to.
    pub(crate) fn run(&self, script: &str) -> Value {
        let result = self.call(&json!({ "cmd": self.script(script) }), &["--approve", "all"]);
        assert!(result["exit"].is_number(), "{} as {:?}: {script}: {result}", self.jail, self.user);
        result
    }

    /// A command must fail, and say nothing that is secret.
    pub(crate) fn refused(&self, cmd: &str) -> Value {
        let result = self.run(cmd);
        let who = format!("{} as {:?}: {cmd}: {result}", self.jail, self.user);
        assert_ne!(result["exit"], 0, "{who}");
        assert!(!result.to_string().contains(SECRET), "{who}");
        result
    }

    pub(crate) fn allowed(&self, cmd: &str) -> Value {
        let result = self.run(cmd);
        assert_eq!(result["exit"], 0, "{} as {:?}: {cmd}: {result}", self.jail, self.user);
        result
    }
}

fn give(path: &Path, user: u32) {
    if fs::symlink_metadata(path).unwrap().is_symlink() {
        return;
    }
    chown(path, Some(user), Some(user)).unwrap();
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path(), user);
        }
    }
}

/// Whether a process with this word among its arguments runs.
fn runs(word: &str) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        fs::read(entry.path().join("cmdline"))
            .is_ok_and(|line| line.split(|byte| *byte == 0).any(|part| part == word.as_bytes()))
    })
}

pub(crate) fn assert_gone(word: &str) {
    for _ in 0..200 {
        if !runs(word) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("a process {word} is left");
}

#[test]
fn secrets_stay_hidden() {
    for scene in scenes() {
        let home = scene.path("home").display().to_string();
        let gimlet = scene.path("gimlet").display().to_string();
        scene.refused(&format!("cat {home}/.ssh/id_rsa"));
        scene.refused("cat link/id_rsa");
        scene.refused("cat src/link/id_rsa");
        scene.refused(&format!("ln {home}/.ssh/id_rsa src/stolen && cat src/stolen"));
        scene.refused(&format!("cat /proc/self/root{home}/.ssh/id_rsa"));
        scene.refused(&format!("cat /proc/[0-9]*/root{home}/.ssh/id_rsa"));
        scene.refused("cat /proc/[0-9]*/environ | grep -a SERVICE_TOKEN=TOP");
        scene.refused(&format!("cat {gimlet}/grants"));
        scene.refused(&format!("ls {gimlet}/"));
        scene.refused("cat /etc/shadow");
        let seen = scene.run("env").to_string();
        assert!(!seen.contains(TOKEN) && !seen.contains("SERVICE_TOKEN"), "{seen}");
    }
}

#[test]
fn nothing_is_written_but_the_project() {
    for scene in scenes() {
        let outside = scene.folder.path().display().to_string();
        scene.allowed(
            "echo new > src/new.txt && mv src/new.txt src/b.txt && rm src/b.txt && echo x >> src/a.txt",
        );
        assert_eq!(fs::read_to_string(scene.path("project/src/a.txt")).unwrap(), "a\nx\n");
        for file in [".git/hooks/post-commit", ".git/config", ".env", "gimlet.toml", "mcp.json"] {
            let before = fs::read(scene.path("project").join(file)).ok();
            scene.refused(&format!("echo evil >> {file}"));
            scene.refused(&format!("mv src/a.txt {file}"));
            scene.refused(&format!("ln src/a.txt {file}x && mv {file}x {file}"));
            assert_eq!(fs::read(scene.path("project").join(file)).ok(), before, "{file}");
        }
        scene.refused("mv .git other && mkdir .git");
        // Opened and not written, so that a jail that fails changes no machine.
        for setting in
            ["sys/kernel/core_pattern", "sys/vm/swappiness", "irq/default_smp_affinity", "sysrq-trigger"]
        {
            scene.refused(&format!(": >> /proc/{setting}"));
        }
        for place in
            [format!("{outside}/gimlet/x"), "/etc/x".into(), "/usr/x".into(), "/x".into(), "/dev/x".into()]
        {
            scene.refused(&format!("echo x > {place}"));
            assert!(!Path::new(&place).exists(), "{place}");
        }
        // These may seem to work: the command has a `/tmp` and a home of its own.
        scene.run(&format!("echo x > {outside}/x; echo x > link/x; echo x > src/link/x; echo x > ~/x; echo x > /tmp/gimlet-test-x"));
        for place in ["x", "home/.ssh/x", "home/x"] {
            assert!(!scene.path(place).exists(), "{place}");
        }
        assert!(!Path::new("/tmp/gimlet-test-x").exists());
    }
}

/// A folder whose `.git` says that it is a worktree, of a repository that leads where its makers want.
#[test]
fn a_forged_worktree_shows_nothing() {
    for scene in scenes() {
        let project = scene.path("project");
        fs::remove_dir_all(project.join(".git")).unwrap();
        let home = scene.path("home").display().to_string();
        for (folder, common) in [("f", format!("{home}/.ssh")), ("f/worktrees/x", "../..".into())] {
            fs::create_dir_all(project.join(folder)).unwrap();
            fs::write(project.join(".git"), format!("gitdir: {folder}")).unwrap();
            fs::write(project.join(folder).join("gitdir"), project.join(".git").display().to_string())
                .unwrap();
            fs::write(project.join(folder).join("commondir"), common).unwrap();
            scene.refused(&format!("cat {home}/.ssh/id_rsa"));
            let asked = json!({
                "cmd": scene.script(&format!("echo x > {home}/.ssh/authorized_keys; cat {home}/.ssh/id_rsa")),
                "permissions": ["write-git"],
            });
            let tried = scene.call(&asked, &["--approve", "all"]);
            assert!(!tried.to_string().contains(SECRET), "{tried}");
            assert!(!scene.path("home/.ssh/authorized_keys").exists(), "{tried}");
        }
    }
}

#[test]
fn what_is_not_there_is_not_planted() {
    let planted = [".env", ".git", ".mcp.json", "gimlet.toml", "mcp.json", "sub/.git"];
    for scene in scenes() {
        let project = scene.path("project");
        fs::remove_dir_all(project.join(".git")).unwrap();
        for name in [".env", "gimlet.toml", "mcp.json"] {
            fs::remove_file(project.join(name)).unwrap();
        }
        fs::create_dir(project.join("sub")).unwrap();
        fs::write(project.join(".gitmodules"), "[submodule \"sub\"]\n\tpath = sub\n").unwrap();
        if let Some(user) = scene.user {
            give(&project, user);
        }
        let tried = scene.run(
            "mkdir -p .git/hooks sub/.git; echo evil > .git/config; echo evil > .env; echo evil > gimlet.toml
            ln -s src/a.txt mcp.json; mkdir .mcp.json; true",
        );
        for name in planted {
            assert!(fs::symlink_metadata(project.join(name)).is_err(), "{} of {}: {tried}", name, scene.jail);
        }
        if scene.jail == "bubblewrap" {
            // Nothing is lost, and whoever reads the result knows.
            let kept = fs::read_to_string(project.join(".git.from-a-command/config")).unwrap();
            assert_eq!(kept, "evil\n");
            let said = tried["stderr_tail"].as_str().unwrap();
            assert!(
                said.contains("commands may not make") && said.contains("gimlet.toml.from-a-command"),
                "{tried}"
            );
        }
        // A link elsewhere is not followed out of the project.
        fs::create_dir(scene.path("home/other")).unwrap();
        fs::create_dir(scene.path("home/other/.git")).unwrap();
        scene.run("rmdir sub; mv sub old; ln -s ../home/other sub; true");
        assert!(scene.path("home/other/.git").is_dir());
    }
}

#[test]
fn who_may_write_git_plants_no_program() {
    let scripts = [
        "echo evil > .git/hooks/post-commit; echo evil > .git/config; echo ../src > .git/commondir; echo evil >> .env",
        "rm -r .git/hooks; mkdir .git/hooks; echo evil > .git/hooks/post-commit; rm .git/config",
        "mv .git old && mkdir -p .git/hooks && echo evil > .git/hooks/post-commit && echo evil > .git/config",
        "mkdir -p src/g/hooks; echo evil > src/g/hooks/post-commit; mv .git old && ln -s src/g .git",
    ];
    for script in scripts {
        for scene in scenes() {
            let asked = json!({"cmd": scene.script(&format!("touch .git/x; {script}; true")), "permissions": ["write-git"]});
            let tried = scene.call(&asked, &["--approve", "all"]);
            let who = format!("{} as {:?}: {script}: {tried}", scene.jail, scene.user);
            assert_eq!(tried["exit"], 0, "{who}");
            let read = |name: &str| fs::read_to_string(scene.path("project").join(name)).unwrap_or_default();
            assert!(!scene.path("project/.git/hooks/post-commit").exists(), "{who}");
            assert!(!scene.path("project/.git/commondir").exists(), "{who}");
            assert!(!read(".git/config").contains("evil"), "{who}");
            assert_eq!(read(".env"), "KEY=1\n", "{who}");
        }
    }
}

/// A worktree has its history elsewhere: seen, written with the permission, and safe as in a repository of its own.
#[test]
fn a_worktree_works_as_a_repository_does() {
    for scene in scenes() {
        let git = |place: &str, words: &str| {
            let mut command = Command::new("git");
            command.args(["-c", "user.name=n", "-c", "user.email=e"]).args(words.split(' '));
            command.current_dir(scene.path(place)).env("HOME", scene.path("home"));
            if let Some(user) = scene.user {
                command.uid(user).gid(user);
            }
            let output = command.output().unwrap();
            assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        };
        fs::remove_dir_all(scene.path("project")).unwrap();
        fs::create_dir(scene.path("main")).unwrap();
        if let Some(user) = scene.user {
            give(scene.folder.path(), user);
            chown(scene.folder.path(), Some(user), Some(user)).unwrap();
        }
        git("main", "init --quiet");
        git("main", "commit --quiet --allow-empty -m first");
        git("main", "worktree add --quiet ../project");
        fs::create_dir(scene.path("project/src")).unwrap();
        if let Some(user) = scene.user {
            give(&scene.path("project"), user);
        }
        let shared = scene.path("main/.git").display().to_string();
        scene.allowed("git log | grep first");
        scene.refused(&format!("echo evil > {shared}/hooks/post-commit"));
        let cmd = scene.script(&format!(
            "git -c user.name=n -c user.email=e commit --quiet --allow-empty -m second
            git log --oneline; echo evil > {shared}/hooks/post-commit; echo evil >> {shared}/config; echo evil > .git",
        ));
        let done = scene.call(&json!({"cmd": cmd, "permissions": ["write-git"]}), &["--approve", "all"]);
        assert!(done["stdout_tail"].as_str().unwrap().contains("second"), "{}: {done}", scene.jail);
        assert!(!scene.path("main/.git/hooks/post-commit").exists(), "{}: {done}", scene.jail);
        assert!(!fs::read_to_string(scene.path("main/.git/config")).unwrap().contains("evil"), "{done}");
        assert!(fs::read_to_string(scene.path("project/.git")).unwrap().starts_with("gitdir:"), "{done}");
    }
}

#[test]
fn what_was_open_already_is_closed() {
    for scene in scenes() {
        let args = json!({ "cmd": scene.script("cat <&9") }).to_string();
        let like = scene.gimlet(&["tools", "call", "run_cmd", &args, "--approve", "all"]);
        let mut command = Command::new("sh");
        command.args(["-c", "exec 9< \"$0\"; exec \"$@\""]).arg(scene.path("home/.ssh/id_rsa"));
        command.arg(like.get_program()).args(like.get_args()).env_clear().current_dir(scene.path("project"));
        command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(user) = scene.user {
            command.uid(user).gid(user);
        }
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(said.contains("\"exit\"") && !said.contains(SECRET), "{said}");
    }
}

#[test]
fn gimlet_s_own_folder_is_known_by_any_name() {
    let scene = Scene::new("auto", None);
    fs::create_dir(scene.path("project/own")).unwrap();
    symlink(scene.folder.path(), scene.path("alias")).unwrap();
    let mut command = scene.gimlet(&["sandbox", "status"]);
    let output = command.env("GIMLET_HOME", scene.path("alias/project/own")).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("no jail, so every command asks"), "{said}");
}

#[test]
fn nothing_is_sent_without_a_connection_either() {
    let send = "import socket, sys
def tried(make, to):
    try:
        s = make()
        s = s[0] if isinstance(s, tuple) else s
        s.settimeout(2)
        s.sendto(b'hi', to) if s.type != socket.SOCK_STREAM else (s.connect(to), s.send(b'hi'))
    except TimeoutError as error:
        print('waited for', to)
    except OSError as error:
        print('refused', to, error)
unix, file, port = socket.AF_UNIX, sys.argv[1], int(sys.argv[2])
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
    tried(lambda: socket.socket(unix, kind), file + '.datagram')
    tried(lambda: socket.socketpair(unix, kind), file + '.datagram')
tried(lambda: socket.socket(unix, socket.SOCK_STREAM), file + '.stream')
if sys.argv[3] == 'all':
    tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM), ('127.0.0.1', port))
    tried(lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM), ('::1', port))
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        tried(lambda: socket.socket(socket.AF_INET, kind), ('192.0.2.1', 53))
        tried(lambda: socket.socket(socket.AF_INET6, kind), ('2001:db8::1', 53))
";
    for scene in scenes().into_iter().filter(|_| has_python()) {
        let file = scene.path("project/src/s");
        let datagrams = UnixDatagram::bind(file.with_extension("datagram")).unwrap();
        let streams = UnixListener::bind(file.with_extension("stream")).unwrap();
        let packets = UdpSocket::bind("127.0.0.1:0").unwrap();
        datagrams.set_nonblocking(true).unwrap();
        streams.set_nonblocking(true).unwrap();
        packets.set_nonblocking(true).unwrap();
        for name in ["s.datagram", "s.stream"] {
            fs::set_permissions(scene.path("project/src").join(name), fs::Permissions::from_mode(0o777))
                .unwrap();
        }
        fs::write(scene.path("project/src/send.py"), send).unwrap();
        let port = packets.local_addr().unwrap().port();
        let cmd = |which: &str| format!("/usr/bin/python3 src/send.py {} {port} {which}", file.display());
        let tried = scene.run(&cmd("all"));
        assert_eq!(tried["exit"], 0, "{tried}");
        assert!(packets.recv(&mut [0; 8]).is_err(), "{}: {tried}", scene.jail);
        let said = tried["stdout_tail"].as_str().unwrap();
        for outside in ["refused ('192.0.2.1', 53)", "refused ('2001:db8::1', 53)"] {
            assert_eq!(said.matches(outside).count(), 2, "{} as {:?}: {tried}", scene.jail, scene.user);
        }
        let asked = json!({"cmd": scene.script(&cmd("files")), "permissions": ["network"]});
        let granted = scene.call(&asked, &["--approve", "all"]);
        if scene.jail == "landlock" {
            // Bubblewrap keeps other programs' sockets out of sight; these are the project's own, which it shows.
            assert!(datagrams.recv(&mut [0; 8]).is_err(), "{tried} {granted}");
            assert!(streams.accept().is_err(), "{tried} {granted}");
        }
    }
}

#[test]
fn the_network_is_a_permission() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!("bash -c 'echo hi > /dev/tcp/127.0.0.1/{port}'");
    for scene in scenes() {
        let refused = scene.refused(&script);
        let cmd = scene.script(&script);
        assert_eq!(refused["missing"][0]["permission"], "network", "{refused}");
        assert!(listener.accept().is_err());
        let asked = json!({ "cmd": cmd, "permissions": ["network"] });
        // Asking again with the permission is one question, which a refusal shows.
        assert_eq!(scene.call(&asked, &["--approve", "never"])["error"], "APPROVAL_DENIED");
        let granted = scene.call(&asked, &["--approve", "all"]);
        assert_eq!(granted["exit"], 0, "{granted}");
        assert!(listener.accept().is_ok());
    }
}

#[test]
fn no_rights_are_gained_and_no_process_is_reached() {
    let attach = "import ctypes, os, sys\npid = int(sys.argv[1]) or os.getppid()\nsys.exit(0 if ctypes.CDLL(None).ptrace(16, pid, 0, 0) == 0 else 3)";
    for scene in scenes() {
        let status = scene.allowed("cat /proc/self/status").to_string();
        assert!(
            status.contains("CapEff:\\t0000000000000000") && status.contains("NoNewPrivs:\\t1"),
            "{status}"
        );
        fs::write(scene.path("project/src/attach.py"), attach).unwrap();
        // The supervisor is the command's parent, but inside of bubblewrap a process of the jail itself is.
        let pid = std::process::id();
        let outside = if scene.jail == "landlock" { vec![pid, 0] } else { vec![pid] };
        for pid in outside.into_iter().filter(|_| has_python()) {
            let attached = scene.run(&format!("exec /usr/bin/python3 src/attach.py {pid}"));
            assert_eq!(attached["exit"], 3, "{attached}");
        }
        if let Some(user) = scene.user {
            let program = scene.path("project/src/id");
            fs::copy("/usr/bin/id", &program).unwrap();
            chown(&program, Some(0), Some(0)).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o6755)).unwrap();
            let ran = scene.allowed("src/id -u; src/id -g");
            assert_eq!(ran["stdout_tail"], format!("{user}\n{user}\n"), "a set-uid program gains nothing");
        }
        scene.refused(&format!("kill -0 {pid}"));
        scene.refused("unshare --user --map-root-user true");
        scene.refused("mount -t tmpfs none /tmp");
    }
}

#[test]
fn everything_ends_with_the_command() {
    for scene in scenes() {
        scene.run("setsid sleep 98761 & (setsid setsid sleep 98761 &) ; exit 0");
        assert_gone("98761");
        let late = scene.call(
            &json!({"cmd": scene.script("setsid sleep 98762 & sleep 98762"), "timeout": 1}),
            &["--approve", "all"],
        );
        assert_eq!(late["error"], "CMD_TIMEOUT", "{late}");
        assert_gone("98762");
        let args = json!({"cmd": scene.script("setsid sleep 98763 & sleep 98763")}).to_string();
        let mut parent =
            scene.gimlet(&["tools", "call", "run_cmd", &args, "--approve", "all"]).spawn().unwrap();
        while !runs("98763") {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        parent.kill().unwrap();
        parent.wait().unwrap();
        assert_gone("98763");
    }
}

/// Whether programs for the jail can be written in Python here; CI has it.
pub(crate) fn has_python() -> bool {
    let there = Path::new("/usr/bin/python3").exists();
    assert!(there || std::env::var_os("CI").is_none(), "Python is needed on CI");
    there
}

#[test]
fn git_works_though_the_home_is_closed() {
    for scene in scenes() {
        let settings = "[user]\n\tname = Somebody\n\temail = s@b\n[core]\n\texcludesFile = ~/.ignored\n";
        fs::create_dir_all(scene.path("home/.config/git")).unwrap();
        for (name, text) in [
            (".gitconfig", settings),
            (".ignored", "*.o\n"),
            (".config/git/ignore", "*.o\n"),
            (".config/git/config", "[alias]\n\tx = status\n"),
            (".config/git/attributes", "*.o binary\n"),
        ] {
            let path = scene.path("home").join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
        }
        let looked = scene.run("git init -q src/r && git -C src/r status --short && git -C src/r add .");
        assert_eq!(looked["exit"], 0, "{} as {:?}: {looked}", scene.jail, scene.user);
        let script = "git -C src/r commit -q --allow-empty -m first && git -C src/r log --format=%an";
        let asked = json!({"cmd": scene.script(script), "permissions": ["write-git"]});
        let made = scene.call(&asked, &["--approve", "all"]);
        assert_eq!(made["exit"], 0, "{} as {:?}: {made}", scene.jail, scene.user);
    }
}

#[test]
fn memory_and_processes_have_limits() {
    for scene in scenes().into_iter().filter(|_| has_python()) {
        fs::write(scene.path("project/src/hog.py"), "import time\nx = b'x' * (700 << 20)\ntime.sleep(60)")
            .unwrap();
        let hog = json!({"cmd": "/usr/bin/python3 src/hog.py"});
        let killed = scene.call(&hog, &["--approve", "all", "--command-memory", "300"]);
        assert_eq!(killed["exit"], 137, "{killed}");
        assert!(killed["stderr_tail"].as_str().unwrap().contains("more than 300 MB of memory"), "{killed}");
        // Children that end all the time must not keep the supervisor from looking.
        let busy = "while :; do (sleep 0.01 &); done & exec /usr/bin/python3 src/hog.py";
        let busy = json!({ "cmd": scene.script(busy) });
        let killed = scene.call(&busy, &["--approve", "all", "--command-memory", "300"]);
        assert_eq!(killed["exit"], 137, "{killed}");
        assert!(killed["stderr_tail"].as_str().unwrap().contains("more than 300 MB of memory"), "{killed}");
        let many = "import subprocess\nfor _ in range(2000):\n    subprocess.Popen(['sleep', '98764'])\n";
        fs::write(scene.path("project/src/many.py"), many).unwrap();
        let killed = scene.run("/usr/bin/python3 src/many.py");
        assert_eq!(killed["exit"], 137, "{killed}");
        assert!(killed["stderr_tail"].as_str().unwrap().contains("more than 512 processes"), "{killed}");
        assert_gone("98764");
    }
}

#[test]
fn a_fork_bomb_is_stopped() {
    // It stops growing by itself, so that a jail that fails does not take the machine with it.
    let bomb = "import os, time
def tasks(): return int(open('/proc/loadavg').read().split()[3].split('/')[1])
most, end = tasks() + 3000, time.monotonic() + 50
while time.monotonic() < end:
    if tasks() < most: os.fork()
    else: time.sleep(1)
";
    for scene in scenes().into_iter().filter(|_| has_python()) {
        fs::write(scene.path("project/src/bomb98765.py"), bomb).unwrap();
        let killed = scene.run("exec /usr/bin/python3 src/bomb98765.py");
        assert_eq!(killed["exit"], 137, "{killed}");
        assert!(killed["stderr_tail"].as_str().unwrap().contains("more than 512 processes"), "{killed}");
        assert_gone("src/bomb98765.py");
    }
}

#[test]
fn processor_time_has_a_limit() {
    for scene in scenes() {
        let hog = json!({ "cmd": scene.script("while :; do :; done") });
        let killed = scene.call(&hog, &["--approve", "all", "--command-cpu", "1"]);
        assert_eq!(killed["exit"], 152, "{killed}");
        let said = killed["stderr_tail"].as_str().unwrap();
        assert!(said.contains("killed: it used more than 1 s of processor time"), "{killed}");
    }
}

#[test]
fn a_patch_must_pass_the_tests_on_a_copy() {
    let tests = "echo tried >> src/a.txt && test \"$(head -n 1 src/a.txt)\" = good && test ! -e .env";
    for scene in scenes() {
        let propose = |text: &str, tests: &str| {
            let args = json!({
                "intent": "Change", "file_path": "src/a.txt", "original_content": "a\n", "new_content": text,
            });
            let flags = ["--validation", "worktree", "--validation-tests", tests];
            scene.call_tool("propose_patch", &args, &flags)
        };
        let passed = propose("good\n", tests);
        let by = passed["validated_by"].as_str().unwrap_or_else(|| panic!("{passed}"));
        let expected =
            format!("git apply --check in a scratch folder; `{tests}` in {} (workspace-write)", scene.jail);
        assert_eq!(by, expected);
        let failed = propose("bad\n", &format!("echo this is wrong; {tests}"));
        assert_eq!(failed["error"], "TESTS_FAILED", "{failed}");
        assert!(failed["message"].as_str().unwrap().contains("ended with code 1"), "{failed}");
        assert_eq!(failed["context"]["output"], "this is wrong");
        let outside = scene.path("home/reached").display().to_string();
        propose("good\n", &format!("echo x > {outside}"));
        assert!(!scene.path("home/reached").exists(), "tests are jailed");
        assert_eq!(fs::read_to_string(scene.path("project/src/a.txt")).unwrap(), "a\n", "and see a copy");
    }
    let mut scene = Scene::new("off", None);
    let refused = scene.gimlet(&[
        "tools",
        "call",
        "repo_info",
        "--validation",
        "worktree",
        "--validation-tests",
        "true",
    ]);
    let output = { refused }.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("nothing here can confine `true`"), "{said}");
    scene.jail = "auto";
    fs::write(scene.path("project/gimlet.toml"), "[sandbox]\ntests = \"touch src/evil\"\n").unwrap();
    let output = scene.gimlet(&["tools", "call", "repo_info"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("runs `touch src/evil` with every patch, and is not trusted"), "{said}");
}

#[test]
fn profiles_say_what_may_change() {
    for scene in scenes() {
        let cmd = scene.script("echo x > src/p.txt");
        let refused = scene.call(&json!({ "cmd": cmd }), &["--approve", "all", "--sandbox", "read-only"]);
        assert_ne!(refused["exit"], 0, "{refused}");
        assert_eq!(refused["missing"][0]["permission"], "write-workspace", "{refused}");
        let asked = json!({"cmd": cmd, "permissions": ["write-workspace"]});
        let granted = scene.call(&asked, &["--approve", "all", "--sandbox", "read-only"]);
        assert_eq!(granted["exit"], 0, "{granted}");
        let outside = scene.path("home/free").display().to_string();
        let asked =
            json!({"cmd": scene.script(&format!("echo x > {outside}")), "permissions": ["unrestricted"]});
        assert_eq!(scene.call(&asked, &["--approve", "never"])["error"], "APPROVAL_DENIED");
        let granted = scene.call(&asked, &["--approve", "all"]);
        assert_eq!((&granted["exit"], &granted["ran_in"]), (&json!(0), &json!("host")), "{granted}");
        let git = scene.refused("touch .git/x");
        assert_eq!(git["missing"][0]["permission"], "write-git", "{git}");
        let asked = json!({"cmd": scene.script("touch .git/x"), "permissions": ["write-git"]});
        assert_eq!(scene.call(&asked, &["--approve", "all"])["exit"], 0);
    }
}

#[test]
fn repository_code_runs_unasked_only_in_a_jail() {
    let mut scene = Scene::new("auto", None);
    let tests = json!({"cmd": "pytest --version"});
    assert_ne!(scene.call(&tests, &["--approve", "never"])["error"], "APPROVAL_DENIED");
    scene.jail = "off";
    let refused = scene.call(&json!({"cmd": "ls"}), &["--approve", "never"]);
    assert_eq!(refused["error"], "APPROVAL_DENIED");
    let said = String::from_utf8(scene.gimlet(&["sandbox", "status"]).output().unwrap().stdout).unwrap();
    assert!(said.contains("no jail, so every command asks: the jail is switched off"), "{said}");
}

/// Without the small helper beside it the program is its own; one in the project itself is never taken.
#[test]
fn the_program_is_its_own_helper_where_there_is_no_other() {
    let gimlet = assert_cmd::cargo::cargo_bin!("gimlet");
    let beside = gimlet.with_file_name("gimlet-jail");
    assert!(beside.is_file(), "the small helper is built with the program");
    for scene in scenes() {
        let place = scene.path("project/bin");
        fs::create_dir(&place).unwrap();
        let (own, evil) = (place.join("gimlet"), place.join("gimlet-jail"));
        fs::hard_link(gimlet, &own).or_else(|_| fs::copy(gimlet, &own).map(drop)).unwrap();
        let run = |text: &str| {
            let args = json!({ "cmd": scene.script(text) }).to_string();
            let mut command = Command::new(&own);
            let like = scene.gimlet(&["tools", "call", "run_cmd", &args, "--approve", "all"]);
            command.args(like.get_args()).env_clear().current_dir(scene.path("project"));
            command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
            if let Some(user) = scene.user {
                command.uid(user).gid(user);
            }
            let output = command.stdin(Stdio::null()).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            serde_json::from_str::<Value>(&text)
                .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)))
        };
        let outside = scene.path("home/.ssh/id_rsa").display().to_string();
        for helper in [None, Some("#!/bin/sh\nshift 2\nexec \"$@\"\n")] {
            if let Some(script) = helper {
                fs::write(&evil, script).unwrap();
                fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
            }
            assert_eq!(run("echo x >> src/a.txt")["exit"], 0);
            let refused = run(&format!("cat {outside}"));
            assert!(refused["exit"].as_i64().is_some_and(|code| code != 0), "{refused}");
            assert!(!refused.to_string().contains(SECRET), "{refused}");
        }
    }
}

#[test]
fn tests_run_in_the_jail_too() {
    for scene in scenes() {
        let home = scene.path("home").display().to_string();
        let cmd =
            scene.script(&format!("echo x > src/made && echo x > {home}/reached; cat {home}/.ssh/id_rsa"));
        let ran = scene.call_tool("run_tests", &json!({ "test_cmd": cmd }), &["--approve", "all"]);
        let who = format!("{} as {:?}: {ran}", scene.jail, scene.user);
        assert_eq!(ran["exit"], 1, "{who}");
        assert_eq!(ran["ran_in"], format!("{} (workspace-write)", scene.jail), "{who}");
        assert!(scene.path("project/src/made").exists() && !scene.path("home/reached").exists(), "{who}");
        assert!(!ran.to_string().contains(SECRET), "{who}");
    }
}

#[test]
fn status_names_the_layers() {
    for scene in scenes() {
        let said = String::from_utf8(scene.gimlet(&["sandbox"]).output().unwrap().stdout).unwrap();
        assert!(
            said.contains(&format!("jailed by {}; at most 8192 MB and 512 processes", scene.jail)),
            "{said}"
        );
    }
}
