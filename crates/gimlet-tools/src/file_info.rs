//! `file_info`: what is at a path.

use gimlet::effect::Effect;
use gimlet::tool::{Manner, Tells, ToolCx, ToolError, TypedTool, code as core};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::root::{Kind, PathError, Root};

/// The tool.
#[derive(Debug, Clone)]
pub struct FileInfo {
    /// Where it may look.
    pub root: Root,
}

/// Tell whether a path is a file or a folder, how large it is and when it was changed.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct Input {
    /// Path relative to the project root.
    pub path: String,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Output {
    /// The path, with links followed.
    pub path: String,
    /// `file` or `folder`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Size in bytes.
    pub size: u64,
    /// Size for people.
    pub human_size: String,
    /// When it was last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modified: Option<String>,
}

impl TypedTool for FileInfo {
    const NAME: &'static str = "file_info";
    type Input = Input;
    type Output = Output;

    fn manner(&self) -> Manner {
        Manner { tells: Tells::Where, ..Manner::default() }
    }

    fn effects(&self, input: &Input) -> Result<Vec<Effect>, ToolError> {
        Ok(vec![Effect::Read { path: self.root.resolve(&input.path)?.as_path().into() }])
    }

    async fn run(&self, input: Input, _cx: &ToolCx) -> Result<Output, ToolError> {
        info(&self.root, &input)
    }
}

/// Looks at a path.
pub fn info(root: &Root, input: &Input) -> Result<Output, ToolError> {
    let path = root.resolve(&input.path)?;
    let found = root.look(&path)?;
    let kind = match found.kind {
        Kind::File => "file",
        Kind::Folder => "folder",
        Kind::Link | Kind::Other => {
            return Err(PathError::NotAFile { path: path.display(), what: found.kind.what() }.into());
        }
    };
    let modified = found
        .modified
        .map(|time| Timestamp::try_from(time).map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()))
        .transpose()
        .map_err(|error| ToolError::failed(core::TOOL_EXCEPTION, format!("unreadable time: {error}")))?;
    Ok(Output { path: path.display(), kind, size: found.size, human_size: human_size(found.size), modified })
}

fn human_size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KB", "MB", "GB", "TB", "PB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    #[expect(clippy::cast_precision_loss, reason = "one digit after the point is shown")]
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_folders_are_told_apart() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("src")).unwrap();
        std::fs::write(temp.path().join("src/a.rs"), [b'x'; 1536]).unwrap();
        let root = Root::open(temp.path()).unwrap();
        let file = info(&root, &Input { path: "./src/../src/a.rs".into() }).unwrap();
        assert_eq!((file.path.as_str(), file.kind, file.size), ("src/a.rs", "file", 1536));
        assert_eq!(file.human_size, "1.5 KB");
        assert!(file.modified.is_some_and(|time| time.ends_with('Z') && time.len() == 20));
        assert_eq!(info(&root, &Input { path: ".".into() }).unwrap().kind, "folder");
    }

    #[test]
    fn sizes_are_readable() {
        assert_eq!(human_size(0), "0 bytes");
        assert_eq!(human_size(1023), "1023 bytes");
        assert_eq!(human_size(1024 * 1024), "1.0 MB");
        assert_eq!(human_size(u64::MAX), "16384.0 PB");
    }
}
