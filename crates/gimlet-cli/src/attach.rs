//! What is given to the model beside the task's own words: standard input, and files named with `@`. Files are read
//! through the same path jail as every tool, everything is capped, and what is cut says where the rest is.

use std::io::{IsTerminal, Read};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::Context;
use gimlet::guard::truncate;
use gimlet::store::Store;
use gimlet::tool::{Keep, ToolError};
use gimlet_runtime::Session;
use gimlet_runtime::parts::tools::read_file::{self, Page};
use gimlet_runtime::parts::tools::{Root, code};

use crate::app;
use crate::custom::{self, At};
use crate::exit::UsageError;
use crate::show::{fence, note};
use crate::style::DIM;

/// Most characters of all attachments together where the model's window is not known: about six thousand tokens.
const MOST_CHARS: usize = 20_000;
/// Characters of a token, about: low for English, about right for code.
const CHARS_OF_TOKEN: usize = 3;
/// What makes a word behind `@` a word: no file of the project has that name.
const IS_NO_FILE: [&str; 3] = [code::FILE_NOT_FOUND, code::NOT_A_FILE, code::PATH_OUTSIDE_ROOT];
/// More than this of standard input is not even kept.
const MOST_BYTES: u64 = 16 << 20;
/// How long nothing may come from a pipe before the person is told what is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// A task: what the person typed, which may name files, and what was piped in, which may not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Task {
    typed: String,
    piped: Piped,
}

/// What came from standard input.
#[derive(Debug, PartialEq, Eq)]
enum Piped {
    Nothing,
    /// The task itself.
    Task(String),
    /// Something the task is about.
    Data(String),
}

/// Where attachments go: how much fits the model's window beside the task, and where the whole of a cut one is kept.
pub(crate) struct Attaching<'a> {
    root: &'a Root,
    store: &'a dyn Store,
    /// Characters that are left.
    room: usize,
}

impl<'a> Attaching<'a> {
    /// Half of the window is for attachments; the other half is for everything else.
    pub(crate) fn to(session: &'a Session) -> Self {
        let room = room(session.window());
        Attaching { root: session.project().root(), store: session.runtime().store().as_ref(), room }
    }
}

/// Characters that fit half of a window.
pub(crate) fn room(window: Option<u32>) -> usize {
    let half = window.map(|tokens| usize::try_from(tokens / 2).unwrap_or(usize::MAX));
    half.map_or(MOST_CHARS, |tokens| tokens.saturating_mul(CHARS_OF_TOKEN))
}

/// The task's words, and what else standard input holds.
pub(crate) async fn task(words: Option<String>) -> anyhow::Result<Task> {
    let task = match words {
        Some(words) if words == "-" => Task { typed: String::new(), piped: Piped::Task(read_input().await?) },
        Some(words) if !words.trim().is_empty() && !std::io::stdin().is_terminal() => {
            let input = read_input().await?;
            let piped = if input.trim().is_empty() { Piped::Nothing } else { Piped::Data(input) };
            Task { typed: words, piped }
        }
        Some(words) => Task { typed: words, piped: Piped::Nothing },
        None => {
            return Err(UsageError::new("no task is given")
                .hint("gimlet \"explain what this project does\"")
                .into());
        }
    };
    let is_empty = match &task.piped {
        Piped::Nothing => task.typed.trim().is_empty(),
        Piped::Task(text) => text.trim().is_empty(),
        Piped::Data(_) => false,
    };
    if is_empty {
        return Err(UsageError::new("the task is empty").into());
    }
    Ok(task)
}

impl Task {
    /// The whole text, with the files that the person named.
    pub(crate) async fn expanded(self, session: &Session) -> anyhow::Result<String> {
        let mut to = Attaching::to(session);
        let typed = match custom::called(&self.typed, session.project().knowledge(), At::Shell)? {
            Some(task) => task,
            None => self.typed,
        };
        let typed = expand(&typed, &mut to).await?.text;
        Ok(match self.piped {
            Piped::Nothing => typed,
            Piped::Task(text) => text,
            Piped::Data(text) => format!("{typed}\n\n{}", section("standard input", &text, &mut to).await?),
        })
    }
}

