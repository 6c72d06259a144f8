//! What the documentation tells people to type works: every block of commands is run here, in a project of its own with a
//! scripted model, and every block of settings is read. A block that cannot be run is named below with the reason, so that
//! a new one is covered unless somebody says why not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gimlet_testkit::OtlpCollector;

use crate::support::{Project, Said};

/// Blocks that are not run: the page, how the block begins, and why. An empty beginning stands for all of a page's.
const NOT_RUN: &[(&str, &str, &str)] = &[
    ("CONTRIBUTING.md", "cargo demo", "CI runs each of these as a part of its own"),
    ("README.md", "cargo demo", "CI runs each of these as a part of its own"),
    ("README.md", "cargo install", "compiles everything; CI installs from a clone"),
    ("bench/README.md", "bench/peers", "takes minutes; `bench/run --quick` is a test"),
    ("docs/evaluation.md", "gimlet eval eval/basic -m", "needs a model that can do the tasks"),
    ("docs/evaluation.md", "name = \"mine\"", "no settings but a suite; `--check` proves the shipped one"),
    ("docs/evaluation.md", "TIMEOUT=60 eval/real-run", "needs a model and an hour"),
    ("docs/fuzzing.md", "cargo install cargo-fuzz", "needs a nightly compiler and ten minutes"),
    ("docs/fuzzing.md", "cargo soak", "takes a minute; short runs of the targets are tests"),
    ("docs/install.md", "pip install", "needs a built package; CI makes, installs and uses it"),
    ("docs/install.md", "apt install", "needs a built package; CI makes, installs and uses it"),
    ("docs/install.md", "npm install", "needs a built package; CI makes, installs and uses it"),
    ("docs/install.md", "cargo install", "compiles everything; CI installs from a clone"),
    ("docs/install.md", "rustup target add", "needs a toolchain for another C library"),
    ("docs/install.md", "docker build", "needs a registry of images; CI builds one on an image of its own"),
    ("docs/mcp.md", "claude mcp add", "needs Claude Code"),
    ("docs/tracing.md", "docker compose up", "needs a registry of images; CI traces to a real Phoenix"),
];

/// What a page takes for granted.
const BEFORE: &[(&str, &str)] = &[
    (
        "docs/memory.md",
        r#"export MEMORY_ENABLED=true
        for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
            gimlet tools call remember "{\"text\": \"What test $n needs is a running Redis.\"}"
        done
        gimlet tools call revise_model '{"name": "redis", "statement": "It is up.", "confidence": 0.7}'"#,
    ),
    ("docs/tracing.md", "gimlet 'hello'"),
];

/// A fenced block.
struct Block {
    line: usize,
    info: String,
    text: String,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every page for people, by its path in the repository.
fn pages() -> Vec<(String, String)> {
    let root = repository();
    let folders = [".", "docs", "bench", "conformance", "examples"];
    let mut pages: Vec<(String, String)> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(root.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let path = path.canonicalize().unwrap();
            (path.strip_prefix(&root).unwrap().display().to_string(), text)
        })
        .collect();
    pages.sort();
    pages
}

fn blocks(page: &str) -> Vec<Block> {
    let mut lines = page.lines().enumerate();
    let mut blocks = Vec::new();
    while let Some((number, line)) = lines.next() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            let text: Vec<&str> =
                lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim() != "```").collect();
            blocks.push(Block { line: number + 1, info: info.to_owned(), text: text.join("\n") });
        }
    }
    blocks
}

