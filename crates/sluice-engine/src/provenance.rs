//! Follows values from step to step, also across runs.
//!
//! INVARIANT: a walk ends however runs are related: it visits each step once in each
//! direction, and stays within the limits on runs and value flows.

use crate::engine::{Engine, Inner};
use crate::error::LoadError;
use crate::limits::{TRACED_RUNS_MAX, VALUE_FLOWS_MAX};
use crate::load::blobs;
use crate::loaded_run::fold;
use serde_json::{Value, json};
use sluice_core::id::RunId;
use sluice_core::journal::wire;
use sluice_core::port::store::Filter;
use sluice_core::run::provenance::{StepRef, TracePoint, ValueFlow, ValueFlows};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Page size when a journal is read.
const PAGE_BYTES: usize = 1024 * 1024;

/// Direction in which values are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To their sources.
    Up,
    /// To their consumers.
    Down,
    /// To sources and consumers.
    Both,
}

/// A provenance query.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Step to start at; `None` for all steps of the run.
    pub step: Option<String>,
    /// Whether to find sources, consumers, or both.
    pub direction: Direction,
    /// Most other runs that a path may pass through.
    pub hops_max: u32,
    /// Most steps on a path: 1 finds direct sources and consumers only.
    pub steps_max: u32,
}

/// The value flows that a query found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Each flow once: first those into the step, then those out of it.
    pub flows: Vec<ValueFlow>,
    /// Workflow of each run in the flows, if it could be read.
    pub workflows: BTreeMap<RunId, String>,
    /// Whether the result is incomplete: limits were reached, or a run cannot be read.
    pub cut: bool,
}

impl Trace {
    /// The value flows as JSON rows, with the workflow of each end.
    pub fn rows(&self) -> Vec<Value> {
        let place = |place: &StepRef| {
            json!({
                "run_id": place.run.to_string(),
                "workflow": self.workflows.get(&place.run),
                "node_id": place.node,
            })
        };
        let row = |one: &ValueFlow| {
            json!({
                "source": place(&one.source),
                "source_output_path": one.source_output_path,
                "target": place(&one.target),
                "target_input_path": one.target_input_path,
                "transform": one.transform,
                "origins": one.labels.origins().collect::<Vec<_>>(),
                "secrecy": one.labels.secrecy().collect::<Vec<_>>(),
                "control": one.labels.is_controlled(),
            })
        };
        self.flows.iter().map(row).collect()
    }
}

impl Engine {
    /// Follows the values of a run's steps.
    pub async fn provenance(&self, run: RunId, ask: &Ask) -> Result<Trace, LoadError> {
        let mut walk = ProvenanceWalk {
            engine: self.inner(),
            hops_max: ask.hops_max,
            steps_max: ask.steps_max,
            journals: BTreeMap::new(),
            flows: Vec::new(),
            workflows: BTreeMap::new(),
            seen: BTreeSet::new(),
            cut: false,
        };
        walk.journal(run).await?;
        let from = TracePoint::whole(StepRef { run, node: ask.step.clone().unwrap_or_default() });
        if ask.direction != Direction::Down {
            walk.follow(from.clone(), WalkDirection::Up).await?;
        }
        if ask.direction != Direction::Up {
            walk.follow(from, WalkDirection::Down).await?;
        }
        walk.name_runs().await?;
        Ok(Trace { flows: walk.flows, workflows: walk.workflows, cut: walk.cut })
    }

    /// Number of values that steps of other runs consumed from this run.
    pub async fn taken(&self, run: RunId) -> Result<u64, LoadError> {
        Ok(self.inner().store.taken(run).await?)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WalkDirection {
    Up,
    Down,
}

/// Value flows of one journal, indexed by step, so that a walk need not scan all of them
/// for each step.
struct FlowIndex {
    all: Vec<ValueFlow>,
    /// Positions in `all`, by the target's step.
    to: BTreeMap<String, Vec<usize>>,
    /// Positions in `all`, by the source's run and step.
    from: BTreeMap<(RunId, String), Vec<usize>>,
}

impl FlowIndex {
    fn new(all: Vec<ValueFlow>) -> FlowIndex {
        let (mut to, mut from) = (BTreeMap::new(), BTreeMap::new());
        for (at, one) in all.iter().enumerate() {
            let target: &mut Vec<usize> = to.entry(step(&one.target.node)).or_default();
            target.push(at);
            let source = (one.source.run, step(&one.source.node));
            let source: &mut Vec<usize> = from.entry(source).or_default();
            source.push(at);
        }
        FlowIndex { all, to, from }
    }

    /// Value flows that touch a step; without a step, all flows of the run.
    fn near(
        &self,
        place: &StepRef,
        direction: WalkDirection,
    ) -> Box<dyn Iterator<Item = &ValueFlow> + Send + '_> {
        if place.node.is_empty() {
            return Box::new(self.all.iter());
        }
        let places = match direction {
            WalkDirection::Up => self.to.get(&step(&place.node)),
            WalkDirection::Down => self.from.get(&(place.run, step(&place.node))),
        };
        Box::new(places.into_iter().flatten().map(|at| &self.all[*at]))
    }
}

/// The step of a node id, without the index of an instance.
fn step(node: &str) -> String {
    node.split_once('[').map_or(node, |(step, _)| step).to_owned()
}

struct ProvenanceWalk<'a> {
    engine: &'a Arc<Inner>,
    hops_max: u32,
    steps_max: u32,
    /// `None` for a run that cannot be read.
    journals: BTreeMap<RunId, Option<Arc<FlowIndex>>>,
    flows: Vec<ValueFlow>,
    workflows: BTreeMap<RunId, String>,
    seen: BTreeSet<ValueFlow>,
    cut: bool,
}

