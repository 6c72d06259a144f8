//! Where code runs is kept with the run, and what the run lacks is said at its beginning. No engine is needed: nobody
//! listens where these runs look for one. What happens with one is in `tests/docker.rs`.

use crate::support::{Project, Said, of_type};
use serde_json::json;

const CODE: &str = "order = \"turns\"\n[[reply]]\ntext = \"```python\\nfinal_answer(1)\\n```\"\n";
const ANSWER: &str = "[[reply]]\ntext = \"Nothing.\"\n";

fn without_engine(project: &Project, args: &[&str]) -> Said {
    Said::from(project.gimlet(args).env("DOCKER_HOST", "unix:///nowhere/docker.sock").output().unwrap())
}

#[test]
fn a_run_in_containers_goes_on_in_containers() {
    let project = Project::new();
    let model = project.script(CODE);
    // Containers imply code, whatever the model would do by itself.
    let said = without_engine(&project, &["-m", &model, "--executor", "docker", "--json", "count"]);
    assert_eq!(said.code, 1, "{} {}", said.stdout, said.stderr);
    let events = said.events();
    let started = of_type(&events, "run.started")[0];
    assert_eq!(started["executor"], json!({ "kind": "docker" }), "{started:#}");
    assert_eq!((&started["action"], &started["limits"]["max_steps"]), (&json!("code"), &json!(10)));
    assert!(said.stdout.contains("/nowhere/docker.sock"), "{}", said.stdout);

    let resumed = without_engine(&project, &["resume", "last", "--json"]);
    assert_eq!(resumed.code, 1, "{} {}", resumed.stdout, resumed.stderr);
    assert!(resumed.stdout.contains("/nowhere/docker.sock"), "not in the Python sandbox: {}", resumed.stdout);

    let refused = without_engine(&project, &["resume", "last", "--executor", "python"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert_eq!(
        refused.stderr,
        "error: the run's code ran in `docker`; it cannot go on in `python`\n\
         hint: leave out `--executor python`, or begin a new run with it\n"
    );
}

#[test]
fn a_run_in_the_python_sandbox_does_not_move_to_containers() {
    let project = Project::new();
    assert_eq!(project.run(CODE, &["--action", "code"]).code, 0);
    let refused = project.say(&["resume", "last", "and now?", "--executor", "docker"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("the run's code ran in `python`"), "{}", refused.stderr);
}

#[test]
fn who_says_a_number_of_steps_gets_it_in_containers_too() {
    let project = Project::new();
    let model = project.script(CODE);
    let args = ["-m", &model, "--executor", "docker", "--json", "count"];
    let mut command = project.gimlet(&args);
    command.env("DOCKER_HOST", "unix:///nowhere/docker.sock").env("AGENT_MAX_STEPS", "7");
    let events = Said::from(command.output().unwrap()).events();
    assert_eq!(of_type(&events, "run.started")[0]["limits"]["max_steps"], 7);
}

#[test]
fn what_containers_cannot_do_is_refused_before_the_run() {
    let project = Project::new();
    for (more, says) in [
        (["--action", "tools"], "this agent acts by tools"),
        (["--imports", "numpy"], "`--imports` is for the Python sandbox"),
    ] {
        let said = project.run(CODE, &[&["--executor", "docker"], &more[..]].concat());
        assert_eq!(said.code, 2, "{}", said.stderr);
        assert!(said.stderr.contains(says) && said.stderr.contains("\nhint: "), "{}", said.stderr);
    }
}

#[test]
fn an_image_nobody_trusts_is_refused_where_it_would_be_used() {
    let project = Project::new();
    project.file("gimlet.toml", "[sandbox]\nimage = \"somebody/else:latest\"\n");
    for more in [["--executor", "docker"], ["--sandbox", "docker"], ["--validation", "docker"]] {
        let said = project.run(CODE, &more);
        assert_eq!(said.code, 2, "{more:?}: {}", said.stderr);
        assert!(said.stderr.contains("names the sandbox image somebody/else:latest"), "{}", said.stderr);
    }
    assert_eq!(project.run(ANSWER, &[]).code, 0, "a run that needs no container goes on without it");
    let patch = json!({
        "intent": "Add", "file_path": "calc.py",
        "original_content": "    return a - b\n", "new_content": "    return a + b\n",
    });
    let proposed = project.say(&["tools", "call", "propose_patch", &patch.to_string()]).events();
    let by = proposed[0]["validated_by"].as_str().unwrap_or_else(|| panic!("{proposed:?}"));
    assert!(by.starts_with("git apply --check in a scratch folder (not in Docker: "), "{by}");
    assert!(by.ends_with("names the sandbox image somebody/else:latest, and is not trusted)"), "{by}");
}

#[test]
fn no_container_sees_a_project_that_holds_our_home() {
    let project = Project::new();
    let model = project.script(CODE);
    let inside = project.repo.path().join("own");
    for more in [["--executor", "docker"], ["--sandbox", "docker"], ["--validation", "docker"]] {
        let args = [&["-m", model.as_str(), "count"], &more[..]].concat();
        let said = Said::from(project.gimlet(&args).env("GIMLET_HOME", &inside).output().unwrap());
        assert_eq!(said.code, 2, "{more:?}: {}", said.stderr);
        assert!(said.stderr.contains("own, which must stay hidden"), "{}", said.stderr);
    }
}

#[test]
fn a_missing_jail_is_said_once_at_the_beginning() {
    let project = Project::new();
    let model = project.script(ANSWER);
    let without_jail = |args: &[&str]| {
        Said::from(project.gimlet(args).env("SANDBOX_JAIL", "off").output().unwrap()).events()
    };
    let events = without_jail(&["-m", &model, "--json", "what is this?"]);
    assert_eq!(events[1]["type"], "warning", "{events:#?}");
    let message = events[1]["message"].as_str().unwrap();
    assert!(
        message.starts_with("there is no jail, so every command asks: the jail is switched off"),
        "{message}"
    );

    let events = without_jail(&["resume", "last", "--json", "and now?"]);
    assert!(!events.is_empty() && of_type(&events, "warning").is_empty(), "{events:#?}");

    let jailed = project.events(ANSWER, &["--sandbox", "unrestricted"]).1;
    assert!(of_type(&jailed, "warning").is_empty(), "what was asked for is no warning: {jailed:#?}");
}
