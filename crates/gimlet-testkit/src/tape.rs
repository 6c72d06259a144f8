//! Real traffic of a model server, kept as it went over the wire and played again: what a model really printed goes
//! through the whole program, without the model.
//!
//! A tape is a file of JSON lines, each the first line of a request and the bytes of its answer. A request is matched
//! by that line alone, in order, so that a tape outlives a change of the prompts.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One request and its answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Exchange {
    /// Method and path.
    request: String,
    /// The answer, head and all.
    answer: String,
}

/// A server that plays a tape, or passes everything on to a real one and records it. It ends when this is dropped.
pub struct TapeServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    source: Source,
    /// What went by, for recording.
    heard: Mutex<Vec<Exchange>>,
    /// The bodies of all requests that had one.
    asked: Mutex<Vec<Value>>,
    /// Exchanges under way.
    open: AtomicUsize,
    over: AtomicBool,
}

enum Source {
    /// A real server.
    Live(String),
    /// Exchanges that were not played yet.
    Tape(Mutex<Vec<Exchange>>),
}

impl TapeServer {
    /// Stands before a real server and records what it says.
    pub fn record(upstream: &str) -> TapeServer {
        let host = upstream.trim_start_matches("http://").trim_end_matches('/').to_owned();
        TapeServer::start(Source::Live(host))
    }

    /// Plays a tape.
    pub fn play(path: &Path) -> TapeServer {
        let read = || -> std::io::Result<Vec<Exchange>> {
            let text = std::fs::read_to_string(path)?;
            text.lines().map(|line| serde_json::from_str(line).map_err(Into::into)).collect()
        };
        match read() {
            Ok(tape) => TapeServer::start(Source::Tape(Mutex::new(tape))),
            Err(error) => crate::fixture_failed(&format!("play the tape {}", path.display()), &error),
        }
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The bodies of the requests so far.
    pub fn asked(&self) -> Vec<Value> {
        lock(&self.shared.asked).clone()
    }

    /// How many exchanges of the tape were not asked for.
    pub fn left(&self) -> usize {
        match &self.shared.source {
            Source::Live(_) => 0,
            Source::Tape(tape) => lock(tape).len(),
        }
    }

    /// Keeps what was recorded, once every exchange is over.
    pub fn save(&self, path: &Path) {
        while self.shared.open.load(Ordering::SeqCst) > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        let lines: Vec<String> =
            lock(&self.shared.heard).iter().filter_map(|heard| serde_json::to_string(heard).ok()).collect();
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        if let Err(error) = folder.and_then(|()| std::fs::write(path, lines.join("\n") + "\n")) {
            crate::fixture_failed(&format!("keep the tape {}", path.display()), &error);
        }
    }

    fn start(source: Source) -> TapeServer {
        let bound =
            TcpListener::bind("127.0.0.1:0").and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = match bound {
            Ok(bound) => bound,
            Err(error) => crate::fixture_failed("start a tape server", &error),
        };
        let (open, over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let shared =
            Arc::new(Shared { source, heard: Mutex::default(), asked: Mutex::default(), open, over });
        let mine = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if mine.over.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let shared = Arc::clone(&mine);
                shared.open.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    // A client that goes away ends its own exchange only.
                    let _gone = shared.serve(stream);
                    shared.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        TapeServer { address, shared }
    }
}

impl Drop for TapeServer {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        // Wakes the listener, so that its thread sees that it is over.
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn serve(&self, mut client: TcpStream) -> std::io::Result<()> {
        let (head, body) = read_request(&mut client)?;
        let request = head.split(" HTTP/").next().unwrap_or_default().to_owned();
        if let Ok(body) = serde_json::from_slice(&body) {
            lock(&self.asked).push(body);
        }
        match &self.source {
            Source::Tape(tape) => {
                let answer = {
                    let mut tape = lock(tape);
                    let at = tape.iter().position(|exchange| exchange.request == request);
                    at.map(|at| tape.remove(at).answer)
                };
                let none = "HTTP/1.1 404 Not Found\r\ncontent-length: 13\r\nconnection: close\r\n\r\nnot on tape\r\n";
                client.write_all(answer.as_deref().unwrap_or(none).as_bytes())?;
            }
            Source::Live(host) => {
                let answer = pass_on(host, &head, &body, &mut client)?;
                let answer = String::from_utf8_lossy(&answer).into_owned();
                lock(&self.heard).push(Exchange { request, answer });
            }
        }
        client.shutdown(Shutdown::Write)
    }
}

/// Asks the real server on a connection of its own, and gives its answer to the client as it comes.
fn pass_on(host: &str, head: &str, body: &[u8], client: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut server = TcpStream::connect(host)?;
    let kept = head.lines().filter(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    let head: Vec<&str> = kept.collect();
    server.write_all(format!("{}\r\nconnection: close\r\n\r\n", head.join("\r\n")).as_bytes())?;
    server.write_all(body)?;
    let (mut answer, mut buffer) = (Vec::new(), [0; 16_384]);
    loop {
        let read = server.read(&mut buffer)?;
        if read == 0 {
            return Ok(answer);
        }
        answer.extend_from_slice(&buffer[..read]);
        // A client that has heard enough does not keep the rest off the tape.
        let _gone = client.write_all(&buffer[..read]);
    }
}

fn read_request(client: &mut TcpStream) -> std::io::Result<(String, Vec<u8>)> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 16_384]);
    let mut more = |bytes: &mut Vec<u8>| match client.read(&mut buffer) {
        Ok(0) => Err(std::io::ErrorKind::UnexpectedEof.into()),
        Ok(read) => {
            bytes.extend_from_slice(&buffer[..read]);
            Ok(())
        }
        Err(error) => Err(error),
    };
    let end = loop {
        match bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            Some(end) => break end,
            None => more(&mut bytes)?,
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length = |line: &str| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok();
    let length: usize = head.lines().find_map(length).unwrap_or(0);
    while bytes.len() < end + 4 + length {
        more(&mut bytes)?;
    }
    Ok((head, bytes.split_off(end + 4)))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
