//! How long a typical check takes: the median and the spread of a hundred samples of a hundred checks each, by the
//! function the product calls. Run with `cargo bench -p gimlet-policy --bench check`.

use std::path::PathBuf;

use divan::Bencher;
use gimlet_policy::{Context, Jail, Policy, Report};

fn main() {
    divan::main();
}

fn context() -> Context {
    let mut context = Context::new("/srv/project", Jail::Active);
    context.home = Some(PathBuf::from("/home/someone"));
    context
}

#[divan::bench(sample_count = 100, sample_size = 100, args = [
    "ls -la",
    "pytest -q tests/test_a.py 2>&1 | tail -20",
    "git diff --stat HEAD~1 -- src",
    "grep -rn --include='*.py' 'def main' src | head",
    "cd src && rg -n 'fn main' && cargo test -p gimlet",
    "sudo env X=1 bash -c 'rm -rf /'",
    "find . -name '*.rs' -not -path './target/*' | xargs wc -l | sort -n > sizes.txt",
])]
fn check(bencher: Bencher<'_, '_>, command: &str) {
    let (policy, context) = (Policy::builtin(), context());
    bencher.bench(|| -> Report { policy.check(divan::black_box(command), &context) });
}

#[divan::bench]
fn builtin() -> Policy {
    Policy::builtin()
}
