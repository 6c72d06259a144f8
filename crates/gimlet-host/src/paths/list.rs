//! The list of path rules as data. A pattern fits the end of a path, so a name without `/` fits in any folder. `**` stands
//! for any number of folders, `{a,b}` for either, a leading `/` for the root of the file system and a leading `./` for the
//! root of the project. Case does not count.

/// Keys, tokens and histories of a person or of the system. Code among them is secret too.
pub const CREDENTIALS: &[&str] = &[
    ".ssh/**",
    ".gnupg/**",
    ".aws/**",
    ".azure/**",
    ".config/gcloud/**",
    ".config/gh/hosts.yml",
    ".config/hub",
    ".config/git/credentials",
    ".docker/config.json",
    ".kube/config",
    ".netrc",
    ".pgpass",
    ".my.cnf",
    ".pypirc",
    ".git-credentials",
    ".cargo/credentials{,.toml}",
    ".gem/credentials",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".password-store/**",
    ".local/share/keyrings/**",
    ".mozilla/**",
    ".config/{google-chrome,chromium,BraveSoftware}/**",
    ".{bash,zsh,sh,python,node_repl,psql,mysql,sqlite,rediscli}_history",
    ".history",
    ".lesshst",
    ".viminfo",
    ".local/share/fish/fish_history",
    "/Users/*/Library/Keychains/**",
    "/Library/Keychains/**",
    "/etc/{shadow,shadow-,gshadow,gshadow-,master.passwd,sudoers,krb5.keytab}",
    "/etc/sudoers.d/**",
    "/etc/ssh/ssh_host_*_key",
    "/proc/*/environ",
    "/proc/*/root/**",
    "/proc/*/mem",
    "/proc/kcore",
    "/dev/{mem,kmem}",
    "/var/run/secrets/**",
    "/run/secrets/**",
];

/// Secrets that live in projects, as files or as folders.
pub const SECRETS: &[&str] = &[
    ".env*",
    "*.env",
    "*.{pem,key,p12,pfx,jks,keystore,kdbx,ppk}",
    "id_{rsa,dsa,ecdsa,ed25519,ecdsa_sk,ed25519_sk,xmss}",
    "id_{rsa,dsa,ecdsa,ed25519,xmss}{.,_,-}*",
    "_netrc",
    ".npmrc",
    ".htpasswd",
    ".secrets",
    "credentials.{json,toml,yaml,yml,ini,xml}",
    "secrets.{json,toml,yaml,yml,ini}",
    "client_secret*.json",
    "*service{_,-}account*.json",
    "*.tfstate{,.backup}",
    "*.tfvars{,.json}",
    ".git/config*",
    ".git/credentials*",
    ".git/modules/**/config*",
    ".git/worktrees/*/config*",
];

/// Names that are secret as files and usual for folders of source code.
pub const SECRET_FILES: &[&str] = &["credentials", "secrets"];

/// Templates and public keys: they look secret and are not.
pub const PUBLIC: &[&str] =
    &[".env.{example,sample,template,dist}", "{example,sample,template}.env", "*.pub"];

/// Source code may be called what it likes: `id_rsa_loader.py` is no key. This lifts no name that starts with a dot.
pub const SOURCES: &[&str] = &[
    "*.{py,pyi,rs,js,mjs,cjs,jsx,ts,tsx,go,java,kt,c,h,cc,cpp,hpp,cs,rb,php,swift,sh,md,rst,html,css,sql,proto}",
];

/// Endings of ordinary files, beside source code: a shell pattern with one of these is no attempt at a secret.
pub const ORDINARY: &[&str] = &["*.{txt,lock,log,csv}"];

/// Files that no tool, command or patch changes.
pub const PROTECTED: &[&str] = &[
    ".git/**",
    ".env",
    ".env.local",
    ".envrc",
    ".gitmodules",
    ".mcp.json",
    "gimlet.toml",
    "mcp.json",
    // A folder with a `HEAD` can be made a repository of its own, whose settings run programs.
    "./HEAD",
];

/// Folders that listing and searching leave out, also where no ignore file names them.
pub const HIDDEN: &[&str] = &[".git", "node_modules", "__pycache__"];

/// Folders that programs fill with other people's files, certificates among them. A search for secrets leaves them out.
pub const GENERATED: &[&str] = &[
    ".git",
    "node_modules",
    "__pycache__",
    "site-packages",
    "dist-packages",
    ".venv",
    "venv",
    ".tox",
    ".nox",
    "target",
];

/// Devices that may be written.
pub const DEVICES: &[&str] = &["/dev/{null,stdout,stderr,stdin,tty,zero,full}", "/dev/fd/*"];

/// Places outside of a project whose names may be listed.
pub const LISTABLE: &[&str] = &["/{usr,bin,sbin,lib,lib64}/**", "/opt", "/tmp"];

/// Files outside of a project that say nothing about a person.
pub const READABLE: &[&str] =
    &["/etc/{os-release,debian_version,lsb-release}", "/proc/{cpuinfo,meminfo,version,loadavg,uptime}"];