impl ProvenanceWalk<'_> {
    async fn follow(
        &mut self,
        from: TracePoint,
        direction: WalkDirection,
    ) -> Result<(), LoadError> {
        let mut visited = BTreeSet::from([from.clone()]);
        let mut front = VecDeque::from([(from, 0u32, 1u32)]);
        while let Some((point, hops, steps)) = front.pop_front() {
            for flow in self.around(&point, direction).await? {
                if self.flows.len() >= VALUE_FLOWS_MAX {
                    self.cut = true;
                    return Ok(());
                }
                if self.seen.insert(flow.clone()) {
                    self.flows.push(flow.clone());
                }
                let next = match direction {
                    WalkDirection::Up => TracePoint::before(&flow),
                    WalkDirection::Down => TracePoint::after(&flow),
                };
                let hops = hops + u32::from(next.step.run != point.step.run);
                if hops > self.hops_max {
                    self.cut = true;
                } else if steps < self.steps_max && visited.insert(next.clone()) {
                    front.push_back((next, hops, steps + 1));
                }
            }
        }
        Ok(())
    }

    /// The value flows into or out of a trace point.
    async fn around(
        &mut self,
        point: &TracePoint,
        direction: WalkDirection,
    ) -> Result<Vec<ValueFlow>, LoadError> {
        let mut journals = vec![self.journal(point.step.run).await?];
        if direction == WalkDirection::Down {
            for consumer in self.consumers(point.step.run).await? {
                journals.push(self.journal(consumer).await?);
            }
        }
        let mut found = Vec::new();
        for journal in journals.iter().flatten() {
            let near = journal.near(&point.step, direction);
            found.extend(near.filter(|one| match direction {
                WalkDirection::Up => point.is_fed_by(one),
                WalkDirection::Down => point.feeds(one),
            }));
        }
        Ok(found.into_iter().cloned().collect())
    }

    /// Looks up the workflows of runs at the ends of paths.
    async fn name_runs(&mut self) -> Result<(), LoadError> {
        let places = self.flows.iter().flat_map(|one| [one.source.run, one.target.run]);
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

    async fn consumers(&mut self, run: RunId) -> Result<Vec<RunId>, LoadError> {
        let consumers = self.engine.store.consumers(run, None, TRACED_RUNS_MAX).await?;
        self.cut |= consumers.len() >= TRACED_RUNS_MAX;
        Ok(consumers.into_iter().map(|consumer| consumer.run).collect())
    }

    /// The indexed value flows of a run; `None` if it cannot be read or a limit is reached.
    async fn journal(&mut self, run: RunId) -> Result<Option<Arc<FlowIndex>>, LoadError> {
        if let Some(known) = self.journals.get(&run) {
            return Ok(known.clone());
        }
        if self.journals.len() >= TRACED_RUNS_MAX {
            self.cut = true;
            return Ok(None);
        }
        let read = match flows(self.engine, run).await {
            Ok((workflow, flows)) => {
                self.workflows.insert(run, workflow);
                Some(Arc::new(FlowIndex::new(flows)))
            }
            // The first one is the run of the query itself.
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

/// The workflow of a run, and the value flows in its journal.
async fn flows(engine: &Arc<Inner>, id: RunId) -> Result<(String, Vec<ValueFlow>), LoadError> {
    let run = fold(engine, id).await?.run;
    let plan = Arc::clone(&run.definition);
    let mut flows = ValueFlows::default();
    let mut after = 0;
    loop {
        let frames = engine.store.frames(id, after, PAGE_BYTES).await?;
        let Some(last) = frames.last() else {
            return Ok((run.started.workflow.clone(), flows.finish()));
        };
        after = last.first + u64::from(last.count) - 1;
        for frame in &frames {
            let blobs = blobs(&*engine.store, id, &frame.body).await?;
            let decoded = wire::decode(&frame.body, Some(&plan.plan), &blobs);
            let decoded = decoded
                .map_err(|error| LoadError::Poison { run: id, reason: error.to_string() })?;
            for event in &decoded.events {
                flows.add(&run, event);
            }
        }
    }
}
