//! The index of small repositories: ranking, map, tests of a file, and the cache.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use gimlet_repo::Index;

fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let temp = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = temp.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    temp
}

fn names(files: &[(&str, &str)]) -> Vec<PathBuf> {
    files.iter().map(|(name, _)| PathBuf::from(name)).collect()
}

const SHOP: &[(&str, &str)] = &[
    ("README.md", "# Shop\n\nA shop with a cart.\n"),
    (
        "shop/cart.py",
        "from shop.money import format_price\n\nclass Cart:\n    def total(self):\n        return sum(self.prices)\n\n    def show(self):\n        return format_price(self.total())\n",
    ),
    (
        "shop/money.py",
        "def format_price(cents):\n    return f\"{cents / 100:.2f}\"\n\ndef parse_price(text):\n    return int(float(text) * 100)\n",
    ),
    (
        "shop/server.py",
        "from shop.cart import Cart\nfrom shop.money import parse_price\n\ndef handle_request(request):\n    cart = Cart()\n    parse_price(request)\n    return cart.show()\n",
    ),
    (
        "shop/retry.py",
        "def retry_with_backoff(call, attempts):\n    # wait longer after every timeout\n    return call()\n",
    ),
    (
        "tests/test_cart.py",
        "from shop.cart import Cart\n\ndef test_total():\n    assert Cart().total() == 0\n",
    ),
    (
        "tests/test_everything.py",
        "from shop.money import parse_price\n\ndef test_parse():\n    assert parse_price('1') == 100\n",
    ),
];

fn open(temp: &tempfile::TempDir, files: &[(&str, &str)]) -> Index {
    Index::open(temp.path(), None, names(files)).unwrap()
}

#[test]
fn tasks_lead_to_files() {
    let temp = project(SHOP);
    let index = open(&temp, SHOP);
    for (task, expected) in [
        ("fix the rounding in shop/money.py", "shop/money.py"),
        ("parse_price is wrong for 1.10", "shop/money.py"),
        ("parsePrice rundet falsch", "shop/money.py"),
        ("在 Cart 中 total 的结果不对", "shop/cart.py"),
        ("la función handle_request falla", "shop/server.py"),
        ("calls should back off longer after a timeout", "shop/retry.py"),
        ("tests/test_cart.py::test_total fails", "tests/test_cart.py"),
    ] {
        let found = index.rank(task, 3);
        assert_eq!(found[0].path, Path::new(expected), "{task}: {found:#?}");
        assert!(!found[0].why.is_empty(), "{task}");
        assert!(found.windows(2).all(|pair| pair[0].score >= pair[1].score), "{task}");
    }
    assert_eq!(index.rank("parse_price is wrong", 4)[0].why, "defines parse_price, format_price");
    assert_eq!(index.rank("请修复它", 3).len(), 3, "without any hint the central files are offered");
    assert_eq!(index.rank("", 100).len(), SHOP.len());
}

#[test]
fn little_words_of_any_language_lead_nowhere() {
    let files: &[(&str, &str)] = &[
        ("bin/run.sh", "die() { echo \"$1\" >&2; exit 1; }\n\ndie \"no\"\n"),
        ("src/wo.py", "def wo(order):\n    return order\n"),
        ("src/que.py", "class Que:\n    pass\n"),
        ("src/loader.py", "def load_settings(path):\n    # konfiguration\n    return open(path).read()\n"),
        ("src/other.py", "def other():\n    return 1\n"),
    ];
    let temp = project(files);
    let index = open(&temp, files);
    for task in [
        "Wo wird die Konfiguration gelesen? Die Datei fehlt, und die Meldung ist leer.",
        "El programa dice que settings no existe y que no lo encuentra",
    ] {
        assert_eq!(
            index.rank(task, 3)[0].path,
            Path::new("src/loader.py"),
            "{task}: {:#?}",
            index.rank(task, 3)
        );
    }
    for (task, expected) in
        [("src/wo.py is wrong", "src/wo.py"), ("wo.py fails", "src/wo.py"), ("die in run.sh", "bin/run.sh")]
    {
        assert_eq!(index.rank(task, 1)[0].path, Path::new(expected), "{task}");
    }
}

