//! The demo and the help, as a person sees them.

use crate::support::Project;

#[test]
fn the_whole_story() {
    let project = Project::new();
    let said = project.say(&["demo"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let settings = {
        let mut settings = insta::Settings::clone_current();
        settings.add_filter(r"/\S*gimlet-demo-\w+", "[FOLDER]");
        settings.add_filter(r"\d+\.\d s · run [\w-]+", "[SECONDS] s · run [RUN]");
        settings.add_filter(r"without a shell, (bubblewrap|landlock|host)", "without a shell, [JAIL]");
        settings
    };
    settings.bind(|| {
        insta::assert_snapshot!("demo_talk", said.stderr);
        insta::assert_snapshot!("demo_answer", said.stdout);
    });
    assert!(
        std::fs::read_dir(project.home.path()).unwrap().next().is_none(),
        "the demo leaves nothing behind"
    );
}

#[test]
fn the_demo_tells_its_events_as_json() {
    let events = Project::new().say(&["demo", "--json"]).events();
    assert_eq!(events.first().unwrap()["type"], "run.started");
    assert_eq!(events.last().unwrap()["state"], "answered");
}

#[test]
fn help_is_short_enough_to_read() {
    let project = Project::new();
    insta::assert_snapshot!("help", project.say(&["-h"]).stdout);
}
