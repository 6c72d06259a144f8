//! Which modules the code may import, and what to say about those it may not.

use std::collections::BTreeSet;

/// Everything pure and useful that the interpreter has. A name covers its submodules.
pub const DEFAULT: &[&str] = &[
    "__future__",
    "abc",
    "annotationlib",
    "argparse",
    "array",
    "ast",
    "asyncio",
    "base64",
    "binascii",
    "bisect",
    "builtins",
    "bz2",
    "calendar",
    "cmath",
    "codecs",
    "collections",
    "colorsys",
    "configparser",
    "contextlib",
    "contextvars",
    "copy",
    "csv",
    "dataclasses",
    "datetime",
    "decimal",
    "difflib",
    "enum",
    "errno",
    "fnmatch",
    "fractions",
    "functools",
    "getopt",
    "graphlib",
    "hashlib",
    "heapq",
    "hmac",
    "html",
    "inspect",
    "io",
    "ipaddress",
    "itertools",
    "json",
    "keyword",
    "logging",
    "lzma",
    "math",
    "numbers",
    "operator",
    "os",
    "pathlib",
    "posixpath",
    "pprint",
    "queue",
    "quopri",
    "random",
    "re",
    "reprlib",
    "sched",
    "secrets",
    "shlex",
    "stat",
    "statistics",
    "string",
    "stringprep",
    "struct",
    "sys",
    "textwrap",
    "threading",
    "time",
    "timeit",
    "token",
    "tokenize",
    "tomllib",
    "traceback",
    "types",
    "typing",
    "unicodedata",
    "unittest",
    "urllib.parse",
    "uuid",
    "warnings",
    "weakref",
    "xml.etree",
    "zlib",
];

/// What native parts of the library import on behalf of the code that called them.
const INTERNAL: &[&str] = &[
    "_asyncio",
    "_codecs",
    "_datetime",
    "_elementtree",
    "_hashlib",
    "_json",
    "_pycodecs",
    "_strptime",
    "_zoneinfo",
    "copyreg",
    "locale",
    "pyexpat",
];

