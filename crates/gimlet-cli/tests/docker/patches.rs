//! Patches that are checked in containers.

use gimlet::patch::{Draft, FileChange, FileState, PatchValidator, ValidationError};
use gimlet_sandbox::docker::{DockerConfig, DockerValidator};
use tokio_util::sync::CancellationToken;

use super::*;

#[test]
#[ignore = "needs a Docker engine"]
fn patches_are_checked_in_a_container_and_the_result_says_so() {
    let project = Project::new();
    let diff = |line: &str| {
        format!(
            "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-{line}\n+    return a + b\n"
        )
    };
    for (validation, place) in [
        ("docker", "in a Docker container"),
        ("auto", "in a Docker container"),
        ("worktree", "in a scratch folder"),
    ] {
        let result = project.call(
            "propose_patch_unified",
            &json!({"intent": "add", "unified_diff": diff("    return a - b")}),
            &["--validation", validation],
        );
        assert!(result.get("error").is_none() && result.to_string().contains(place), "{result}");
    }
    let tested = |tests: &str| {
        project.call(
            "propose_patch_unified",
            &json!({"intent": "add", "unified_diff": diff("    return a - b")}),
            &["--validation", "docker", "--validation-tests", tests],
        )
    };
    let add = "python3 -c 'import calc; assert calc.add(2, 1) == 3'";
    let by = tested(add)["validated_by"].clone();
    assert_eq!(by, format!("git apply --check in a Docker container; `{add}` in docker (read-only)"));
    let failed = tested("python3 -c 'import calc; assert calc.add(2, 1) == 2'");
    assert_eq!(failed["error"], "TESTS_FAILED", "{failed}");
    assert!(failed["context"]["output"].as_str().unwrap().contains("AssertionError"), "{failed}");
    project.name_image("no-such-image:none");
    let result = project.call(
        "propose_patch_unified",
        &json!({"intent": "add", "unified_diff": diff("    return a - b")}),
        &["--validation", "docker"],
    );
    assert!(result.to_string().contains("the image no-such-image:none is not there"), "{result}");
    let result = project.call(
        "propose_patch_unified",
        &json!({"intent": "add", "unified_diff": diff("    return a - b")}),
        &["--validation", "auto"],
    );
    assert!(
        result
            .to_string()
            .contains("in a scratch folder (not in Docker: the image no-such-image:none is not there"),
        "{result}"
    );
    project.assert_nothing_left();
}

/// The user of a container is somebody else, who need not be able to read a project for its patches to be checked.
#[test]
#[ignore = "needs a Docker engine"]
fn patches_for_files_that_only_their_owner_may_read_are_checked_in_a_container() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new();
    project.inner.file("run.sh", "echo one\n");
    let close = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    close(&project.path().join("calc.py"), 0o600);
    close(&project.path().join("run.sh"), 0o700);
    close(project.path(), 0o700);
    let propose = |diff: &str| {
        let patch = json!({"intent": "x", "unified_diff": diff});
        project.call("propose_patch_unified", &patch, &["--validation", "docker"])
    };
    let result = propose(
        "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n\
         --- a/run.sh\n+++ b/run.sh\n@@ -1 +1 @@\n-echo one\n+echo zwei ö\n\
         --- /dev/null\n+++ b/new/file.txt\n@@ -0,0 +1 @@\n+new\n",
    );
    assert_eq!(result["validated_by"], "git apply --check in a Docker container", "{result}");
    project.assert_nothing_left();
}

/// Nothing but git's own word lets a patch pass or refuses it.
#[test]
#[ignore = "needs a Docker engine"]
fn git_in_the_container_has_the_last_word() {
    let project = Project::new();
    let (host, image) = (project.host.clone(), "gimlet-sandbox:latest".to_owned());
    let containers = gimlet_sandbox::docker::Containers::default();
    let validator = DockerValidator::new(DockerConfig {
        host,
        image,
        timeout: Duration::from_secs(30),
        containers: containers.clone(),
    });
    let check = |before: &str, path: &str| {
        let state = |text: &str| Some(FileState { text: text.into(), mode: None });
        let change = FileChange {
            path: path.into(),
            renamed_from: None,
            before: state(before),
            after: state("two\n"),
        };
        let diff = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n";
        let draft = Draft { root: project.path(), changes: &[change], diff };
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let checked = validator.validate(draft, &CancellationToken::new()).await;
            containers.end_all().await;
            checked
        })
    };
    let refused = check("another\n", "a.txt").unwrap_err();
    let ValidationError::Refused { said, .. } = &refused else { panic!("{refused:?}") };
    assert!(said.contains("patch does not apply"), "{said}");
    assert_eq!(check("one\n", "a.txt").unwrap().by, "git apply --check in a Docker container");
    // What goes wrong before git is asked is nobody's refusal.
    let unasked = check("one\n", "a\0.txt").unwrap_err();
    assert!(matches!(unasked, ValidationError::Unavailable { .. }), "{unasked:?}");
    project.assert_nothing_left();
}
