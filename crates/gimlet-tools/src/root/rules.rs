//! Which files are never shown and which are never written: data, to which a configuration may add.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};

/// Files that hold secrets. A pattern without `/` names a file in any folder.
pub const SENSITIVE: &[&str] = &[
    ".env",
    ".env.*",
    ".envrc",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "*.asc.key",
    "id_{rsa,dsa,ecdsa,ed25519,ecdsa_sk,ed25519_sk}",
    "id_{rsa,dsa,ecdsa,ed25519}[._-]*",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".htpasswd",
    ".pgpass",
    ".my.cnf",
    ".vault-token",
    ".git-credentials",
    "credentials.{json,toml,yaml,yml,ini,xml}",
    "secrets.{json,toml,yaml,yml,ini}",
    "*service[_-]account*.json",
    "*.tfstate",
    "*.tfstate.backup",
    "**/.git/config*",
    "**/.git/credentials*",
    "**/.git/modules/**/config*",
    "**/.git/worktrees/*/config*",
    "**/.ssh/**",
    "**/.gnupg/**",
    "**/.aws/**",
    "**/.azure/**",
    "**/.kube/config",
    "**/.docker/config.json",
    "**/.config/gcloud/**",
    "**/.config/gh/hosts.yml",
];

/// Files that hold secrets under a name that is fine for a folder of source code.
pub const SENSITIVE_FILES: &[&str] = &["credentials", "secrets"];

/// Names that look like secrets and are not: templates, public keys and source code.
pub const NOT_SENSITIVE: &[&str] = &[
    ".env.{example,sample,template,dist}",
    "id_*.pub",
    "id_*.{py,pyi,rs,js,mjs,cjs,ts,tsx,jsx,go,java,kt,c,h,cc,cpp,hpp,rb,php,cs,swift,sh,sql,md,rst,html,css}",
];

/// Files that no patch writes, whatever a person agrees to.
pub const READ_ONLY: &[&str] = &["**/.git", "**/.git/**", ".env", "gimlet.toml", "mcp.json", ".mcp.json"];

/// Folders of generated files that listing and searching leave out even where no `.gitignore` names them.
pub const SKIPPED_FOLDERS: &[&str] = &["node_modules", "__pycache__"];

/// Patterns beyond the built-in ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// More files that are never shown.
    pub sensitive: Vec<String>,
    /// More files that look secret and are not. They do not lift a pattern added to `sensitive`.
    pub not_sensitive: Vec<String>,
    /// More files that are never written.
    pub read_only: Vec<String>,
}

/// A pattern that cannot be understood.
#[derive(Debug, thiserror::Error)]
#[error("the pattern {pattern:?} cannot be understood")]
pub struct RulesError {
    pattern: String,
    source: globset::Error,
}

/// The rules, ready to be asked.
#[derive(Debug, Clone)]
pub(crate) struct Compiled {
    sensitive: GlobSet,
    sensitive_files: GlobSet,
    not_sensitive: GlobSet,
    always_sensitive: GlobSet,
    read_only: GlobSet,
}

impl Compiled {
    pub(crate) fn new(rules: &Rules) -> Result<Self, RulesError> {
        let not_sensitive =
            NOT_SENSITIVE.iter().copied().chain(rules.not_sensitive.iter().map(String::as_str));
        let read_only = READ_ONLY.iter().copied().chain(rules.read_only.iter().map(String::as_str));
        Ok(Compiled {
            sensitive: set(SENSITIVE.iter().copied())?,
            sensitive_files: set(SENSITIVE_FILES.iter().copied())?,
            not_sensitive: set(not_sensitive)?,
            always_sensitive: set(rules.sensitive.iter().map(String::as_str))?,
            read_only: set(read_only)?,
        })
    }

