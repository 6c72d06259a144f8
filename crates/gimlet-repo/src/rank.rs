//! Which files a task is about: files that it names, BM25 over paths, definitions and text, and what those files use.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use crate::files::parallel;
use crate::graph::{Direction, Link, neighbours};
use crate::index::Index;
use crate::named::named;
use crate::record::{Class, MOST_BYTES, is_generated, term_key, unpack};
use crate::tags::tags;
use crate::tests_of::is_test;
use crate::words::{each_term, each_word, weight};
use crate::{Language, scan};

/// Most characters of a task that are read; a pasted log says the same things again.
const MOST_TASK: usize = 20_000;
/// Most different terms of a task.
const MOST_TERMS: usize = 256;
/// Files from which the graph is followed.
const SEEDS: usize = 16;
const NAMED: f64 = 10.0;
const WORDS: f64 = 3.0;
const GRAPH: f64 = 1.0;

/// A file that a task may be about.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Candidate {
    /// Relative to the root.
    pub path: PathBuf,
    /// Higher is better; only good for comparing candidates of one task.
    pub score: f64,
    /// What speaks for it, in a few words for people and models.
    pub why: String,
}

impl Index {
    /// The files that a task is most likely about, best first. The same index and task always give the same answer.
    pub fn rank(&self, task: &str, limit: usize) -> Vec<Candidate> {
        let task: String = task.chars().take(MOST_TASK).collect();
        let named = named(&task, &self.paths);
        let query = query(&task);
        let words = self.bm25(&query);
        let best = words.iter().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let own = |file: usize| {
            let found = words.get(file).copied().unwrap_or_default() / best * WORDS * self.prior(file);
            found + named.get(&file).copied().unwrap_or_default() * NAMED
        };
        let mut scores: Vec<(f64, usize)> =
            (0..self.paths.len()).map(|file| (own(file), file)).filter(|(score, _)| *score > 0.0).collect();
        sort(&mut scores);
        let top = scores.first().map_or(1.0, |(score, _)| *score);
        let seeds: Vec<(usize, f64)> =
            scores.iter().take(SEEDS).map(|(score, file)| (*file, score / top)).collect();
        let links = if seeds.is_empty() { HashMap::new() } else { neighbours(self, &seeds).files };
        let strongest = links.values().map(|link| link.strength).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let mut total: BTreeMap<usize, f64> = scores.into_iter().map(|(score, file)| (file, score)).collect();
        for (file, link) in &links {
            *total.entry(*file).or_default() += link.strength / strongest * GRAPH * self.prior(*file);
        }
        let mut total: Vec<(f64, usize)> = total.into_iter().map(|(file, score)| (score, file)).collect();
        sort(&mut total);
        total.truncate(limit);
        let mut found: Vec<Candidate> = total
            .iter()
            .map(|(score, file)| self.candidate(*file, *score, &query, named.get(file), links.get(file)))
            .collect();
        if found.len() < limit {
            self.fill(&mut found, limit);
        }
        found
    }

    /// Adds central files where the task's words lead to too few.
    fn fill(&self, found: &mut Vec<Candidate>, limit: usize) {
        let known: HashSet<PathBuf> = found.iter().map(|candidate| candidate.path.clone()).collect();
        let ranks = self.centrality();
        let mut rest: Vec<(f64, usize)> = (0..self.paths.len())
            .filter(|file| self.paths.get(*file).is_some_and(|path| !known.contains(path)))
            .map(|file| (f64::from(ranks.get(file).copied().unwrap_or_default()) * self.prior(file), file))
            .collect();
        sort(&mut rest);
        let why = "central in the project";
        found.extend(rest.into_iter().take(limit - found.len()).filter_map(|(score, file)| {
            Some(Candidate {
                path: self.paths.get(file)?.clone(),
                score: score.min(1.0) * 0.001,
                why: why.into(),
            })
        }));
    }

    /// How likely a file of this kind is what a task is about, whatever it says.
    pub(crate) fn prior(&self, file: usize) -> f64 {
        let (Some(path), Some(entry)) = (self.paths.get(file), self.entries.get(file)) else { return 0.0 };
        let kind = match entry.class {
            Class::Code => 1.0,
            Class::Text => 0.6,
            Class::PathOnly => 0.3,
        };
        let test = if is_test(path) { 0.6 } else { 1.0 };
        let generated = if is_generated(path) { 0.3 } else { 1.0 };
        kind * test * generated
    }