/// What is asked for most and is not here, and what to use instead.
const INSTEAD: &[(&[&str], &str)] = &[
    (
        &[
            "os",
            "shutil",
            "glob",
            "tempfile",
            "fileinput",
            "os.path",
            "posix",
            "nt",
            "fcntl",
            "mmap",
            "zipfile",
            "tarfile",
            "gzip",
            "filecmp",
            "linecache",
        ],
        "there are no files here: call a tool that reads, lists or writes files (for path strings, use pathlib.PurePath)",
    ),
    (
        &[
            "subprocess",
            "pty",
            "multiprocessing",
            "signal",
            "resource",
            "concurrent",
            "_thread",
            "pexpect",
            "sh",
        ],
        "there are no processes here: call a tool that runs commands",
    ),
    (
        &[
            "socket",
            "ssl",
            "http",
            "urllib.request",
            "urllib.error",
            "urllib",
            "requests",
            "httpx",
            "aiohttp",
            "urllib3",
            "ftplib",
            "smtplib",
            "select",
            "selectors",
            "telnetlib",
            "bs4",
            "selenium",
            "webbrowser",
        ],
        "there is no network here: call a tool that fetches pages, if there is one",
    ),
    (
        &[
            "numpy",
            "pandas",
            "scipy",
            "sklearn",
            "matplotlib",
            "torch",
            "tensorflow",
            "sympy",
            "PIL",
            "cv2",
            "seaborn",
            "networkx",
            "polars",
            "pyarrow",
            "openpyxl",
            "plotly",
            "nltk",
            "transformers",
        ],
        "packages are not installed here: write it with the standard library, or run the agent with `--executor venv`, which has your packages",
    ),
    (&["pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "dbm"], "use json instead"),
    (
        &[
            "ctypes",
            "cffi",
            "gc",
            "sysconfig",
            "importlib",
            "imp",
            "pkgutil",
            "runpy",
            "code",
            "codeop",
            "dis",
            "symtable",
            "opcode",
            "site",
            "_ast",
            "_interpreters",
        ],
        "the interpreter's own insides are closed here",
    ),
    (&["yaml"], "use json, tomllib or configparser"),
    (&["pytest", "doctest"], "use plain assert statements"),
    (&["sqlite3", "psycopg2", "sqlalchemy", "pymongo"], "there are no databases here: use dicts and lists"),
    (
        &["dateutil", "pytz", "arrow", "zoneinfo"],
        "there is no time zone data here: use datetime.timezone(datetime.timedelta(hours=...))",
    ),
    (&["typing_extensions"], "use typing"),
    (&["tkinter", "pygame", "turtle", "curses"], "there is no screen here: print what you want to show"),
];

/// A change to the allowlist that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadChange {
    /// Not the name of a module.
    #[error("`{0}` is not the name of a module; write NAME or +NAME to allow one, -NAME to refuse one")]
    NotAName(String),
    /// Not on the list, so it cannot be taken off.
    #[error("`{0}` cannot be taken off the imports: it is not one of them")]
    NotThere(String),
    /// Allowed together with its package.
    #[error("`{0}` cannot be taken off the imports: it comes with `{1}`")]
    Covered(String, String),
}

/// The default allowlist with these changes in their order: `NAME` or `+NAME` allows a module, `-NAME` refuses one.
pub fn changed(changes: &[String]) -> Result<Vec<String>, BadChange> {
    let mut names: Vec<String> = DEFAULT.iter().map(|name| (*name).to_owned()).collect();
    for change in changes {
        let (adds, name) = match change.split_at_checked(1) {
            Some(("-", name)) => (false, name),
            Some(("+", name)) => (true, name),
            Some(_) | None => (true, change.as_str()),
        };
        if !is_module_name(name) {
            return Err(BadChange::NotAName(change.clone()));
        }
        let known = names.iter().position(|known| known == name);
        match (known, adds) {
            (Some(_), true) => {}
            (None, true) => names.push(name.to_owned()),
            (Some(place), false) => drop(names.remove(place)),
            (None, false) => {
                let cover = ancestors(name).skip(1).find(|above| names.iter().any(|known| known == above));
                return Err(match cover {
                    Some(cover) => BadChange::Covered(name.to_owned(), cover.to_owned()),
                    None => BadChange::NotThere(name.to_owned()),
                });
            }
        }
    }
    Ok(names)
}

/// The changes that make this allowlist out of the default one.
pub fn changes(names: &[String]) -> Vec<String> {
    let added = names.iter().filter(|name| !DEFAULT.contains(&name.as_str())).map(|name| format!("+{name}"));
    let removed = DEFAULT
        .iter()
        .filter(|name| !names.iter().any(|known| known == *name))
        .map(|name| format!("-{name}"));
    added.chain(removed).collect()
}

/// `a.b` or `*`.
fn is_module_name(name: &str) -> bool {
    let part = |part: &str| {
        part.starts_with(|first: char| first.is_alphabetic() || first == '_')
            && part.chars().all(|each| each.is_alphanumeric() || each == '_')
    };
    name == "*" || name.split('.').all(part)
}

/// Whether a module may be imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Allowed,
    /// It is only the package of modules that may.
    Parent,
    /// It may not; the text is the error's.
    Refused(String),
}

/// The allowlist of a session.
#[derive(Debug, Clone)]
pub struct Imports {
    allowed: BTreeSet<String>,
    /// Whether code can call `read_file`, which shows what an import of the project's own files was to load.
    reads_files: bool,
}

impl Imports {
    /// An allowlist of these names; `*` allows everything the interpreter has.
    pub fn new(names: &[String]) -> Self {
        Imports { allowed: names.iter().cloned().collect(), reads_files: false }
    }

