//! Turns the blocks of a reply into new texts of files, or says in words for the model why it cannot. Nothing is written
//! here, and a reply counts as a whole: one block that does not fit refuses all of them.

use std::collections::BTreeMap;

use super::ladder;
use super::reply::Block;

/// New texts by path; none for a file that is removed.
pub type Texts = BTreeMap<String, Option<String>>;

/// What a reply is applied to.
pub struct Base<'a> {
    /// Files the model was asked to change or create.
    pub files: &'a [String],
    /// Files that must not be written.
    pub protected: &'a [String],
    /// What the person asked for.
    pub task: &'a str,
    /// The text of a file as the model was shown it; none if there is no such file.
    pub read: &'a dyn Fn(&str) -> Result<Option<String>, String>,
}

/// Language tags of fences that show commands and output rather than files.
const NO_FILES: [&str; 10] =
    ["bash", "sh", "shell", "console", "text", "txt", "output", "plaintext", "diff", "json"];

impl Base<'_> {
    /// The texts a reply gives to files.
    pub fn texts(&self, blocks: Vec<Block>) -> Result<Texts, String> {
        let mut texts = Texts::new();
        let mut nameless: Vec<(String, String)> = Vec::new();
        let mut only_tests = false;
        for block in blocks {
            let named = match &block {
                Block::Whole { path, .. } | Block::Replace { path, .. } => path.as_deref(),
                Block::Delete { path } => Some(path.as_str()),
            };
            let path = named.map(|path| self.meant(path));
            if path.as_ref().is_some_and(|path| self.protected.contains(path)) {
                only_tests = true;
                continue;
            }
            match (block, path) {
                (Block::Whole { text, language, .. }, None) => nameless.push((language, text)),
                (Block::Whole { text, language, .. }, Some(path)) => {
                    self.add_whole(path, language, text, &mut texts, &mut nameless)?;
                }
                (Block::Replace { search, replace, .. }, path) => {
                    let path = path.or_else(|| self.only_file()).ok_or("write the path before each block")?;
                    self.add_replaced(path, &search, &replace, &mut texts)?;
                }
                (Block::Delete { .. }, Some(path)) => {
                    if (self.read)(&path)?.is_none() {
                        return Err(format!("there is no file {path} to delete"));
                    }
                    texts.insert(path, None);
                }
                (Block::Delete { .. }, None) => {}
            }
        }
        if texts.is_empty()
            && let Some(text) = self.best_nameless(nameless)
        {
            let path =
                self.only_file().ok_or("write the path of each file on the line before its code block")?;
            refuse_elision(&path, &text, (self.read)(&path)?.as_deref())?;
            texts.insert(path, Some(text));
        }
        match (texts.is_empty(), only_tests) {
            (false, _) => Ok(texts),
            (true, true) => Err("the test must not be changed; change the code that it tests".into()),
            (true, false) => Err("it holds no code block with a file".into()),
        }
    }

    fn add_whole(
        &self,
        path: String,
        language: String,
        text: String,
        texts: &mut Texts,
        nameless: &mut Vec<(String, String)>,
    ) -> Result<(), String> {
        let before = (self.read)(&path)?;
        let is_asked = self.files.contains(&path);
        match before {
            // Small models rename the only file they are asked for.
            None if !is_asked && self.only_file().is_some() && !self.task.contains(&path) => {
                nameless.push((language, text));
                return Ok(());
            }
            Some(_) if !is_asked => {
                return Err(format!("{path} was not shown, so it cannot be replaced as a whole"));
            }
            Some(_) | None => {}
        }
        refuse_elision(&path, &text, before.as_deref())?;
        texts.insert(path, Some(text));
        Ok(())
    }

    fn add_replaced(
        &self,
        path: String,
        search: &str,
        replace: &str,
        texts: &mut Texts,
    ) -> Result<(), String> {
        let before = match texts.get(&path) {
            Some(text) => text.clone(),
            None => (self.read)(&path)?,
        };
        let after = match before {
            None if search.trim().is_empty() => replace.to_owned(),
            None => return Err(format!("there is no file {path}")),
            Some(before) if before.trim().is_empty() && search.trim().is_empty() => replace.to_owned(),
            Some(before) => {
                ladder::replace(&before, search, replace).map_err(|error| format!("{path}: {error}"))?
            }
        };
        texts.insert(path, Some(after));
        Ok(())
    }

    /// The file a path in a reply means: itself, or the one that was asked for under the same name.
    fn meant(&self, path: &str) -> String {
        let known = || self.files.iter().chain(self.protected);
        if known().any(|file| file == path) {
            return path.to_owned();
        }
        let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let mut same = known().filter(|file| name(file) == name(path));
        match (same.next(), same.next()) {
            (Some(only), None) if !matches!((self.read)(path), Ok(Some(_))) => only.clone(),
            _ => path.to_owned(),
        }
    }

    fn only_file(&self) -> Option<String> {
        match self.files {
            [only] => Some(only.clone()),
            [] | [_, ..] => None,
        }
    }

    /// The block without a path that is most likely the file: not commands or output, and the longest.
    fn best_nameless(&self, blocks: Vec<(String, String)>) -> Option<String> {
        let is_file = |language: &str| {
            let ending =
                self.only_file().and_then(|path| path.rsplit_once('.').map(|(_, ending)| ending.to_owned()));
            !NO_FILES.contains(&language) || ending.as_deref() == Some(language)
        };
        let texts =
            blocks.into_iter().filter(|(language, text)| is_file(language) && !text.trim().is_empty());
        texts.map(|(_, text)| text).max_by_key(String::len)
    }
}

