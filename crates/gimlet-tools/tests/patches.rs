//! Patches on real files: fixtures of what models write, and the promise that undoing restores every byte.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet::command::Environment;
use gimlet::effect::Effect;
use gimlet::patch::{Draft, FileChange, FileState, PatchValidator};
use gimlet::tool::{ToolError, TypedTool};
use gimlet_tools::apply_patch::{self, ApplyPatch};
use gimlet_tools::patch::{
    self, PatchEntry, PatchLog, Patches, ScratchValidator, Stage, Undo, propose_diff, propose_texts,
    write_changes,
};
use gimlet_tools::propose_patch_unified::{self, keep};
use gimlet_tools::{Root, show_patch};
use proptest::prelude::*;
use tokio_util::sync::CancellationToken;

type Tree = BTreeMap<String, (Vec<u8>, bool)>;

/// Every file below a folder, with its contents and whether it can be run.
fn tree(folder: &Path) -> Tree {
    fn walk(base: &Path, folder: &Path, tree: &mut Tree) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(base, &path, tree);
            } else if path.file_name().unwrap() != ".keep" {
                let executable = fs::metadata(&path).unwrap().permissions().mode() & 0o111 != 0;
                let name = path.strip_prefix(base).unwrap().to_str().unwrap().to_owned();
                tree.insert(name, (fs::read(&path).unwrap(), executable));
            }
        }
    }
    let mut found = Tree::new();
    walk(folder, folder, &mut found);
    found
}

fn fill(folder: &Path, tree: &Tree) {
    for (name, (bytes, executable)) in tree {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(if *executable { 0o755 } else { 0o644 }))
            .unwrap();
    }
}

fn draft<'a>(changes: &'a [FileChange], diff: &'a str) -> Draft<'a> {
    Draft { root: Path::new("/"), changes, diff }
}

fn validator() -> ScratchValidator {
    ScratchValidator { environment: Environment::allowed(std::env::vars_os()) }
}

fn message(error: &ToolError) -> String {
    match error {
        ToolError::Failed(failure) => serde_json::to_string_pretty(failure).unwrap(),
        other @ (ToolError::Suspended(_) | ToolError::Fatal(_)) => panic!("{other}"),
    }
}

/// `before` + `patch.diff` = `after`; git agrees; undoing gives `before` back. Without `after` it must fail, and how it
/// fails is part of what a model reads.
#[tokio::test]
async fn fixtures() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/patches");
    let mut names: Vec<_> =
        fs::read_dir(&fixtures).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert!(names.len() >= 40);
    let mut failures = String::new();
    for name in names {
        let fixture = fixtures.join(&name);
        let before = tree(&fixture.join("before"));
        let diff = fs::read_to_string(fixture.join("patch.diff")).unwrap();
        let temp = tempfile::tempdir().unwrap();
        fill(temp.path(), &before);
        let root = Root::open(temp.path()).unwrap();
        let proposed = propose_diff(&root, "test", &diff);
        if !fixture.join("after").exists() {
            let error = proposed.map(|proposal| proposal.diff).unwrap_err();
            failures.push_str(&format!("## {}\n{}\n\n", name.display(), message(&error)));
            assert_eq!(tree(temp.path()), before);
            continue;
        }
        let proposal = proposed.unwrap_or_else(|error| panic!("{name:?}: {error}"));
        let checked =
            validator().validate(draft(&proposal.changes, &proposal.diff), &CancellationToken::new()).await;
        checked.unwrap_or_else(|error| panic!("{name:?}: {error}\n{}", proposal.diff));
        let undo = Undo::of(&root, &proposal.id, &proposal.changes);
        write_changes(&root, &proposal.changes).unwrap();
        assert_eq!(tree(temp.path()), tree(&fixture.join("after")), "{name:?}");
        patch::undo(&root, &undo).unwrap();
        assert_eq!(tree(temp.path()), before, "{name:?}");
        let folders =
            fs::read_dir(temp.path()).unwrap().filter(|e| e.as_ref().unwrap().path().is_dir()).count();
        let top = before.keys().filter_map(|name| name.split_once('/')).map(|(top, _)| top);
        assert_eq!(
            folders,
            top.collect::<std::collections::BTreeSet<_>>().len(),
            "{name:?} left folders behind"
        );
    }
    insta::assert_snapshot!("failures", failures);
}

