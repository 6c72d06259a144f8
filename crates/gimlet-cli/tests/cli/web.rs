//! `gimlet serve` through the real binary, by HTTP as it goes over the wire: who is let in, what programs can do, what
//! stays text, and that a run belongs to no front end in particular.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::approvals::fix;
use crate::pty::{Look, Pty};
use crate::support::{Project, has_python};

/// How long something may take before a test gives up. Nothing waits that long that works.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server in a project, and the way to it.
pub(crate) struct Site {
    child: Child,
    host: String,
    link: String,
    token: String,
}

/// An answer of the server.
#[derive(Debug)]
struct Got {
    status: u16,
    headers: HashMap<String, String>,
    body: String,
}

impl Got {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Site {
    pub(crate) fn start(project: &Project, more: &[&str]) -> Site {
        let mut args = vec!["serve", "--listen", "127.0.0.1:0", "--json"];
        args.extend(more);
        let mut child = project.gimlet(&args).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let host = told["address"].as_str().unwrap().trim_start_matches("http://").to_owned();
        let token = std::fs::read_to_string(project.home.path().join("serve.token")).unwrap_or_default();
        let link = told["login"].as_str().unwrap().to_owned();
        Site { child, host, link, token: token.trim().to_owned() }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request with exactly these headers beside its length.
    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Got {
        let mut stream = self.connect();
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        // A server that refuses a request need not read all of it.
        let _ = stream.write_all(text.as_bytes());
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        read(&bytes)
    }

    /// A program's request.
    fn api(&self, method: &str, path: &str, body: &Value) -> Got {
        let bearer = format!("Bearer {}", self.token);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send(method, path, &[("Host", &self.host), ("Authorization", &bearer)], &body)
    }

    /// A page, as a program reads it.
    fn page(&self, path: &str) -> String {
        let got = self.api("GET", path, &Value::Null);
        assert_eq!(got.status, 200, "{path}: {got:?}");
        got.body
    }

    fn start_task(&self, task: &str, model: &str) -> String {
        let got = self.api("POST", "/api/v1/runs", &json!({ "task": task, "model": model }));
        assert_eq!(got.status, 201, "{got:?}");
        got.json()["run"].as_str().unwrap().to_owned()
    }

    /// Waits until a run stands so.
    fn wait_for(&self, run: &str, status: &str) -> Value {
        until(&format!("{run} is {status}"), || {
            let run = self.api("GET", &format!("/api/v1/runs/{run}"), &Value::Null).json();
            (run["status"] == status).then_some(run)
        })
    }

    /// Waits for a question.
    fn question(&self) -> Value {
        until("a question", || {
            let waiting = self.api("GET", "/api/v1/approvals", &Value::Null).json();
            waiting["approvals"].as_array().unwrap().first().map(|question| question["request"].clone())
        })
    }

    fn decide(&self, question: &Value, mut answer: Value) -> Got {
        answer["binding"] = question["binding"].clone();
        let id = question["id"].as_str().unwrap();
        self.api("POST", &format!("/api/v1/approvals/{id}/decision"), &answer)
    }

    /// Uses the login link and returns the cookie.
    fn log_in(&self) -> String {
        let path = self.link.split_once(&self.host).unwrap().1;
        let got = self.send("GET", path, &[("Host", &self.host)], "");
        assert_eq!(got.status, 200, "{got:?}");
        let cookie = &got.headers["set-cookie"];
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
        cookie.split(';').next().unwrap().to_owned()
    }

    /// The first events of a stream.
    fn stream(&self, path: &str, last: Option<u64>, most: usize) -> Vec<(u64, String)> {
        let mut stream = self.connect();
        let last = last.map_or(String::new(), |id| format!("Last-Event-ID: {id}\r\n"));
        let text = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: text/event-stream\r\n{last}\r\n",
            self.host, self.token
        );
        stream.write_all(text.as_bytes()).unwrap();
        let (mut got, mut id) = (Vec::new(), 0);
        for line in BufReader::new(stream).lines() {
            let line = line.unwrap();
            if let Some(number) = line.strip_prefix("id: ") {
                id = number.parse().unwrap();
            } else if let Some(data) = line.strip_prefix("data: ") {
                got.push((id, data.to_owned()));
                if got.len() == most {
                    break;
                }
            }
        }
        got
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(bytes: &[u8]) -> Got {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0);
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let body = match headers.get("transfer-encoding").map(String::as_str) {
        Some("chunked") => unchunk(body),
        _ => body.to_owned(),
    };
    Got { status, headers, body }
}

fn unchunk(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        let Some(part) = after.get(..size).filter(|_| size > 0) else { break };
        body.push_str(part);
        rest = after.get(size + 2..).unwrap_or_default();
    }
    body
}

fn until<T>(what: &str, mut there: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = there() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: it does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn calc(project: &Project) -> String {
    std::fs::read_to_string(project.repo.path().join("calc.py")).unwrap()
}

#[test]
fn only_those_are_let_in_who_may() {
    let project = Project::new();
    let site = Site::start(&project, &[]);
    let own = site.host.clone();
    let port = own.rsplit(':').next().unwrap();
    let get = |headers: &[(&str, &str)]| site.send("GET", "/api/v1/runs", headers, "").status;
    let bearer = format!("Bearer {}", site.token);

    // Names that lead here but are not ours, as after DNS rebinding.
    for host in ["evil.example", &format!("evil.example:{port}"), "127.0.0.1", "127.0.0.1:1", ""] {
        assert_eq!(get(&[("Host", host), ("Authorization", &bearer)]), 421, "{host}");
    }
    for host in [own.as_str(), &format!("localhost:{port}"), &format!("[::1]:{port}")] {
        assert_eq!(get(&[("Host", host), ("Authorization", &bearer)]), 200, "{host}");
    }

    // Nobody, and somebody with the wrong secret.
    for path in [
        "/",
        "/new",
        "/approvals",
        "/bell",
        "/about/doctor",
        "/api/v1/runs",
        "/openapi.json",
        "/runs/x/stream",
    ] {
        let got = site.send("GET", path, &[("Host", &own)], "");
        assert_eq!(got.status, 401, "{path}");
        assert_eq!(got.headers["content-type"], "application/problem+json");
        assert_eq!(got.headers["www-authenticate"], "Bearer");
    }
    let got = site.send("GET", "/", &[("Host", &own), ("Accept", "text/html")], "");
    assert!(got.status == 401 && got.body.contains("gimlet serve"), "a person is told what to do: {got:?}");
    let wrong = format!("Bearer {}", "0".repeat(64));
    for headers in [
        [("Host", own.as_str()), ("Authorization", wrong.as_str())],
        [("Host", own.as_str()), ("Authorization", "Bearer ")],
    ] {
        assert_eq!(get(&headers), 401);
    }

    // Other origins, also those of other ports of this machine.
    for origin in ["https://evil.example", "http://127.0.0.1:1", "null", &format!("https://{own}")] {
        let headers = [("Host", own.as_str()), ("Authorization", bearer.as_str()), ("Origin", origin)];
        assert_eq!(get(&headers), 403, "{origin}");
        assert_eq!(site.send("POST", "/api/v1/runs", &headers, "{}").status, 403, "{origin}");
    }
    for place in ["cross-site", "same-site"] {
        let headers = [("Host", own.as_str()), ("Authorization", bearer.as_str()), ("Sec-Fetch-Site", place)];
        assert_eq!(get(&headers), 403, "{place}");
    }
    // Nothing allows another origin to read an answer.
    let got = site.send("OPTIONS", "/api/v1/runs", &[("Host", &own), ("Origin", "https://evil.example")], "");
    assert_eq!(got.status, 403);
    assert!(!got.headers.keys().any(|name| name.starts_with("access-control")), "{got:?}");
}

#[test]
fn a_login_link_is_good_once_and_a_cookie_needs_its_origin() {
    let project = Project::new();
    let site = Site::start(&project, &[]);
    let path = site.link.split_once(&site.host).unwrap().1.to_owned();
    let host = ("Host", site.host.as_str());
    assert_eq!(site.send("GET", "/login?token=", &[host], "").status, 401);
    let cookie = site.log_in();
    assert_eq!(site.send("GET", &path, &[host], "").status, 401, "the link was used");

    let origin = format!("http://{}", site.host);
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let cookie = ("Cookie", cookie.as_str());
    let got = site.send("GET", "/", &[host, cookie], "");
    assert_eq!(got.status, 200);
    let policy = &got.headers["content-security-policy"];
    assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert_eq!(got.headers["x-content-type-options"], "nosniff");
    assert_eq!(got.headers["x-frame-options"], "DENY");
    assert_eq!(got.headers["cache-control"], "no-store");

    let post = |headers: &[(&str, &str)]| site.send("POST", "/start", headers, "task=").status;
    assert_eq!(post(&[host, cookie, form]), 403, "it does not say where it comes from");
    assert_eq!(post(&[host, cookie, form, ("Origin", "http://localhost:1")]), 403);
    assert_eq!(post(&[host, cookie, form, ("Origin", &origin)]), 422, "it is let in, and the task is empty");

    // Only digests are kept, in a file of the owner alone; a restarted server still knows the browser.
    let kept = std::fs::read_to_string(project.home.path().join("serve.browsers")).unwrap();
    assert!(!kept.contains(cookie.1.split_once('=').unwrap().1), "{kept}");
    let tries = (0..30).map(|_| site.send("GET", "/login?token=x", &[host], "").status);
    assert!(tries.into_iter().any(|status| status == 429), "logins are counted");
}

#[test]
fn a_server_off_loopback_needs_tls_and_a_password() {
    let project = Project::new();
    let refused = |more: &[&str]| {
        let mut args = vec!["serve", "--listen", "0.0.0.0:0"];
        args.extend(more);
        let said = project.say(&args);
        assert_eq!(said.code, 2, "{said:?}");
        said.stderr
    };
    let told = refused(&[]);
    assert!(told.contains("not a loopback address") && told.contains("--password-file"), "{told}");
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/tls");
    let (cert, key) = (format!("{fixtures}/cert.pem"), format!("{fixtures}/key.pem"));
    refused(&["--tls-cert", &cert, "--tls-key", &key]);
    let password = project.home.path().join("password");
    std::fs::write(&password, "correct horse battery staple\n").unwrap();
    let password = password.display().to_string();
    refused(&["--password-file", &password]);
    let all = ["--tls-cert", &cert, "--tls-key", &key, "--password-file", &password];
    assert!(refused(&all).contains("others can read"), "the file must be the owner's alone");
    std::fs::set_permissions(&password, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();

    // With all of it, it serves; here on loopback, since a test must not open this machine.
    let mut args = vec!["serve", "--json", "--listen", "127.0.0.1:0"];
    args.extend(all);
    let mut child = project.gimlet(&args).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    let address = told["address"].as_str().unwrap().to_owned();
    assert!(address.starts_with("https://"), "{address}");
    let client = reqwest::blocking::Client::builder().danger_accept_invalid_certs(true).build().unwrap();
    let log_in = |password: &str| {
        let form = client.post(format!("{address}/login")).header("Origin", &address);
        let form = form.header("Content-Type", "application/x-www-form-urlencoded");
        form.body(format!("password={}", password.replace(' ', "+"))).send().unwrap()
    };
    assert_eq!(client.get(&address).send().unwrap().status(), 401);
    assert_eq!(log_in("wrong").status(), 401);
    let let_in = log_in("correct horse battery staple");
    assert_eq!(let_in.status(), 200);
    let cookie = let_in.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(cookie.contains("Secure"), "{cookie}");
    let got = client.get(&address).header("Cookie", cookie.split(';').next().unwrap()).send().unwrap();
    assert_eq!(got.status(), 200);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_program_starts_follows_and_answers() {
    let project = Project::new().ungated();
    let script = fix(&project);
    let model = project.script(&script);
    let site = Site::start(&project, &[]);
    let task = json!({ "task": "fix it", "model": model });
    let send = |key: &str, task: &Value| {
        let bearer = format!("Bearer {}", site.token);
        let headers = [("Host", site.host.as_str()), ("Authorization", &bearer), ("Idempotency-Key", key)];
        site.send("POST", "/api/v1/runs", &headers, &task.to_string())
    };
    let first = send("one", &task);
    assert_eq!(first.status, 201, "{first:?}");
    let run = first.json()["run"].as_str().unwrap().to_owned();
    let again = send("one", &task);
    assert_eq!(
        (again.status, again.json()["run"].as_str().unwrap()),
        (200, run.as_str()),
        "nothing starts twice"
    );
    assert_eq!(send("one", &json!({ "task": "another" })).status, 422);

    let question = site.question();
    assert!(question["preview"].as_str().unwrap().contains("+    return a + b"), "{question}");
    let id = question["id"].as_str().unwrap();
    let decision = format!("/api/v1/approvals/{id}/decision");
    let other = json!({ "binding": "0".repeat(64), "decision": "approve" });
    assert_eq!(site.api("POST", &decision, &other).status, 409, "what was shown is something else");
    assert_eq!(site.api("POST", "/api/v1/approvals/none/decision", &other).status, 404);
    assert!(calc(&project).contains("a - b"));
    assert_eq!(site.decide(&question, json!({ "decision": "approve" })).status, 200);
    assert_eq!(site.decide(&question, json!({ "decision": "deny" })).status, 409, "the first answer counts");
    let done = site.wait_for(&run, "answered");
    assert_eq!(done["questions"], json!([]));
    assert!(calc(&project).contains("a + b"));

    // The log's lines, unchanged: whole, and from any number on, without gap or double.
    let log = project.home.path().join("runs").join(&run).join("log.jsonl");
    let log = std::fs::read_to_string(log).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let address = format!("/api/v1/runs/{run}/events");
    let all = site.stream(&address, None, lines.len());
    assert_eq!(all.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>(), lines);
    assert_eq!(
        all.iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        (1..=lines.len() as u64).collect::<Vec<_>>()
    );
    let rest = site.stream(&address, Some(3), lines.len() - 3);
    assert_eq!(rest, all[3..], "it goes on after the last event that the client has");
    let paged = site.api("GET", &format!("{address}?after=2&limit=2"), &Value::Null).json();
    assert_eq!((paged["events"][0]["seq"].as_u64(), paged["next"].as_u64()), (Some(3), Some(4)));

    // Undo, fork and speak, as the terminal can.
    let undone = site.api("POST", &format!("/api/v1/runs/{run}/undo"), &json!({}));
    assert_eq!(undone.status, 200, "{undone:?}");
    assert!(calc(&project).contains("a - b"), "{undone:?}");
    let forked =
        site.api("POST", &format!("/api/v1/runs/{run}/fork"), &json!({ "at": 2, "message": "Once more." }));
    let fork = forked.json()["run"].as_str().unwrap().to_owned();
    assert_ne!(fork, run);
    let compared = site.page(&format!("/compare?run={run}&run={fork}"));
    assert!(compared.contains("What they did"), "{compared}");

    let gone = site.api("GET", "/api/v1/runs/nothing", &Value::Null);
    assert_eq!((gone.status, gone.headers["content-type"].as_str()), (404, "application/problem+json"));
    assert_eq!(gone.json()["status"], 404);
    for (path, body) in [
        ("/api/v1/runs", json!({ "task": " " })),
        ("/api/v1/runs", json!({ "task": "x", "action": "dance" })),
    ] {
        let got = site.api("POST", path, &body);
        assert_eq!(got.status, 422, "{got:?}");
    }
    assert_eq!(
        site.api("POST", "/api/v1/runs", &json!({ "tusk": "x" })).status,
        400,
        "a misspelt field is told"
    );
    let outside = site.api("POST", "/api/v1/runs", &json!({ "task": "x", "project": "/" }));
    assert_eq!(outside.status, 422, "only served folders can be worked in: {outside:?}");
    let large = site.api("POST", "/api/v1/runs", &json!({ "task": "x".repeat(3 << 20) }));
    assert!(matches!(large.status, 413 | 0), "{}", large.status);
}

#[test]
fn an_edited_patch_is_what_is_applied_and_words_reach_the_model() {
    let project = Project::new().ungated();
    let script = fix(&project);
    let model =
        project.script(&script.replace("text = \"Fixed.\"", "expect = [\"a + b + 0\"]\ntext = \"Fixed.\""));
    let site = Site::start(&project, &[]);
    let run = site.start_task("fix it", &model);
    let question = site.question();
    let patch = question["preview"].as_str().unwrap().replace("+    return a + b", "+    return a + b + 0");
    let broken = site.decide(&question, json!({ "decision": "edit", "patch": "not a patch" }));
    assert_eq!(broken.status, 422, "{broken:?}");
    let edited = site.decide(&question, json!({ "decision": "edit", "patch": patch }));
    assert_eq!(edited.status, 200, "{edited:?}");
    site.wait_for(&run, "answered");
    assert_eq!(calc(&project), "def add(a, b):\n    return a + b + 0\n");

    std::fs::write(project.repo.path().join("calc.py"), "def add(a, b):\n    return a - b\n").unwrap();
    let model = project
        .script(&script.replace("text = \"Fixed.\"", "expect = [\"Use sum()\"]\ntext = \"As you like.\""));
    let run = site.start_task("fix it again", &model);
    let question = site.question();
    assert_eq!(
        site.decide(&question, json!({ "decision": "deny", "feedback": "Use sum() instead." })).status,
        200
    );
    site.wait_for(&run, "answered");
    assert!(calc(&project).contains("a - b"));
    let found = site.api("GET", "/api/v1/runs?q=as%20you%20LIKE", &Value::Null).json();
    assert_eq!(found["runs"][0]["id"], run.as_str(), "answers are searched, too");
    assert_eq!(found["runs"].as_array().unwrap().len(), 1);
}

/// Whatever is written by a model, a file, a command or a person is shown and does nothing.
#[test]
fn markup_stays_text_everywhere() {
    const EVIL: &str = "<img src=x onerror=alert(1)><script>alert(2)</script>";
    let project = Project::new().ungated();
    project.file("<b>evil<b>.py", &format!("# {EVIL}\n"));
    let patch = json!({
        "intent": EVIL, "file_path": "<b>evil<b>.py", "original_content": format!("# {EVIL}\n"),
        "new_content": format!("# {EVIL} again\n"),
    });
    let proposed = project.say(&["tools", "call", "propose_patch", &patch.to_string()]);
    let id = proposed.events()[0]["patch_id"].as_str().unwrap_or_else(|| panic!("{proposed:?}")).to_owned();
    let model = project.script(&format!(
        r##"
order = "turns"
[[reply]]
thinking = "{EVIL}"
text = "{EVIL}"
calls = [
    {{ name = "read_file", args = {{ path = "<b>evil<b>.py" }} }},
    {{ name = "read_file", args = {{ path = "{EVIL}" }} }},
    {{ name = "no<u>tool", args = {{ x = "{EVIL}" }} }},
]
[[reply]]
calls = [{{ name = "propose_patch", args = {{ intent = "{EVIL}", file_path = "<b>evil<b>.py", original_content = "# {EVIL}\n", new_content = "# {EVIL} again\n" }} }}]
[[reply]]
calls = [{{ name = "apply_patch", args = {{ patch_id = "{id}" }} }}]
[[reply]]
text = "{EVIL} `{EVIL}` **{EVIL}**"
"##
    ));
    let site = Site::start(&project, &[]);
    let task = json!({ "task": format!("look {EVIL}"), "model": model, "attachments": [{ "name": EVIL, "text": EVIL }] });
    let run = site.api("POST", "/api/v1/runs", &task).json()["run"].as_str().unwrap().to_owned();
    let question = site.question();
    let is_clean = |path: &str| {
        let shown = site.page(path);
        for tag in ["<img", "<script>", "<b>", "<u>"] {
            assert!(!shown.contains(tag), "{path} has {tag}: {shown}");
        }
        shown
    };
    for path in ["/approvals", &format!("/runs/{run}"), "/"] {
        assert!(is_clean(path).contains("&lt;img src=x"), "{path} shows it as text");
    }
    let denied = site.decide(&question, json!({ "decision": "deny", "feedback": EVIL }));
    assert_eq!(denied.status, 200, "{denied:?}");
    site.wait_for(&run, "answered");
    let shown = is_clean(&format!("/runs/{run}"));
    assert!(shown.contains("Denied: &lt;img"), "{shown}");
    is_clean("/table");
    is_clean(&format!("/compare?run={run}&run={run}"));
    let streamed: String =
        site.stream(&format!("/runs/{run}/stream"), None, 1).into_iter().map(|(_, text)| text).collect();
    assert!(streamed.contains("&lt;img") && !streamed.contains("<img"), "{streamed}");
    // A kept text is sent as text, whatever it holds.
    let error = site.api("GET", "/api/v1/runs/%3Cscript%3E", &Value::Null);
    assert_eq!(error.headers["content-type"], "application/problem+json");
    // A server's description of its tools, and its errors.
    foreign_markup(EVIL);
    project.config(&format!("[gate]\nenabled = false\n[mcp.evil]\ncommand = \"{EVIL}\"\n[agents.helper]\ndescription = \"{EVIL}\"\n"));
    for name in ["servers", "agents", "settings"] {
        is_clean(&format!("/about/{name}/listing"));
    }
}

/// What an MCP server says of its tool, and what the tool says when it is called.
fn foreign_markup(evil: &str) {
    if !has_python() {
        return;
    }
    let project = Project::new().ungated();
    let server = project.home.path().join("evil.py");
    let code = r#"
import json, sys
evil = sys.argv[1]
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    tool = {"name": "boom", "description": evil, "inputSchema": {"type": "object", "properties": {"x": {"type": "string", "description": evil}}}}
    results = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": evil, "version": "1"}},
        "tools/list": {"tools": [tool]},
        "tools/call": {"isError": True, "content": [{"type": "text", "text": evil}]},
    }
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": results.get(asked["method"], {})}), flush=True)
"#;
    std::fs::write(&server, code).unwrap();
    let args = json!([server.display().to_string(), evil]);
    project.config(&format!("[gate]\nenabled = false\n[mcp.evil]\ncommand = \"python3\"\nargs = {args}\n"));
    let model = project.script(&format!(
        "order = \"turns\"\n[[reply]]\ncalls = [{{ name = \"evil__boom\", args = {{ x = '{evil}' }} }}]\n[[reply]]\ntext = \"Done.\"\n"
    ));
    let site = Site::start(&project, &[]);
    let run = site.start_task("call it", &model);
    let question = site.question();
    let clean = |path: &str| {
        let shown = site.page(path);
        assert!(shown.contains("&lt;img") && !shown.contains("<img"), "{path}: {shown}");
    };
    clean("/approvals");
    assert_eq!(site.decide(&question, json!({ "decision": "approve" })).status, 200);
    site.wait_for(&run, "answered");
    clean(&format!("/runs/{run}"));
    clean("/about/servers/listing");
}

#[test]
fn a_run_belongs_to_every_front_end() {
    let project = Project::new().ungated();
    let script = fix(&project);
    let model = project.script(&script);
    let site = Site::start(&project, &[]);

    // Begun in the terminal, answered on the page: the terminal goes on by itself.
    let mut pty = Pty::start(&project, &["--model", &model, "fix it"], Look::default());
    pty.wait_for("[q]uit");
    let question = site.question();
    let listed = site.page("/");
    assert!(listed.contains("fix it") && listed.contains("running"), "{listed}");
    let run = question["of_run"].as_str().unwrap().to_owned();
    assert!(site.page(&format!("/runs/{run}")).contains("at work in another process"));
    let elsewhere = site.api("POST", &format!("/api/v1/runs/{run}/cancel"), &Value::Null);
    assert_eq!(elsewhere.status, 409, "it is stopped where it is at work: {elsewhere:?}");
    assert_eq!(site.decide(&question, json!({ "decision": "approve" })).status, 200);
    pty.wait_for("Fixed.");
    assert_eq!(pty.end(), 0);
    assert!(calc(&project).contains("a + b"));
    let count = |run: &str| {
        let events = site.api("GET", &format!("/api/v1/runs/{run}/events"), &Value::Null).json();
        let events = events["events"].as_array().unwrap().clone();
        events
            .iter()
            .filter(|event| event["type"] == "tool.started" && event["tool"] == "apply_patch")
            .count()
    };
    assert_eq!(count(&run), 1, "exactly once");

    // Begun on the page, answered in a terminal.
    std::fs::write(project.repo.path().join("calc.py"), "def add(a, b):\n    return a - b\n").unwrap();
    let run = site.start_task("fix it again", &model);
    let question = site.question();
    let id = question["id"].as_str().unwrap();
    let runs = project.say(&["runs", "--json"]).stdout;
    assert!(runs.contains(&run), "{runs}");
    assert_eq!(project.say(&["approve", id]).code, 0);
    site.wait_for(&run, "answered");
    assert_eq!(count(&run), 1, "exactly once");
    assert_eq!(site.decide(&question, json!({ "decision": "approve" })).status, 409);
}

#[test]
fn a_killed_server_leaves_a_run_that_goes_on() {
    let project = Project::new().ungated();
    let script = fix(&project);
    let model = project.script(&script);
    let site = Site::start(&project, &[]);
    let cookie = site.log_in();
    let run = site.start_task("fix it", &model);
    site.question();
    site.kill();
    let site = Site::start(&project, &[]);
    let stale = site.send("GET", "/", &[("Host", &site.host), ("Cookie", &cookie)], "");
    assert!(matches!(stale.status, 200 | 401), "a cookie is bound to the port: {}", stale.status);
    assert_eq!(site.api("GET", &format!("/api/v1/runs/{run}"), &Value::Null).json()["status"], "crashed");
    let question = site.question();
    assert_eq!(
        site.decide(&question, json!({ "decision": "approve" })).status,
        200,
        "an answer carries it on"
    );
    site.wait_for(&run, "answered");
    assert!(calc(&project).contains("a + b"));
}

#[test]
fn a_run_is_stopped_spoken_to_and_resumed() {
    let project = Project::new().ungated();
    let model = project.script(
        r#"
order = "turns"
[[reply]]
text = "Thinking about it for a long time."
delay_ms = 60000
"#,
    );
    let site = Site::start(&project, &[]);
    let run = site.start_task("think", &model);
    let act =
        |action: &str, body: Value| site.api("POST", &format!("/api/v1/runs/{run}/{action}"), &body).status;
    assert_eq!(act("mode", json!({ "approve": "never" })), 200);
    assert_eq!(act("mode", json!({ "approve": "whatever" })), 422);
    assert_eq!(act("resume", Value::Null), 409, "it is at work");
    assert_eq!(act("cancel", Value::Null), 200);
    site.wait_for(&run, "interrupted");
    assert_eq!(act("messages", json!({ "text": " " })), 422);
    project.script("[[reply]]\nexpect = [\"Be quick\"]\ntext = \"Done quickly.\"\n");
    until("the run can be taken up", || {
        (act("messages", json!({ "text": "Be quick." })) == 200).then_some(())
    });
    let done = site.wait_for(&run, "answered");
    assert_eq!(done["task"], "think");
}

#[test]
fn the_page_offers_every_approval_mode_and_heeds_it() {
    let project = Project::new().ungated();
    let model = project.script(&fix(&project));
    let site = Site::start(&project, &[]);
    let form = site.page("/new");
    for mode in ["ask", "edits", "plan", "auto", "never", "all"] {
        assert!(form.contains(&format!("value=\"{mode}\"")), "{mode}: {form}");
    }
    let task = json!({ "task": "fix it", "model": model, "approve": "edits" });
    let run = site.api("POST", "/api/v1/runs", &task).json()["run"].as_str().unwrap().to_owned();
    site.wait_for(&run, "answered");
    assert!(calc(&project).contains("a + b"), "the edit is applied unasked");
}

#[test]
fn the_first_page_is_small_and_everything_is_described() {
    let project = Project::new();
    let site = Site::start(&project, &[]);
    let first = site.page("/");
    let mut bytes = first.len();
    for part in first.split(['"']).filter(|part| part.starts_with("/static/")) {
        bytes += site.page(part).len();
    }
    assert!(bytes > 40_000 && bytes <= 100_000, "{bytes} bytes");
    let described: Value = serde_json::from_str(&site.page("/openapi.json")).unwrap();
    assert_eq!(described["openapi"], "3.1.0");
    let mut texts = Vec::new();
    references(&described, &mut texts);
    for text in texts {
        let pointer = text.trim_start_matches('#');
        assert!(described.pointer(pointer).is_some(), "{text} leads nowhere");
    }
    for path in ["/new", "/approvals", "/evaluations", "/about/models", "/about/doctor"] {
        assert!(site.page(path).contains("<main"), "{path}");
    }
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn the_demo_shows_itself_on_the_page() {
    let project = Project::new();
    let mut child = project.gimlet(&["demo", "--web"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let address = lines.next().unwrap().strip_prefix("listening on ").unwrap().to_owned();
    let link = lines.next().unwrap().strip_prefix("log in with ").unwrap().to_owned();
    assert!(link.starts_with(&format!("{address}/login?token=")) && link.contains("&next=/runs/"), "{link}");
    let client = reqwest::blocking::Client::new();
    let got = client.get(&link).send().unwrap();
    let cookie = got.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let run = link.rsplit("&next=").next().unwrap();
    let page = until("the question", || {
        let page =
            client.get(format!("{address}{run}")).header("Cookie", &cookie).send().unwrap().text().unwrap();
        page.contains("sh test.sh").then_some(page)
    });
    assert!(page.contains("The test fails"), "{page}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        std::fs::read_dir(project.home.path()).unwrap().next().is_none(),
        "the demo leaves nothing behind"
    );
}