/// Runs a block as a whole. Only what lies outside of the machine is stood in for: the model is scripted, and the person
/// who is asked says yes.
fn run(page: &str, block: &str) -> Said {
    let project = Project::new();
    let model = project.script(&format!("order = \"turns\"\n{}", "[[reply]]\ntext = \"Done.\"\n".repeat(4)));
    let examples = project.repo.path().join("examples");
    fs::create_dir(&examples).unwrap();
    let example = fs::read_to_string(repository().join("examples/cognitive.toml")).unwrap();
    let example = example.replace("ollama_chat/qwen3:4b", &model).replace("ollama_chat/qwen3:14b", &model);
    fs::write(examples.join("cognitive.toml"), example).unwrap();
    std::os::unix::fs::symlink(repository().join("eval"), project.repo.path().join("eval")).unwrap();
    let collector = OtlpCollector::start();

    let before = BEFORE.iter().filter(|(of, _)| *of == page).map(|(_, text)| *text);
    let script = before.chain([block]).collect::<Vec<_>>().join("\n");
    let script = script.replace("gimlet trust ", "gimlet trust --yes ");
    let script = with_model(&script);

    let binary = PathBuf::from(assert_cmd::cargo::cargo_bin!("gimlet"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(binary.parent().unwrap().to_owned()).chain(std::env::split_paths(&path));
    let output = Command::new("sh")
        .args(["-e", "-c", &script])
        .current_dir(project.repo.path())
        .env_clear()
        .env("PATH", std::env::join_paths(path).unwrap())
        .env("GIMLET_HOME", project.home.path())
        .env("MODEL_ID", model)
        .env("PHOENIX_ENDPOINT", collector.endpoint())
        .env("NO_COLOR", "1")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    Said::from(output)
}

/// The commands with every model they name changed for the scripted one.
fn with_model(script: &str) -> String {
    let mut parts = script.split(" -m ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |script, part| {
        let (_named, rest) = part.split_once(' ').unwrap();
        format!("{script} -m \"$MODEL_ID\" {rest}")
    })
}

/// Whether settings are understood by all who read them.
fn read_settings(settings: &str) -> Result<(), String> {
    let project = Project::new();
    project.config(settings);
    for command in [["config", "show"], ["agents", "list"], ["policy", "test"], ["memory", "status"]] {
        let said = project.say(&command);
        if said.code != 0 {
            return Err(format!("`gimlet {}`: {}{}", command.join(" "), said.stdout, said.stderr));
        }
    }
    Ok(())
}

/// The text of all examples of the library.
fn examples() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    files
        .filter(|path| path.extension().is_some_and(|ending| ending == "rs"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect()
}

#[test]
fn what_the_pages_tell_people_to_type_works() {
    let mut named = vec![false; NOT_RUN.len()];
    let mut ran = 0;
    let mut problems = Vec::new();
    for (page, text) in pages() {
        for Block { line, info, text } in blocks(&text) {
            let exception =
                NOT_RUN.iter().position(|(of, begins, _)| *of == page && text.starts_with(begins));
            if let Some(index) = exception {
                named[index] = true;
                continue;
            }
            let problem = match info.as_str() {
                "sh" => {
                    ran += 1;
                    let said = run(&page, &text);
                    (said.code != 0)
                        .then(|| format!("exit code {}\n{}{}", said.code, said.stdout, said.stderr))
                }
                "toml" => read_settings(&text).err(),
                "json" => {
                    serde_json::from_str::<serde_json::Value>(&text).err().map(|error| error.to_string())
                }
                // The library's examples are compiled and run by their own tests.
                "rust" => (!examples().contains(text.trim())).then(|| "it is in no example".to_owned()),
                // Run and compared by guide.rs; pieces of Python are for a running agent.
                "console" | "python" | "text" => None,
                other => Some(format!(
                    "`{other}` says not what the block is: sh, console, toml, json, python, rust, text"
                )),
            };
            problems.extend(problem.map(|problem| format!("{page}:{line}: {problem}")));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
    assert!(ran >= 5, "{ran} blocks were run");
    let stale: Vec<_> =
        NOT_RUN.iter().zip(named).filter(|(_, named)| !named).map(|(entry, _)| entry).collect();
    assert!(stale.is_empty(), "no page has these any more: {stale:?}");
}

#[test]
fn the_examples_settings_are_understood() {
    for file in ["cognitive.toml", "mcp/gimlet.toml"] {
        let text = fs::read_to_string(repository().join("examples").join(file)).unwrap();
        if let Err(problem) = read_settings(&text) {
            panic!("examples/{file}: {problem}");
        }
    }
}