#[test]
fn a_cache_is_neither_read_nor_written_through_a_link() {
    let temp = project(SHOP);
    let cache = tempfile::tempdir().unwrap();
    age(temp.path(), SHOP);
    let open = || Index::open(temp.path(), Some(cache.path()), names(SHOP)).unwrap();
    open();
    let file = fs::read_dir(cache.path()).unwrap().next().unwrap().unwrap().path();
    let elsewhere = temp.path().join("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    let bytes = fs::read(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    assert_eq!(open().reread(), SHOP.len(), "a link is no cache");
    assert_eq!(fs::read(&elsewhere).unwrap(), bytes, "nothing is written through it");
    assert!(fs::symlink_metadata(&file).unwrap().is_file(), "the link gave way to a cache");
    assert_eq!(open().reread(), 0);
}

#[test]
fn old_caches_and_what_a_dead_process_left_are_swept() {
    let temp = project(SHOP);
    let cache = tempfile::tempdir().unwrap();
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    for n in 0..50 {
        let file = fs::File::create(cache.path().join(format!("{n:016x}.index"))).unwrap();
        file.set_modified(old + std::time::Duration::from_secs(n)).unwrap();
    }
    fs::File::create(cache.path().join(".tmpDead")).unwrap().set_modified(old).unwrap();
    Index::open(temp.path(), Some(cache.path()), names(SHOP)).unwrap();
    let left: Vec<String> = fs::read_dir(cache.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(left.len(), 32, "{left:?}");
    assert!(
        !left.contains(&".tmpDead".to_owned()) && !left.contains(&format!("{:016x}.index", 0)),
        "{left:?}"
    );
}

#[test]
fn what_a_candidate_uses_is_found_too() {
    let temp = project(SHOP);
    let found = open(&temp, SHOP).rank("shop/server.py breaks", 10);
    let money = found.iter().find(|candidate| candidate.path == Path::new("shop/money.py")).unwrap();
    assert!(money.score > 0.1, "{found:#?}");
}

#[test]
fn tests_of_a_file_are_found_by_name_and_by_use() {
    let temp = project(SHOP);
    let index = open(&temp, SHOP);
    assert_eq!(index.tests_of(Path::new("shop/cart.py")), [PathBuf::from("tests/test_cart.py")]);
    assert_eq!(index.tests_of(Path::new("shop/money.py")), [PathBuf::from("tests/test_everything.py")]);
    assert!(index.tests_of(Path::new("missing.py")).is_empty());
}

#[test]
fn the_map_shows_what_matters_within_its_budget() {
    let temp = project(SHOP);
    let index = open(&temp, SHOP);
    insta::assert_snapshot!(index.map(2000, &[]));
    for budget in [0, 1, 30, 100, 250, 500] {
        let map = index.map(budget, &[]);
        assert!(map.chars().count() <= budget, "{budget}: {map}");
    }
    assert!(
        index.map(200, &["shop/retry.py".into()]).starts_with("shop/retry.py\n  1: def retry_with_backoff")
    );
}

#[test]
fn a_repository_without_files_is_fine() {
    let temp = project(&[]);
    let index = Index::open(temp.path(), None, Vec::new()).unwrap();
    assert!(index.rank("anything", 5).is_empty() && index.map(500, &[]).is_empty());
    assert!(Index::open(&temp.path().join("missing"), None, Vec::new()).is_err());
}

/// Makes files look old, so that the cache may trust their times.
fn age(root: &Path, files: &[(&str, &str)]) {
    for (name, _) in files {
        let file = fs::File::options().write(true).open(root.join(name)).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000)).unwrap();
    }
}