/// Refuses a "whole" file in which a comment stands for lines that are left out.
fn refuse_elision(path: &str, text: &str, before: Option<&str>) -> Result<(), String> {
    let stands_for_more = |line: &str| {
        let line = line.trim();
        let comment = ["#", "//", "--", "/*", "<!--"].iter().find_map(|mark| line.strip_prefix(mark));
        let words = comment.map(|words| words.trim().to_ascii_lowercase()).unwrap_or_default();
        (words.starts_with("...") || words.starts_with('…'))
            && ["rest", "existing", "unchanged", "remaining", "other", "same", "previous"]
                .iter()
                .any(|word| words.contains(word))
    };
    let left_out = text.lines().find(|line| stands_for_more(line));
    match left_out.filter(|line| !before.is_some_and(|before| before.contains(*line))) {
        Some(line) => {
            Err(format!("{path} leaves lines out (`{}`): write all lines of the file", line.trim()))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::reply::parse;
    use super::*;

    fn texts(files: &[&str], protected: &[&str], reply: &str) -> Result<Texts, String> {
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        let protected: Vec<String> = protected.iter().map(|file| (*file).to_owned()).collect();
        let read = |path: &str| {
            Ok(match path {
                "a.py" => Some("x = 1\ny = 2\n".to_owned()),
                "a_test.py" | "other.py" => Some("t\n".to_owned()),
                _ => None,
            })
        };
        let base = Base { files: &files, protected: &protected, task: "write it", read: &read };
        let known: Vec<&str> = files.iter().map(String::as_str).collect();
        base.texts(parse(reply, &known))
    }

    fn one(path: &str, text: &str) -> Texts {
        Texts::from([(path.to_owned(), Some(text.to_owned()))])
    }

    #[test]
    fn the_only_file_needs_no_right_path() {
        for reply in
            ["```python\nx = 3\n```", "solution.py\n```python\nx = 3\n```", "src/a.py\n```python\nx = 3\n```"]
        {
            assert_eq!(texts(&["a.py"], &[], reply), Ok(one("a.py", "x = 3\n")), "{reply}");
        }
        let with_commands =
            "Run it:\n```bash\npython3 -m unittest a_test -v --and more\n```\n```python\nx = 3\n```";
        assert_eq!(texts(&["a.py"], &["a_test.py"], with_commands), Ok(one("a.py", "x = 3\n")));
    }

    #[test]
    fn the_judge_and_unseen_files_are_not_written() {
        let both = "a.py\n```\nx = 3\n```\na_test.py\n```\nnothing\n```";
        assert_eq!(texts(&["a.py"], &["a_test.py"], both), Ok(one("a.py", "x = 3\n")));
        let test = "a_test.py\n```\nnothing\n```";
        assert!(texts(&["a.py"], &["a_test.py"], test).unwrap_err().contains("test must not be changed"));
        assert!(texts(&["a.py"], &[], "other.py\n```\nx\n```").unwrap_err().contains("was not shown"));
    }

    #[test]
    fn one_block_that_does_not_fit_refuses_all() {
        let good = "<<<<<<< SEARCH\nx = 1\n=======\nx = 3\n>>>>>>> REPLACE\n";
        assert_eq!(texts(&["a.py"], &[], good), Ok(one("a.py", "x = 3\ny = 2\n")));
        let bad = "<<<<<<< SEARCH\nz = 9\n=======\nz = 1\n>>>>>>> REPLACE\n";
        assert!(texts(&["a.py"], &[], &format!("{good}{bad}")).is_err());
        assert!(
            texts(&["a.py"], &[], "a.py\n```python\nx = 1\n# ... rest of the code unchanged\n```").is_err()
        );
        assert_eq!(texts(&["a.py"], &[], "DELETE a.py"), Ok(Texts::from([("a.py".into(), None)])));
        assert!(texts(&["a.py"], &[], "Just call it.").is_err());
    }
}
