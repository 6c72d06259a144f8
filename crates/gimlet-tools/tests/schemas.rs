//! What a model reads about each tool.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::Arc;

use gimlet::command::{Environment, Permissions};
use gimlet_tools::command::HostRunner;
use gimlet_tools::patch::{Patches, ScratchValidator};
use gimlet_tools::read_file::Page;
use gimlet_tools::{Kit, Root};
use serde_json::json;

fn kit() -> (tempfile::TempDir, Kit) {
    let temp = tempfile::tempdir().unwrap();
    let kit = Kit {
        root: Root::open(temp.path()).unwrap(),
        environment: Environment::default(),
        page: Page::default(),
        threads: 1,
        patches: Patches::default(),
        validator: Arc::new(ScratchValidator { environment: Environment::default() }),
        runner: Arc::new(HostRunner),
        permissions: Permissions::default(),
        looks_only: Arc::new(|_| false),
    };
    (temp, kit)
}

#[test]
fn schemas() {
    let (_temp, kit) = kit();
    for tool in kit.reading().into_iter().chain(kit.changing()) {
        let spec = tool.spec();
        let seen = json!({ "name": spec.name, "description": spec.description, "input": spec.input });
        insta::assert_json_snapshot!(spec.name.clone(), seen);
    }
}

#[test]
fn tools_that_change_the_world_never_run_beside_others() {
    let (_temp, kit) = kit();
    for tool in kit.changing() {
        let spec = tool.spec();
        let harmless = ["propose_patch_unified", "propose_patch", "show_patch"].contains(&spec.name.as_str());
        assert_eq!(spec.manner.parallel, harmless, "{}", spec.name);
    }
    assert!(kit.reading().iter().all(|tool| tool.spec().manner.parallel));
}

/// A patch may have to pass tests, which have five minutes.
#[test]
fn tools_that_have_patches_checked_wait_for_the_tests() {
    let (_temp, kit) = kit();
    let patient = kit.changing().into_iter().filter(|tool| tool.spec().manner.timeout.as_secs() > 300 + 60);
    let names: Vec<String> = patient.map(|tool| tool.spec().name.clone()).collect();
    for name in ["propose_patch", "propose_patch_unified", "apply_patch"] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
}
