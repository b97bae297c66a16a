//! The dependency graph of a plan.
//!
//! A position is an index into the plan's list of steps. Everything is in flat arrays, so that
//! a graph of a hundred thousand steps costs a few allocations and time linear in steps and
//! edges.

mod radix;
#[cfg(test)]
mod tests;

/// The steps' dependencies, their layers and their order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Graph {
    ids: Ids,
    /// Positions sorted by id.
    by_id: Vec<u32>,
    dependencies: Lists,
    dependents: Lists,
    /// For each position, the length of the longest path to it from a root.
    layer_of: Vec<u32>,
    /// Positions by layer; within a layer sorted by id, the order in which steps start.
    layers: Vec<Vec<u32>>,
}

/// Many short texts in one allocation.
#[derive(Debug, Clone, PartialEq, Default)]
struct Ids {
    text: String,
    ends: Vec<usize>,
}

impl Ids {
    fn at(&self, position: usize) -> &str {
        let start = if position == 0 { 0 } else { self.ends[position - 1] };
        &self.text[start..self.ends[position]]
    }
}

/// Many short lists of positions in one allocation.
#[derive(Debug, Clone, PartialEq, Default)]
struct Lists {
    starts: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    fn at(&self, position: usize) -> &[u32] {
        &self.items[self.starts[position] as usize..self.starts[position + 1] as usize]
    }

