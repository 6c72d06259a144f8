//! The Python program that keeps a session in a full CPython: in a container, or in the jail of commands.

/// The runner. Tools that fail in it raise what they raise in the embedded interpreter.
const RUNNER: &str =
    concat!(include_str!("../container/_gimlet_errors.py"), include_str!("../container/runner.py"));
/// Reads the runner from its first argument, so that no file of ours has to be where it runs. The current folder is not
/// searched for the modules of the runner itself.
const BOOT: &str =
    "import sys; sys.path[:] = filter(None, sys.path); exec(compile(sys.argv.pop(1), '<gimlet>', 'exec'))";

/// The arguments of the interpreter. `first` is how many bytes of an archive come before the first frame, or `wait`;
/// `gaps` is what of the project the archive lacks, in words.
pub(crate) fn arguments<'a>(first: &'a str, gaps: &'a str) -> [&'a str; 7] {
    ["-X", "no_debug_ranges", "-c", BOOT, RUNNER, first, gaps]
}