#[test]
fn the_cache_gives_the_same_answers_and_notices_changes() {
    let temp = project(SHOP);
    let cache = tempfile::tempdir().unwrap();
    age(temp.path(), SHOP);
    let open = || Index::open(temp.path(), Some(cache.path()), names(SHOP)).unwrap();
    let cold = open();
    assert_eq!(cold.reread(), SHOP.len());
    let warm = open();
    assert_eq!(warm.reread(), 0, "nothing is parsed again");
    let task = "parse_price and the cart";
    assert_eq!(cold.rank(task, 9), warm.rank(task, 9));
    assert_eq!(cold.map(3000, &[]), warm.map(3000, &[]));
    // Same size, and the time put back.
    let changed = SHOP[4].1.replace("retry_with_backoff", "again_with_backoff");
    assert_eq!(changed.len(), SHOP[4].1.len());
    fs::write(temp.path().join("shop/retry.py"), changed).unwrap();
    age(temp.path(), &SHOP[4..5]);
    let after = open();
    assert_eq!(after.reread(), 1);
    assert!(after.rank("again_with_backoff", 1)[0].why.contains("again_with_backoff"));
    fs::remove_file(temp.path().join("shop/retry.py")).unwrap();
    assert_eq!(open().files().len(), SHOP.len() - 1);
}

#[test]
fn a_damaged_cache_is_not_used() {
    let temp = project(SHOP);
    let cache = tempfile::tempdir().unwrap();
    let open = || Index::open(temp.path(), Some(cache.path()), names(SHOP)).unwrap();
    let expected = open().rank("parse_price", 9);
    let file = fs::read_dir(cache.path()).unwrap().next().unwrap().unwrap().path();
    let whole = fs::read(&file).unwrap();
    let half = whole[..whole.len() / 2].to_vec();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for damaged in [Vec::new(), b"not a cache".to_vec(), half, flipped] {
        fs::write(&file, damaged).unwrap();
        assert_eq!(open().rank("parse_price", 9), expected);
    }
    // A cache that cannot be written is no reason to fail.
    let blocked = temp.path().join("README.md/x");
    assert_eq!(
        Index::open(temp.path(), Some(&blocked), names(SHOP)).unwrap().rank("parse_price", 9),
        expected
    );
}

#[test]
fn a_hostile_repository_is_survived() {
    let temp = project(&[]);
    let write = |name: &str, bytes: &[u8]| fs::write(temp.path().join(name), bytes).unwrap();
    write("one_line.js", "a(".repeat(500_000).as_bytes());
    write("deep.py", format!("x = {}{}\n", "(".repeat(60_000), ")".repeat(60_000)).as_bytes());
    write("nested.java", "class A{\n".repeat(25_000).as_bytes());
    write("open.c", "{\n".repeat(100_000).as_bytes());
    write("quotes.rb", "\"#{\n".repeat(50_000).as_bytes());
    write("brackets.rs", "fn f(){ a![\n".repeat(20_000).as_bytes());
    write("tags.tsx", "<a>\n".repeat(50_000).as_bytes());
    write("heredoc.sh", "cat <<X\n$(\n".repeat(20_000).as_bytes());
    write("invalid.go", &[0xff, 0xfe, b'f', b'u', b'n', b'c', b' ', 0xc0, b'\n'].repeat(5_000));
    write("binary.cpp", &[0; 4096]);
    write("unicode.py", "é中\u{202e}\n".repeat(20_000).as_bytes());
    std::os::unix::fs::symlink("/etc/passwd", temp.path().join("link.py")).unwrap();
    let files = || {
        fs::read_dir(temp.path()).unwrap().map(|entry| PathBuf::from(entry.unwrap().file_name())).collect()
    };
    let index = Index::open(temp.path(), None, files()).unwrap();
    assert!(!index.files().iter().any(|path| path == Path::new("link.py")), "a link is not read");
    assert!(index.map(5_000, &[]).chars().count() <= 5_000);
    assert_eq!(index.rank("fix deep.py and the class A", 20)[0].path, Path::new("deep.py"));
    let outside =
        Index::open(temp.path(), None, vec!["../x".into(), "/etc/passwd".into(), "a/../../x".into()])
            .unwrap();
    assert!(outside.files().is_empty());
}