struct Project {
    temp: tempfile::TempDir,
    root: Root,
    patches: Patches,
    log: Arc<Log>,
}

#[derive(Default)]
struct Log {
    entries: Mutex<Vec<PatchEntry>>,
    broken: Mutex<bool>,
}

impl PatchLog for Log {
    fn record<'a>(&'a self, entry: &'a PatchEntry) -> BoxFuture<'a, std::io::Result<()>> {
        async move {
            if *self.broken.lock().unwrap() {
                return Err(std::io::Error::other("disk full"));
            }
            // Kept as text, as a store would.
            let text = serde_json::to_string(entry)?;
            self.entries.lock().unwrap().push(serde_json::from_str(&text)?);
            Ok(())
        }
        .boxed()
    }
}

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let temp = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(temp.path().join(name), text).unwrap();
        }
        let log = Arc::new(Log::default());
        let root = Root::open(temp.path()).unwrap();
        Project { temp, root, patches: Patches::with_log(log.clone()), log }
    }

    async fn propose(&self, path: &str, old: &str, new: &str) -> propose_patch_unified::Output {
        let proposal = propose_texts(&self.root, "mend it", path, old, new).unwrap();
        keep(&self.root, &self.patches, &validator(), proposal, &CancellationToken::new()).await.unwrap()
    }

    async fn apply(&self, id: &str) -> Result<apply_patch::Output, ToolError> {
        let input = apply_patch::Input::of(id);
        apply_patch::apply(&self.root, &self.patches, &validator(), &input, &CancellationToken::new()).await
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.temp.path().join(name)).unwrap()
    }

    fn tool(&self) -> ApplyPatch {
        ApplyPatch {
            root: self.root.clone(),
            patches: self.patches.clone(),
            validator: Arc::new(validator()),
        }
    }
}

#[tokio::test]
async fn a_patch_is_proposed_shown_applied_and_undone() {
    let project = Project::new(&[("a.py", "x = 1\ny = 2\n")]);
    let proposed = project.propose("a.py", "y = 2\n", "y = 3\n").await;
    assert!(proposed.patch_id.starts_with("patch_") && proposed.patch_id.len() == 16);
    assert_eq!(proposed.validated_by, "git apply --check in a scratch folder");
    assert_eq!(project.read("a.py"), "x = 1\ny = 2\n", "proposing writes nothing");

    let shown =
        show_patch::show(&project.patches, &show_patch::Input { patch_id: proposed.patch_id.clone() })
            .unwrap();
    assert_eq!(
        shown.diff,
        "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n+y = 3\n"
    );
    let input = apply_patch::Input::of(&proposed.patch_id);
    assert_eq!(project.tool().preview(&input), Some(shown.diff));
    let digest = Some(gimlet::digest::digest(b"x = 1\ny = 3\n"));
    assert_eq!(project.tool().effects(&input).unwrap(), [Effect::Write { path: "a.py".into(), digest }]);

    let applied = project.apply(&proposed.patch_id).await.unwrap();
    assert_eq!((applied.ok, applied.files_changed), (true, vec!["a.py".to_owned()]));
    assert_eq!(project.read("a.py"), "x = 1\ny = 3\n");
    let again = project.apply(&proposed.patch_id).await.unwrap_err();
    assert!(again.to_string().starts_with("PATCH_APPLY_FAILED"), "{again}");

    let entries = project.log.entries.lock().unwrap().clone();
    let [PatchEntry::Proposed(_), PatchEntry::Applying(undo), PatchEntry::Applied { .. }] =
        entries.as_slice()
    else {
        panic!("{entries:?}")
    };
    patch::undo(&project.root, undo).unwrap();
    assert_eq!(project.read("a.py"), "x = 1\ny = 2\n");

    let resumed = Patches::default();
    resumed.rebuild(entries);
    assert_eq!(resumed.get(&proposed.patch_id).unwrap().stage, Stage::Applied);
    assert_eq!(resumed.all().len(), 1);
}

