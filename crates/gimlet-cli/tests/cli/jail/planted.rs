//! What a jailed command leaves in the project does nothing outside of the jail, and what must stay there stays.

use super::*;

/// Writes files of a scene, for its user.
fn lay(scene: &Scene, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = scene.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    own(scene);
}

fn own(scene: &Scene) {
    if let Some(user) = scene.user {
        give(scene.folder.path(), user);
    }
}

fn read(scene: &Scene, name: &str) -> String {
    fs::read_to_string(scene.path(name)).unwrap_or_default()
}

fn said(mut command: Command) -> String {
    let output = command.output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// Git of the scene's user, outside of any jail.
fn git(scene: &Scene, words: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=n", "-c", "user.email=e"]).args(words);
    command.current_dir(scene.path("project")).env("HOME", scene.path("home"));
    if let Some(user) = scene.user {
        command.uid(user).gid(user);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A scene whose project is a repository that git can work with.
fn repository(scene: &Scene) {
    fs::remove_dir_all(scene.path("project/.git")).unwrap();
    own(scene);
    git(scene, &["init", "--quiet"]);
    git(scene, &["commit", "--quiet", "--allow-empty", "-m", "first"]);
}

fn with(scene: &Scene, permissions: &[&str], script: &str) -> Value {
    let asked = json!({"cmd": scene.script(script), "permissions": permissions});
    scene.call(&asked, &["--approve", "all"])
}

#[test]
fn no_program_of_the_project_is_taken_for_one_of_the_system() {
    for scene in scenes() {
        let (project, reached) = (scene.path("project"), scene.path("home/reached"));
        lay(&scene, &[("project/.venv/bin/tool", "#!/bin/sh\n"), ("project/.venv/bin/served", "")]);
        let evil = format!("#!/bin/sh\necho $0 >> {}\nexec /usr/bin/git \"$@\"\n", reached.display());
        lay(&scene, &[("project/src/evil", &evil)]);
        scene.allowed("for name in git served; do cp src/evil .venv/bin/$name; done; chmod +x .venv/bin/*");
        lay(&scene, &[("servers.json", r#"{"mcpServers": {"s": {"command": "served"}}}"#)]);
        let servers = scene.path("servers.json").display().to_string();
        let patch = json!({
            "intent": "i", "file_path": "src/a.txt", "original_content": "a\n", "new_content": "b\n",
        });
        let (patch, tool) = (patch.to_string(), json!({"cmd": "tool"}).to_string());
        for path in [format!("{}/.venv/bin", project.display()), ".venv/bin".into()] {
            let run = |words: &[&str]| {
                let mut command = scene.gimlet(words);
                command.env("PATH", format!("{path}:/usr/bin:/bin"));
                said(command)
            };
            for words in [
                &["tools", "call", "git_status", "{}"][..],
                &["tools", "call", "propose_patch", &patch, "--validation", "worktree"],
                &["doctor"],
                &["mcp", "list", "--mcp", &servers],
            ] {
                let said = run(words);
                assert!(!reached.exists(), "{} as {:?}: {words:?}: {said}", scene.jail, scene.user);
            }
            let jailed = run(&["tools", "call", "run_cmd", &tool, "--approve", "all"]);
            assert!(jailed.contains("\"exit\": 0") || jailed.contains("\"exit\":0"), "{jailed}");
        }
        let mut command = scene.gimlet(&["tools", "call", "git_status", "{}"]);
        command.env("PATH", project.join(".venv/bin"));
        let none = said(command);
        assert!(none.contains("folders inside the project are not searched"), "{none}");
    }
}

#[test]
fn a_home_stays_hidden_by_every_name() {
    for scene in scenes() {
        let home = scene.path("home").display().to_string();
        let alias = scene.path("alias/home").display().to_string();
        symlink(scene.folder.path(), scene.path("alias")).unwrap();
        lay(
            &scene,
            &[
                ("home/work/notes", SECRET),
                ("home/bin/tool", "#!/bin/sh\n"),
                ("home/work/bin/tool", "#!/bin/sh\n"),
            ],
        );
        for tool in ["home/bin/tool", "home/work/bin/tool"] {
            fs::set_permissions(scene.path(tool), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let script = scene.script(&format!(
            "tool && echo found; for home in {home} {alias}; do cat $home/.ssh/id_rsa || cat $home/work/notes && echo leaked; done"
        ));
        for (named, folder) in [
            (Some(&alias), format!("{alias}/bin")),
            (Some(&home), format!("{alias}/bin")),
            (Some(&home), format!("{home}/work/bin")),
            (Some(&"/nonexistent".to_owned()), format!("{home}/bin")),
            (None, format!("{home}/bin")),
        ] {
            let args = json!({ "cmd": script }).to_string();
            let mut command = scene.gimlet(&["tools", "call", "run_cmd", &args, "--approve", "all"]);
            command.env("PATH", format!("{folder}:/usr/bin:/bin")).env_remove("HOME");
            command.env("XDG_CACHE_HOME", scene.path("home/.cache"));
            command.envs(named.map(|home| ("HOME", home)));
            let said = said(command);
            let who = format!("{} as {:?}: {named:?} {folder}: {said}", scene.jail, scene.user);
            assert!(said.contains("found\\n") && !said.contains("leaked\\n"), "{who}");
        }
    }
}

/// Not every home is below `/home`.
#[test]
fn a_home_below_a_folder_of_the_system_is_hidden() {
    for mut scene in scenes() {
        let Ok(folder) = tempfile::tempdir_in("/usr/local") else { continue };
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let home = folder.path().join("home/me");
        for name in ["project/src", "home/me/.ssh"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::write(home.join(".ssh/id_rsa"), SECRET).unwrap();
        scene.folder = folder;
        own(&scene);
        let args = json!({ "cmd": scene.script("cat $HOME/.ssh/id_rsa; ls $HOME/.ssh") }).to_string();
        let mut command = scene.gimlet(&["tools", "call", "run_cmd", &args, "--approve", "all"]);
        let tried = said({
            command.env("HOME", &home);
            command
        });
        let who = format!("{} as {:?}: {tried}", scene.jail, scene.user);
        assert!(
            tried.contains("\"exit\"") && !tried.contains(SECRET) && !tried.contains("id_rsa\\n"),
            "{who}"
        );
    }
}

/// A tool that was changed would be run later, outside of the jail.
#[test]
fn the_toolchain_is_used_and_not_changed() {
    for scene in scenes() {
        let tools =
            ["home/.cargo/bin/t", "home/.cargo/registry/r", "home/.local/bin/u", "home/.npm/_cacache/c"];
        lay(&scene, &tools.map(|name| (name, "#!/bin/sh\n")));
        for tool in tools {
            fs::set_permissions(scene.path(tool), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let names = tools.map(|name| scene.path(name).display().to_string()).join(" ");
        scene.allowed(&format!("for tool in {names}; do cat $tool && $tool || exit 1; done"));
        let tried = scene.run(&format!(
            "for tool in {names}; do echo evil > $tool; mv $tool $tool.old; rm -f $tool; echo evil > $tool; \
             echo evil > $(dirname $tool)/new; chmod 777 $tool; done"
        ));
        for tool in tools {
            let who = format!("{} as {:?}: {tool}: {tried}", scene.jail, scene.user);
            assert_eq!(read(&scene, tool), "#!/bin/sh\n", "{who}");
            assert!(!scene.path(tool).with_file_name("new").exists(), "{who}");
            let mode = fs::metadata(scene.path(tool)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o755, "{who}");
        }
    }
}

#[test]
fn a_submodule_s_repository_is_not_replaced() {
    const NAMED: &str = "[submodule \"sub\"]\n\tpath = vendor/sub\n\tpath = vendor/later\n";
    let scripts = [
        "mv vendor old; mkdir -p vendor/sub/.git; echo evil > vendor/sub/.git/config",
        "mv vendor src/old; echo evil > src/old/sub/.git; ln -s src/old vendor",
        "rm -r vendor/sub; mkdir -p vendor/sub/.git; echo evil > vendor/sub/.git/config",
        ": > .gitmodules; rm .gitmodules",
        "rm vendor/sub/.git; echo evil > vendor/sub/.git",
        "mkdir -p vendor/later/.git; echo evil > vendor/later/.git/config",
    ];
    for scene in scenes() {
        lay(
            &scene,
            &[("project/.gitmodules", NAMED), ("project/vendor/sub/.git", "gitdir: ../../.git/modules/sub")],
        );
        for permissions in [&[][..], &["write-git"]] {
            for script in scripts {
                let tried = with(&scene, permissions, script);
                let who = format!("{} as {:?}: {permissions:?} {script}: {tried}", scene.jail, scene.user);
                assert_eq!(read(&scene, "project/.gitmodules"), NAMED, "{who}");
                for planted in ["vendor/sub/.git", "vendor/sub/.git/config", "vendor/later/.git/config"] {
                    let planted = read(&scene, &format!("project/{planted}"));
                    assert!(!planted.contains("evil"), "{who}");
                }
                // What was taken away with the permission comes back by hand.
                for name in ["vendor", "old", "src/old"] {
                    let path = scene.path("project").join(name);
                    let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
                }
                lay(&scene, &[("project/vendor/sub/.git", "gitdir: ../../.git/modules/sub")]);
            }
        }
    }
}

#[test]
fn the_project_itself_does_not_become_a_git_folder() {
    let plant = "mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; echo evil > config; true";
    for scene in scenes() {
        lay(&scene, &[("project/.git/HEAD", "ref: refs/heads/main\n")]);
        let tried = with(&scene, &["write-git"], &format!("rm .git/HEAD; {plant}"));
        let who = format!("{} as {:?}: {tried}", scene.jail, scene.user);
        assert_eq!(tried["exit"], 0, "{who}");
        assert_eq!(read(&scene, "project/.git/HEAD"), "ref: refs/heads/main\n", "{who}");
        assert!(!scene.path("project/HEAD").exists(), "{who}");
        fs::remove_dir_all(scene.path("project/.git")).unwrap();
        let tried = scene.run(plant);
        assert!(!scene.path("project/HEAD").exists(), "{} as {:?}: {tried}", scene.jail, scene.user);
    }
}

#[test]
fn what_a_link_stands_for_is_protected() {
    let links = [(".env", "conf/env"), ("gimlet.toml", "conf/other"), (".git/hooks", "../hooks")];
    let targets = ["conf/env", "conf/g.toml", "hooks/pre-commit"];
    for scene in scenes() {
        let project = scene.path("project");
        lay(
            &scene,
            &targets
                .map(|name| (format!("project/{name}"), "# as before"))
                .each_ref()
                .map(|(name, text)| (name.as_str(), *text)),
        );
        symlink("g.toml", project.join("conf/other")).unwrap();
        fs::remove_dir_all(project.join(".git/hooks")).unwrap();
        for (name, to) in links {
            let _ = fs::remove_file(project.join(name));
            symlink(to, project.join(name)).unwrap();
        }
        own(&scene);
        for permissions in [&[][..], &["write-git"]] {
            for script in [
                "for file in conf/env conf/g.toml hooks/pre-commit; do echo evil > $file; rm $file; echo evil > $file; done",
                "echo evil > hooks/post-commit; mv conf old; cp -r old conf; echo evil > conf/env",
                "for link in .env conf/other gimlet.toml; do rm $link; ln -s src/a.txt $link; done",
                "rm .env; echo evil > .env; rm gimlet.toml; echo evil > gimlet.toml",
            ] {
                let tried = with(&scene, permissions, script);
                let who = format!("{} as {:?}: {permissions:?} {script}: {tried}", scene.jail, scene.user);
                for name in targets {
                    assert_eq!(read(&scene, &format!("project/{name}")), "# as before", "{who}");
                }
                for (name, to) in links {
                    assert_eq!(fs::read_link(project.join(name)).unwrap(), Path::new(to), "{who}");
                }
                assert!(!project.join("hooks/post-commit").exists(), "{who}");
            }
        }
    }
}

#[test]
fn who_may_write_git_changes_no_other_repository() {
    let files = [
        ("project/.git/HEAD", "ref: refs/heads/main\n"),
        ("project/.git/worktrees/other/HEAD", "ref: refs/heads/other\n"),
        ("project/.git/worktrees/other/commondir", "../..\n"),
        ("project/.git/modules/deep/sub/HEAD", "ref: refs/heads/main\n"),
        ("project/.git/modules/deep/sub/config", "[core]\n"),
        ("project/.git/modules/deep/sub/hooks/sample", ""),
    ];
    let scripts = [
        "echo evil > .git/worktrees/other/commondir",
        "rm .git/worktrees/other/commondir; mv src/evil .git/worktrees/other/commondir",
        "mv .git/worktrees w; mkdir -p .git/worktrees/other; echo evil > .git/worktrees/other/commondir",
        "mv .git/worktrees src/w; echo evil > src/w/other/commondir; ln -s ../src/w .git/worktrees",
        "cd .git/modules/deep/sub; echo evil > config; echo evil > hooks/post-checkout",
        "mv .git/modules m; mkdir -p .git/modules/deep; cp -r m/deep/sub .git/modules/deep/sub; echo evil > .git/modules/deep/sub/config",
        "mv .git old; cp -r old src/g; echo evil > src/g/config; echo 'gitdir: src/g # evil' > .git",
    ];
    for script in scripts {
        for scene in scenes() {
            lay(&scene, &files);
            lay(&scene, &[("project/src/evil", "evil")]);
            let tried = with(&scene, &["write-git"], &format!("{script}; true"));
            let who = format!("{} as {:?}: {script}: {tried}", scene.jail, scene.user);
            assert_eq!(tried["exit"], 0, "{who}");
            for name in [
                ".git",
                ".git/worktrees/other/commondir",
                ".git/modules/deep/sub/config",
                ".git/modules/deep/sub/hooks/post-checkout",
            ] {
                assert!(!read(&scene, &format!("project/{name}")).contains("evil"), "{who}");
            }
        }
    }
}

#[test]
fn a_git_command_adds_no_repository_that_git_would_look_into() {
    for scene in scenes() {
        repository(&scene);
        let script = "set -e; export GIT_CONFIG_GLOBAL=/dev/null; git init --quiet src/evil
            git -C src/evil -c user.name=n -c user.email=e commit --quiet --allow-empty -m x
            git -C src/evil config core.fsmonitor \"touch $PWD/../home/reached\"; git add src";
        let tried = with(&scene, &["write-git"], script);
        let who = format!("{} as {:?}: {tried}", scene.jail, scene.user);
        assert_eq!(tried["exit"], 0, "{who}");
        assert!(!scene.path("project/src/evil/.git").exists(), "{who}");
        assert!(scene.path("project/src/evil/.git.from-a-command/config").is_file(), "{who}");
        git(&scene, &["status", "--short"]);
        assert!(!scene.path("home/reached").exists(), "{who}");
    }
}

#[test]
fn a_failure_names_the_permission_that_helps() {
    for scene in scenes() {
        repository(&scene);
        for script in ["echo x >> .env", "rm .env", "mv gimlet.toml src/g", "echo x > .git/hooks/x"] {
            let refused = scene.refused(script);
            let who = format!("{} as {:?}: {script}: {refused}", scene.jail, scene.user);
            assert_eq!(refused["missing"][0]["permission"], "unrestricted", "{who}");
            assert!(refused["missing"][1].is_null(), "{who}");
        }
        if scene.jail == "bubblewrap" {
            for script in [
                "sed -i s/K/L/ gimlet.toml",
                "mv .git x",
                "git remote add origin u",
                "git config user.name x",
            ] {
                let refused = with(&scene, &["write-git"], script);
                assert_eq!(refused["missing"][0]["permission"], "unrestricted", "{script}: {refused}");
            }
        }
        // One approval, also where nothing may be written.
        let added =
            scene.call(&json!({"cmd": "git add src/a.txt"}), &["--approve", "all", "--sandbox", "read-only"]);
        assert_eq!(added["exit"], 0, "{} as {:?}: {added}", scene.jail, scene.user);
        let cmd = scene.script("echo x > $XDG_CACHE_HOME/kept && cat $XDG_CACHE_HOME/kept");
        let kept = scene.call(&json!({ "cmd": cmd }), &["--approve", "all"]);
        assert_eq!(kept["exit"], 0, "{kept}");
        let kept = scene.call(&json!({ "cmd": cmd }), &["--approve", "all", "--sandbox", "read-only"]);
        assert_ne!(kept["exit"], 0, "{} as {:?}: {kept}", scene.jail, scene.user);
    }
}

/// Files of the machine that the tests run on: some have such, and CI does.
#[test]
fn what_only_root_may_read_stays_hidden_in_every_folder() {
    let list = Command::new("find")
        .args(["/etc", "-mindepth", "2", "-type", "f", "!", "-perm", "-004", "-size", "+0"])
        .output()
        .unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    for scene in scenes() {
        for file in list.lines() {
            scene.refused(&format!("grep -q . '{file}'"));
        }
        scene.allowed("grep -q root /etc/passwd");
    }
}
