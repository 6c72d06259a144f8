//! The guide shows what really happens: every `console` block of it, and of the other pages of `docs/`, is run here, against a
//! scripted model, and must show what the commands print now. `UPDATE_GUIDE=1` writes the pages anew.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gimlet_testkit::GitRepo;

/// What the guide's reader has: a repository, a home, and a model that knows the guide's tasks.
struct Reader {
    repo: GitRepo,
    home: tempfile::TempDir,
    names: Names,
}

impl Reader {
    fn new() -> Self {
        let repo = GitRepo::new()
            .file("calc.py", "def add(a, b):\n    return a - b\n")
            .file("test.sh", "python3 -c 'import calc; assert calc.add(1, 2) == 3' && echo passed\n")
            .file("README.md", "# Calc\n\nAdds numbers.\n")
            .commit("first");
        let home = tempfile::tempdir().unwrap();
        std::fs::copy(docs().join("guide.toml"), home.path().join("model.toml")).unwrap();
        let mut names = Names::default();
        for path in [repo.path().to_owned(), repo.path().canonicalize().unwrap()] {
            names.places.push((path.display().to_string(), "/home/you/calc".into()));
        }
        names.places.push((home.path().display().to_string(), "/home/you/.local/share/gimlet".into()));
        Reader { repo, home, names }
    }

    /// Adds to the reader's own configuration what the guide shows.
    fn configure(&self, table: &str) {
        let path = self.home.path().join("config.toml");
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(path, format!("{before}{table}\n")).unwrap();
    }

    /// Runs a line of shell and returns what it prints, the way the guide shows it.
    fn run(&mut self, line: &str) -> String {
        let binary = PathBuf::from(assert_cmd::cargo::cargo_bin!("gimlet"));
        let path = std::env::join_paths(
            std::iter::once(binary.parent().unwrap().to_owned())
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
        )
        .unwrap();
        let output = Command::new("sh")
            .args(["-c", &format!("{{ {}\n}} 2>&1", self.names.real(line))])
            .current_dir(self.repo.path())
            .env_clear()
            .env("PATH", path)
            .env("GIMLET_HOME", self.home.path())
            .env("MODEL_ID", format!("scripted/{}", self.home.path().join("model.toml").display()))
            .env("NO_COLOR", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        self.names.shown(&String::from_utf8(output.stdout).unwrap())
    }
}

/// Names that differ from day to day, and what the guide calls them.
#[derive(Default)]
struct Names {
    places: Vec<(String, String)>,
    /// By what they really are.
    known: BTreeMap<String, String>,
}

impl Names {
    fn shown(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (real, shown) in &self.places {
            text = text.replace(real, shown);
        }
        let mut out = String::new();
        let mut word = String::new();
        for c in text.chars().chain(std::iter::once('\0')) {
            if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') {
                word.push(c);
                continue;
            }
            out.push_str(&self.name(&std::mem::take(&mut word)));
            if c != '\0' {
                out.push(c);
            }
        }
        out.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    /// What the guide calls a word.
    fn name(&mut self, word: &str) -> String {
        let of = |start: &str| self.known.values().filter(|name| name.starts_with(start)).count() + 1;
        let is = |text: &str, len: usize, fits: fn(&u8) -> bool| {
            text.len() == len && text.bytes().all(|b| fits(&b))
        };
        let parts: Vec<&str> = word.split('-').collect();
        let run = parts.len() == 3
            && is(parts[0], 8, u8::is_ascii_digit)
            && is(parts[1], 6, u8::is_ascii_digit)
            && is(parts[2], 6, u8::is_ascii_hexdigit);
        let approval = word.strip_prefix("ap_").is_some_and(|hex| is(hex, 10, u8::is_ascii_hexdigit));
        let seconds = word.split_once('.').is_some_and(|(whole, tenth)| {
            is(whole, whole.len(), u8::is_ascii_digit)
                && !whole.is_empty()
                && is(tenth, 1, u8::is_ascii_digit)
        });
        match (run, approval, seconds) {
            (true, _, _) => {
                let name = format!("20261116-090000-{:06x}", of("2026"));
                self.known.entry(word.to_owned()).or_insert(name).clone()
            }
            (_, true, _) => {
                let name = format!("ap_{:010x}", of("ap_"));
                self.known.entry(word.to_owned()).or_insert(name).clone()
            }
            (_, _, true) => "0.1".into(),
            _ => word.to_owned(),
        }
    }

    /// A command of the guide with the names of today.
    fn real(&self, line: &str) -> String {
        self.known.iter().fold(line.to_owned(), |line, (real, shown)| line.replace(shown, real))
    }
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The guide with what its commands print now.
fn told(guide: &str) -> String {
    let mut reader = Reader::new();
    let mut out = String::new();
    let mut lines = guide.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if line == "```toml" {
            let table: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            reader.configure(&table.join("\n"));
            out.push_str(&format!("{}\n```\n", table.join("\n")));
            continue;
        }
        if line != "```console" {
            continue;
        }
        for line in lines.by_ref() {
            if line == "```" {
                break;
            }
            if let Some(command) = line.strip_prefix("$ ") {
                let printed = reader.run(command);
                out.push_str(&format!("{line}\n"));
                if !printed.is_empty() {
                    out.push_str(&format!("{printed}\n"));
                }
            }
        }
        out.push_str("```\n");
    }
    out
}

#[test]
fn what_pages_show_is_what_happens() {
    if !crate::support::has_python() {
        return;
    }
    let mut shown = 0;
    for entry in std::fs::read_dir(docs()).unwrap() {
        let path = entry.unwrap().path();
        let page = match path.extension() {
            Some(extension) if extension == "md" => std::fs::read_to_string(&path).unwrap(),
            Some(_) | None => continue,
        };
        if !page.contains("\n```console\n") {
            continue;
        }
        shown += 1;
        let now = told(&page);
        if std::env::var_os("UPDATE_GUIDE").is_some() {
            std::fs::write(&path, now).unwrap();
            continue;
        }
        let differs = page.lines().zip(now.lines()).enumerate().find(|(_, (told, now))| told != now);
        assert!(
            page == now,
            "{} is out of date: UPDATE_GUIDE=1 cargo test -p gimlet-agent --test cli guide\n{differs:?}\n{now}",
            path.display()
        );
    }
    assert!(shown >= 2, "the guide and the page about rules show commands");
}