#[tokio::test]
async fn a_stale_patch_leaves_the_file_alone() {
    let project = Project::new(&[("a.py", "x = 1\n"), ("b.py", "x = 1\n")]);
    let diff = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n";
    let proposal = propose_diff(&project.root, "both", diff).unwrap();
    let id = proposal.id.clone();
    keep(&project.root, &project.patches, &validator(), proposal, &CancellationToken::new()).await.unwrap();
    fs::write(project.temp.path().join("b.py"), "x = 1  # mine\n").unwrap();
    let error = project.apply(&id).await.unwrap_err();
    assert!(error.to_string().starts_with("PATCH_APPLY_FAILED: b.py has changed"), "{error}");
    assert_eq!(
        (project.read("a.py").as_str(), project.read("b.py").as_str()),
        ("x = 1\n", "x = 1  # mine\n")
    );
    assert_eq!(fs::read_dir(project.temp.path()).unwrap().count(), 2, "nothing is left behind");
    assert_eq!(project.patches.get(&id).unwrap().stage, Stage::Proposed);
    fs::write(project.temp.path().join("b.py"), "x = 1\n").unwrap();
    project.apply(&id).await.unwrap();
}

#[tokio::test]
async fn an_undo_never_overwrites_later_work() {
    let project = Project::new(&[("a.py", "x = 1\n")]);
    let proposal = propose_texts(&project.root, "x", "a.py", "x = 1\n", "x = 2\n").unwrap();
    let undo = Undo::of(&project.root, &proposal.id, &proposal.changes);
    write_changes(&project.root, &proposal.changes).unwrap();
    fs::write(project.temp.path().join("a.py"), "x = 3\n").unwrap();
    assert!(patch::undo(&project.root, &undo).is_err());
    assert_eq!(project.read("a.py"), "x = 3\n");
}

#[test]
fn a_failure_in_the_middle_is_taken_back() {
    let project = Project::new(&[("a.txt", "1\n"), ("b.txt", "1\n")]);
    let state = |text: &str| Some(FileState { text: text.into(), mode: Some(0o644) });
    let change = |path: &str, before: Option<FileState>, after: Option<FileState>| FileChange {
        path: path.into(),
        renamed_from: None,
        before,
        after,
    };
    // No plan removes a file twice; here it makes the last step fail after all others were done.
    let changes = [
        change("a.txt", state("1\n"), state("2\n")),
        change("deep/new", None, state("x\n")),
        change("b.txt", state("1\n"), None),
        change("b.txt", state("1\n"), None),
    ];
    let before = tree(project.temp.path());
    let error = write_changes(&project.root, &changes).unwrap_err();
    assert!(error.to_string().ends_with("nothing was changed"), "{error}");
    assert_eq!(tree(project.temp.path()), before);
    assert!(!project.temp.path().join("deep").exists());
}

#[tokio::test]
async fn a_log_that_cannot_be_written_ends_the_run_before_a_file_is_touched() {
    let project = Project::new(&[("a.py", "x = 1\n")]);
    let id = project.propose("a.py", "x = 1\n", "x = 2\n").await.patch_id;
    *project.log.broken.lock().unwrap() = true;
    assert!(matches!(project.apply(&id).await.unwrap_err(), ToolError::Fatal(_)));
    assert_eq!(project.read("a.py"), "x = 1\n");
}

