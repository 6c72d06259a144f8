//! What people are told about an engine that does not do its work. The engine here is a socket that speaks just enough of
//! Docker's interface to fail in ways a real one does not on demand.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Project, Said, of_type};

const FULL: &str = "write /var/lib/docker/overlay2/x: no space left on device";

/// Status and body.
type Answer = (&'static str, Value);

/// An engine that has neither image nor room.
fn nothing(_request: &str) -> Option<Answer> {
    None
}

/// One that has the image, and no room for a container.
fn image(request: &str) -> Option<Answer> {
    if request.contains("/images/") {
        return Some(("200 OK", json!({"Id": "sha256:1"})));
    }
    request.contains("/containers/create").then(|| ("500 Internal Server Error", json!({ "message": FULL })))
}

/// Starts an engine; its socket. Its thread ends with the test.
fn engine(project: &Project, answers: impl Fn(&str) -> Option<Answer> + Send + Sync + 'static) -> PathBuf {
    let socket = project.home.path().join("engine.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let answers = Arc::new(answers);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answers = answers.clone();
            std::thread::spawn(move || serve(stream, &*answers));
        }
    });
    socket
}

/// Answers one request: as this engine does, else as every engine does.
fn serve(mut stream: UnixStream, answers: &dyn Fn(&str) -> Option<Answer>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut request, mut head) = (String::new(), String::new());
    reader.read_line(&mut request)?;
    while reader.read_line(&mut head)? > 2 {}
    // What is left unread would break the answer off.
    let head = head.to_lowercase();
    if let Some(length) = head.lines().find_map(|line| line.strip_prefix("content-length: ")) {
        reader.read_exact(&mut vec![0; length.parse().unwrap()])?;
    } else if head.contains("transfer-encoding: chunked") {
        let mut size = String::new();
        while size.trim() != "0" {
            size.clear();
            reader.read_line(&mut size)?;
            let length = usize::from_str_radix(size.trim(), 16).unwrap();
            reader.read_exact(&mut vec![0; length + 2])?;
        }
    }
    let path = request.split(' ').nth(1).unwrap_or_default();
    let (status, body) = if let Some(answer) = answers(&request) {
        answer
    } else if path.ends_with("/version") {
        ("200 OK", json!({"Version": "27.0", "ApiVersion": "1.46"}))
    } else if path.contains("/containers/json") {
        ("200 OK", json!([]))
    } else if path.contains("/build") {
        ("200 OK", json!({"errorDetail": {"message": FULL}, "error": FULL}))
    } else {
        ("404 Not Found", json!({"message": "No such image: gimlet-sandbox:latest"}))
    };
    let body = format!("{body}\n");
    let head = "Content-Type: application/json\r\nConnection: close";
    write!(stream, "HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn say(project: &Project, socket: &std::path::Path, args: &[&str]) -> Said {
    let mut command = project.gimlet(args);
    Said::from(command.env("DOCKER_HOST", format!("unix://{}", socket.display())).output().unwrap())
}

/// A command, a patch and code, each in a container.
fn everything(project: &Project, socket: &std::path::Path) -> [String; 3] {
    let call = |tool: &str, args: Value, flag: &str| {
        let args = args.to_string();
        let said = say(project, socket, &["tools", "call", tool, &args, "--approve", "all", flag, "docker"]);
        assert_eq!(said.code, 1, "{} {}", said.stdout, said.stderr);
        said.stdout
    };
    let patch = json!({
        "intent": "Add", "file_path": "calc.py",
        "original_content": "    return a - b\n", "new_content": "    return a + b\n",
    });
    let code = say(project, socket, &["python", "--executor", "docker", "-c", "1"]);
    assert_ne!(code.code, 0);
    [
        call("run_cmd", json!({"cmd": "true"}), "--sandbox"),
        call("propose_patch", patch, "--validation"),
        code.stderr,
    ]
}

#[test]
fn a_full_disk_is_said_with_what_helps() {
    let project = Project::new();
    let socket = engine(&project, image);
    for told in everything(&project, &socket) {
        assert!(told.contains("the Docker engine is out of disk space"), "{told}");
        assert!(told.contains("`docker system prune` removes what is not used"), "{told}");
    }
    let said = say(&project, &socket, &["sandbox", "build"]);
    assert_eq!(said.code, 2, "{}", said.stdout);
    assert!(
        said.stderr.contains("out of disk space") && said.stderr.contains("hint: `docker system prune`"),
        "{}",
        said.stderr
    );
}

#[test]
fn a_missing_image_is_said_with_what_helps() {
    let project = Project::new();
    let socket = engine(&project, nothing);
    let status = say(&project, &socket, &["sandbox", "status"]).stdout;
    for told in everything(&project, &socket).into_iter().chain([status]) {
        assert!(told.contains("the image gimlet-sandbox:latest is not there"), "{told}");
        assert!(told.contains("`gimlet sandbox build` makes it; SANDBOX_IMAGE names another"), "{told}");
    }
}