    /// Whether a file, or a folder it lies in, must not be shown.
    pub(crate) fn is_sensitive(&self, path: &Path) -> bool {
        self.names_secret_file(path)
            || path
                .ancestors()
                .filter(|part| !part.as_os_str().is_empty())
                .any(|part| self.names_secret(part))
    }

    /// Whether a path must not be shown if it is a file.
    pub(crate) fn names_secret_file(&self, path: &Path) -> bool {
        self.sensitive_files.is_match(lower(path))
    }

    /// The same for a path whose folders were asked about before.
    pub(crate) fn names_secret(&self, path: &Path) -> bool {
        let path = lower(path);
        let candidate = Candidate::new(&path);
        self.always_sensitive.is_match_candidate(&candidate)
            || (self.sensitive.is_match_candidate(&candidate)
                && !self.not_sensitive.is_match_candidate(&candidate))
    }

    /// Whether a file, or a folder it lies in, must not be written.
    pub(crate) fn is_read_only(&self, path: &Path) -> bool {
        lower(path).ancestors().any(|part| self.read_only.is_match(part))
    }
}

/// Case does not count: on some file systems `.ENV` is `.env`. Paths and patterns are made lower case instead of matching
/// without case, because globs of plain letters are matched many times faster.
fn lower(path: &Path) -> Cow<'_, Path> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.iter().any(u8::is_ascii_uppercase) {
        Cow::Owned(PathBuf::from(OsString::from_vec(bytes.to_ascii_lowercase())))
    } else {
        Cow::Borrowed(path)
    }
}

fn set<'a>(patterns: impl Iterator<Item = &'a str>) -> Result<GlobSet, RulesError> {
    let mut builder = GlobSetBuilder::new();
    for pattern in patterns {
        let anywhere = if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") };
        let glob = GlobBuilder::new(&anywhere.to_ascii_lowercase())
            .literal_separator(true)
            .build()
            .map_err(|source| RulesError { pattern: pattern.into(), source })?;
        builder.add(glob);
    }
    builder.build().map_err(|source| RulesError { pattern: "all together".into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled() -> Compiled {
        Compiled::new(&Rules::default()).unwrap()
    }

    #[test]
    fn secrets_are_known_by_name() {
        let rules = compiled();
        for path in [
            ".env",
            "app/.env",
            ".env.local",
            ".env.production",
            ".ENV",
            "server.pem",
            "tls/site.KEY",
            "id_rsa",
            "keys/id_ed25519",
            "id_rsa.bak",
            "id_ed25519_work",
            ".git/config",
            "vendor/x/.git/config",
            ".git/modules/x/config",
            ".git/worktrees/w/config.worktree",
            ".netrc",
            "credentials.json",
            ".ssh/known_hosts",
            ".env/inside",
            "my-service-account-1.json",
            "credentials",
            "deploy/Credentials",
            ".aws/credentials",
        ] {
            assert!(rules.is_sensitive(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn ordinary_names_are_not_secrets() {
        let rules = compiled();
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
        ] {
            assert!(!rules.is_sensitive(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn some_files_are_never_written() {
        let rules = compiled();
        for path in
            [".git", ".git/hooks/pre-commit", "sub/.git/x", ".env", "gimlet.toml", "mcp.json", ".GIT/config"]
        {
            assert!(rules.is_read_only(Path::new(path)), "{path}");
        }
        for path in [".gitignore", ".github/workflows/ci.yml", "src/git.rs", ".env.example", "mcp.json.md"] {
            assert!(!rules.is_read_only(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn rules_can_be_added() {
        let added = Rules { sensitive: vec!["private/**".into(), "*.example".into()], ..Rules::default() };
        let rules = Compiled::new(&added).unwrap();
        assert!(rules.is_sensitive(Path::new("private/a/b")));
        assert!(
            rules.is_sensitive(Path::new(".env.example")),
            "a built-in exception does not lift an added rule"
        );
        assert!(Compiled::new(&Rules { read_only: vec!["a[".into()], ..Rules::default() }).is_err());
    }
}
