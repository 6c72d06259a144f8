//! An engine that drops limits without a word, as rootless ones do: the real engine behind a proxy that takes them out of
//! the request for a container.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// What is asked for, and what the engine is told instead; of the same length, so that the request stays whole.
const DROPPED: &[(&str, &str)] = &[
    ("\"Memory\":536870912", "\"Memory\":0        "),
    ("\"MemorySwap\":536870912", "\"MemorySwap\":0        "),
    ("\"CpuQuota\":50000", "\"CpuQuota\":0    "),
    ("\"PidsLimit\":100", "\"PidsLimit\":0  "),
];

/// Listens at `at` until the test ends; its address.
pub(crate) fn engine(at: &Path, real: &str) -> String {
    let real = PathBuf::from(real.strip_prefix("unix://").expect("the engine has a socket"));
    let listener = UnixListener::bind(at).unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let engine = UnixStream::connect(&real).unwrap();
            let (answers, back) = (engine.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || copy(answers, back));
            std::thread::spawn(move || requests(client, engine));
        }
    });
    format!("unix://{}", at.display())
}

fn copy(mut from: impl Read, mut to: UnixStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(std::net::Shutdown::Write);
}

/// Passes requests on, one by one, until one turns the connection into something else.
fn requests(client: UnixStream, mut engine: UnixStream) {
    let mut client = BufReader::new(client);
    loop {
        let (mut head, mut length, mut upgraded) = (String::new(), 0, false);
        loop {
            let mut line = String::new();
            if client.read_line(&mut line).unwrap_or(0) == 0 {
                let _ = engine.shutdown(std::net::Shutdown::Write);
                return;
            }
            let lower = line.to_lowercase();
            length =
                lower.strip_prefix("content-length:").map_or(length, |text| text.trim().parse().unwrap());
            upgraded |= lower.starts_with("upgrade:");
            assert!(!lower.starts_with("transfer-encoding:"), "a request without a length");
            head.push_str(&line);
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        client.read_exact(&mut body).unwrap();
        let mut body = String::from_utf8(body).unwrap();
        for (asked, told) in DROPPED {
            body = body.replace(asked, told);
        }
        if engine.write_all(head.as_bytes()).and_then(|()| engine.write_all(body.as_bytes())).is_err() {
            return;
        }
        if upgraded {
            return copy(client, engine);
        }
    }
}
