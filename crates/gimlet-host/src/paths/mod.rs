//! The one list of path rules: which paths are secret, which nothing may change, which listings leave out. File tools,
//! patches, attachments, the policy for commands and the jail all ask here, so that they cannot disagree.
//!
//! Everything is decided by names; nothing here looks at a disk.

pub mod glob;
pub mod list;
mod pattern;

use std::borrow::Cow;
use std::path::{Component, Path};
use std::sync::LazyLock;

use self::pattern::Patterns;
pub use self::pattern::{Base, Reading, Spot};

/// How secret the contents of a path are. The order is secrecy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Secrecy {
    /// Nothing known against it.
    Public,
    /// A shell pattern that could pick up a secret.
    Possible,
    /// A secret of a project: `.env`, a private key.
    Secret,
    /// A person's or the system's credentials or history.
    Credential,
}

/// The list, ready to be asked, and what a user or project added to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRules {
    credentials: Patterns,
    secrets: Patterns,
    secret_files: Patterns,
    public: Patterns,
    sources: Patterns,
    ordinary: Patterns,
    protected: Patterns,
    devices: Patterns,
    listable: Patterns,
    readable: Patterns,
    /// Secrets somebody added; no exception lifts them.
    added: Patterns,
    /// Names the user says are no secrets, whatever the shipped list says.
    lifted: Patterns,
}

static SHIPPED: LazyLock<PathRules> = LazyLock::new(|| {
    let patterns = |list: &'static [&'static str]| Patterns::new(list.iter().copied());
    PathRules {
        credentials: patterns(list::CREDENTIALS),
        secrets: patterns(list::SECRETS),
        secret_files: patterns(list::SECRET_FILES),
        public: patterns(list::PUBLIC),
        sources: patterns(list::SOURCES),
        ordinary: patterns(list::ORDINARY),
        protected: patterns(list::PROTECTED),
        devices: patterns(list::DEVICES),
        listable: patterns(list::LISTABLE),
        readable: patterns(list::READABLE),
        added: Patterns::default(),
        lifted: Patterns::default(),
    }
});

impl Default for PathRules {
    fn default() -> Self {
        PathRules::shipped().clone()
    }
}

