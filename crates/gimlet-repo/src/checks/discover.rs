//! Which commands run a project's tests, from its manifests and the names of its files.

use std::path::{Path, PathBuf};

use super::Runner;
use super::manifest::{Project, shell};
use crate::tests_of::is_test;

/// A command that runs tests.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TestCommand {
    /// To be run in the root.
    pub command: String,
    /// Which program runs the tests.
    pub runner: Runner,
    /// What the choice rests on.
    pub why: String,
}

/// The commands that test a project, the best first. Tests of the changed files alone come before everything; without
/// changed files only whole suites are named. Paths are relative to the root.
pub fn discover(root: &Path, changed: &[PathBuf]) -> Vec<TestCommand> {
    let Some(project) = Project::open(root) else { return Vec::new() };
    let changed: Vec<PathBuf> = changed
        .iter()
        .filter(|path| path.components().all(|part| matches!(part, std::path::Component::Normal(_))))
        .take(100)
        .cloned()
        .collect();
    let mut found = narrow(&project, &changed);
    for folder in project.folders(&changed) {
        found.extend(suites(&project, &folder));
    }
    // A change in Python is not tested by the suite of the JavaScript beside it.
    let endings: Vec<&str> = changed.iter().filter_map(|path| path.extension()?.to_str()).collect();
    found.sort_by_key(|command| !endings.is_empty() && !serves(command.runner, &endings));
    let mut seen = std::collections::HashSet::new();
    found.retain(|command| seen.insert(command.command.clone()));
    found
}

/// Whether a runner tests files with one of these endings.
fn serves(runner: Runner, endings: &[&str]) -> bool {
    let of: &[&str] = match runner {
        Runner::Pytest | Runner::Unittest => &["py", "pyi"],
        Runner::Cargo => &["rs", "toml"],
        Runner::Go => &["go"],
        Runner::Jest | Runner::Vitest | Runner::Node | Runner::Npm => {
            &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "json", "vue", "svelte"]
        }
        Runner::Maven | Runner::Gradle => &["java", "kt", "kts", "scala", "groovy"],
        Runner::Ctest => &["c", "cc", "cpp", "cxx", "h", "hh", "hpp", "hxx"],
        Runner::Rspec | Runner::Minitest => &["rb"],
        Runner::Bats => &["sh", "bash", "bats"],
        Runner::Make | Runner::Other => return true,
    };
    endings.iter().any(|ending| of.contains(ending))
}

/// The tests named after changed files, and changed tests.
fn narrow(project: &Project, changed: &[PathBuf]) -> Vec<TestCommand> {
    let mut found = Vec::new();
    let mut python: Vec<PathBuf> = Vec::new();
    let mut why = Vec::new();
    for path in changed.iter().filter(|path| path.extension().is_some_and(|ending| ending == "py")) {
        for test in python_tests(project, path) {
            if !python.contains(&test) {
                why.push(if test == *path {
                    format!("{} is a test", test.display())
                } else {
                    format!("{} tests {}", test.display(), path.display())
                });
                python.push(test);
            }
        }
    }
    if !python.is_empty() {
        let (runner, reason) = python_runner(project, &python);
        let why = format!("{}; {reason}", why.join("; "));
        found.push(match runner {
            Runner::Unittest
                if python
                    .iter()
                    .all(|path| path.parent().is_none_or(|parent| parent.as_os_str().is_empty())) =>
            {
                let modules: Vec<String> =
                    python.iter().filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
                TestCommand { command: format!("python3 -m unittest {}", modules.join(" ")), runner, why }
            }
            Runner::Unittest => {
                let files: Vec<String> = python.iter().map(|path| shell(path)).collect();
                TestCommand { command: format!("python3 -m unittest {}", files.join(" ")), runner, why }
            }
            _ => {
                let files: Vec<String> = python.iter().map(|path| shell(path)).collect();
                TestCommand { command: format!("pytest -q {}", files.join(" ")), runner: Runner::Pytest, why }
            }
        });
    }
    let go: Vec<&Path> = changed
        .iter()
        .filter(|path| path.extension().is_some_and(|ending| ending == "go"))
        .filter_map(|path| path.parent())
        .collect();
    if let Some(folder) =
        go.first().filter(|folder| !folder.as_os_str().is_empty() && project.has(Path::new("go.mod")))
        && go.iter().all(|other| other == folder)
    {
        let place = shell(folder);
        found.push(TestCommand {
            command: format!("go test ./{place}"),
            runner: Runner::Go,
            why: format!("go.mod, and the change is in {place}"),
        });
    }
    for path in changed.iter().filter(|path| path.extension().is_some_and(|ending| ending == "rb")) {
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let below =
            path.strip_prefix("lib").or_else(|_| path.strip_prefix("app")).unwrap_or(path).with_extension("");
        for (test, runner) in [
            (PathBuf::from(format!("spec/{}_spec.rb", below.display())), Runner::Rspec),
            (PathBuf::from(format!("spec/{stem}_spec.rb")), Runner::Rspec),
            (PathBuf::from(format!("test/{}_test.rb", below.display())), Runner::Minitest),
            (path.with_file_name(format!("{stem}_test.rb")), Runner::Minitest),
        ] {
            if project.has(&test) {
                let command = if runner == Runner::Rspec {
                    format!("rspec {}", shell(&test))
                } else {
                    format!("ruby {}", shell(&test))
                };
                found.push(TestCommand {
                    command,
                    runner,
                    why: format!("{} tests {}", test.display(), path.display()),
                });
                break;
            }
        }
    }
    found
}

