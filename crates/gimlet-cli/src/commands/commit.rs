//! `gimlet commit`: the model writes the message of a commit, the person agrees, and git makes it. The model has no tools
//! here, and its text reaches git on standard input alone.

use std::io::Write;
use std::process::Stdio;

use anyhow::Context;
use gimlet::text::Printable;
use gimlet_runtime::Session;
use gimlet_runtime::parts::tools::git::Git;
use gimlet_runtime::parts::tools::git::changes::{self, Between, Changes};
use tokio_util::sync::CancellationToken;

use super::errand::{self, Errand};
use crate::args::CommitArgs;
use crate::diff_text::{Form, fitted, sections};
use crate::exit::{ExitStatus, UsageError};
use crate::show::{counted, fence, note};
use crate::style::{BOLD, DIM};
use crate::{attach, patch_editor};

const ERRAND: Errand = Errand {
    name: "commit_message",
    instructions: "You write the message of a git commit. Reply with the message alone.",
    tools: &[],
    output: None,
    max_steps: 3,
};

/// Subjects of earlier commits that the model reads.
const SUBJECTS: usize = 10;
/// Most characters of a subject, and where a longer one is broken.
const LONGEST_SUBJECT: usize = 100;
const SUBJECT: usize = 72;
/// Lines by which a person vouches for something. A model cannot.
const TRAILERS: [&str; 5] = ["signed-off-by:", "co-authored-by:", "reviewed-by:", "acked-by:", "tested-by:"];

/// Writes a message, asks, and commits.
pub(crate) async fn commit(args: CommitArgs) -> anyhow::Result<ExitStatus> {
    let git = errand::git(&args.root)?;
    let between = if args.all { Between::Uncommitted } else { Between::Staged };
    let changed = ready(&git, &between).await?;
    let session = errand::begin(&ERRAND, &args.model, &args.root, &args.trace).await?;
    let task = task(&session, &git, &changed).await?;
    let message = match errand::answer(&session, task).await? {
        Ok(answer) => message_of(&answer),
        Err(status) => return Ok(status),
    };
    if message.is_empty() {
        return Err(anyhow::anyhow!("the model wrote no message"));
    }
    if args.message_only {
        crate::out::answer(&message)?;
        return Ok(ExitStatus::Success);
    }
    let mut stderr = crate::out::stderr();
    writeln!(stderr, "\n{}", indented(&message))?;
    let message = match (args.yes, crate::out::can_ask()) {
        (true, _) => message,
        (false, true) => match agreed(message).await? {
            Some(message) => message,
            None => {
                writeln!(stderr, "nothing was committed")?;
                return Ok(ExitStatus::Failure);
            }
        },
        (false, false) => {
            writeln!(stderr, "nothing was committed: there is no terminal to ask on")?;
            writeln!(stderr, "hint: --yes commits without a question, --message-only prints the message")?;
            return Ok(ExitStatus::Suspended);
        }
    };
    // The message tells of these changes and of no others.
    if changes::changes(&git, &between, &CancellationToken::new()).await? != changed {
        return Err(anyhow::anyhow!("the changes are not the same any more; nothing was committed"));
    }
    record(&args, &session, &message).await
}

/// The changes, if they can be committed.
async fn ready(git: &Git, between: &Between) -> anyhow::Result<Changes> {
    let cancel = CancellationToken::new();
    let loose = changes::loose_ends(git, &cancel).await?;
    if !loose.conflicts.is_empty() {
        return Err(anyhow::anyhow!("there are conflicts in {}", loose.conflicts.join(", ")));
    }
    let changed = match changes::changes(git, between, &cancel).await {
        Err(_) if changes::subjects(git, 1, &cancel).await?.is_empty() && *between != Between::Staged => {
            return Err(UsageError::new("there is no commit yet to compare with")
                .hint("git add FILES, then gimlet commit without --all")
                .into());
        }
        changed => changed?,
    };
    if let Some(secret) = changed.omitted.first() {
        return Err(UsageError::new(format!("{secret} may hold secrets, so this is not committed"))
            .hint(format!("git restore --staged {secret}, or commit it yourself with git"))
            .into());
    }
    if !changed.is_empty() {
        return Ok(changed);
    }
    let words = match between {
        Between::Staged => "nothing is staged",
        Between::Uncommitted | Between::Since(_) => "nothing has changed in files that git knows",
    };
    let hint = match (loose.unstaged, loose.untracked) {
        (0, 0) => "there is nothing to commit".to_owned(),
        (0, new) => format!("{} not known to git: git add FILES", counted(new as u64, "file")),
        (changed, _) => {
            format!("{} changed: git add FILES, or gimlet commit --all", counted(changed as u64, "file"))
        }
    };
    Err(gimlet_runtime::Failure::new(words, hint).into())
}

