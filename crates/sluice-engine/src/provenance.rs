//! Following values from step to step, also from run to run.
//!
//! INVARIANT: however runs are related, a walk ends: it looks at each step once
//! in each direction, and at no more runs and crossings than `limits` says.

use crate::engine::{Engine, Inner};
use crate::error::LoadError;
use crate::limits::{CROSSINGS_MAX, TRACED_RUNS_MAX};
use crate::load::blobs;
use crate::resident::fold;
use serde_json::{Value, json};
use sluice_core::journal::wire;
use sluice_core::port::store::Filter;
use sluice_core::run::id::RunId;
use sluice_core::run::provenance::{Crossing, Crossings, Place, Spot};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// How much of a journal is read at once, in bytes.
const PAGE_BYTES: usize = 1024 * 1024;

/// Which way values are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To where they came from.
    Up,
    /// To where they went.
    Down,
    /// Both.
    Both,
}

/// What is asked.
#[derive(Debug, Clone)]
pub struct Ask {
    /// About which step; about all of the run if none is named.
    pub step: Option<String>,
    /// Which way.
    pub direction: Direction,
    /// Over how many runs at most, beside the first.
    pub hops_max: u32,
    /// How many steps away at most: one is what went straight there.
    pub steps_max: u32,
}

/// The crossings that were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Each once: those that lead here, then those that lead on.
    pub crossings: Vec<Crossing>,
    /// What the runs in them are runs of, as far as that is known.
    pub workflows: BTreeMap<RunId, String>,
    /// Whether there are more: too many, too far, or in runs that cannot be read.
    pub cut: bool,
}

impl Trace {
    /// The crossings as programs are shown them: each place with its workflow.
    pub fn rows(&self) -> Vec<Value> {
        let place = |place: &Place| {
            json!({
                "run_id": place.run.to_string(),
                "workflow": self.workflows.get(&place.run),
                "node_id": place.node,
            })
        };
        let row = |one: &Crossing| {
            json!({
                "source": place(&one.source),
                "source_output_path": one.source_output_path,
                "target": place(&one.target),
                "target_input_path": one.target_input_path,
                "transform": one.transform,
            })
        };
        self.crossings.iter().map(row).collect()
    }
}

impl Engine {
    /// Follows the values of a run's steps.
    pub async fn provenance(&self, run: RunId, ask: &Ask) -> Result<Trace, LoadError> {
        let mut walk = Walk {
            engine: self.inner(),
            hops_max: ask.hops_max,
            steps_max: ask.steps_max,
            journals: BTreeMap::new(),
            crossings: Vec::new(),
            workflows: BTreeMap::new(),
            seen: BTreeSet::new(),
            cut: false,
        };
        walk.journal(run).await?;
        let from = Spot::of(Place { run, node: ask.step.clone().unwrap_or_default() });
        if ask.direction != Direction::Down {
            walk.follow(from.clone(), Way::Up).await?;
        }
        if ask.direction != Direction::Up {
            walk.follow(from, Way::Down).await?;
        }
        walk.name_runs().await?;
        Ok(Trace { crossings: walk.crossings, workflows: walk.workflows, cut: walk.cut })
    }

    /// How many values the steps of other runs took from this one.
    pub async fn taken(&self, run: RunId) -> Result<u64, LoadError> {
        Ok(self.inner().store.taken(run).await?)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

/// What a run's journal says, by the steps it says it of: a walk asks of each
/// step once, and must not look at every crossing each time.
struct Journal {
    all: Vec<Crossing>,
    /// Places in `all`, by the target's step.
    to: BTreeMap<String, Vec<usize>>,
    /// Places in `all`, by the source's run and step.
    from: BTreeMap<(RunId, String), Vec<usize>>,
}

impl Journal {
    fn of(all: Vec<Crossing>) -> Journal {
        let (mut to, mut from) = (BTreeMap::new(), BTreeMap::new());
        for (at, one) in all.iter().enumerate() {
            let target: &mut Vec<usize> = to.entry(step(&one.target.node)).or_default();
            target.push(at);
            let source = (one.source.run, step(&one.source.node));
            let source: &mut Vec<usize> = from.entry(source).or_default();
            source.push(at);
        }
        Journal { all, to, from }
    }

    /// Crossings that have to do with a step, or with any of a run.
    fn near(&self, place: &Place, way: Way) -> Box<dyn Iterator<Item = &Crossing> + Send + '_> {
        if place.node.is_empty() {
            return Box::new(self.all.iter());
        }
        let places = match way {
            Way::Up => self.to.get(&step(&place.node)),
            Way::Down => self.from.get(&(place.run, step(&place.node))),
        };
        Box::new(places.into_iter().flatten().map(|at| &self.all[*at]))
    }
}

/// The step of a node: of an instance, the step as a whole.
fn step(node: &str) -> String {
    node.split_once('[').map_or(node, |(step, _)| step).to_owned()
}

struct Walk<'a> {
    engine: &'a Arc<Inner>,
    hops_max: u32,
    steps_max: u32,
    /// None for one that cannot be read.
    journals: BTreeMap<RunId, Option<Arc<Journal>>>,
    crossings: Vec<Crossing>,
    workflows: BTreeMap<RunId, String>,
    seen: BTreeSet<Crossing>,
    cut: bool,
}