/// Tests of a Python file by their names, in its folder and in the usual ones.
fn python_tests(project: &Project, path: &Path) -> Vec<PathBuf> {
    if is_test(path) && path.file_name().is_some_and(|name| name != "__init__.py" && name != "conftest.py") {
        return if project.has(path) { vec![path.into()] } else { Vec::new() };
    }
    let Some(stem) = path.file_stem().map(|stem| stem.to_string_lossy()) else { return Vec::new() };
    let parent = path.parent().unwrap_or(Path::new(""));
    let folders = [
        parent.to_path_buf(),
        parent.join("tests"),
        parent.join("test"),
        PathBuf::from("tests"),
        PathBuf::from("test"),
        parent.join("../tests"),
    ];
    let names = [format!("test_{stem}.py"), format!("{stem}_test.py"), format!("{stem}_tests.py")];
    let mut found: Vec<PathBuf> = Vec::new();
    for folder in folders.iter().filter(|folder| !folder.components().any(|part| part.as_os_str() == "..")) {
        for name in &names {
            let test = folder.join(name);
            if !found.contains(&test) && project.has(&test) {
                found.push(test);
            }
        }
    }
    found
}

/// pytest if the project says so or the tests need it; else unittest if the tests are written for it.
fn python_runner(project: &Project, tests: &[PathBuf]) -> (Runner, String) {
    if let Some(sign) = pytest_sign(project, Path::new("")) {
        return (Runner::Pytest, format!("{sign} speaks of pytest"));
    }
    let texts: Vec<String> = tests.iter().filter_map(|test| project.text(test)).collect();
    let uses = |word: &str| texts.iter().any(|text| text.contains(word));
    if uses("import unittest") || uses("from unittest") {
        if uses("import pytest") {
            (Runner::Pytest, "the tests import pytest".into())
        } else {
            (Runner::Unittest, "the tests import unittest".into())
        }
    } else {
        (Runner::Pytest, "the tests are named as pytest wants".into())
    }
}

fn pytest_sign(project: &Project, folder: &Path) -> Option<&'static str> {
    let at = |name: &str| folder.join(name);
    if let Some(name) =
        ["pytest.ini", "conftest.py", "tests/conftest.py"].into_iter().find(|name| project.has(&at(name)))
    {
        return Some(name);
    }
    ["pyproject.toml", "tox.ini", "setup.cfg", "requirements-dev.txt", "requirements.txt"]
        .into_iter()
        .find(|name| project.mentions(&at(name), "pytest"))
}