    /// BM25 of every file for a query.
    fn bm25(&self, query: &[Term]) -> Vec<f64> {
        const K: f64 = 1.2;
        const B: f64 = 0.75;
        let files: Vec<usize> = (0..self.paths.len()).collect();
        let hits: Vec<Vec<(usize, u32)>> = parallel(
            &files,
            || (),
            |(), file| {
                let mut rest = self.terms(*file);
                let mut hits = Vec::new();
                for (at, Term { key, .. }) in query.iter().enumerate() {
                    let skip = rest.partition_point(|term| unpack(*term).0 < *key);
                    rest = rest.get(skip..).unwrap_or_default();
                    if let Some((found, frequency)) = rest.first().map(|term| unpack(*term))
                        && found == *key
                    {
                        hits.push((at, frequency));
                    }
                }
                hits
            },
        );
        let mut containing = vec![0usize; query.len()];
        for (at, _) in hits.iter().flatten() {
            containing[*at] += 1;
        }
        let count = self.paths.len().max(1) as f64;
        let average = self.entries.iter().map(|entry| f64::from(entry.length)).sum::<f64>() / count;
        let rarity: Vec<f64> = containing
            .iter()
            .zip(query)
            .map(|(containing, term)| {
                let containing = *containing as f64;
                (1.0 + (count - containing + 0.5) / (containing + 0.5)).ln() * term.weight
            })
            .collect();
        hits.iter()
            .zip(&self.entries)
            .map(|(hits, entry)| {
                let length = f64::from(entry.length) / average.max(1.0);
                hits.iter()
                    .map(|(at, frequency)| {
                        let frequency = f64::from(*frequency);
                        rarity[*at] * frequency * (K + 1.0) / (frequency + K * (1.0 - B + B * length))
                    })
                    .sum()
            })
            .collect()
    }

    fn candidate(
        &self,
        file: usize,
        score: f64,
        query: &[Term],
        named: Option<&f64>,
        link: Option<&Link>,
    ) -> Candidate {
        let path = self.paths.get(file).cloned().unwrap_or_default();
        let mut why = Vec::new();
        match named {
            Some(sure) if *sure >= 0.6 => why.push("named in the task".to_owned()),
            Some(_) => why.push("its name is in the task".to_owned()),
            None => {}
        }
        let defined = self.defined(&path, query);
        if !defined.is_empty() {
            why.push(format!("defines {}", defined.join(", ")));
        }
        let keys: HashSet<u32> = self.terms(file).iter().map(|term| unpack(*term).0).collect();
        let mut shared: Vec<&str> =
            query.iter().filter(|term| keys.contains(&term.key)).map(|term| term.text.as_str()).collect();
        shared.sort_by_key(|term| (std::cmp::Reverse(term.len()), *term));
        shared.truncate(4);
        if why.is_empty() && !shared.is_empty() {
            why.push(format!("has the words {}", shared.join(", ")));
        }
        if let Some(link) = link
            && let Some(seed) = self.paths.get(link.seed)
            && (why.is_empty() || is_test(&path))
        {
            let seed = seed.display();
            why.push(match link.direction {
                Direction::UsedBySeed => format!("used by {seed}"),
                Direction::UsesSeed if is_test(&path) => format!("tests {seed}"),
                Direction::UsesSeed => format!("uses {seed}"),
            });
        }
        Candidate { path, score, why: why.join("; ") }
    }

    /// Definitions of a file whose names share a word with the task, most words first.
    fn defined(&self, path: &Path, query: &[Term]) -> Vec<String> {
        let Some(language) = Language::of(path) else { return Vec::new() };
        let Some(text) = self.folder.text(path, MOST_BYTES) else { return Vec::new() };
        let names: Vec<&str> = match tags(language, &text) {
            Some(tags) => tags.definitions,
            None => {
                let mut names = Vec::new();
                each_word(&text, |word, at| names.extend(scan::defined(&text, word, at + word.len())));
                names
            }
        };
        let wanted: HashSet<u32> = query.iter().map(|term| term.key).collect();
        let mut scratch = String::new();
        let mut found: Vec<(usize, &str)> = Vec::new();
        for name in names {
            let mut hits = 0;
            each_term(name, &mut scratch, |term| hits += usize::from(wanted.contains(&term_key(term))));
            if hits > 0 && !found.iter().any(|(_, known)| *known == name) {
                found.push((hits, name));
            }
        }
        found.sort_by_key(|(hits, _)| std::cmp::Reverse(*hits));
        found.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
    }
}

/// A term of a task.
#[derive(Debug, Clone, PartialEq)]
struct Term {
    key: u32,
    text: String,
    /// How much the word it comes from tells.
    weight: f64,
}

/// The terms of a task, each once, in the order in which files keep theirs.
fn query(task: &str) -> Vec<Term> {
    let mut query: Vec<Term> = Vec::new();
    let mut places: HashMap<u32, usize> = HashMap::new();
    let mut scratch = String::new();
    each_word(task, |word, _| {
        let weight = weight(word);
        each_term(word, &mut scratch, |text| {
            let key = term_key(text);
            let known = places.get(&key).copied();
            if let Some(term) = known.and_then(|place| query.get_mut(place)) {
                term.weight = term.weight.max(weight);
            } else if query.len() < MOST_TERMS {
                places.insert(key, query.len());
                query.push(Term { key, text: text.to_owned(), weight });
            }
        });
    });
    query.sort_by(|a, b| (a.key, &a.text).cmp(&(b.key, &b.text)));
    query
}

/// Best first; equals in the order of their names.
fn sort(scores: &mut [(f64, usize)]) {
    scores.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
}
