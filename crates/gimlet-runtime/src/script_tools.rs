//! Python files as tools. Each file is served by a small runner as an MCP server is, so that its trust, its jail, its
//! restarts and the guard around its calls are those of MCP servers. The runner is part of this program; a file needs
//! nothing but `python3`, or `uv` where it names packages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gimlet::command::{Network, Permissions, Profile};
use gimlet_config::UsageError;
use gimlet_mcp::config::{Author, Filter, Hints, Launch, Protocol, Remember, ServerConfig};
use serde::Deserialize;
use serde_json::json;

/// The files of the Python package that the runner is made of, in the order in which they need each other.
const MODULES: [(&str, &str); 3] = [
    ("_schema", include_str!("scripts/schema.py")),
    ("_tool", include_str!("scripts/tool.py")),
    ("_serve", include_str!("scripts/serve.py")),
];
/// Makes modules of those files, so that a script can `from gimlet import tool`.
const BOOT: &str = r#"
import os, sys, types, json
package = types.ModuleType("gimlet")
package.__path__ = []
sys.modules["gimlet"] = package
for name, source in json.loads(os.environ.pop("GIMLET_TOOL_RUNNER")):
    module = types.ModuleType("gimlet." + name)
    module.__package__ = "gimlet"
    sys.modules[module.__name__] = module
    exec(compile(source, "gimlet/" + name + ".py", "exec"), module.__dict__)
tools = sys.modules["gimlet._tool"]
package.tool, package.Tool, package.ToolError = tools.tool, tools.Tool, tools.ToolError
module.serve(sys.argv[1])
"#;
/// What the interpreter is told to run: the words of a server are searched for names of files, so they are few.
const START: &str = r#"exec(__import__("os").environ.pop("GIMLET_TOOL_BOOT"))"#;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// The table `[tools]` of a configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Table {
    /// Python files, from the file's own folder on; `*` in the last part of a path stands for any text.
    pub(crate) files: Vec<String>,
}

/// Whether a file named beside servers is one of tools.
pub(crate) fn is_script(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "py")
}

/// The files that a word stands for, in order.
pub(crate) fn files(base: &Path, word: &str) -> anyhow::Result<Vec<PathBuf>> {
    let path = base.join(word);
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((begin, end)) = name.split_once('*') else { return Ok(vec![path]) };
    let folder = path.parent().unwrap_or(base);
    let entries = std::fs::read_dir(folder)
        .map_err(|error| UsageError::new(format!("cannot read {}: {error}", folder.display())))?;
    let fits =
        |name: &str| name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end);
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(fits))
        .collect();
    found.sort();
    Ok(found)
}

/// The server of a file. `text` is what the file holds.
pub(crate) fn server(file: &Path, text: &str, author: Author) -> Result<ServerConfig, UsageError> {
    let name = file.file_stem().and_then(|name| name.to_str()).unwrap_or("tools").to_owned();
    let script = file.display().to_string();
    let tail = ["-c".to_owned(), START.to_owned(), script];
    let packages = packages(text).map_err(|error| UsageError::new(format!("{}: {error}", file.display())))?;
    let (command, args) = if packages.is_empty() {
        ("python3", tail.to_vec())
    } else {
        let with = packages.into_iter().flat_map(|package| ["--with".to_owned(), package]);
        let run = ["run", "--no-project", "--quiet"].map(str::to_owned).into_iter();
        ("uv", run.chain(with).chain(["python".to_owned()]).chain(tail).collect())
    };
    let env = BTreeMap::from([
        ("GIMLET_TOOL_BOOT".to_owned(), BOOT.to_owned()),
        ("GIMLET_TOOL_RUNNER".to_owned(), json!(MODULES).to_string()),
    ]);
    Ok(ServerConfig {
        name,
        launch: Launch::Stdio { command: command.to_owned(), args, env, cwd: None },
        required: Vec::new(),
        filter: Filter::default(),
        // Only the user's own word about a function saves a question.
        hints: match author {
            Author::User => Hints::Believed,
            Author::Project => Hints::Ignored,
        },
        remember: Remember::default(),
        protocol: Protocol::Handshake,
        jail: match author {
            Author::User => None,
            Author::Project => Some(Permissions {
                profile: Profile::ReadOnly,
                network: Network::Blocked,
                ..Permissions::default()
            }),
        },
        connect_timeout: CONNECT_TIMEOUT,
        call_timeout: CALL_TIMEOUT,
    })
}

/// The packages that a file's block `# /// script` names.
fn packages(text: &str) -> Result<Vec<String>, String> {
    #[derive(Deserialize)]
    struct Script {
        #[serde(default)]
        dependencies: Vec<String>,
    }
    let mut lines = text.lines().skip_while(|line| line.trim_end() != "# /// script").skip(1);
    let block: Vec<&str> = lines
        .by_ref()
        .take_while(|line| line.trim_end() != "# ///" && line.starts_with('#'))
        .map(|line| line.strip_prefix("# ").unwrap_or_else(|| line.trim_start_matches('#')))
        .collect();
    let script: Script = toml::from_str(&block.join("\n"))
        .map_err(|error| format!("its `script` block is not TOML: {}", error.message()))?;
    Ok(script.dependencies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_those_of_the_script_block() {
        let text = "#!/usr/bin/env python3\n# /// script\n# dependencies = [\n#   \"rich<14\",\n# ]\n# ///\nimport rich\n";
        assert_eq!(packages(text).unwrap(), ["rich<14"]);
        assert!(packages("x = 1\n").unwrap().is_empty());
        assert!(packages("# /// script\n# dependencies = 3\n# ///\n").is_err());
        let server = server(Path::new("/p/notes.py"), text, Author::User).unwrap();
        let Launch::Stdio { command, args, .. } = server.launch else { panic!("a process") };
        assert_eq!((command.as_str(), args[3].as_str(), args[4].as_str()), ("uv", "--with", "rich<14"));
    }

    #[test]
    fn a_star_stands_for_any_text_in_a_name() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.py", "a.py", "c.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let found = files(folder.path(), "*.py").unwrap();
        let names: Vec<_> = found.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["a.py", "b.py"]);
        assert_eq!(files(folder.path(), "x.py").unwrap(), [folder.path().join("x.py")]);
    }
}
