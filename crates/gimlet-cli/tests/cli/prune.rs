//! Removing runs through the real binary.

use crate::support::Project;

const LONG: &str = "order = \"turns\"\n[[reply]]\ncalls = [{ name = \"read_file\", args = { path = \"long.txt\" } }]\n\
                    [[reply]]\ntext = \"Read.\"\n";

fn runs(project: &Project) -> Vec<String> {
    let listed: serde_json::Value =
        serde_json::from_str(&project.say(&["runs", "--all", "--json"]).stdout).unwrap();
    listed.as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_run_is_removed_with_its_question_and_others_stay() {
    let project = Project::new();
    project.file("long.txt", &"a line of text\n".repeat(4000));
    let model = project.script(LONG);
    assert_eq!(project.say(&["--model", &model, "one"]).code, 0);
    let ask = project.script(
        "order = \"turns\"\n[[reply]]\ncalls = [{ name = \"run_cmd\", args = { cmd = \"touch x\" } }]\n",
    );
    assert_eq!(project.say(&["--model", &ask, "two"]).code, 3);
    let [two, one] = <[String; 2]>::try_from(runs(&project)).unwrap();
    assert!(project.say(&["approvals"]).stdout.contains("touch x"));

    let said = project.say(&["runs", "delete", &two]);
    assert_eq!((said.code, said.stdout), (0, format!("removed {two}\n")), "{}", said.stderr);
    assert_eq!(runs(&project), [one.as_str()]);
    assert_eq!(project.say(&["approvals"]).stdout, "");
    let said = project.say(&["runs", "show", &two]);
    assert_eq!(said.code, 2, "{}", said.stderr);

    // Nothing is removed where one of the runs is not there.
    assert_eq!(project.say(&["runs", "delete", &one, "no-such-run"]).code, 2);
    assert_eq!(runs(&project), [one.as_str()]);
}

#[test]
fn old_runs_are_pruned_and_their_long_results_with_them() {
    let project = Project::new();
    project.file("long.txt", &"a line of text\n".repeat(4000));
    let model = project.script(LONG);
    assert_eq!(project.say(&["--model", &model, "one"]).code, 0);
    let said = project.say(&["runs", "prune", "--older-than", "1d"]);
    assert_eq!((said.code, said.stderr.as_str()), (0, "no run is that old\n"));
    assert_eq!(runs(&project).len(), 1);

    let said = project.say(&["runs", "prune", "--older-than", "0m", "--dry-run"]);
    assert!(said.stdout.starts_with("would remove "), "{} {}", said.stdout, said.stderr);
    assert_eq!(runs(&project).len(), 1);
    // Long results are left alone while they are young; these are made old.
    let mut old = 0;
    for folder in std::fs::read_dir(project.home.path().join("blobs")).unwrap().flatten() {
        for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
            let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(100_000);
            std::fs::File::options().append(true).open(file.path()).unwrap().set_modified(long_ago).unwrap();
            old += 1;
        }
    }
    let said = project.say(&["runs", "prune", "--older-than", "0m"]);
    assert!(said.stdout.starts_with("removed "), "{} {}", said.stdout, said.stderr);
    assert!(runs(&project).is_empty());
    assert_eq!(said.stderr.contains("long results went with them"), old > 0, "{}", said.stderr);
    for wrong in ["30", "d", "-1d", "1y"] {
        assert_eq!(project.say(&["runs", "prune", &format!("--older-than={wrong}")]).code, 2, "{wrong}");
    }
}