/// Whole suites that a folder's manifests speak of.
fn suites(project: &Project, folder: &Path) -> Vec<TestCommand> {
    let at = |name: &str| folder.join(name);
    let has = |name: &str| project.has(&at(name));
    let is_root = folder.as_os_str().is_empty();
    let place = shell(folder);
    let mut found = Vec::new();
    let mut add = |command: String, runner: Runner, why: &str| {
        let why = if is_root { why.to_owned() } else { format!("{why} in {place}") };
        found.push(TestCommand { command, runner, why });
    };
    let below = |command: &str| if is_root { command.to_owned() } else { format!("{command} {place}") };
    if let Some(sign) = pytest_sign(project, folder) {
        add(below("pytest -q"), Runner::Pytest, &format!("{sign} speaks of pytest"));
    }
    if has("Cargo.toml") {
        let command = if is_root {
            "cargo test".to_owned()
        } else {
            format!("cargo test --manifest-path {}", shell(&at("Cargo.toml")))
        };
        add(command, Runner::Cargo, "Cargo.toml");
    }
    if let Some((command, runner, why)) = javascript(project, folder) {
        add(command, runner, &why);
    }
    if has("go.mod") {
        // Commands run in the root, which may be no module itself.
        let command = if is_root { "go test ./...".to_owned() } else { format!("go -C {place} test ./...") };
        add(command, Runner::Go, "go.mod");
    }
    if has("pom.xml") {
        let maven = if project.has(Path::new("mvnw")) { "./mvnw" } else { "mvn" };
        let command = if is_root {
            format!("{maven} -q test")
        } else {
            format!("{maven} -q -f {} test", shell(&at("pom.xml")))
        };
        add(command, Runner::Maven, "pom.xml");
    }
    if has("build.gradle") || has("build.gradle.kts") {
        let gradle = if project.has(Path::new("gradlew")) { "./gradlew" } else { "gradle" };
        add(
            if is_root { format!("{gradle} test") } else { format!("{gradle} -p {place} test") },
            Runner::Gradle,
            "build.gradle",
        );
    }
    if has("CMakeLists.txt") && project.mentions(&at("CMakeLists.txt"), "enable_testing") {
        let (source, build) =
            if is_root { (".".to_owned(), "build".to_owned()) } else { (place.clone(), shell(&at("build"))) };
        let command = format!(
            "cmake -S {source} -B {build} && cmake --build {build} && ctest --test-dir {build} --output-on-failure"
        );
        add(command, Runner::Ctest, "CMakeLists.txt enables tests");
    }
    let makefile = ["GNUmakefile", "makefile", "Makefile"].iter().find_map(|name| project.text(&at(name)));
    for target in ["test", "check"] {
        let names = |line: &str| {
            line.strip_prefix(target).is_some_and(|rest| {
                rest.trim_start().starts_with(':') && !rest.trim_start().starts_with(":=")
            })
        };
        if makefile.as_ref().is_some_and(|text| text.lines().any(names)) {
            let command =
                if is_root { format!("make {target}") } else { format!("make -C {place} {target}") };
            add(command, Runner::Make, &format!("the Makefile has a target {target}"));
            break;
        }
    }
    ruby_and_shell(project, folder, &mut add);
    if pytest_sign(project, folder).is_none()
        && let Some((command, runner, why)) = plain_python(project, folder)
    {
        add(command, runner, &why);
    }
    found
}

/// A Python project without a word about pytest.
fn plain_python(project: &Project, folder: &Path) -> Option<(String, Runner, String)> {
    let is_root = folder.as_os_str().is_empty();
    let tests: Vec<PathBuf> = [folder.to_path_buf(), folder.join("tests"), folder.join("test")]
        .iter()
        .flat_map(|folder| project.names(folder).into_iter().map(move |name| folder.join(name)))
        .filter(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            name.ends_with(".py") && (name.starts_with("test_") || name.ends_with("_test.py"))
        })
        .take(20)
        .collect();
    let below =
        |command: &str| if is_root { command.to_owned() } else { format!("{command} {}", shell(folder)) };
    if !tests.is_empty() {
        let (runner, why) = python_runner(project, &tests);
        return Some(match runner {
            Runner::Unittest => {
                // Discovery looks for test_*.py unless it is told otherwise.
                let is_suffix = tests.iter().all(|path| path.to_string_lossy().ends_with("_test.py"));
                let pattern = if is_suffix { " -p '*_test.py'" } else { "" };
                let start = if is_root { String::new() } else { format!(" -s {}", shell(folder)) };
                let command = if is_suffix || !is_root {
                    format!("python3 -m unittest discover{start}{pattern}")
                } else {
                    "python3 -m unittest".into()
                };
                (command, Runner::Unittest, why)
            }
            _ => (below("pytest -q"), Runner::Pytest, why),
        });
    }
    let sign = ["pyproject.toml", "setup.py", "requirements.txt"]
        .into_iter()
        .find(|name| project.has(&folder.join(name)))?;
    Some((below("pytest -q"), Runner::Pytest, format!("{sign}: a Python project")))
}

