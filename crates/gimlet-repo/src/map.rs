//! A map of the repository for a reader with little room: the most central files with their most used definitions.

use std::fmt::Write;
use std::path::PathBuf;

use crate::graph::neighbours;
use crate::index::Index;
use crate::language::Language;
use crate::outline::Outline;
use crate::record::{Class, MOST_BYTES};

/// Most definitions shown of one file.
const MOST_DEFINITIONS: usize = 12;
/// Most characters of a signature.
const SIGNATURE: usize = 100;
/// How much more a file counts that the caller cares about, and one next to it.
const FOCUS: f64 = 1000.0;
const NEIGHBOUR: f64 = 20.0;

impl Index {
    /// Paths and signatures of the most important files, in at most `budget_chars` characters. Files in `focus`, and what
    /// they use and are used by, come first.
    pub fn map(&self, budget_chars: usize, focus: &[PathBuf]) -> String {
        let order = self.order(focus);
        let total = self.paths.len();
        let mut map = String::new();
        let mut used = 0;
        let mut shown = 0;
        // Room for the line that tells what is left out.
        let budget = budget_chars.saturating_sub(40);
        for file in order {
            // Enough rooms for a path at least; once it is full, a long path must not let a short one pass.
            let Some(block) = self.block(file, budget.saturating_sub(used)) else { break };
            used += block.chars().count();
            map.push_str(&block);
            shown += 1;
        }
        let left = total.saturating_sub(shown);
        if left > 0 {
            let note = format!("({left} of {total} files are not shown)\n");
            if used + note.chars().count() <= budget_chars {
                map.push_str(&note);
            }
        }
        map
    }

    fn order(&self, focus: &[PathBuf]) -> Vec<usize> {
        let ranks = self.centrality();
        let seeds: Vec<(usize, f64)> =
            focus.iter().filter_map(|path| self.find(path)).map(|file| (file, 1.0)).collect();
        let links = if seeds.is_empty() { Default::default() } else { neighbours(self, &seeds).files };
        let strongest = links.values().map(|link| link.strength).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let mut order: Vec<(f64, usize)> = (0..self.paths.len())
            .map(|file| {
                let rank = f64::from(ranks.get(file).copied().unwrap_or_default()) * self.paths.len() as f64;
                let near = links.get(&file).map_or(0.0, |link| link.strength / strongest * NEIGHBOUR);
                let own = if seeds.iter().any(|(seed, _)| *seed == file) { FOCUS } else { 0.0 };
                (own + (rank + near) * self.prior(file), file)
            })
            .collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        order.into_iter().map(|(_, file)| file).collect()
    }

    /// A file's path and as many of its definitions as fit; `None` if not even the path does.
    fn block(&self, file: usize, room: usize) -> Option<String> {
        let path = self.paths.get(file)?;
        let mut block = format!("{}\n", path.display());
        let mut used = block.chars().count();
        if used > room {
            return None;
        }
        let is_code = self.entries.get(file).is_some_and(|entry| entry.class == Class::Code);
        let Some(language) = Language::of(path).filter(|_| is_code) else { return Some(block) };
        let text = self.folder.text(path, MOST_BYTES)?;
        let Some(outline) = Outline::of(language, &text) else { return Some(block) };
        let shown: Vec<_> = outline.definitions.iter().filter(|found| !found.is_local).collect();
        for (at, found) in shown.iter().enumerate() {
            let left = shown.len() - at;
            if at == MOST_DEFINITIONS && left > 1 {
                let more = format!("  … {left} more\n");
                if used + more.chars().count() <= room {
                    block.push_str(&more);
                }
                break;
            }
            let indent = if found.parent.is_some() { "    " } else { "  " };
            let signature: String = found.signature.chars().take(SIGNATURE).collect();
            let mut line = String::new();
            // Writing to a string cannot fail.
            let _ = writeln!(line, "{indent}{}: {signature}", found.line);
            used += line.chars().count();
            if used > room {
                break;
            }
            block.push_str(&line);
        }
        Some(block)
    }
}
