//! The files of a project that an MCP server runs. They are pinned with the file that names the server: a command in the
//! jail may rewrite them, and what it wrote must not run with the server's rights before a person has read it.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use gimlet::digest::digest_reader;
use gimlet_config::CodeFile;
use gimlet_mcp::config::Launch;

use crate::mcp::without_dots;

/// What a folder's name stands for, to one program or another.
const IN_FOLDER: &[&str] =
    &["__main__.py", "index.cjs", "index.js", "index.mjs", "index.ts", "main.py", "package.json"];
/// Files that say what a program does which is not named with any.
const READ_BY: &[(&str, &[&str])] = &[
    ("bun", &["package.json"]),
    ("cargo", &["Cargo.toml", ".cargo/config.toml"]),
    ("deno", &["deno.json", "deno.jsonc"]),
    ("docker", &["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("make", &["GNUmakefile", "makefile", "Makefile"]),
    ("npm", &["package.json"]),
    ("npx", &["package.json"]),
    ("pnpm", &["package.json"]),
    ("poetry", &["pyproject.toml"]),
    ("uv", &["pyproject.toml"]),
    ("uvx", &["pyproject.toml"]),
    ("yarn", &["package.json"]),
];

/// The code that a trusted file has its servers run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedCode {
    /// The trusted file.
    pub file: PathBuf,
    /// As it was when that was trusted.
    pub files: Vec<CodeFile>,
}

impl TrustedCode {
    /// The first file that a server would run and that is not as it was trusted.
    pub(crate) fn changed(&self, launch: &Launch, root: &Path) -> Option<PathBuf> {
        named_files(launch, root).into_iter().find(|path| {
            let now = hash(&root.join(path)).ok();
            !self.files.iter().any(|known| known.path == *path && Some(&known.sha256) == now.as_ref())
        })
    }
}

/// The code of the project that a server runs, as it is now.
pub(crate) fn code_of(launch: &Launch, root: &Path) -> anyhow::Result<Vec<CodeFile>> {
    let files = named_files(launch, root).into_iter().map(|path| {
        let sha256 = hash(&root.join(&path)).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(CodeFile { path, sha256 })
    });
    files.collect()
}

fn hash(path: &Path) -> io::Result<String> {
    // A pipe that took the file's place is not waited for.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    digest_reader(file)
}

/// The project's files that a server's words name, from the root on.
fn named_files(launch: &Launch, root: &Path) -> BTreeSet<PathBuf> {
    let Launch::Stdio { command, args, cwd, .. } = launch else { return BTreeSet::new() };
    let cwd = cwd.clone().unwrap_or_else(|| root.to_owned());
    let mut words: Vec<String> = Vec::new();
    for text in std::iter::once(command).chain(args) {
        words.push(text.clone());
        // `--file=x`, and the words of a line for a shell.
        let parts = text.split(|c: char| c.is_whitespace() || "='\"`;&|()<>,".contains(c));
        words.extend(parts.filter(|part| !part.is_empty() && *part != text.as_str()).map(str::to_owned));
    }
    words.extend(modules(&words));
    let program = Path::new(command).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let read = READ_BY.iter().filter(|(name, _)| *name == program).flat_map(|(_, files)| files.iter());
    words.extend(read.map(|name| (*name).to_owned()));
    // A folder among the words may be where the others are looked for.
    let inside = |base: &Path, word: &str| {
        let path = without_dots(&base.join(word));
        path.strip_prefix(root).ok().map(Path::to_owned)
    };
    let folders = words.iter().filter_map(|word| inside(&cwd, word)).map(|path| root.join(path));
    let mut bases: BTreeSet<PathBuf> = folders.filter(|path| path != root && path.is_dir()).collect();
    let named_folders = bases.clone();
    bases.extend([cwd.clone(), root.to_owned()]);
    let mut found: BTreeSet<PathBuf> = BTreeSet::new();
    for base in &bases {
        found.extend(words.iter().filter_map(|word| inside(base, word)));
    }
    for folder in &named_folders {
        found.extend(IN_FOLDER.iter().filter_map(|name| inside(folder, name)));
    }
    found.retain(|path| root.join(path).is_file());
    found
}

/// The files of Python modules that follow `-m`.
fn modules(words: &[String]) -> Vec<String> {
    let after =
        words.iter().zip(words.iter().skip(1)).filter(|(flag, _)| *flag == "-m").map(|(_, name)| name);
    let names: Vec<String> = after.map(|name| name.replace('.', "/")).collect();
    let joined = words.iter().filter_map(|word| word.strip_prefix("-m")).filter(|name| !name.is_empty());
    let names = names.into_iter().chain(joined.map(|name| name.replace('.', "/")));
    names.flat_map(|name| ["", "/__init__", "/__main__"].map(|end| format!("{name}{end}.py"))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn files_are_found_however_they_are_named() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        for name in [
            "server.py",
            "run.sh",
            "tools/pkg/server.py",
            "tools/pkg/__init__.py",
            "web/index.js",
            "web/package.json",
            "package.json",
            "pyproject.toml",
            "notes.txt",
        ] {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), "x").unwrap();
        }
        let files = |command: &str, args: &[&str], cwd: Option<&str>| {
            let launch = Launch::Stdio {
                command: command.into(),
                args: args.iter().map(|arg| (*arg).to_owned()).collect(),
                env: BTreeMap::new(),
                cwd: cwd.map(|cwd| root.join(cwd)),
            };
            let found = named_files(&launch, &root);
            found.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
        };
        let absolute = root.join("server.py").display().to_string();
        for (command, args, cwd, expected) in [
            ("python3", &["server.py"][..], None, "server.py"),
            ("python3", &["./web/../server.py", "--x"], None, "server.py"),
            ("python3", &[&absolute], None, "server.py"),
            ("./run.sh", &[], None, "run.sh"),
            ("sh", &["-c", "cd x; exec python3 'server.py'"], None, "server.py"),
            ("tool", &["--file=server.py"], None, "server.py"),
            ("python3", &["-m", "pkg.server"], Some("tools"), "tools/pkg/server.py"),
            ("python3", &["-m", "pkg"], Some("tools"), "tools/pkg/__init__.py"),
            ("node", &["web"], None, "web/index.js web/package.json"),
            ("npm", &["start"], None, "package.json"),
            (
                "uv",
                &["run", "--directory", "tools/pkg", "server.py"],
                None,
                "pyproject.toml server.py tools/pkg/server.py",
            ),
            ("python3", &["/etc/hostname", "../elsewhere.py"], None, ""),
        ] {
            assert_eq!(files(command, args, cwd), expected, "{command} {args:?}");
        }
    }
}