#[tokio::test]
async fn a_crash_in_the_middle_of_applying_is_found_out() {
    let project = Project::new(&[("a.py", "x = 1\n")]);
    let id = project.propose("a.py", "x = 1\n", "x = 2\n").await.patch_id;
    let applying = |project: &Project| {
        let changes = project.patches.get(&id).unwrap().changes;
        PatchEntry::Applying(Undo::of(&project.root, &id, &changes))
    };
    // It stopped before the file was written: applying again writes it.
    project.patches.step(applying(&project)).await.unwrap();
    project.apply(&id).await.unwrap();
    assert_eq!(project.read("a.py"), "x = 2\n");
    // It stopped after the file was written: applying again only says so.
    project.patches.step(applying(&project)).await.unwrap();
    assert_eq!(project.apply(&id).await.unwrap().files_changed, ["a.py"]);
    assert_eq!(project.patches.get(&id).unwrap().stage, Stage::Applied);
    // Someone else wrote it: nothing is overwritten.
    project.patches.step(applying(&project)).await.unwrap();
    fs::write(project.temp.path().join("a.py"), "x = 3\n").unwrap();
    assert!(project.apply(&id).await.is_err());
    assert_eq!(project.read("a.py"), "x = 3\n");
}

#[tokio::test]
async fn an_unknown_patch_is_said() {
    let project = Project::new(&[]);
    let error = project.apply("patch_0000000000").await.unwrap_err();
    assert!(error.to_string().starts_with("PATCH_NOT_FOUND"));
}

#[tokio::test]
async fn the_index_and_modes_stay_as_they_are() {
    let project = Project::new(&[("run.sh", "echo 1\n")]);
    let git = |arguments: &[&str]| {
        let done = std::process::Command::new("git")
            .args(arguments)
            .current_dir(project.temp.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "run.sh"]);
    let index = fs::read(project.temp.path().join(".git/index")).unwrap();
    fs::set_permissions(project.temp.path().join("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    let id = project.propose("run.sh", "echo 1", "echo 2").await.patch_id;
    project.apply(&id).await.unwrap();
    assert_eq!(project.read("run.sh"), "echo 2\n");
    let mode = fs::metadata(project.temp.path().join("run.sh")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o750);
    assert_eq!(fs::read(project.temp.path().join(".git/index")).unwrap(), index);
}

#[test]
fn old_and_new_text_are_found_in_the_file() {
    let project =
        Project::new(&[("w.txt", "one\r\n  two\r\nthree\r\n"), ("empty", ""), ("twice", "a\nb\na\n")]);
    let after = |path: &str, old: &str, new: &str| {
        let proposal = propose_texts(&project.root, "x", path, old, new)?;
        Ok::<_, ToolError>(proposal.changes[0].after.clone().unwrap().text)
    };
    assert_eq!(after("w.txt", "two\nthree", "2\n3").unwrap(), "one\r\n  2\r\n3\r\n");
    assert_eq!(after("empty", "", "x\n").unwrap(), "x\n");
    assert_eq!(after("new/file", "", "x").unwrap(), "x");
    assert_eq!(after("twice", "b\na\n", "c\n").unwrap(), "a\nc\n");
    assert!(after("twice", "a\n", "c\n").unwrap_err().to_string().contains("fits at lines 1, 3"));
    assert!(after("twice", "", "c\n").unwrap_err().to_string().contains("not empty"));
    assert!(after("none", "a", "b").unwrap_err().to_string().starts_with("FILE_NOT_FOUND"));
    assert!(after("twice", "a\nb\na\n", "a\nb\na\n").unwrap_err().to_string().contains("changes nothing"));
}

#[test]
fn files_that_are_not_text_are_refused() {
    let project = Project::new(&[]);
    fs::write(project.temp.path().join("latin"), b"caf\xe9\n").unwrap();
    let error = propose_texts(&project.root, "x", "latin", "caf", "tea").unwrap_err();
    assert!(error.to_string().starts_with("BINARY_FILE"));
}

fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("a"),
        Just("b"),
        Just("c"),
        Just(""),
        Just("    a"),
        Just("\tb "),
        Just("-- x"),
        Just("++ y"),
        Just("@@ -1 +1 @@"),
        Just("“q”"),
        Just("--- a/f"),
        Just("\\ No newline at end of file"),
        Just("x y"),
        Just("diff --git a/f b/f"),
        Just("```"),
    ];
    let ending = prop_oneof![4 => Just("\n"), 1 => Just("\r\n")];
    (prop::collection::vec((line, ending), 0..14), any::<bool>()).prop_map(|(lines, newline)| {
        let mut text: String = lines.iter().flat_map(|(line, ending)| [*line, *ending]).collect();
        if !newline {
            text.truncate(text.trim_end_matches(['\r', '\n']).len());
        }
        text
    })
}