/// The test script of a package.json, or the runner that the package depends on.
fn javascript(project: &Project, folder: &Path) -> Option<(String, Runner, String)> {
    let package: serde_json::Value =
        serde_json::from_str(&project.text(&folder.join("package.json"))?).ok()?;
    let is_root = folder.as_os_str().is_empty();
    let script = package["scripts"]["test"].as_str().filter(|script| !script.contains("no test specified"));
    if let Some(script) = script {
        let runner = match Runner::of(script) {
            runner @ (Runner::Jest | Runner::Vitest | Runner::Node) => runner,
            _ => Runner::Npm,
        };
        let program = [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun run")]
            .into_iter()
            .find(|(lock, _)| project.has(&folder.join(lock)))
            .map_or("npm", |(_, program)| program);
        let command = match (is_root, program) {
            (true, program) => format!("{program} test"),
            (false, "yarn") => format!("yarn --cwd {} test", shell(folder)),
            (false, "pnpm") => format!("pnpm --dir {} test", shell(folder)),
            (false, _) => format!("npm --prefix {} test", shell(folder)),
        };
        return Some((command, runner, "package.json has a test script".into()));
    }
    let depends = |name: &str| {
        ["dependencies", "devDependencies"].iter().any(|kind| package[*kind].get(name).is_some())
    };
    let place = if is_root { String::new() } else { format!(" --root {}", shell(folder)) };
    if depends("vitest") {
        return Some((
            format!("npx vitest run{place}"),
            Runner::Vitest,
            "package.json depends on vitest".into(),
        ));
    }
    if depends("jest") {
        let place = place.replace("--root", "--rootDir");
        return Some((format!("npx jest{place}"), Runner::Jest, "package.json depends on jest".into()));
    }
    let names = [folder.to_path_buf(), folder.join("test"), folder.join("tests")]
        .into_iter()
        .flat_map(|folder| project.names(&folder));
    let has_tests = names
        .into_iter()
        .any(|name| [".test.js", ".test.mjs", ".test.cjs"].iter().any(|ending| name.ends_with(ending)));
    (has_tests && is_root)
        .then(|| ("node --test".into(), Runner::Node, "there are tests and no other runner".into()))
}

fn ruby_and_shell(project: &Project, folder: &Path, add: &mut impl FnMut(String, Runner, &str)) {
    if !folder.as_os_str().is_empty() {
        return;
    }
    let names = |folder: &str| project.names(Path::new(folder));
    let has_specs = names("spec").iter().any(|name| name.ends_with("_spec.rb"));
    let bundle = if project.mentions(Path::new("Gemfile"), "rspec") { "bundle exec " } else { "" };
    if project.has(Path::new(".rspec")) || has_specs {
        add(format!("{bundle}rspec"), Runner::Rspec, "there are specs");
    } else if project.mentions(Path::new("Rakefile"), "TestTask") {
        add("rake test".into(), Runner::Minitest, "the Rakefile has a test task");
    } else if let Some(test) = names("test").iter().find(|name| name.ends_with("_test.rb")) {
        let loads = "ruby -Ilib -Itest -e 'Dir[\"test/**/*_test.rb\"].sort.each { |f| require \"./#{f}\" }'"
            .to_owned();
        add(loads, Runner::Minitest, &format!("test/{test}"));
    }
    for folder in ["test", "tests", ""] {
        if names(folder).iter().any(|name| name.ends_with(".bats")) {
            let place = if folder.is_empty() { "." } else { folder };
            add(format!("bats {place}"), Runner::Bats, "there are bats files");
            break;
        }
    }
}
