//! Who may know whom: front ends know the runtime, the runtime knows the parts, the parts know the core, and the core is
//! built from leaves that know nothing of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The crates of the workspace, and which of them each one is built from.
fn crates() -> BTreeMap<String, BTreeSet<String>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let manifest = std::fs::read_to_string(entry.path().join("Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&manifest).unwrap();
        let known = manifest.get("dependencies").and_then(toml::Value::as_table).into_iter().flatten();
        let known = known.map(|(name, _)| name.clone()).filter(|name| name.starts_with("gimlet")).collect();
        found.insert(entry.file_name().to_string_lossy().into_owned(), known);
    }
    found
}

#[test]
fn front_ends_know_only_the_runtime_and_the_core() {
    let crates = crates();
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    // The way to a terminal, and an evaluation, are part of the terminal's front end.
    assert_eq!(
        crates["gimlet-cli"],
        set(&["gimlet", "gimlet-acp", "gimlet-eval", "gimlet-runtime", "gimlet-term", "gimlet-web"])
    );
    assert_eq!(crates["gimlet-web"], set(&["gimlet", "gimlet-runtime"]));
    assert_eq!(crates["gimlet-eval"], set(&["gimlet", "gimlet-runtime", "gimlet-term"]));
    assert_eq!(crates["gimlet-acp"], set(&["gimlet", "gimlet-runtime"]));
    assert_eq!(crates["gimlet-term"], set(&["gimlet"]));
    // The leaves below the core: each knows only the ones before it. Everybody else reaches them through the core.
    assert_eq!(crates["gimlet-text"], set(&[]));
    assert_eq!(crates["gimlet-host"], set(&["gimlet-text"]));
    assert_eq!(crates["gimlet-event"], set(&["gimlet-host", "gimlet-text"]));
    assert_eq!(crates["gimlet-reply"], set(&["gimlet-event", "gimlet-text"]));
    assert_eq!(crates["gimlet"], set(&["gimlet-event", "gimlet-host", "gimlet-reply", "gimlet-text"]));
    for (name, known) in &crates {
        let may_know = match name.as_str() {
            "gimlet-cli" | "gimlet-acp" | "gimlet-eval" | "gimlet-web" | "gimlet-term" | "gimlet-runtime"
            | "gimlet-testkit" | "gimlet" | "gimlet-event" | "gimlet-host" | "gimlet-reply"
            | "gimlet-text" => continue,
            // Settings are about the parts.
            "gimlet-config" => set(&["gimlet", "gimlet-models", "gimlet-python", "gimlet-tools"]),
            // Tools show what the index of a repository knows.
            "gimlet-tools" => set(&["gimlet", "gimlet-repo"]),
            _ => set(&["gimlet"]),
        };
        assert!(known.is_subset(&may_know), "{name} knows {known:?}");
    }
}

/// What crates.io and people who look for a crate want to know of it.
#[test]
fn a_crate_says_what_it_is() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let manifest = std::fs::read_to_string(entry.path().join("Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&manifest).unwrap();
        let package = &manifest["package"];
        if package.get("publish").is_some_and(|publish| publish.as_bool() == Some(false)) {
            continue;
        }
        for key in ["description", "license", "readme", "keywords", "categories", "rust-version"] {
            assert!(package.get(key).is_some(), "{} has no {key}", entry.path().display());
        }
        seen += 1;
    }
    assert!(seen > 15, "{seen}");
}

/// A file that lies outside of its crate is missing in the package that `cargo publish` would make.
#[test]
fn a_crate_holds_every_file_that_it_includes() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let include = regex::Regex::new(r#"include_(?:str|bytes)!\(\s*"([^"]+)""#).unwrap();
    let mut seen = 0;
    for owner in std::fs::read_dir(crates).unwrap().flatten().map(|entry| entry.path()) {
        for file in ignore::Walk::new(owner.join("src")).flatten() {
            let path = file.path();
            if path.extension().is_none_or(|end| end != "rs") {
                continue;
            }
            for (_, [named]) in
                include.captures_iter(&std::fs::read_to_string(path).unwrap()).map(|c| c.extract())
            {
                seen += 1;
                let folder = path.parent().unwrap().join(named).parent().unwrap().canonicalize();
                let folder = folder.unwrap_or_else(|error| panic!("{}: {named}: {error}", path.display()));
                assert!(folder.starts_with(&owner), "{} includes {named}", path.display());
            }
        }
    }
    assert!(seen > 10, "only {seen} includes were found: the pattern does not fit any more");
}
