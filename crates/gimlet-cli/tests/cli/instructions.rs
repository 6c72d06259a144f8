//! `AGENTS.md`: offered, marked, as long as the window allows, kept in the log, and off when told so.

use crate::support::{Project, named_model, of_type};
use gimlet_testkit::ModelServer;

const ANSWER: &str = "[[reply]]\ntext = \"ok\"\n";

fn with_file(text: &str) -> Project {
    let project = Project::new();
    project.file("AGENTS.md", text);
    project
}

#[test]
fn the_model_reads_it_before_the_task_and_the_log_has_it() {
    let project = with_file("# House rules\n\nRun the tests with `make check`.\n");
    let (_, events) = project.events(ANSWER, &[]);
    let started = of_type(&events, "run.started")[0];
    insta::assert_snapshot!("instructions_context", started["context"].as_str().unwrap());
    assert!(
        !started["system"].as_str().unwrap().contains("House rules"),
        "untrusted text is no instruction of ours"
    );
    let said = project.say(&["config"]);
    assert!(said.stdout.contains("AGENTS.md: its 47 characters are offered to the model"), "{}", said.stdout);
}

#[test]
fn it_is_left_out_when_told_so() {
    let project = with_file("House rules.\n");
    for more in [&["--no-instructions"][..], &[]] {
        if more.is_empty() {
            project.file("gimlet.toml", "[agent]\ninstructions = false\n");
        }
        let (_, events) = project.events(ANSWER, more);
        assert!(events[0].get("context").is_none(), "{}", events[0]);
    }
    let said = project.say(&["config"]);
    assert!(said.stdout.contains("AGENTS.md: not offered to the model"), "{}", said.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_file_is_cut_to_the_window_and_says_where_the_rest_is() {
    let script = format!("order = \"turns\"\n{ANSWER}");
    let server = ModelServer::start(toml::from_str(&script).unwrap()).await;
    let url = server.url();
    tokio::task::spawn_blocking(move || {
        let text: String = (1..=500).map(|n| format!("{n}. Do this and that with care.\n")).collect();
        let project = with_file(&text);
        let run = |window: &str| {
            project.config(&named_model("small", &url, window));
            let said = project.say(&["--json", "-m", "small", "hello"]);
            assert_eq!(said.code, 0, "{}{}", said.stdout, said.stderr);
            (said.events()[0]["context"].as_str().unwrap().to_owned(), said.stderr)
        };
        let (context, warned) = run("context = 8192\n");
        assert!((3_500..4_600).contains(&context.len()), "{}", context.len());
        assert!(context.contains("[cut here; read_file path=AGENTS.md start_line="), "{context}");
        assert!(warned.contains("AGENTS.md is too long for the model's window"), "{warned}");
        let (context, warned) = run("context = 131072\n");
        assert!(context.contains("500. Do this") && !context.contains("[cut here"), "{}", context.len());
        assert!(!warned.contains("too long"), "{warned}");
    })
    .await
    .unwrap();
}

#[test]
fn files_along_the_path_and_the_persons_own_are_read_from_the_widest_to_the_nearest() {
    let project = with_file("Rules of the top.\n");
    std::fs::create_dir_all(project.repo.path().join("crates/core")).unwrap();
    project.file("crates/CLAUDE.md", "Rules of all crates.\n");
    project.file("crates/core/AGENTS.md", "Rules of the core.\n");
    std::fs::write(project.home.path().join("AGENTS.md"), "Answer in French.\n").unwrap();
    let (_, events) = project.events(ANSWER, &["--root", "crates/core"]);
    let context = events[0]["context"].as_str().unwrap();
    let at = |words: &str| context.find(words).unwrap_or_else(|| panic!("{words}: {context}"));
    let order = ["Answer in French", "Rules of the top", "Rules of all crates", "Rules of the core"].map(at);
    assert!(order.is_sorted(), "{context}");
    assert!(context.contains("The person's own instructions"), "{context}");
    assert!(context.contains("This repository's crates/core/AGENTS.md"), "{context}");
    let shown = project.say(&["config", "--root", "crates/core"]).stdout;
    for file in ["AGENTS.md: its 17", "crates/CLAUDE.md: its 20", "crates/core/AGENTS.md: its 18"] {
        assert!(shown.contains(file), "{file}: {shown}");
    }
    // What is above the repository, or reached by a link, is nobody's instruction.
    std::fs::remove_file(project.repo.path().join("AGENTS.md")).unwrap();
    std::os::unix::fs::symlink(project.home.path().join("AGENTS.md"), project.repo.path().join("AGENTS.md"))
        .unwrap();
    let said = project.run(ANSWER, &["--root", "crates/core"]);
    assert!(said.stderr.contains("AGENTS.md is not offered to the model"), "{}", said.stderr);
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_project_leads_nowhere() {
    let project = Project::new();
    let outside = project.home.path().join("outside.md");
    std::fs::write(&outside, "private words").unwrap();
    std::os::unix::fs::symlink(&outside, project.repo.path().join("AGENTS.md")).unwrap();
    let said = project.run(ANSWER, &[]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stderr.contains("AGENTS.md is not offered to the model"), "{}", said.stderr);
    let log = project.say(&["runs", "show", "last", "--json"]);
    assert!(!log.stdout.contains("private words"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_run_sees_what_it_saw() {
    let script = "order = \"turns\"\n[[reply]]\ncalls = [{ name = \"repo_info\", args = {} }]\n\
                  [[reply]]\ntext = \"so far\"\n[[reply]]\ntext = \"ok\"\n";
    let server = ModelServer::start(toml::from_str(script).unwrap()).await;
    let url = server.url();
    tokio::task::spawn_blocking(move || {
        let project = with_file("First words.\n");
        let model = ["-m", "openai/scripted", "--api-base", &url, "--max-steps"];
        let said = project.say(&[&["hello"][..], &model, &["1"]].concat());
        assert_eq!(said.code, 4, "{}", said.stderr);
        project.file("AGENTS.md", "Other words.\n");
        let said = project.say(&[&["resume", "last"][..], &model, &["5"]].concat());
        assert_eq!((said.code, said.stdout.trim()), (0, "ok"), "{}", said.stderr);
    })
    .await
    .unwrap();
    server.assert_no_violations();
    let last = server.requests().pop().unwrap();
    assert!(
        last.body.to_string().contains("First words.") && !last.body.to_string().contains("Other words.")
    );
}

#[test]
fn another_agents_file_is_read_where_there_is_none() {
    let project = Project::new();
    project.file("CLAUDE.md", "Run the tests with `make check`.\n");
    let (_, events) = project.events(ANSWER, &[]);
    let context = events[0]["context"].as_str().unwrap();
    assert!(context.contains("This repository's CLAUDE.md") && context.contains("make check"), "{context}");
    assert!(project.say(&["config"]).stdout.contains("CLAUDE.md: its 32 characters are offered"));
    project.file("AGENTS.md", "House rules.\n");
    let (_, events) = project.events(ANSWER, &[]);
    let context = events[0]["context"].as_str().unwrap();
    assert!(context.contains("House rules") && !context.contains("make check"), "{context}");
}
