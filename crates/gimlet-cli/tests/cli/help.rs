//! Every help text, as a person reads it; and what is made from the same words.

use crate::support::Project;

/// The commands that a help text lists.
fn listed(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        // A name stands two columns in; what is further in goes on with a description.
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

fn walk(project: &Project, path: &[String], all: &mut Vec<(String, String)>) {
    let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
    args.push("--help");
    let said = project.say(&args);
    assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
    for name in listed(&said.stdout) {
        walk(project, &[path, &[name]].concat(), all);
    }
    let name = if path.is_empty() { "gimlet".into() } else { format!("gimlet_{}", path.join("_")) };
    all.push((name, said.stdout));
}

#[test]
fn every_help_text() {
    let project = Project::new();
    let mut all = Vec::new();
    walk(&project, &[], &mut all);
    assert!(all.len() > 20, "the commands were found: {}", all.len());
    for (name, text) in all {
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{name} is too wide:\n{text}");
        insta::assert_snapshot!(format!("help_{name}"), text);
    }
}

#[test]
fn manual_pages_and_completions_know_every_command() {
    let project = Project::new();
    let page = project.say(&["man"]).stdout;
    assert!(page.starts_with(".ie") || page.contains(".TH gimlet"), "{page}");
    let folder = project.home.path().join("man");
    assert_eq!(project.say(&["man", "--dir", folder.to_str().unwrap()]).code, 0);
    let help = project.say(&["--help"]).stdout;
    for name in listed(&help) {
        assert!(page.contains(&name), "the page does not name {name}");
        assert!(folder.join(format!("gimlet-{name}.1")).exists(), "{name} has no page");
        for shell in ["bash", "zsh", "fish"] {
            assert!(
                project.say(&["completions", shell]).stdout.contains(&name),
                "{shell} does not know {name}"
            );
        }
    }
}

#[test]
fn a_flag_that_a_command_would_not_heed_is_refused() {
    let project = Project::new();
    assert_eq!(project.run("[[reply]]\ntext = \"Fine.\"\n", &["--action", "tools"]).code, 0);
    for line in [
        "approvals --mcp x",
        "agents --sandbox read-only",
        "eval x --root .",
        "eval x --check --temperature 0",
        "eval x --prepare y --json",
        "mcp serve --json",
        "memory --validation docker",
        "models list --temperature 0",
        "models probe a --model b",
        "policy forget x --root .",
        "python -c 1 --approve all",
        "resume last more --action code",
        "resume last more --no-instructions",
        "runs show last --root .",
        "sandbox --jail off build",
        "tools list --jail off",
    ] {
        let said = project.say(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(said.code, 2, "{line}: {}{}", said.stdout, said.stderr);
        assert!(said.stderr.starts_with("error: "), "{line}: {}", said.stderr);
    }
    for line in
        ["agents --root . list", "tools --root . show read_file", "mcp --root . list", "sandbox --jail off"]
    {
        let said = project.say(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(said.code, 0, "{line}: {}", said.stderr);
    }
}

#[test]
fn a_task_without_its_quotes_is_told_of_them() {
    let project = Project::new();
    let quotes = "put a task of several words in quotes";
    for words in [&["explain", "this", "code"][..], &["run", "explain", "this"]] {
        let said = project.say(words);
        assert_eq!(said.code, 2, "{words:?}");
        assert!(said.stderr.contains(quotes), "{words:?}: {}", said.stderr);
    }
    for words in [&["--frobnicate"][..], &["doctor", "this"], &["runs", "this"]] {
        let said = project.say(words);
        assert_eq!(said.code, 2, "{words:?}");
        assert!(!said.stderr.contains(quotes), "{words:?}: {}", said.stderr);
    }
}
