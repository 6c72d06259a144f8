//! The graph of references: a file that uses a name leads to the files that define it.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::index::Index;
use crate::record::Identity;

/// A name with more definitions than this says nothing about where it comes from.
const MOST_DEFINERS: usize = 8;
const ROUNDS: usize = 15;
const DAMPING: f32 = 0.85;

/// PageRank over all files. The same files always give the same ranks: all sums run in a fixed order.
pub(crate) fn centrality(index: &Index) -> Vec<f32> {
    let count = index.paths.len();
    if count == 0 {
        return Vec::new();
    }
    let edges = edges(index);
    let mut out = vec![0f32; count];
    for (from, _, weight) in &edges {
        out[*from as usize] += weight;
    }
    let even = 1.0 / count as f32;
    let mut rank = vec![even; count];
    for _ in 0..ROUNDS {
        let stuck: f32 = rank.iter().zip(&out).filter(|(_, out)| **out == 0.0).map(|(rank, _)| rank).sum();
        let mut next = vec![(1.0 - DAMPING) * even + DAMPING * stuck * even; count];
        for (from, to, weight) in &edges {
            let from = *from as usize;
            next[*to as usize] += DAMPING * rank[from] * weight / out[from];
        }
        rank = next;
    }
    rank
}

/// All edges with their weights: less where a name has several definitions or is used everywhere.
fn edges(index: &Index) -> Vec<(u32, u32, f32)> {
    let pairs = |names: fn(&Index, usize) -> &[u32]| {
        let mut pairs: Vec<u64> = Vec::new();
        for file in 0..index.paths.len() {
            pairs.extend(names(index, file).iter().map(|name| u64::from(*name) << 32 | file as u64));
        }
        pairs.sort_unstable();
        pairs
    };
    let defined = pairs(Index::definitions);
    let used = pairs(Index::references);
    let same = |a: &u64, b: &u64| a >> 32 == b >> 32;
    let mut uses = used.chunk_by(same).peekable();
    let mut edges = Vec::new();
    for definers in defined.chunk_by(same) {
        let Some(name) = definers.first().map(|first| first >> 32) else { continue };
        while uses.next_if(|users| users.first().is_some_and(|first| first >> 32 < name)).is_some() {}
        let Some(users) = uses.next_if(|users| users.first().is_some_and(|first| first >> 32 == name)) else {
            continue;
        };
        if definers.len() > MOST_DEFINERS {
            continue;
        }
        let weight = 1.0 / (definers.len() as f32 * (users.len() as f32).sqrt());
        for user in users {
            for definer in definers {
                let (from, to) = (*user as u32, *definer as u32);
                if from != to {
                    edges.push((from, to, weight));
                }
            }
        }
    }
    edges
}

/// Files next to some others in the graph, and how strongly they are joined: what the seeds use, and what uses them.
pub(crate) struct Neighbours {
    /// For each file, the strength and the seed that it is joined to most strongly.
    pub(crate) files: HashMap<usize, Link>,
}

/// Why a file is a neighbour.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Link {
    pub(crate) strength: f64,
    pub(crate) seed: usize,
    pub(crate) direction: Direction,
}

/// Which way a reference goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// The seed uses a name that the file defines.
    UsedBySeed,
    /// The file uses a name that the seed defines.
    UsesSeed,
}

type Names = HashMap<u32, Vec<usize>, BuildHasherDefault<Identity>>;

/// Finds the neighbours of weighted seeds, one step away.
pub(crate) fn neighbours(index: &Index, seeds: &[(usize, f64)]) -> Neighbours {
    let collect = |names: fn(&Index, usize) -> &[u32]| {
        let mut map = Names::default();
        for (at, (file, _)) in seeds.iter().enumerate() {
            for name in names(index, *file) {
                map.entry(*name).or_default().push(at);
            }
        }
        map
    };
    let (wanted, given) = (collect(Index::references), collect(Index::definitions));
    let files: Vec<usize> = (0..index.paths.len()).collect();
    // First which names meet, with how many files; then the strengths.
    let hits = crate::files::parallel(
        &files,
        || (),
        |(), file| {
            let meets = |names: &[u32], map: &Names| -> Vec<u32> {
                names.iter().copied().filter(|name| map.contains_key(name)).collect()
            };
            (meets(index.definitions(*file), &wanted), meets(index.references(*file), &given))
        },
    );
    let mut definers: HashMap<u32, usize> = HashMap::new();
    let mut users: HashMap<u32, usize> = HashMap::new();
    for (defines, uses) in &hits {
        for name in defines {
            *definers.entry(*name).or_default() += 1;
        }
        for name in uses {
            *users.entry(*name).or_default() += 1;
        }
    }
    let mut found: HashMap<usize, Link> = HashMap::new();
    let mut add = |file: usize, at: usize, weight: f64, direction: Direction| {
        let Some((seed, score)) = seeds.get(at).copied().filter(|(seed, _)| *seed != file) else { return };
        let strength = weight * score;
        let link = found.entry(file).or_insert(Link { strength: 0.0, seed, direction });
        if strength > link.strength {
            (link.seed, link.direction) = (seed, direction);
        }
        link.strength += strength;
    };
    for (file, (defines, uses)) in hits.iter().enumerate() {
        for name in defines {
            let count = definers.get(name).copied().unwrap_or(1);
            if count <= MOST_DEFINERS {
                for at in wanted.get(name).into_iter().flatten() {
                    add(file, *at, 1.0 / count as f64, Direction::UsedBySeed);
                }
            }
        }
        for name in uses {
            let count = users.get(name).copied().unwrap_or(1);
            let defined = given.get(name).map_or(1, Vec::len);
            for at in given.get(name).into_iter().flatten() {
                add(file, *at, 1.0 / (defined as f64 * (count as f64).sqrt()), Direction::UsesSeed);
            }
        }
    }
    Neighbours { files: found }
}