#[test]
fn no_engine_is_said_with_what_helps() {
    let project = Project::new();
    let gone = project.home.path().join("none.sock");
    let dead = project.home.path().join("dead.sock");
    drop(UnixListener::bind(&dead).unwrap());
    for socket in [gone, dead] {
        let status = say(&project, &socket, &["sandbox", "status"]).stdout;
        for told in everything(&project, &socket).into_iter().chain([status]) {
            assert!(
                told.contains(&format!("no Docker engine answers at unix://{}", socket.display())),
                "{told}"
            );
            assert!(told.contains("start Docker or Podman, or set DOCKER_HOST to its socket"), "{told}");
        }
    }
}

/// The socket of an engine that belongs to somebody else.
#[test]
fn a_closed_socket_is_said_with_what_helps() {
    let project = Project::new();
    let socket = engine(&project, image);
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::set_permissions(project.home.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let own = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap());
    let mut command = project.gimlet(&["sandbox", "status"]);
    command.env("DOCKER_HOST", format!("unix://{}", socket.display()));
    if own == 0 {
        command.uid(65534).gid(65534).current_dir("/");
    } else {
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o000)).unwrap();
    }
    let told = Said::from(command.output().unwrap()).stdout;
    assert!(
        told.contains(&format!("you may not use the Docker engine at unix://{}", socket.display())),
        "{told}"
    );
    assert!(told.contains("hint: join the group of the socket (usually `docker`)"), "{told}");
}

/// Ctrl-C while the engine still makes a container: it is removed by the name it was asked for with.
#[test]
fn a_container_that_was_asked_for_when_the_program_is_stopped_is_removed() {
    let project = Project::new();
    let (asked, is_asked) = mpsc::channel();
    let (answer, may_answer) = mpsc::channel::<()>();
    let (may_answer, requests) = (Mutex::new(may_answer), Arc::new(Mutex::new(Vec::<String>::new())));
    let seen = requests.clone();
    let socket = engine(&project, move |request| {
        seen.lock().unwrap().push(request.to_owned());
        if request.starts_with("DELETE") {
            return Some(("204 No Content", json!(null)));
        }
        request.contains("/containers/create").then(|| {
            asked.send(()).unwrap();
            may_answer.lock().unwrap().recv().unwrap();
            ("201 Created", json!({"Id": "1", "Warnings": []}))
        })
    });
    let mut command = project.gimlet(&["python", "--executor", "docker", "-c", "1"]);
    command.env("DOCKER_HOST", format!("unix://{}", socket.display()));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    is_asked.recv().unwrap();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    // Time for a program that does not wait to be gone.
    std::thread::sleep(Duration::from_millis(500));
    answer.send(()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let requests = requests.lock().unwrap();
    let name = requests
        .iter()
        .find_map(|request| request.split_once("/containers/create?name=")?.1.split('&').next());
    let name = name.unwrap_or_else(|| panic!("{requests:?}"));
    let removed =
        |request: &String| request.starts_with("DELETE") && request.contains(&format!("/containers/{name}?"));
    assert!(requests.iter().any(removed), "{requests:?}");
}

/// One that takes connections and never answers; every request is told.
fn silent(project: &Project) -> (PathBuf, mpsc::Receiver<()>) {
    let (asked, is_asked) = mpsc::channel();
    let socket = engine(project, move |_| {
        let _ = asked.send(());
        loop {
            std::thread::park();
        }
    });
    (socket, is_asked)
}

#[test]
fn an_engine_that_does_not_answer_is_given_up() {
    let project = Project::new();
    let (socket, asked) = silent(&project);
    let status = say(&project, &socket, &["sandbox", "status"]).stdout;
    assert!(
        status.contains("no Docker engine answers at") && status.contains("it takes too long"),
        "{status}"
    );
    for () in asked.try_iter() {}
    // Found out with the first of two patches, and remembered.
    let script = r#"
order = "turns"
[[reply]]
calls = [{ name = "read_file", args = { path = "calc.py" } }]
[[reply]]
calls = [{ name = "propose_patch", args = { intent = "Add", file_path = "calc.py", original_content = "    return a - b\n", new_content = "    return a + b\n" } }]
[[reply]]
calls = [{ name = "propose_patch", args = { intent = "Mul", file_path = "calc.py", original_content = "    return a - b\n", new_content = "    return a * b\n" } }]
[[reply]]
text = "done"
"#;
    let model = project.script(script);
    say(&project, &socket, &["--model", &model, "mend it"]);
    let events = project.say(&["runs", "show", "last", "--json"]).events();
    let results = of_type(&events, "tool.finished").into_iter().map(|event| &event["result"]);
    let by: Vec<&str> = results.filter_map(|result| result["validated_by"].as_str()).collect();
    assert_eq!(
        by, ["git apply --check in a scratch folder (not in Docker: no engine answers)"; 2],
        "{events:#?}"
    );
    assert_eq!(asked.try_iter().count(), 1);
}

#[test]
fn a_run_that_waits_for_an_engine_can_be_stopped() {
    let project = Project::new();
    let (socket, asked) = silent(&project);
    let model = project.script("[[reply]]\ntext = \"```python\\nprint(1)\\n```\"\n");
    let mut command =
        project.gimlet(&["--model", &model, "--action", "code", "--executor", "docker", "look"]);
    command.env("DOCKER_HOST", format!("unix://{}", socket.display()));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    asked.recv().unwrap();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
