//! Git's settings without the passwords in them: `git remote -v` shows what is in a URL, and git cannot work without the
//! file.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::places::{git_folders, is_real};

/// Largest file of settings that is read.
const MAX_BYTES: u64 = 1 << 20;

/// Files of git's settings in a project that hold passwords, and what a command reads instead.
pub(crate) fn cleaned(root: &Path) -> Vec<(PathBuf, String)> {
    let files = git_folders(root).into_iter().chain([root.join(".git")]).map(|folder| folder.join("config"));
    files.filter_map(|path| clean_file(&path).map(|text| (path, text))).collect()
}

fn clean_file(path: &Path) -> Option<String> {
    let known = std::fs::symlink_metadata(path).ok().filter(|_| is_real(path))?;
    if !known.is_file() || known.len() > MAX_BYTES {
        return None;
    }
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    let clean = clean(&text);
    (clean != text).then_some(clean)
}

/// The same settings without passwords in URLs and without headers that log in.
fn clean(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|line| {
            let key = line.split('=').next().unwrap_or_default().trim().to_ascii_lowercase();
            if key.ends_with("extraheader") { "\n".to_owned() } else { without_password(line) }
        })
        .collect()
}

/// A text without who logs in, in each URL that says it by a password or for the web.
fn without_password(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (head, tail) = rest.split_at(at + 3);
        out.push_str(head);
        let end = tail.find(['/', ' ', '\t', '\n', '"', '\'', ';', '#']).unwrap_or(tail.len());
        let scheme = head.to_ascii_lowercase();
        let is_web = scheme.ends_with("http://") || scheme.ends_with("https://");
        let host = match tail[..end].rsplit_once('@') {
            Some((user, host)) if is_web || user.contains(':') => host,
            Some(_) | None => &tail[..end],
        };
        out.push_str(host);
        rest = &tail[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_go_and_the_rest_stays() {
        let text = "[remote \"origin\"]\n\turl = https://me:ghp_token@github.com/a/b.git\n\turl = https://ghp_token@x.org/b\n\tfetch = +refs/heads/*\n[http]\n\textraHeader = AUTHORIZATION: basic abc\n[remote \"o\"]\n\turl = ssh://git@x.org/b\n\turl = git@x.org:b\n";
        let expected = "[remote \"origin\"]\n\turl = https://github.com/a/b.git\n\turl = https://x.org/b\n\tfetch = +refs/heads/*\n[http]\n\n[remote \"o\"]\n\turl = ssh://git@x.org/b\n\turl = git@x.org:b\n";
        assert_eq!(clean(text), expected);
    }
}
