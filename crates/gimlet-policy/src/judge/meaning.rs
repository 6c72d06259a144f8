//! Programs whose harm is in what their arguments mean together: `find`, `chmod`.

use super::finding::{Finding, Level, Structural};
use super::places::Use;
use super::{Io, Judge, Traits, basename, names};
use crate::paths::{self, Folder};
use crate::shell::Word;

impl Judge<'_> {
    /// `find` removes by itself and runs other programs on what it finds.
    pub(super) fn find(&mut self, args: &[Word], io: &Io<'_>, traits: &mut Traits) -> Vec<Finding> {
        let mut found = Vec::new();
        let is_expression = |word: &&Word| {
            word.text.starts_with('-') && word.text.len() > 1 || matches!(word.text.as_str(), "(" | "!" | ")")
        };
        let leading = args
            .iter()
            .take_while(|word| !is_expression(word) || matches!(word.text.as_str(), "-H" | "-L" | "-P"));
        let starts: Vec<&Word> = leading.filter(|word| !word.text.starts_with('-')).collect();
        let outside = starts.iter().any(|start| {
            let findings = self.place(start, Use::Name);
            findings.iter().any(|finding| finding.level > Level::Allow)
        });
        const FILTERS: &[&str] = &[
            "-name",
            "-iname",
            "-path",
            "-ipath",
            "-wholename",
            "-regex",
            "-iregex",
            "-mtime",
            "-mmin",
            "-ctime",
            "-cmin",
            "-atime",
            "-amin",
            "-size",
            "-newer",
            "-empty",
            "-lname",
            "-inum",
            "-samefile",
            "-user",
            "-links",
            "-perm",
        ];
        let filtered = args.iter().enumerate().any(|(index, word)| {
            let value = args.get(index + 1).map(|word| word.text.as_str()).unwrap_or_default();
            FILTERS.contains(&word.text.as_str()) && !value.trim_matches(['*', '.', '/']).is_empty()
                || word.text == "-empty"
        });
        let mut index = 0;
        while let Some(word) = args.get(index) {
            index += 1;
            match word.text.as_str() {
                "-delete" => {
                    let rule =
                        if filtered && !outside { Structural::FindActs } else { Structural::FindRemoves };
                    found.push(self.found(rule, ""));
                }
                "-exec" | "-execdir" | "-ok" | "-okdir" => {
                    let rest = args.get(index..).unwrap_or_default();
                    let length = rest
                        .iter()
                        .position(|word| matches!(word.text.as_str(), ";" | "+"))
                        .unwrap_or(rest.len());
                    let names = names::found_by(args);
                    let inner: Vec<Word> =
                        rest[..length].iter().flat_map(|part| names::put(part, "{}", &names)).collect();
                    index += length;
                    let removes = inner.first().is_some_and(|word| {
                        matches!(
                            basename(&word.text).to_lowercase().as_str(),
                            "rm" | "unlink" | "shred" | "srm" | "rmdir"
                        )
                    });
                    if removes && (outside || !filtered && inner.len() > 1) {
                        found.push(self.found(Structural::FindRemoves, ""));
                    }
                    let said = self.words(&inner, io, traits);
                    let harmless = said.iter().all(|finding| finding.level == Level::Allow);
                    if word.text != "-exec" || length == rest.len() || !harmless {
                        found.push(self.found(Structural::FindActs, ""));
                    }
                    found.extend(said);
                }
                "-fprint" | "-fprint0" | "-fprintf" | "-fls" => {
                    found.push(self.found(Structural::FindActs, ""));
                    if let Some(target) = args.get(index) {
                        found.extend(self.place(target, Use::Write));
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// `chmod 777` in numbers or letters.
    pub(super) fn chmod(&self, args: &[Word]) -> Option<Finding> {
        let mode = args.iter().find(|word| !word.text.starts_with('-'))?;
        opens_to_everyone(&mode.text).then(|| self.found(Structural::OpenToEveryone, ""))
    }

    /// `cd` moves what relative paths of later commands mean; whether it succeeds is not known, so both count.
    pub(super) fn change_folder(&mut self, args: &[Word]) {
        let target = args.iter().find(|word| !matches!(word.text.as_str(), "--" | "-P" | "-L" | "-e" | "-@"));
        let text = match target {
            Some(word) if word.is_known() && word.text != "-" => word.text.clone(),
            None if self.context.home.is_some() => {
                self.context.home.as_ref().map(|home| home.to_string_lossy().into_owned()).unwrap_or_default()
            }
            Some(_) | None => {
                self.cwds.clear();
                return;
            }
        };
        let more: Vec<Folder> = self.cwds.iter().map(|cwd| paths::folder(cwd, &text)).collect();
        for cwd in more {
            if !self.cwds.contains(&cwd) {
                self.cwds.push(cwd);
            }
        }
        if self.cwds.len() > 16 {
            self.cwds.clear();
        }
    }
}

fn opens_to_everyone(mode: &str) -> bool {
    if !mode.is_empty() && mode.bytes().all(|byte| byte.is_ascii_digit()) {
        return mode.ends_with("777");
    }
    let mut granted = String::new();
    for clause in mode.split(',') {
        let Some(at) = clause.find(['+', '=']) else { continue };
        let (who, what) = clause.split_at(at);
        if who.is_empty() || who.contains(['a', 'o']) {
            granted.push_str(&what[1..]);
        }
    }
    // Without `who` the umask still protects, but only when nobody is named at all.
    let named = mode.split(',').any(|clause| clause.starts_with(['a', 'o', 'u', 'g']));
    named && ['r', 'w'].iter().all(|c| granted.contains(*c)) && granted.contains(['x', 'X'])
}

#[cfg(test)]
mod tests {
    use super::opens_to_everyone;

    #[test]
    fn modes() {
        for mode in
            ["777", "0777", "1777", "a+rwx", "a=rwx", "ugo+rwx", "u=rwx,g=rwx,o=rwx", "o+wxr", "a+rwX"]
        {
            assert!(opens_to_everyone(mode), "{mode}");
        }
        for mode in ["755", "+x", "u+rwx", "a+r", "700", "g+rwx", "", "+rwx", "o-rwx", "644"] {
            assert!(!opens_to_everyone(mode), "{mode}");
        }
    }
}