    /// The same for code that has these tools.
    #[must_use]
    pub fn beside<'a>(self, mut tools: impl Iterator<Item = &'a str>) -> Self {
        Imports { reads_files: tools.any(|tool| tool == "read_file"), ..self }
    }

    /// Whether a module, by its full dotted name, may be imported.
    pub fn judge(&self, name: &str) -> Verdict {
        if INTERNAL.contains(&name)
            || self.allowed.contains("*")
            || ancestors(name).any(|ancestor| self.allowed.contains(ancestor))
        {
            return Verdict::Allowed;
        }
        let below = format!("{name}.");
        if self.allowed.iter().any(|allowed| allowed.starts_with(&below)) {
            return Verdict::Parent;
        }
        Verdict::Refused(self.explain(name))
    }

    fn explain(&self, name: &str) -> String {
        for (names, advice) in INSTEAD {
            if ancestors(name).any(|ancestor| names.contains(&ancestor)) {
                return format!("import of '{name}' is not allowed; {advice}");
            }
        }
        let near = self
            .allowed
            .iter()
            .map(|allowed| (strsim::damerau_levenshtein(name, allowed), allowed))
            .min()
            .filter(|(distance, _)| *distance <= 2 && *distance * 3 <= name.chars().count());
        match near {
            Some((_, near)) => format!("No module named '{name}'. Did you mean: '{near}'?"),
            // Small models import what they are to explain, and follow a call to the letter.
            None if self.reads_files => format!(
                "import of '{name}' is not allowed: only the standard library's pure modules are there. For a file of the \
                 project leave the import out, and call print(read_file('{}.py'))",
                name.replace('.', "/")
            ),
            None => format!(
                "import of '{name}' is not allowed: use the standard library's pure modules; a file of the project is read \
                 or run by a tool"
            ),
        }
    }
}

/// `a.b.c`, `a.b`, `a`.
fn ancestors(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |name| name.rsplit_once('.').map(|(parent, _)| parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn default() -> Imports {
        Imports::new(&DEFAULT.iter().map(|name| name.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn changes_are_made_in_their_order_and_checked() {
        let change = |changes: &[&str]| changed(&changes.iter().map(|c| c.to_string()).collect::<Vec<_>>());
        let names = change(&["+linecache", "zipfile", "-json", "+re"]).unwrap();
        assert!(names.contains(&"linecache".to_owned()) && !names.contains(&"json".to_owned()));
        assert_eq!(changes(&names), ["+linecache", "+zipfile", "-json"]);
        assert_eq!(changed(&changes(&names)).unwrap(), names);
        assert_eq!(change(&["-json", "+json"]).map(|names| changes(&names)), Ok(Vec::new()));
        assert_eq!(change(&["-jsno"]), Err(BadChange::NotThere("jsno".into())));
        assert_eq!(
            change(&["-collections.abc"]),
            Err(BadChange::Covered("collections.abc".into(), "collections".into()))
        );
        for bad in ["", "-", "a b", "1x", "a..b", "../x", "--json"] {
            assert_eq!(change(&[bad]), Err(BadChange::NotAName(bad.into())), "{bad:?}");
        }
    }

    #[test]
    fn a_name_covers_its_submodules_and_stands_for_its_parents() {
        assert_eq!(default().judge("json"), Verdict::Allowed);
        assert_eq!(default().judge("collections.abc"), Verdict::Allowed);
        assert_eq!(default().judge("urllib.parse"), Verdict::Allowed);
        assert_eq!(default().judge("os.path"), Verdict::Allowed);
        assert_eq!(default().judge("urllib"), Verdict::Parent);
        assert!(matches!(default().judge("urllib.request"), Verdict::Refused(_)));
        assert!(matches!(default().judge("jsonx"), Verdict::Refused(_)));
        assert_eq!(Imports::new(&["*".into()]).judge("anything"), Verdict::Allowed);
    }

    #[test]
    fn a_refusal_says_what_to_use_instead() {
        let said = |name: &str| match default().judge(name) {
            Verdict::Refused(message) => message,
            other => panic!("{name}: {other:?}"),
        };
        assert!(said("shutil").contains("a tool that reads, lists or writes files"));
        assert!(said("numpy").contains("--executor venv"));
        assert!(said("requests").contains("no network"));
        assert!(said("jsn").contains("Did you mean: 'json'?"));
        assert!(said("calc").ends_with("is read or run by a tool"), "it only resembles abc");
        assert!(said("shop.cart").ends_with("is read or run by a tool"));
        let reader = default().beside(["git_log", "read_file"].into_iter());
        let Verdict::Refused(said) = reader.judge("shop.cart") else { panic!("it is not on the list") };
        assert!(said.ends_with("print(read_file('shop/cart.py'))"), "{said}");
    }
}
