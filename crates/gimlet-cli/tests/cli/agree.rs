//! What the policy says and what a run does are the same: a command that is allowed asks nothing.

use serde_json::json;

use crate::support::{Project, Said, has_python};

const COMMANDS: &[&str] = &[
    "git branch",
    "git branch -a",
    "git branch -vv",
    "git branch --show-current",
    "git branch --list",
    "git branch -r",
    "git branch --contains HEAD",
    "git tag",
    "git tag -l",
    "git tag --list",
    "git remote",
    "git remote -v",
    "git stash list",
    "git worktree list",
    "git config user.name",
    "git config --get user.email",
    "git config --list",
    "git notes list",
    "git submodule status",
    "git status",
    "git log --oneline",
    "git diff --stat",
    "git shortlog -sn HEAD",
    "git describe --always",
    "git rev-parse HEAD",
    "git ls-files",
    "git blame calc.py",
    "git show --stat",
    "git reflog",
    "ls -la",
    "wc -l calc.py",
    "find . -name '*.py'",
    "awk '{print $1}' calc.py",
    "sed -n '/def/p' calc.py",
    "[ -f calc.py ] && echo yes",
    "for f in *.py; do wc -l \"$f\"; done",
    "python3 -m json.tool --help",
];

#[test]
fn finding_16_a_command_that_the_policy_allows_asks_nothing_when_it_runs() {
    let project = Project::new();
    let mut allowed = 0;
    for command in COMMANDS {
        let verdict = project.say(&["policy", "check", "--", command]).stdout;
        if !verdict.starts_with("allow\t") {
            continue;
        }
        allowed += 1;
        let said = project.say(&["tools", "call", "run_cmd", &json!({ "cmd": command }).to_string()]);
        assert!(said.stdout.contains("\"exit\""), "{command}: {}{}", said.stdout, said.stderr);
    }
    assert!(allowed >= 30, "{allowed} of {} are allowed", COMMANDS.len());
    for command in ["git branch -D main", "git tag v1", "git stash", "git remote add x /tmp"] {
        let said = project.say(&["tools", "call", "run_cmd", &json!({ "cmd": command }).to_string()]);
        assert!(!said.stdout.contains("\"exit\""), "{command}: {}{}", said.stdout, said.stderr);
    }
}

/// A yes for good is a yes to the command in its jail.
#[test]
fn finding_08_a_lasting_yes_in_the_jail_does_not_hold_without_one() {
    let project = Project::new().ungated();
    project.file("Makefile", "build:\n\t@echo built\n");
    let script = "order = \"turns\"\n[[reply]]\ncalls = [{ name = \"run_cmd\", args = { cmd = \"make build\" } }]\n[[reply]]\ntext = \"done\"\n";
    assert_eq!(project.run(script, &[]).code, 3);
    let waiting: Vec<serde_json::Value> =
        serde_json::from_str(&project.say(&["approvals", "--json"]).stdout).unwrap();
    let id = waiting[0]["request"]["id"].as_str().unwrap();
    assert_eq!(project.say(&["approve", id, "--always"]).code, 0);
    let said = project.run(script, &[]);
    if said.stderr.contains("there is no jail") {
        assert!(std::env::var_os("CI").is_none(), "CI needs a jail");
        return;
    }
    assert_eq!(said.code, 0, "in the jail it holds: {}", said.stderr);
    let model = project.script(script);
    let mut command = project.gimlet(&["--model", &model, "build it"]);
    let said = Said::from(command.env("SANDBOX_JAIL", "off").output().unwrap());
    assert_eq!(said.code, 3, "without a jail it asks: {}{}", said.stdout, said.stderr);
}

/// One operation of the interpreter that takes memory without end is stopped near the limit of 512 MB.
#[test]
fn finding_16_the_python_worker_stays_near_its_memory_limit() {
    if !has_python() {
        return;
    }
    let project = Project::new();
    // Its length is not known before, so the list grows until it is stopped.
    let code = "x = list(iter(int, 1))";
    let measure = "import resource, subprocess, sys\nsubprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\nprint(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)";
    let gimlet = project.gimlet(&[]);
    let said = std::process::Command::new("python3")
        .args(["-c", measure])
        .arg(gimlet.get_program())
        .args(["python", "-c", code])
        .env("GIMLET_HOME", project.home.path())
        .current_dir(project.repo.path())
        .output()
        .unwrap();
    let said = Said::from(said);
    let most: u64 = said.stdout.trim().parse().unwrap_or_else(|_| panic!("{said:?}"));
    assert!(most > 256 << 10, "the code has run: {most} kB");
    assert!(most < 700 << 10, "{most} kB");
}