fn state() -> impl Strategy<Value = Option<FileState>> {
    prop::option::weighted(
        0.8,
        (text(), any::<bool>()).prop_map(|(text, executable)| FileState {
            text,
            mode: Some(if executable { 0o755 } else { 0o644 }),
        }),
    )
}

fn changes() -> impl Strategy<Value = Vec<FileChange>> {
    let names = ["f", "deep/er/g", "sp ace", "é"];
    prop::collection::vec((state(), state()), names.len()).prop_map(move |states| {
        let pairs = names.iter().zip(states).filter(|(_, (before, after))| before != after);
        pairs
            .map(|(name, (before, after))| FileChange {
                path: (*name).into(),
                renamed_from: None,
                before,
                after,
            })
            .collect()
    })
}

fn write_before(folder: &Path, changes: &[FileChange]) {
    let mut before = Tree::new();
    for change in changes {
        if let Some(state) = &change.before {
            before.insert(
                change.path.clone(),
                (state.text.clone().into_bytes(), state.git_mode() == 0o100_755),
            );
        }
    }
    fill(folder, &before);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// What we write as a diff is read back as the very same change, and undoing it restores every byte and mode.
    #[test]
    fn a_diff_is_read_back_applied_and_undone(changes in changes()) {
        prop_assume!(!changes.is_empty());
        let temp = tempfile::tempdir().unwrap();
        write_before(temp.path(), &changes);
        let before = tree(temp.path());
        let root = Root::open(temp.path()).unwrap();
        let diff = patch::render(&changes);
        let proposal = propose_diff(&root, "x", &diff).unwrap_or_else(|error| panic!("{error}\n{diff}"));
        for change in &changes {
            let read = proposal.changes.iter().find(|read| read.path == change.path).unwrap();
            let text = |state: &Option<FileState>| state.as_ref().map(|state| (state.text.clone(), state.git_mode()));
            prop_assert_eq!(text(&read.after), text(&change.after), "{}", diff);
        }
        let undo = Undo::of(&root, &proposal.id, &proposal.changes);
        write_changes(&root, &proposal.changes).unwrap();
        patch::undo(&root, &undo).unwrap();
        prop_assert_eq!(tree(temp.path()), before);
    }

    /// No text a model may write breaks the reader, and what it accepts it can also write.
    #[test]
    fn any_text_is_read_or_refused(text in "(?s)(--- a/f\n|\\+\\+\\+ b/f\n|@@ -[0-9],[0-9] \\+1 @@\n|[ +-]?[ab]?\n|```\n|\\\\ No newline\n|.){0,30}") {
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("f"), "a\nb\na\n").unwrap();
        let _ = propose_diff(&Root::open(temp.path()).unwrap(), "x", &text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Git agrees with every diff we write.
    #[test]
    fn git_accepts_what_is_written(changes in changes()) {
        prop_assume!(!changes.is_empty());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let diff = patch::render(&changes);
        runtime
            .block_on(async { validator().validate(draft(&changes, &diff), &CancellationToken::new()).await })
            .unwrap_or_else(|error| panic!("{error}\n{diff}"));
    }
}

/// What small models do to a diff.
#[derive(Debug, Clone)]
struct Damage {
    shift: Option<usize>,
    no_numbers: bool,
    no_prefixes: bool,
    crlf: bool,
    fenced: bool,
    blank_lines: usize,
    bare_blank_context: bool,
    indent: usize,
}

fn damage() -> impl Strategy<Value = Damage> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (prop::option::of(0usize..90), flags, 0usize..3, 0usize..5).prop_map(
        |(shift, flags, blank_lines, indent)| Damage {
            shift,
            no_numbers: flags.0,
            no_prefixes: flags.1,
            crlf: flags.2,
            fenced: flags.3,
            bare_blank_context: flags.4,
            blank_lines,
            indent,
        },
    )
}