impl Walk<'_> {
    async fn follow(&mut self, from: Spot, way: Way) -> Result<(), LoadError> {
        let mut visited = BTreeSet::from([from.clone()]);
        let mut front = VecDeque::from([(from, 0u32, 1u32)]);
        while let Some((spot, hops, steps)) = front.pop_front() {
            for crossing in self.around(&spot, way).await? {
                if self.crossings.len() >= CROSSINGS_MAX {
                    self.cut = true;
                    return Ok(());
                }
                if self.seen.insert(crossing.clone()) {
                    self.crossings.push(crossing.clone());
                }
                let next = match way {
                    Way::Up => Spot::before(&crossing),
                    Way::Down => Spot::after(&crossing),
                };
                let hops = hops + u32::from(next.place.run != spot.place.run);
                if hops > self.hops_max {
                    self.cut = true;
                } else if steps < self.steps_max && visited.insert(next.clone()) {
                    front.push_back((next, hops, steps + 1));
                }
            }
        }
        Ok(())
    }

    /// The crossings that lead to a spot, or on from it.
    async fn around(&mut self, spot: &Spot, way: Way) -> Result<Vec<Crossing>, LoadError> {
        let mut journals = vec![self.journal(spot.place.run).await?];
        if way == Way::Down {
            for taker in self.takers(spot.place.run).await? {
                journals.push(self.journal(taker).await?);
            }
        }
        let mut found = Vec::new();
        for journal in journals.iter().flatten() {
            let near = journal.near(&spot.place, way);
            found.extend(near.filter(|one| match way {
                Way::Up => spot.is_fed_by(one),
                Way::Down => spot.feeds(one),
            }));
        }
        Ok(found.into_iter().cloned().collect())
    }

    /// Names the runs that were not walked into: those at the end of the way.
    async fn name_runs(&mut self) -> Result<(), LoadError> {
        let places = self.crossings.iter().flat_map(|one| [one.source.run, one.target.run]);
        let unknown: BTreeSet<RunId> =
            places.filter(|run| !self.workflows.contains_key(run)).collect();
        for run in unknown.into_iter().take(TRACED_RUNS_MAX) {
            let filter = Filter { run: Some(run), ..Filter::default() };
            if let Some(row) = self.engine.store.list(filter).await?.into_iter().next() {
                self.workflows.insert(run, row.workflow);
            }
        }
        Ok(())
    }

    async fn takers(&mut self, run: RunId) -> Result<Vec<RunId>, LoadError> {
        let takers = self.engine.store.takers(run, None, TRACED_RUNS_MAX).await?;
        self.cut |= takers.len() >= TRACED_RUNS_MAX;
        Ok(takers.into_iter().map(|taker| taker.run).collect())
    }

    /// What a run's journal says; none of one that cannot be read any more.
    async fn journal(&mut self, run: RunId) -> Result<Option<Arc<Journal>>, LoadError> {
        if let Some(known) = self.journals.get(&run) {
            return Ok(known.clone());
        }
        if self.journals.len() >= TRACED_RUNS_MAX {
            self.cut = true;
            return Ok(None);
        }
        let read = match crossings(self.engine, run).await {
            Ok((workflow, crossings)) => {
                self.workflows.insert(run, workflow);
                Some(Arc::new(Journal::of(crossings)))
            }
            // The first is the one that was asked for.
            Err(error) if self.journals.is_empty() => return Err(error),
            Err(LoadError::NoRun(_) | LoadError::Poison { .. }) => {
                self.cut = true;
                None
            }
            Err(error) => return Err(error),
        };
        self.journals.insert(run, read.clone());
        Ok(read)
    }
}

/// A run's workflow, and the crossings in its journal.
async fn crossings(engine: &Arc<Inner>, id: RunId) -> Result<(String, Vec<Crossing>), LoadError> {
    let run = fold(engine, id).await?.run;
    let plan = Arc::clone(&run.definition);
    let mut crossings = Crossings::default();
    let mut after = 0;
    loop {
        let frames = engine.store.frames(id, after, PAGE_BYTES).await?;
        let Some(last) = frames.last() else {
            return Ok((run.started.workflow.clone(), crossings.finish()));
        };
        after = last.first + u64::from(last.count) - 1;
        for frame in &frames {
            let blobs = blobs(&*engine.store, id, &frame.body).await?;
            let decoded = wire::decode(&frame.body, Some(&plan.plan), &blobs);
            let decoded = decoded
                .map_err(|error| LoadError::Poison { run: id, reason: error.to_string() })?;
            for event in &decoded.events {
                crossings.add(&run, event);
            }
        }
    }
}