/// What the model is asked.
async fn task(session: &Session, git: &Git, changed: &Changes) -> anyhow::Result<String> {
    let redactor = session.project().redactor();
    let diff = redactor.clean_text(&changed.diff);
    if diff != changed.diff {
        note("the changes seem to hold a secret; the model does not see it, but the commit has it")?;
    }
    let sections = sections(&diff);
    let room = attach::room(session.window());
    let fit = fitted(&sections, Form::Plain, room);
    if !fit.cut.is_empty() {
        note(&format!("the changes are too long for the model's window; cut: {}", fit.cut.join(", ")))?;
    }
    let subjects = changes::subjects(git, SUBJECTS, &CancellationToken::new()).await?;
    let style = match subjects.is_empty() {
        true => String::new(),
        false => {
            let lines: Vec<String> =
                subjects.iter().map(|line| format!("- {}", redactor.clean_text(line))).collect();
            format!("The last commits, whose style to follow:\n{}\n\n", lines.join("\n"))
        }
    };
    let names: Vec<&str> = sections.iter().map(|section| section.path.as_str()).take(200).collect();
    let fence = fence(&fit.text);
    Ok(format!(
        "Write the message of a git commit for the changes below. The first line says what the commit changes, in the imperative \
         and in at most {SUBJECT} characters. Where the reason is not plain, add an empty line and one to three sentences about \
         why. No quotes, no fences, no list of files.\n\n{style}Changed files: {}\n\nThe changes:\n{fence}diff\n{}{fence}",
        names.join(", "),
        fit.text
    ))
}

/// The message in an answer: without fences, headings, quotes and lines that only a person may write.
fn message_of(answer: &str) -> String {
    let inside = |fence: &str| {
        let (_, rest) = answer.split_once(fence)?;
        let (_, rest) = rest.split_once('\n')?;
        Some(rest.split(fence).next().unwrap_or(rest))
    };
    let text = inside("```").unwrap_or(answer).trim();
    let text = text.trim_matches(['"', '`']).trim();
    let is_heading = |line: &str| {
        let line = line.trim_matches(['*', '#', ' ']).to_lowercase();
        line == "commit message" || line == "commit message:"
    };
    let is_trailer =
        |line: &str| TRAILERS.iter().any(|start| line.trim_start().to_lowercase().starts_with(start));
    let lines = text.lines().filter(|line| !is_heading(line) && !is_trailer(line)).map(str::trim_end);
    let text = lines.collect::<Vec<_>>().join("\n");
    let text = text.trim().replace(|c: char| c.is_control() && c != '\n', " ");
    let (subject, body) = text.split_once('\n').unwrap_or((&text, ""));
    if subject.chars().count() <= LONGEST_SUBJECT {
        return text;
    }
    let end = subject.char_indices().nth(SUBJECT).map_or(subject.len(), |(at, _)| at);
    let at = subject[..end].rfind(' ').unwrap_or(end);
    format!("{}\n\n{}\n{body}", subject[..at].trim_end(), subject[at..].trim_start()).trim_end().to_owned()
}

fn indented(message: &str) -> String {
    let mut lines = message.lines();
    let first = format!("  {BOLD}{}{BOLD:#}", Printable::line(lines.next().unwrap_or_default()));
    std::iter::once(first)
        .chain(lines.map(|line| format!("  {}", Printable::line(line))))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The message that the person agrees to, perhaps after an edit.
async fn agreed(mut message: String) -> anyhow::Result<Option<String>> {
    let mut stderr = crate::out::stderr();
    loop {
        crate::keys::discard_pending();
        write!(stderr, "\ncommit with this message? [y]es, [e]dit, [N]o ")?;
        stderr.flush()?;
        let mut line = String::new();
        std::io::stdin().read_line(&mut line)?;
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(Some(message)),
            "e" | "edit" => {
                message =
                    patch_editor::edited(&message).await?.map_or(message, |text| text.trim().to_owned());
                writeln!(stderr, "\n{}", indented(&message))?;
            }
            _ => return Ok(None),
        }
    }
}

/// Has the person's own git make the commit, as if they had called it: with their hooks, their name and their signature.
async fn record(args: &CommitArgs, session: &Session, message: &str) -> anyhow::Result<ExitStatus> {
    let root = session.project().path();
    let path = std::env::var_os("PATH").unwrap_or_default();
    // No program of the project is taken for git.
    let folders =
        std::env::split_paths(&path).filter(|folder| folder.is_absolute() && !folder.starts_with(root));
    let mut command = tokio::process::Command::new("git");
    command.current_dir(root).env("PATH", std::env::join_paths(folders)?);
    command.args(["commit", "--quiet", "--file=-", "--cleanup=whitespace"]);
    if args.all {
        command.arg("--all");
    }
    let mut child = command.stdin(Stdio::piped()).spawn().context("git cannot be started")?;
    if let Some(mut stdin) = child.stdin.take() {
        use tokio::io::AsyncWriteExt;
        stdin.write_all(message.as_bytes()).await.context("git does not read the message")?;
    }
    if !child.wait().await?.success() {
        return Err(anyhow::anyhow!("git did not make the commit"));
    }
    let subject = message.lines().next().unwrap_or_default();
    writeln!(crate::out::stderr(), "{DIM}committed:{DIM:#} {}", Printable::line(subject))?;
    Ok(ExitStatus::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_found_in_what_models_write() {
        for (answer, expected) in [
            ("fix: add adds\n\nIt subtracted.\n", "fix: add adds\n\nIt subtracted."),
            ("Here it is:\n```text\nfix: add adds\n```\nBye.", "fix: add adds"),
            ("**Commit message:**\n\nFix add\n\nSigned-off-by: A <a@b>\nCo-Authored-By: M", "Fix add"),
            ("\"Fix add\"", "Fix add"),
            ("Fix\u{1b}[2Jadd", "Fix [2Jadd"),
            ("", ""),
        ] {
            assert_eq!(message_of(answer), expected, "{answer}");
        }
        let long = message_of(&"word ".repeat(40));
        let mut lines = long.lines();
        assert!(lines.next().unwrap().chars().count() <= SUBJECT && lines.next() == Some(""), "{long}");
    }
}
