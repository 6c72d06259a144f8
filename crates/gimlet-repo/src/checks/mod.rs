//! Checking a repository: which command runs its tests, which command a task names, and what a test runner's output says.

mod discover;
mod manifest;
mod named;
mod reduce;

pub use discover::{TestCommand, discover};
pub use named::named_in;
pub use reduce::{Reduced, reduce};

/// A program that runs tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runner {
    /// pytest.
    Pytest,
    /// Python's `unittest`.
    Unittest,
    /// `cargo test` and `cargo nextest`.
    Cargo,
    /// `go test`.
    Go,
    /// Jest.
    Jest,
    /// Vitest.
    Vitest,
    /// `node --test`.
    Node,
    /// Maven.
    Maven,
    /// Gradle.
    Gradle,
    /// CMake's `ctest`.
    Ctest,
    /// `make`, which runs something else.
    Make,
    /// RSpec.
    Rspec,
    /// Minitest.
    Minitest,
    /// Bats, and everything else that prints TAP.
    Bats,
    /// A script of a `package.json`, which runs something else.
    Npm,
    /// Anything else.
    Other,
}

impl Runner {
    /// The runner that a command starts.
    pub fn of(command: &str) -> Runner {
        let words: Vec<&str> =
            command.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect();
        let has =
            |word: &str| words.iter().any(|known| *known == word || known.rsplit('/').next() == Some(word));
        let table: &[(&str, Runner)] = &[
            ("unittest", Runner::Unittest),
            ("pytest", Runner::Pytest),
            ("py.test", Runner::Pytest),
            ("cargo", Runner::Cargo),
            ("vitest", Runner::Vitest),
            ("jest", Runner::Jest),
            ("ctest", Runner::Ctest),
            ("rspec", Runner::Rspec),
            ("bats", Runner::Bats),
            ("mvn", Runner::Maven),
            ("mvnw", Runner::Maven),
            ("gradle", Runner::Gradle),
            ("gradlew", Runner::Gradle),
            ("go", Runner::Go),
            ("node", Runner::Node),
            ("rake", Runner::Minitest),
            ("ruby", Runner::Minitest),
            ("npm", Runner::Npm),
            ("yarn", Runner::Npm),
            ("pnpm", Runner::Npm),
            ("make", Runner::Make),
        ];
        table.iter().find(|(word, _)| has(word)).map_or(Runner::Other, |(_, runner)| *runner)
    }
}
