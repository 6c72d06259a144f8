//! One list of path rules behind every door: whatever reads or changes a file says the same about it.

use std::os::unix::fs::symlink;

use crate::jail::scenes;
use crate::support::{Project, Said};
use serde_json::{Value, json};

const SECRETS: &[&str] = &[
    ".env",
    ".env.production",
    "app/.env",
    ".envrc",
    "prod.env",
    "prod.tfvars",
    "client_secret_7.json",
    ".secrets",
    "credentials",
    "credentials.json",
    "secrets.yaml",
    "server.key",
    "tls/server.pem",
    "id_rsa",
    "keys/id_ed25519_work",
    "terraform.tfstate",
    "my-service-account.json",
    ".aws/config",
    ".aws/credentials",
    ".ssh/known_hosts",
    ".netrc",
    ".npmrc",
    ".bash_history",
    "private/team.vault",
];

const PUBLIC: &[&str] = &[
    ".env.example",
    "id_rsa.pub",
    "id_rsa_loader.py",
    "src/credentials/login.py",
    "secrets.py",
    "keyboard.txt",
    "environment.py",
];

const PROTECTED: &[&str] = &[
    ".env",
    ".env.local",
    ".envrc",
    ".gitmodules",
    ".mcp.json",
    "gimlet.toml",
    "mcp.json",
    "HEAD",
    ".git/config",
    ".git/hooks/pre-commit",
    ".git/commondir",
];

fn call(project: &Project, tool: &str, args: &Value) -> Said {
    project.say(&["tools", "call", tool, &args.to_string(), "--approve", "all"])
}

fn verdict(project: &Project, command: &str) -> String {
    let said = project.say(&["policy", "check", command]);
    said.stdout.split('\t').next().unwrap_or_default().to_owned()
}

fn lay(project: &Project, name: &str, text: &str) {
    let path = project.repo.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// What each door lets through of a file's contents.
fn doors(project: &Project, name: &str, word: &str) -> Vec<(&'static str, bool)> {
    let read = call(project, "read_file", &json!({ "path": name }));
    // Not the word itself, which the result repeats.
    let pattern = format!("{}$", word.replace("WO", "W."));
    let searched = call(project, "rg_search", &json!({ "pattern": pattern, "glob": name }));
    let listed = call(project, "list_files", &json!({ "glob": name }));
    let patch = json!({ "intent": "i", "file_path": name, "original_content": format!("{word}\n"), "new_content": "y\n" });
    let patched = call(project, "propose_patch", &patch);
    let model = project.script("[[reply]]\ntext = \"done\"\n");
    let attached = project.say(&["--model", &model, &format!("look at @{name}")]).code == 0;
    vec![
        ("read_file", read.stdout.contains(word)),
        ("rg_search", searched.stdout.contains(word)),
        ("list_files", listed.stdout.contains(&format!("\"{name}\""))),
        ("command policy", verdict(project, &format!("cat {name}")) == "allow"),
        ("attachment", attached),
        ("patch", patched.stdout.contains("patch_id")),
    ]
}

#[test]
fn every_door_agrees_on_what_is_secret() {
    let project = Project::new();
    project.file("gimlet.toml", "[policy]\nsecrets = [\"*.vault\"]\n");
    for (at, name) in SECRETS.iter().chain(PUBLIC).enumerate() {
        lay(&project, name, &format!("WORD{at}\n"));
    }
    for (at, name) in SECRETS.iter().chain(PUBLIC).enumerate() {
        let public = at >= SECRETS.len();
        for (door, open) in doors(&project, name, &format!("WORD{at}")) {
            assert_eq!(open, public, "{name} by {door}");
        }
    }
}

#[test]
fn the_jail_agrees_on_what_is_secret() {
    for scene in scenes() {
        std::fs::write(scene.path("project/gimlet.toml"), "[policy]\nsecrets = [\"*.vault\"]\n").unwrap();
        for (at, name) in SECRETS.iter().chain(PUBLIC).enumerate() {
            let path = scene.path("project").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("WORD{at}.\n")).unwrap();
        }
        scene.own();
        let names: Vec<&str> = SECRETS.iter().chain(PUBLIC).copied().collect();
        let result = scene.run(&format!("cat {} 2>/dev/null; true", names.join(" "))).to_string();
        for (at, name) in names.iter().enumerate() {
            let open = result.contains(&format!("WORD{at}."));
            assert_eq!(open, at >= SECRETS.len(), "{name} in {} as {:?}: {result}", scene.jail, scene.user);
        }
    }
}

#[test]
fn every_door_agrees_on_what_is_protected() {
    let project = Project::new();
    for name in PROTECTED {
        let patch = json!({ "intent": "i", "file_path": name, "original_content": "", "new_content": "y\n" });
        let patched = call(&project, "propose_patch", &patch);
        assert!(!patched.stdout.contains("patch_id"), "{name}: {}", patched.stdout);
        let diff = format!("--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+y\n");
        let patched = call(&project, "propose_patch_unified", &json!({ "intent": "i", "diff": diff }));
        assert!(!patched.stdout.contains("patch_id"), "{name}: {}", patched.stdout);
        assert_eq!(verdict(&project, &format!("echo x > {name}")), "deny", "{name}");
    }
    for scene in scenes() {
        for name in PROTECTED {
            let path = scene.path("project").join(name);
            let before = std::fs::read(&path).ok();
            scene.run(&format!("mkdir -p .git/hooks; echo evil > {name}; true"));
            assert_eq!(std::fs::read(&path).ok(), before, "{name} in {} as {:?}", scene.jail, scene.user);
        }
    }
}

/// A `.gitignore` that is a device or leads out of the project is not read, and listing goes on without it.
#[test]
fn finding_12_special_ignore_files_are_not_read() {
    let project = Project::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("list"), "*.py\n").unwrap();
    let out = outside.path().join("list").display().to_string();
    for (name, target) in [
        (".gitignore", "/dev/zero"),
        (".gitignore", "/dev/tty"),
        (".ignore", "/dev/zero"),
        (".gitignore", &out),
    ] {
        let path = project.repo.path().join(name);
        symlink(target, &path).unwrap();
        for (tool, args) in
            [("list_files", json!({ "glob": "**/*" })), ("rg_search", json!({ "pattern": "def add" }))]
        {
            let said = call(&project, tool, &args);
            assert!(
                said.stdout.contains("calc.py"),
                "{name} -> {target}: {tool}: {}{}",
                said.stdout,
                said.stderr
            );
        }
        std::fs::remove_file(path).unwrap();
    }
    let fifo = project.repo.path().join(".gitignore");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let said = call(&project, "list_files", &json!({ "glob": "**/*" }));
    assert!(said.stdout.contains("calc.py"), "{}{}", said.stdout, said.stderr);
}