    /// Builds the lists from pairs `(list, item)`, keeping the order of items.
    fn gather(count: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Lists {
        let mut starts = vec![0u32; count + 1];
        let mut total = 0;
        for (list, _) in pairs.clone() {
            starts[list as usize + 1] += 1;
            total += 1;
        }
        for at in 0..count {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut items = vec![0u32; total];
        for (list, item) in pairs {
            items[next[list as usize] as usize] = item;
            next[list as usize] += 1;
        }
        Lists { starts, items }
    }

    /// Sorts each list and removes duplicates.
    fn tidy(&mut self) {
        let mut kept = 0;
        for list in 0..self.starts.len() - 1 {
            let (start, end) = (self.starts[list] as usize, self.starts[list + 1] as usize);
            self.items[start..end].sort_unstable();
            self.starts[list] = position(kept);
            for at in start..end {
                if at == start || self.items[at] != self.items[at - 1] {
                    self.items[kept] = self.items[at];
                    kept += 1;
                }
            }
        }
        if let Some(last) = self.starts.last_mut() {
            *last = position(kept);
        }
        self.items.truncate(kept);
    }
}

/// An index into an array of fewer than 2^32 items.
fn position(at: usize) -> u32 {
    u32::try_from(at).expect("a plan has fewer than 2^32 edges")
}

/// Steps that depend on each other: each depends on the next, the last on the first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the dependencies form a cycle")]
pub struct Cycles(pub Vec<Vec<usize>>);

impl Graph {
    /// Sorts `ids` (unique) into layers. `edges` are pairs `(step, dependency)` of
    /// positions; duplicates are ignored.
    pub fn new(ids: &[&str], edges: &[(u32, u32)]) -> Result<Graph, Cycles> {
        let count = ids.len();
        let mut dependencies = Lists::gather(count, edges.iter().copied());
        dependencies.tidy();
        let reversed = (0u32..)
            .zip(0..count)
            .flat_map(|(step, at)| dependencies.at(at).iter().map(move |on| (*on, step)));
        let dependents = Lists::gather(count, reversed);
        let mut all = Ids { text: String::new(), ends: Vec::with_capacity(count) };
        for id in ids {
            all.text.push_str(id);
            all.ends.push(all.text.len());
        }
        let mut graph = Graph {
            ids: all,
            by_id: radix::sorted(ids),
            dependencies,
            dependents,
            layer_of: vec![0; count],
            layers: Vec::new(),
        };
        graph.sort_into_layers()?;
        Ok(graph)
    }

    /// Kahn's algorithm, a layer at a time.
    fn sort_into_layers(&mut self) -> Result<(), Cycles> {
        let count = self.layer_of.len();
        let mut waiting: Vec<usize> = (0..count).map(|at| self.dependencies.at(at).len()).collect();
        let mut ready: Vec<u32> =
            (0u32..).zip(&waiting).filter(|(_, left)| **left == 0).map(|(at, _)| at).collect();
        let mut sizes = Vec::new();
        let mut placed = 0;
        while !ready.is_empty() {
            let layer = u32::try_from(sizes.len()).unwrap_or(u32::MAX);
            let mut next = Vec::new();
            for at in &ready {
                self.layer_of[*at as usize] = layer;
                for dependent in self.dependents.at(*at as usize) {
                    waiting[*dependent as usize] -= 1;
                    if waiting[*dependent as usize] == 0 {
                        next.push(*dependent);
                    }
                }
            }
            placed += ready.len();
            sizes.push(ready.len());
            ready = next;
        }
        if placed < count {
            return Err(self.cycles(&waiting));
        }
        // Visiting the ids in order fills every layer in id order.
        self.layers = sizes.into_iter().map(Vec::with_capacity).collect();
        for at in &self.by_id {
            self.layers[self.layer_of[*at as usize] as usize].push(*at);
        }
        Ok(())
    }

    /// The cycles among steps without a layer, each once.
    fn cycles(&self, waiting: &[usize]) -> Cycles {
        const UNSEEN: usize = usize::MAX;
        let mut walk_of = vec![UNSEEN; waiting.len()];
        let mut cycles = Vec::new();
        for (walk, start) in (0..waiting.len()).filter(|at| waiting[*at] > 0).enumerate() {
            let mut trail = Vec::new();
            let mut at = start;
            while walk_of[at] == UNSEEN {
                walk_of[at] = walk;
                trail.push(at);
                // A step without a layer has a dependency without a layer.
                let next = self.dependencies.at(at).iter().find(|on| waiting[**on as usize] > 0);
                at = *next.expect("an unplaced step waits for another") as usize;
            }
            if walk_of[at] == walk {
                let begin = trail.iter().position(|seen| *seen == at).unwrap_or_default();
                cycles.push(trail.split_off(begin));
            }
        }
        Cycles(cycles)
    }

    /// The position of the step with this id.
    pub fn position(&self, id: &str) -> Option<usize> {
        let found = self.by_id.binary_search_by(|at| self.ids.at(*at as usize).cmp(id)).ok()?;
        Some(self.by_id[found] as usize)
    }

    /// The dependencies of the step at `position`, in document order.
    pub fn dependencies(&self, position: usize) -> &[u32] {
        self.dependencies.at(position)
    }

    /// The dependents of the step at `position`, in document order.
    pub fn dependents(&self, position: usize) -> &[u32] {
        self.dependents.at(position)
    }

    /// The wave of the step at `position`, from 0.
    pub fn layer_of(&self, position: usize) -> u32 {
        self.layer_of[position]
    }

    /// All waves: positions, in id order.
    pub fn layers(&self) -> &[Vec<u32>] {
        &self.layers
    }

    /// The number of dependencies.
    pub fn edge_count(&self) -> usize {
        self.dependencies.items.len()
    }

    /// For each position, the last step that every path to it passes through; `None` if
    /// there is none.
    pub(crate) fn immediate_dominators(&self) -> Vec<Option<u32>> {
        let mut found: Vec<Option<u32>> = vec![None; self.layer_of.len()];
        let mut depth = vec![0u32; self.layer_of.len()];
        for at in self.layers.iter().flatten() {
            let mut dependencies = self.dependencies.at(*at as usize).iter();
            let Some(first) = dependencies.next() else { continue };
            let mut common = Some(*first);
            for other in dependencies {
                common = common_dominator(&found, &depth, common, *other);
            }
            found[*at as usize] = common;
            depth[*at as usize] = common.map_or(0, |common| depth[common as usize] + 1);
        }
        found
    }
}

/// The last step that every path to either of two steps passes through.
fn common_dominator(found: &[Option<u32>], depth: &[u32], a: Option<u32>, b: u32) -> Option<u32> {
    let (mut a, mut b) = (a?, b);
    while a != b {
        if depth[a as usize] >= depth[b as usize] {
            a = found[a as usize]?;
        } else {
            b = found[b as usize]?;
        }
    }
    Some(a)
}
