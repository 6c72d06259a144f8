//! Any text gets a verdict, a jail never makes it worse, and what is forbidden stays so whatever comes after it.

use gimlet::effect::Verdict;
use gimlet_policy::{Context, Jail, Policy};

/// Judges a command with and without a jail, alone and behind a forbidden one.
pub fn run(data: &[u8]) -> &'static str {
    let Ok(text) = std::str::from_utf8(data) else { return "not text" };
    let policy = Policy::builtin();
    let judge = |text: &str, jail: Jail| policy.check(text, &Context::new("/srv/project", jail)).verdict;
    let (jailed, bare) = (judge(text, Jail::Active), judge(text, Jail::Absent));
    assert!(severity(&jailed) <= severity(&bare), "a jail made it worse: {jailed:?}, {bare:?}");
    let behind = judge(&format!("rm -rf /\n{text}"), Jail::Active);
    assert!(matches!(behind, Verdict::Deny(_)), "hidden by what follows: {behind:?}");
    jailed.word()
}

fn severity(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Allow => 0,
        Verdict::Ask(_) => 1,
        Verdict::Deny(_) => 2,
    }
}