impl PathRules {
    /// The shipped list.
    pub fn shipped() -> &'static PathRules {
        &SHIPPED
    }

    /// Adds a pattern to the secrets, such as `*.secret` or `config/prod/**`.
    pub fn add_secret(&mut self, pattern: &str) {
        self.added.add(pattern);
    }

    /// Adds a pattern of paths that nothing changes.
    pub fn add_protected(&mut self, pattern: &str) {
        self.protected.add(pattern);
    }

    /// Declares that paths are no secrets, such as `tests/**/*.pem`. This lifts no added secret.
    pub fn lift(&mut self, pattern: &str) {
        self.lifted.add(pattern);
    }

    /// How secret a path is. One that is not absolute is relative to the project.
    pub fn secrecy(&self, path: &Path) -> Secrecy {
        let names = names(path);
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        self.secrecy_at(Spot { names: &names, base: base(path) }, Reading::Exact)
    }

    /// Whether a path's contents must not be read, searched, diffed or patched.
    pub fn is_secret(&self, path: &Path) -> bool {
        self.secrecy(path) >= Secrecy::Secret
    }

    /// The same for a walker, which has asked about the folders above before it entered them.
    pub fn is_secret_entry(&self, path: &Path, kind: Entry) -> bool {
        let names = names(path);
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        let spot = Spot { names: &names, base: base(path) };
        self.own_secrecy(spot, Reading::Exact, kind) >= Secrecy::Secret
    }

    /// Whether a path must not be changed.
    pub fn is_protected(&self, path: &Path) -> bool {
        let names = names(path);
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        self.is_protected_at(Spot { names: &names, base: base(path) }, Reading::Exact)
    }

    /// How secret the path at a spot is: the path itself, or a folder of the project that it lies in.
    pub fn secrecy_at(&self, spot: Spot<'_>, reading: Reading) -> Secrecy {
        if reading == Reading::Match {
            return self.secrecy_of_match(spot);
        }
        let own = self.own_secrecy(spot, reading, Entry::File);
        let inside = spot.in_project().map_or(0, <[&str]>::len);
        let above = (1..inside).map(|skip| {
            let names = &spot.names[..spot.names.len() - skip];
            let exact = !names.iter().any(|name| glob::is_pattern(name));
            match (reading, exact) {
                (Reading::Exact, _) | (Reading::Glob | Reading::Match, true) => {
                    self.own_secrecy(Spot { names, ..spot }, Reading::Exact, Entry::Folder)
                }
                (Reading::Glob | Reading::Match, false) => self
                    .own_secrecy(Spot { names, ..spot }, Reading::Glob, Entry::Folder)
                    .min(Secrecy::Possible),
            }
        });
        above.fold(own, Secrecy::max)
    }

    /// Whether the path at a spot must not be changed.
    pub fn is_protected_at(&self, spot: Spot<'_>, reading: Reading) -> bool {
        let inside = spot.in_project().map_or(0, <[&str]>::len);
        let fits = |names| self.protected.fit(Spot { names, ..spot }, reading);
        fits(spot.names) || (1..inside).any(|skip| fits(&spot.names[..spot.names.len() - skip]))
    }

    /// Whether a path of the system is a device whose writing can do harm.
    pub fn is_device(&self, names: &[&str], reading: Reading) -> bool {
        let system = names.first().is_some_and(|first| match reading {
            Reading::Exact => *first == "dev",
            Reading::Glob | Reading::Match => glob::could_match("dev", first),
        });
        let harmless = || self.devices.fit(Spot { names, base: Base::Outside }, Reading::Exact);
        (system && names.len() > 1 && !harmless()) || matches!(names, ["proc", "sysrq-trigger"])
    }

    /// Whether the names in a place outside of a project may be listed.
    pub fn is_listable(&self, names: &[&str]) -> bool {
        self.listable.fit(Spot { names, base: Base::Outside }, Reading::Exact)
    }

    /// Whether a file outside of a project may be read.
    pub fn is_readable(&self, names: &[&str]) -> bool {
        self.readable.fit(Spot { names, base: Base::Outside }, Reading::Exact)
    }

    /// Whether a name has an ending that only code and prose have.
    pub fn is_source(&self, names: &[&str]) -> bool {
        let spot = Spot { names, base: Base::Project };
        self.sources.fit(spot, Reading::Exact) || self.ordinary.fit(spot, Reading::Exact)
    }

    /// Whether a pattern of a search picks up secrets in dot-files, which a search leaves out by itself.
    pub fn finds_hidden_secret(&self, name: &str) -> bool {
        let lists = [&self.added, &self.secrets, &self.credentials];
        let mut names = lists.into_iter().flat_map(Patterns::last_names);
        names.any(|known| known.starts_with('.') && glob::could_be_found(known.trim_end_matches('*'), name))
    }

    /// How secret the files are that a program finds by a pattern of its own, such as `*.py`.
    fn secrecy_of_match(&self, spot: Spot<'_>) -> Secrecy {
        let Some((last, parents)) = spot.names.split_last() else { return Secrecy::Possible };
        if !spot.names.iter().any(|name| glob::is_pattern(name)) {
            return self.secrecy_at(spot, Reading::Exact);
        }
        if self.credentials.fit(Spot { names: parents, ..spot }, Reading::Exact) {
            return Secrecy::Credential;
        }
        if self.added.last_names().any(|name| name == "**" || glob::could_be_found(name, last)) {
            return Secrecy::Possible;
        }
        if self.is_source(spot.names) {
            return Secrecy::Public;
        }
        let finds = |patterns: &Patterns| {
            patterns.last_names().any(|name| name != "**" && glob::could_be_found(name, last))
        };
        match finds(&self.secrets) || finds(&self.secret_files) || finds(&self.credentials) {
            true if last.starts_with('.') => Secrecy::Secret,
            true => Secrecy::Possible,
            false => Secrecy::Public,
        }
    }

    /// How secret a path is whatever lies above it.
    fn own_secrecy(&self, spot: Spot<'_>, reading: Reading, kind: Entry) -> Secrecy {
        let found = match reading {
            Reading::Exact => Secrecy::Secret,
            Reading::Glob | Reading::Match => Secrecy::Possible,
        };
        if self.added.fit(spot, reading) {
            return found;
        }
        let lifted = || self.public.fit(spot, reading) || self.lifted.fit(spot, reading);
        if reading == Reading::Exact && lifted() {
            return Secrecy::Public;
        }
        if self.credentials.fit(spot, reading) {
            return Secrecy::Credential;
        }
        // A shell's pattern only finds a dot-file when it starts with a dot itself, so it was meant: `cat .e?v`.
        if self.secrets.dotted_fit(spot, reading) {
            return Secrecy::Secret;
        }
        // By its own letters: a pattern such as `src/*.py` only finds what its ending allows.
        if self.sources.fit(spot, Reading::Exact)
            || (reading != Reading::Exact && self.ordinary.fit(spot, Reading::Exact))
        {
            return Secrecy::Public;
        }
        let as_file = || kind == Entry::File && self.secret_files.fit(spot, reading);
        if self.secrets.fit(spot, reading) || as_file() { found } else { Secrecy::Public }
    }
}