/// All of standard input. A pipe that stays silent is waited for, but not without a word.
async fn read_input() -> anyhow::Result<String> {
    let (done, waited) = mpsc::channel::<()>();
    let notice = std::thread::spawn(move || {
        if waited.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            use std::io::Write;
            // Nobody is left to tell when this fails.
            let _ = writeln!(
                crate::out::stderr(),
                "{DIM}waiting for standard input; `< /dev/null` if there is none{DIM:#}"
            );
        }
    });
    let read = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().take(MOST_BYTES).read_to_end(&mut bytes);
        drop(done);
        read.map(|_| bytes)
    });
    let bytes = read.await?.context("cannot read standard input")?;
    // The thread ends by the dropped sender.
    let _ = notice.join();
    let redactor = gimlet_runtime::redactor(app::process()?.as_ref());
    Ok(redactor.clean_text(&String::from_utf8_lossy(&bytes)).into_owned())
}

/// The words with the files they name by `@path` or `@path:10-20` put behind them. A word that names no file is a word.
pub(crate) async fn expand(words: &str, to: &mut Attaching<'_>) -> Result<Expanded, UsageError> {
    let mut expanded = Expanded { text: words.to_owned(), files: Vec::new() };
    for word in words.split_whitespace() {
        let Some(name) = word.strip_prefix('@') else { continue };
        let name = name.trim_end_matches([',', ';', '.', ')', '?', '!']);
        if name.is_empty() || expanded.files.iter().any(|seen| seen == name) {
            continue;
        }
        let Some((title, text)) = read_named(name, to.root)? else {
            // A word such as `@example` is no path; something with a slash or a dot was meant as one.
            if name.contains(['/', '.']) {
                note(&format!("@{name} is no file of this folder; it stays as text"))
                    .map_err(|error| UsageError::new(error.to_string()))?;
            }
            continue;
        };
        let redactor = gimlet_runtime::redactor(
            app::process().map_err(|error| UsageError::new(error.to_string()))?.as_ref(),
        );
        let section = section(&title, &redactor.clean_text(&text), to)
            .await
            .map_err(|error| UsageError::new(format!("@{name}: {error}")))?;
        expanded.text.push_str("\n\n");
        expanded.text.push_str(&section);
        expanded.files.push(name.to_owned());
    }
    Ok(expanded)
}

/// Words with what they name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expanded {
    pub(crate) text: String,
    /// What was attached.
    pub(crate) files: Vec<String>,
}

/// A file, or lines of one. None when there is no such file, which then is no name of one.
fn read_named(name: &str, root: &Root) -> Result<Option<(String, String)>, UsageError> {
    let (path, range) = match name.rsplit_once(':').and_then(|(path, range)| Some((path, lines(range)?))) {
        Some((path, range)) => (path, Some(range)),
        None => (name, None),
    };
    let input = read_file::Input {
        path: path.to_owned(),
        start_line: range.map_or(1, |(first, _)| first),
        end_line: Some(range.map_or(usize::MAX, |(_, last)| last)),
    };
    let page = Page { lines: usize::MAX, chars: usize::MAX, range: usize::MAX };
    match read_file::read(root, page, &input, &|| false) {
        Ok(read) => {
            let title = match range {
                Some(_) => {
                    format!("{}, lines {}-{} of {}", read.path, read.start, read.end, read.total_lines)
                }
                None => read.path,
            };
            Ok(Some((title, read.lines)))
        }
        Err(ToolError::Failed(failure)) if IS_NO_FILE.contains(&failure.error.as_str()) => Ok(None),
        Err(ToolError::Failed(failure)) => Err(UsageError::new(format!("@{name}: {}", failure.message))),
        Err(error) => Err(UsageError::new(format!("@{name}: {error}"))),
    }
}

/// `10-20` or `10`.
fn lines(range: &str) -> Option<(usize, usize)> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (first > 0).then_some((first, last))
}

/// A text under its name, cut to size; the whole is kept where the cut says.
async fn section(title: &str, text: &str, to: &mut Attaching<'_>) -> anyhow::Result<String> {
    let (kept, cut) = truncate(text, to.room, usize::MAX, Keep::Head);
    to.room = to.room.saturating_sub(kept.chars().count());
    let rest = match cut {
        true => {
            let blob = to.store.put(text.as_bytes()).await?;
            note(&format!(
                "{title} is too long for the model's window: {} of {} characters are attached, {} of {} lines",
                kept.chars().count(),
                text.chars().count(),
                kept.lines().count(),
                text.lines().count()
            ))?;
            format!("\n[the whole is kept as {blob}]")
        }
        false => String::new(),
    };
    let fence = fence(&kept);
    Ok(format!("{title}:\n{fence}\n{}{rest}\n{fence}", kept.trim_end_matches('\n')))
}
