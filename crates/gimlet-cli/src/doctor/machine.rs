//! What is on this machine: settings, the data directory, git, a collector of spans.

use std::path::Path;
use std::time::Duration;

use gimlet_runtime::parts::tools::git::guarded;
use tokio::process::Command;
use tokio::time::timeout;

use super::Row;
use gimlet_runtime::config::{Origin, Process, Settings, create, secrets, shown};
use gimlet_runtime::isolation;
use gimlet_runtime::team::check;

/// Patience with another program or server.
const PATIENCE: Duration = Duration::from_secs(5);
/// Free space below which logs may soon not be written.
const LITTLE_SPACE: u64 = 200 << 20;

/// Which files were read, and whether something in them waits for trust.
pub(super) fn settings(settings: &Settings) -> Row {
    let files: Vec<String> = settings.files().iter().map(|source| shown(source.path())).collect();
    let read = if files.is_empty() { "defaults".to_owned() } else { files.join(", ") };
    let secrets = settings
        .named_models()
        .and_then(|named| secrets::keys(settings.process(), &named.providers).map(|_| ()));
    if let Err(error) = secrets {
        return Row::failed("settings", &error, "see `gimlet config`");
    }
    let untrusted = settings.rows().iter().find(|row| {
        let matters = matches!(row.key.variable, "MODEL_API_BASE" | "PHOENIX_ENDPOINT" | "SANDBOX_IMAGE");
        matters && matches!(row.origin, Origin::Project { trusted: false, .. })
    });
    match untrusted.and_then(|row| Some((row, row.origin.untrusted()?))) {
        Some((row, spot)) => Row::weak(
            "settings",
            format!("{read}; {} in {spot} is not trusted", row.key.variable),
            format!("read it, then `gimlet trust {}`", shown(&spot.path)),
        ),
        None => Row::good("settings", read),
    }
}

/// The agents of the configuration; no row where there are none.
pub(super) fn agents(settings: &Settings) -> Vec<Row> {
    let agents = match check::load(settings, &[]) {
        Ok(agents) => agents,
        Err(error) => return vec![Row::failed("agents", &error, "mend the file it names")],
    };
    let mut rows = Vec::new();
    if !agents.defined.is_empty() {
        rows.push(Row::good("agents", agents.defined.into_keys().collect::<Vec<_>>().join(", ")));
    }
    for entry in agents.inert.values() {
        let file = shown(&entry.spot.path);
        let found = format!("{} is off: {file} is not trusted", entry.name);
        rows.push(Row::weak("agents", found, format!("read it, then run: gimlet trust {file}")));
    }
    rows
}

/// Whether runs can be kept, safely and for a while.
pub(super) fn data_directory(process: &Process) -> Vec<Row> {
    const CHECK: &str = "data directory";
    let made = process.need_home().and_then(|home| create(home.path()).map(|()| home.path()));
    let home = match made {
        Ok(home) => home,
        Err(error) => return vec![Row::failed(CHECK, &error, "set GIMLET_HOME to a folder you can write")],
    };
    let name = home.display();
    if let Err(error) = tempfile::tempfile_in(home) {
        return vec![Row::bad(
            CHECK,
            format!("{name} cannot be written: {error}"),
            "set GIMLET_HOME to a folder you can write",
        )];
    }
    let mut rows = Vec::new();
    let (size, free) = match rustix::fs::statvfs(home) {
        Ok(about) => {
            let free = about.f_bavail.saturating_mul(about.f_frsize);
            (format!(", {} free", size(free)), free)
        }
        Err(_) => (String::new(), u64::MAX),
    };
    rows.push(if free < LITTLE_SPACE {
        Row::bad(CHECK, format!("{name}{size}"), "free some space, or set GIMLET_HOME to another disk")
    } else {
        Row::good(CHECK, format!("{name}{size}"))
    });
    #[cfg(unix)]
    if let Ok(metadata) = std::fs::metadata(home) {
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777;
        if mode & 0o022 != 0 {
            rows.push(Row::bad(
                CHECK,
                format!("others can write to it (mode {mode:03o}), and with it to what you have approved"),
                format!("chmod 700 {name}"),
            ));
        } else if mode & 0o055 != 0 {
            rows.push(Row::weak(
                CHECK,
                format!("others can look into it (mode {mode:03o})"),
                format!("chmod 700 {name}"),
            ));
        }
    }
    rows
}

fn size(bytes: u64) -> String {
    match bytes >> 20 {
        mega if mega >= 10_240 => format!("{} GB", mega >> 10),
        mega => format!("{mega} MB"),
    }
}

/// Git, and whether the folder is a repository.
pub(super) async fn git(process: &Process, root: &Path) -> Row {
    let Some(version) = git_says(process, &["--version"], root).await else {
        return Row::bad(
            "git",
            "not found",
            "install git; PATH's folders inside the project are not searched",
        );
    };
    match git_says(process, &["rev-parse", "--show-toplevel"], root).await {
        Some(_) => Row::good("git", format!("{version}; this folder is in a repository")),
        None => Row::weak(
            "git",
            format!("{version}; this folder is in no repository"),
            "git init, so that changes can be seen and undone",
        ),
    }
}

/// Whether someone listens for spans.
pub(super) async fn collector(settings: &Settings) -> Row {
    const CHECK: &str = "phoenix";
    if !settings.trace_enabled.value {
        return Row::good(CHECK, "tracing is off");
    }
    let endpoint = match settings.trace_endpoint() {
        Ok(endpoint) => endpoint,
        Err(error) => return Row::failed(CHECK, &error, "gimlet trust"),
    };
    let host = endpoint.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = endpoint.port_or_known_default().unwrap_or(80);
    match timeout(PATIENCE, tokio::net::TcpStream::connect((host.as_str(), port))).await {
        Ok(Ok(_)) => Row::good(CHECK, format!("a collector listens at {host}:{port}")),
        Ok(Err(_)) | Err(_) => Row::weak(
            CHECK,
            format!("nobody listens at {host}:{port}; runs work, spans are not kept"),
            "docker compose up phoenix, or PHOENIX_ENABLED=false",
        ),
    }
}

/// What git prints on one line, if it runs and succeeds.
async fn git_says(process: &Process, args: &[&str], root: &Path) -> Option<String> {
    let environment = guarded(isolation::environment(process).outside(root), &[]);
    let mut command = Command::new("git");
    command.args(args).current_dir(root).env_clear().envs(environment.iter());
    command.stdin(std::process::Stdio::null()).kill_on_drop(true);
    let output = timeout(PATIENCE, command.output()).await.ok()?.ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
