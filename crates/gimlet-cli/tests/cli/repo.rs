//! The map of a repository and the files that a task is about, by the real binary.

use serde_json::Value;

use crate::support::Project;

fn project() -> Project {
    let project = Project::new();
    project.file("main.py", "from calc import add\n\ndef main():\n    print(add(1, 2))\n");
    project.file("calc_test.py", "from calc import add\n\ndef test_add():\n    assert add(1, 2) == 3\n");
    project.file(".env", "SECRET_TOKEN = 1\n");
    project.file("credentials.json", "{\"secret_token\": 1}\n");
    project.file(".gitignore", "skipped.py\n");
    project.file("skipped.py", "def secret_token(): pass\n");
    project
}

#[test]
fn the_map_shows_central_files_and_no_secrets() {
    let project = project();
    let said = project.say(&["repo", "map"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stdout.starts_with("calc.py\n  1: def add(a, b)\n"), "{}", said.stdout);
    assert!(said.stdout.contains("main.py\n  3: def main()\n"), "{}", said.stdout);
    for hidden in [".env", "credentials", "skipped"] {
        assert!(!said.stdout.contains(hidden), "{hidden}: {}", said.stdout);
    }
    assert_eq!(project.say(&["repo", "map"]).stdout, said.stdout, "the cache gives the same map");
    let focused = project.say(&["repo", "map", "main.py", "--budget", "90", "--json"]);
    let told: Value = serde_json::from_str(&focused.stdout).unwrap();
    let map = told["map"].as_str().unwrap();
    assert!(map.starts_with("main.py\n") && map.chars().count() <= 90, "{map}");
    let missing = project.say(&["repo", "map", ".env"]);
    assert_eq!(missing.code, 2, "{}", missing.stderr);
}

#[test]
fn a_task_is_led_to_its_files() {
    let project = project();
    let said = project.say(&["repo", "rank", "calc.add rechnet falsch", "--json"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let told: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(told[0]["path"], "calc.py", "{told}");
    assert_eq!(told[0]["tests"][0], "calc_test.py", "{told}");
    let said = project.say(&["repo", "rank", "secret_token", "-n", "9"]);
    assert!(!said.stdout.contains(".env") && !said.stdout.contains("skipped"), "{}", said.stdout);
}