impl Damage {
    fn apply(&self, diff: &str) -> String {
        let mut out = String::new();
        for line in diff.lines().filter(|line| !line.starts_with("diff --git")) {
            let line = match line.chars().next() {
                Some('@') if self.no_numbers => "@@ ... @@".to_owned(),
                Some('@') => match self.shift {
                    Some(shift) => format!("@@ -{shift},99 +{shift},1 @@"),
                    None => line.to_owned(),
                },
                Some('-' | '+') if self.no_prefixes && line.contains(" a/") => line.replace(" a/", " "),
                Some('-' | '+') if self.no_prefixes && line.contains(" b/") => line.replace(" b/", " "),
                Some(' ') if self.bare_blank_context && line == " " => String::new(),
                // The model copied the unchanged and removed lines with another indentation, and wrote its own alike.
                Some(sign @ (' ' | '-' | '+'))
                    if line.len() > 1 && !line.starts_with("---") && !line.starts_with("+++") =>
                {
                    format!("{sign}{}{}", " ".repeat(self.indent), &line[1..])
                }
                Some(_) | None => line.to_owned(),
            };
            out.push_str(&line);
            out.push('\n');
        }
        out.push_str(&"\n".repeat(self.blank_lines));
        if self.fenced {
            out = format!("Sure:\n\n```diff\n{out}```\nDone.\n");
        }
        if self.crlf { out.replace('\n', "\r\n") } else { out }
    }
}

/// A text of lines that all differ, and another version of it.
fn versions() -> impl Strategy<Value = (String, String)> {
    prop::collection::vec((0u8..8, any::<bool>()), 1..40).prop_map(|operations| {
        let (mut before, mut after) = (String::new(), String::new());
        for (index, (operation, inner)) in operations.iter().enumerate() {
            let indent = if *inner { "    " } else { "" };
            let line = format!("{indent}line number {index} = {}\n", index * index);
            let new = format!("{indent}a new line after {index}\n");
            match operation {
                0 => before.push_str(&line),
                1 => {
                    before.push_str(&line);
                    after.push_str(&new);
                }
                2 => {
                    before.push_str(&line);
                    after.push_str(&line);
                    after.push_str(&new);
                }
                _ => {
                    before.push_str(&line);
                    after.push_str(&line);
                }
            }
        }
        (before, after)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// However a diff is damaged, it means the same as long as its lines say where it belongs.
    #[test]
    fn damaged_diffs_mean_the_same((before, after) in versions(), damage in damage()) {
        prop_assume!(before != after && !after.is_empty());
        let temp = tempfile::tempdir().unwrap();
        fs::write(temp.path().join("f.txt"), &before).unwrap();
        let state = |text: &str| Some(FileState { text: text.into(), mode: Some(0o644) });
        let change = FileChange { path: "f.txt".into(), renamed_from: None, before: state(&before), after: state(&after) };
        let diff = damage.apply(&patch::render(&[change]));
        let proposal = propose_diff(&Root::open(temp.path()).unwrap(), "x", &diff)
            .unwrap_or_else(|error| panic!("{error}\n{before}\n{diff}"));
        let got = proposal.changes[0].after.clone().unwrap().text;
        prop_assert_eq!(got, after, "{}", diff);
    }
}
