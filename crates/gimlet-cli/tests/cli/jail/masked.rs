//! Secret files of a project are not read by a jailed command, and protected files come back whatever a command does.

use super::*;

fn lay(scene: &Scene, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = scene.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    scene.own();
}

/// Every way that a command has to a secret leads to nothing, and the files are as they were afterwards.
#[test]
fn finding_03_secrets_are_masked_in_the_jail() {
    const PASSWORD: &str = "PASSWORD=hunter2";
    for scene in scenes() {
        let secrets =
            [".env", "app/prod.tfvars", "deploy/client_secret_1.json", ".secrets", "tls/server.key"];
        let all = secrets.map(|name| format!("project/{name}"));
        lay(&scene, &all.each_ref().map(|name| (name.as_str(), PASSWORD)));
        lay(&scene, &[("project/.aws/config", PASSWORD), ("project/conf/real", PASSWORD)]);
        symlink("app/prod.tfvars", scene.path("project/link.txt")).unwrap();
        symlink("../conf/real", scene.path("project/app/.env")).unwrap();
        fs::hard_link(scene.path("project/tls/server.key"), scene.path("project/notes.txt")).unwrap();
        for script in [
            "grep -rn PASSWORD .",
            "cat link.txt",
            "cat notes.txt",
            "cat app/.env conf/real",
            "cat .aws/config",
            "python3 -c 'print(open(\".env\").read())'",
            "mv app/prod.tfvars app/x; cat app/x",
            "ln tls/server.key src/y; cat src/y",
            "chmod 644 tls/server.key; cat tls/server.key",
            "cp -r app src/copy; cat src/copy/prod.tfvars",
        ] {
            for profile in [&["--approve", "all"][..], &["--approve", "all", "--sandbox", "read-only"]] {
                let result = scene.call(&json!({ "cmd": scene.script(script) }), profile);
                let who = format!("{} as {:?}: {script}: {result}", scene.jail, scene.user);
                assert!(!result.to_string().contains("hunter2"), "{who}");
                assert!(result["exit"].is_number(), "{who}");
            }
        }
        for name in all {
            assert_eq!(fs::read_to_string(scene.path(&name)).unwrap(), PASSWORD, "{name}");
        }
        // What is no secret is there as before.
        scene.allowed("cat src/a.txt && echo x > src/new && cat src/new");
    }
}

/// A file that becomes secret between two commands is masked for the second.
#[test]
fn a_secret_made_later_is_masked_too() {
    for scene in scenes() {
        scene.allowed("cat src/a.txt");
        lay(&scene, &[("project/src/late.pem", SECRET)]);
        scene.refused("cat src/late.pem");
    }
}