/// What is at a path, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// A file, or what is not known to be a folder.
    File,
    /// A folder.
    Folder,
}

fn base(path: &Path) -> Base {
    if path.is_absolute() { Base::Outside } else { Base::Project }
}

fn names(path: &Path) -> Vec<Cow<'_, str>> {
    path.components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_string_lossy()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_name() {
        let rules = PathRules::shipped();
        for path in [
            ".env",
            "app/.env",
            ".env.local",
            ".env.production",
            ".ENV",
            ".envrc",
            "prod.env",
            "server.pem",
            "tls/site.KEY",
            "id_rsa",
            "keys/id_ed25519",
            "id_rsa.bak",
            "id_rsa.txt",
            "id_ed25519_work",
            ".git/config",
            "vendor/x/.git/config",
            ".git/modules/x/config",
            ".git/worktrees/w/config.worktree",
            ".netrc",
            "credentials.json",
            "credentials.xml",
            "client_secret_1.json",
            ".secrets",
            ".secrets/db",
            "prod.tfvars",
            "a.auto.tfvars.json",
            "terraform.tfstate",
            "terraform.tfstate.backup",
            ".ssh/known_hosts",
            ".ssh/id_rsa.pub",
            ".env/inside",
            "my-service-account-1.json",
            "credentials",
            "deploy/Credentials",
            ".aws/credentials",
            ".aws/config",
            ".bash_history",
            ".ssh",
        ] {
            assert!(rules.is_secret(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn ordinary_names_are_not_secrets() {
        let rules = PathRules::shipped();
        for path in [
            ".env.example",
            "id_utils.py",
            "id_rsa_utils.py",
            "id_rsa.pub",
            "src/id_map.rs",
            "environment.py",
            "keys.rs",
            "credentials.py",
            "src/credentials/login.py",
            "secrets/mod.rs",
            "secrets.py",
            "monkey.txt",
            "a.keyboard",
            ".git/HEAD",
            "config",
            "src/key",
            "idea.md",
            "",
            "README.md",
            "etc/shadow",
            "proc/1/environ",
        ] {
            assert!(!rules.is_secret(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn protected_files_are_known_by_name() {
        let rules = PathRules::shipped();
        for path in [
            ".git",
            ".git/hooks/pre-commit",
            "sub/.git/x",
            ".env",
            "gimlet.toml",
            "mcp.json",
            ".GIT/config",
            ".gitmodules",
            "HEAD",
            ".env.local",
        ] {
            assert!(rules.is_protected(Path::new(path)), "{path}");
        }
        for path in [
            ".gitignore",
            ".github/workflows/ci.yml",
            "src/git.rs",
            ".env.example",
            "mcp.json.md",
            "docs/HEAD",
        ] {
            assert!(!rules.is_protected(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_project_below_a_folder_with_a_secret_name_is_no_secret() {
        let names = ["home", "me", ".environments", "app", "main.py"];
        let spot = Spot { names: &names, base: Base::Inside(4) };
        assert_eq!(PathRules::shipped().secrecy_at(spot, Reading::Exact), Secrecy::Public);
        let names = ["home", "me", "app", ".env", "x"];
        let spot = Spot { names: &names, base: Base::Inside(3) };
        assert_eq!(PathRules::shipped().secrecy_at(spot, Reading::Exact), Secrecy::Secret);
    }

    #[test]
    fn what_is_added_outweighs_what_is_lifted() {
        let mut rules = PathRules::default();
        rules.add_secret("private/**");
        rules.add_secret("*.example");
        rules.lift("tests/**/*.pem");
        rules.lift("private/**");
        assert!(rules.is_secret(Path::new("private/a/b")));
        assert!(rules.is_secret(Path::new(".env.example")));
        assert!(!rules.is_secret(Path::new("tests/tls/server.pem")));
        assert!(rules.is_secret(Path::new("tls/server.pem")));
    }
}
