//! Images: built, fit or not, and with packages of their own.

use super::*;

/// Whether the image and the project are of any use is tried, not guessed from their being there.
#[test]
#[ignore = "needs a Docker engine"]
fn an_image_or_an_engine_that_is_of_no_use_is_told_so() {
    const NO_GIT: &str = "gimlet-sandbox-without-git:test";
    let project = Project::new();
    let dockerfile =
        "FROM gimlet-sandbox:latest\nRUN [\"python3\", \"-c\", \"import os; os.remove('/usr/bin/git')\"]\n";
    project.inner.file("Dockerfile", dockerfile);
    let folder = project.path().display().to_string();
    let built = project.docker(&["build", "--network", "none", "--tag", NO_GIT, &folder]);
    assert_eq!(built.code, 0, "{}", built.stderr);
    project.name_image(NO_GIT);
    let status = project.say(&["sandbox", "status"]).stdout;
    assert!(
        status.contains("is of no use: git does not work in it")
            && status.contains("hint: it needs python3, sh and git"),
        "{status}"
    );
    let diff = "--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n";
    let patch = json!({"intent": "add", "unified_diff": diff});
    let refused = project.call("propose_patch_unified", &patch, &["--validation", "docker"]);
    assert_eq!(refused["error"], "PATCH_NOT_CHECKED", "{refused}");
    assert!(!refused.to_string().contains("copy them exactly"), "{refused}");
    let by =
        project.call("propose_patch_unified", &patch, &["--validation", "auto"])["validated_by"].to_string();
    assert!(by.contains("in a scratch folder (not in Docker: ") && by.contains("'git'"), "{by}");
    project.assert_nothing_left();
    assert_eq!(project.docker(&["image", "rm", NO_GIT]).code, 0);

    // A folder that is another one for the engine, as in a virtual machine.
    let project = Project::new();
    let folder = project.path().join("own").display().to_string();
    std::fs::create_dir(&folder).unwrap();
    let status = project.gimlet(&["sandbox", "status", "--root", &folder]);
    let mut elsewhere = Command::new("unshare");
    elsewhere.args([
        "--mount",
        "sh",
        "-c",
        "mount -t tmpfs none \"$0\" && touch \"$0/here\" && exec \"$@\"",
        &folder,
    ]);
    elsewhere.arg(status.get_program()).args(status.get_args()).env_clear();
    elsewhere.envs(status.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let said = Said::from(elsewhere.output().unwrap());
    assert!(
        said.stdout.contains("containers cannot read the project: here is not there"),
        "{}{}",
        said.stdout,
        said.stderr
    );
    project.assert_nothing_left();
}

#[test]
#[ignore = "needs a Docker engine"]
fn the_image_is_built_and_used() {
    let project = Project::new();
    project.name_image("gimlet-sandbox-built:test");
    let said = project.say(&["sandbox", "build", "--base", "gimlet-sandbox:latest"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "gimlet-sandbox-built:test\n"), "{}", said.stderr);
    let said = project.say(&["sandbox", "status"]);
    assert!(said.stdout.contains("image gimlet-sandbox-built:test"), "{}", said.stdout);
    let said =
        project.say(&["python", "--executor", "docker", "-c", "import os; print(os.getuid(), os.getcwd())"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, "65534 /workspace\n"), "{}", said.stderr);
    let said = project.say(&["sandbox", "build", "--base", "no-such-image:here"]);
    assert_eq!(said.code, 2, "{}", said.stderr);
    assert!(said.stderr.contains("hint: `--base IMAGE` builds on an image"), "{}", said.stderr);
    project.assert_nothing_left();
    let removed = Command::new("docker")
        .args(["image", "rm", "gimlet-sandbox-built:test"])
        .env("DOCKER_HOST", &project.host)
        .output()
        .unwrap();
    assert!(removed.status.success());
}

/// What an image adds is there for code, and what it would have written outside of the container is refused.
#[test]
#[ignore = "needs a Docker engine"]
fn an_image_brings_packages_but_no_place_to_write() {
    const WITH_PACKAGE: &str = "gimlet-sandbox-with-package:test";
    const WITH_VOLUME: &str = "gimlet-sandbox-with-volume:test";
    const WITHOUT_CTYPES: &str = "gimlet-sandbox-without-ctypes:test";
    let add = "RUN [\"python3\", \"-c\", \"import os; open(os.path.dirname(os.__file__) + '/added.py', 'w').write('WORTH = 42')\"]";
    let take = "RUN [\"python3\", \"-c\", \"import ctypes, os; os.remove(ctypes.__file__)\"]";
    let project = Project::new();
    for (image, line) in [(WITH_PACKAGE, add), (WITH_VOLUME, "VOLUME /data"), (WITHOUT_CTYPES, take)] {
        project.inner.file("Dockerfile", &format!("FROM gimlet-sandbox:latest\nUSER 0\n{line}\n"));
        let folder = project.path().display().to_string();
        let built = project.docker(&["build", "--network", "none", "--tag", image, &folder]);
        assert_eq!(built.code, 0, "{}", built.stderr);
    }
    let code = ["python", "--executor", "docker", "-c", "import added; print(added.WORTH)"];
    project.name_image(WITH_PACKAGE);
    let said = project.say(&code);
    assert_eq!((said.code, said.stdout.as_str()), (0, "42\n"), "{}", said.stderr);
    for (image, why) in [
        (WITH_VOLUME, "is of no use: it declares the volume /data"),
        (WITHOUT_CTYPES, "is of no use: its Python lacks ctypes"),
    ] {
        project.name_image(image);
        let said = project.say(&code);
        assert!(said.code != 0 && said.stderr.contains(why), "{}", said.stderr);
        let refused = project.call("run_cmd", &json!({"cmd": "ls"}), &["--sandbox", "docker"]);
        assert!(refused.to_string().contains(why), "{refused}");
    }
    project.assert_nothing_left();
    for image in [WITH_PACKAGE, WITH_VOLUME, WITHOUT_CTYPES] {
        assert_eq!(project.docker(&["image", "rm", image]).code, 0);
    }
}