/// One command closes a folder so that the search for secrets cannot look into it; the next one opens it again.
#[test]
fn a_folder_that_was_closed_shows_no_secret() {
    for scene in scenes() {
        for mode in ["0", "644"] {
            lay(&scene, &[("project/app/.env", SECRET)]);
            scene.run(&format!("chmod {mode} app; true"));
            let result = scene.run("chmod 755 app; cat app/.env; ls -la app; true").to_string();
            assert!(!result.contains(SECRET), "{} as {:?}: {result}", scene.jail, scene.user);
            fs::set_permissions(scene.path("project/app"), fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
}

/// A project adds secrets of its own.
#[test]
fn added_secrets_are_masked() {
    for scene in scenes() {
        lay(
            &scene,
            &[
                ("project/gimlet.toml", "[policy]\nsecrets = [\"*.vault\"]\n"),
                ("project/src/x.vault", SECRET),
            ],
        );
        scene.refused("cat src/x.vault");
    }
}

/// A command plants settings of git that run a program, and takes the rights that the clean-up needs.
#[test]
fn finding_05_put_aside_survives_chmod() {
    for scene in scenes() {
        let reached = scene.path("home/reached");
        let evil = format!("#!/bin/sh\necho x >> {}\n", reached.display());
        lay(&scene, &[("project/src/evil", &evil)]);
        fs::set_permissions(scene.path("project/src/evil"), fs::Permissions::from_mode(0o755)).unwrap();
        for (plant, closed) in [
            ("git init -q .; git config core.fsmonitor $PWD/src/evil", "chmod 555 ."),
            ("git init -q .; git config core.fsmonitor $PWD/src/evil", "chmod 0 .git; chmod 0 ."),
            ("mkdir .git; echo ../src > .git/commondir", "chmod 555 .git .; true"),
            ("mkdir .git; ln -s ../src/evil .git/config", "chmod 0 ."),
        ] {
            let _ = fs::remove_dir_all(scene.path("project/.git"));
            let result = scene.run(&format!("{plant}; {closed}; true"));
            let who = format!("{} as {:?}: {plant}; {closed}: {result}", scene.jail, scene.user);
            assert!(fs::symlink_metadata(scene.path("project/.git")).is_err(), "{who}");
            let mode = fs::metadata(scene.path("project")).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode & 0o700, 0o700, "{who}");
            let mut git = Command::new("git");
            git.arg("status").current_dir(scene.path("project")).env("HOME", scene.path("home"));
            if let Some(user) = scene.user {
                git.uid(user).gid(user);
            }
            let _ = git.output().unwrap();
            assert!(!reached.exists(), "{who}");
            // Nothing is left that would keep the next command from running.
            scene.allowed("cat src/a.txt");
        }
    }
}

/// The same where a git command was agreed to: only the settings are kept then.
#[test]
fn finding_05_commondir_survives_chmod_of_the_git_folder() {
    for scene in scenes() {
        fs::remove_dir_all(scene.path("project/.git")).unwrap();
        scene.own();
        let mut git = Command::new("git");
        git.args(["init", "-q"]).current_dir(scene.path("project")).env("HOME", scene.path("home"));
        if let Some(user) = scene.user {
            git.uid(user).gid(user);
        }
        assert!(git.status().unwrap().success());
        let script = "echo ../src > .git/commondir; chmod 555 .git; true";
        let asked = json!({ "cmd": scene.script(script), "permissions": ["write-git"] });
        let result = scene.call(&asked, &["--approve", "all"]);
        let who = format!("{} as {:?}: {result}", scene.jail, scene.user);
        assert!(fs::symlink_metadata(scene.path("project/.git/commondir")).is_err(), "{who}");
    }
}

/// A password in a remote's URL is not shown by git in the jail. Landlock without mounts cannot change what a file says.
#[test]
fn finding_03_urls_lose_their_passwords_in_the_jail() {
    for scene in scenes() {
        let config = "[core]\n\trepositoryformatversion = 0\n[remote \"origin\"]\n\turl = https://me:hunter2@example.org/a.git\n";
        lay(&scene, &[("project/.git/config", config), ("project/.git/HEAD", "ref: refs/heads/main\n")]);
        for name in ["objects", "refs"] {
            fs::create_dir_all(scene.path("project/.git").join(name)).unwrap();
        }
        scene.own();
        let result = scene.run("git remote -v; cat .git/config").to_string();
        let who = format!("{} as {:?}: {result}", scene.jail, scene.user);
        assert!(result.contains("https://example.org/a.git") && !result.contains("hunter2"), "{who}");
        assert_eq!(fs::read_to_string(scene.path("project/.git/config")).unwrap(), config, "{who}");
    }
}

/// What the user's own settings say is no secret is there for a command.
#[test]
fn a_user_lifts_a_secret_and_a_project_does_not() {
    for scene in scenes() {
        lay(
            &scene,
            &[
                ("project/src/test.pem", "PUBLIC"),
                ("gimlet/config.toml", "[policy]\npublic = [\"src/*.pem\"]\n"),
            ],
        );
        scene.allowed("grep PUBLIC src/test.pem");
        lay(
            &scene,
            &[("gimlet/config.toml", ""), ("project/gimlet.toml", "[policy]\npublic = [\"src/*.pem\"]\n")],
        );
        let output = scene.gimlet(&["policy", "check", "ls"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
