//! Where values came from and where they went, as crossings between steps.
//!
//! Every crossing stands in the journal of the run that took the value. What a
//! journal says of results that no longer count is left out.

use super::id::RunId;
use super::state::Run;
use crate::journal::event::{Event, StepEvent};
use std::collections::BTreeSet;

/// A step of a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The run.
    pub run: RunId,
    /// The step, as the projection names it; empty for the run as a whole.
    pub node: String,
}

/// A value that crossed from one step to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crossing {
    /// Where it came from.
    pub source: Place,
    /// Which part of what the source made, or was given.
    pub source_output_path: String,
    /// Where it went.
    pub target: Place,
    /// What it became there.
    pub target_input_path: String,
    /// What was done to it on the way.
    pub transform: Option<String>,
}

/// The crossings of one journal, gathered event by event.
#[derive(Debug, Default)]
pub struct Crossings {
    found: Vec<(u32, Crossing)>,
}

impl Crossings {
    /// Takes the next event into account. `run` is any later state of the run.
    pub fn add(&mut self, run: &Run, event: &Event) {
        match event {
            Event::Step(at, StepEvent::Provenance(from)) => {
                let source = from.source_run.unwrap_or(run.id);
                let id = &run.step(*at).id;
                // An instance may be gone by now, its name is not.
                let node = at.item.map_or_else(|| id.clone(), |item| format!("{id}[{item}]"));
                let crossing = Crossing {
                    source: Place { run: source, node: from.source_node.clone() },
                    source_output_path: from.source_output_path.clone(),
                    target: Place { run: run.id, node },
                    target_input_path: from.target_input_path.clone(),
                    transform: from.transform.clone(),
                };
                self.found.push((at.step, crossing));
            }
            Event::Step(at, StepEvent::Invalidated) => {
                self.found.retain(|(step, _)| *step != at.step);
            }
            _ => {}
        }
    }

    /// Every crossing once, in the order of the journal.
    pub fn finish(self) -> Vec<Crossing> {
        let mut seen = BTreeSet::new();
        let crossings = self.found.into_iter().map(|(_, crossing)| crossing);
        crossings.filter(|crossing| seen.insert(crossing.clone())).collect()
    }
}

/// A step on the way of a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// The step.
    pub place: Place,
    /// What matters of it.
    pub side: Side,
}

/// What matters of a step.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Everything.
    All,
    /// One argument of those it passes to a run below it: `args.x`.
    Arg(String),
    /// What it made. That of a sub-workflow is made from what the run below it
    /// gave back, and from its arguments only by way of that run.
    Made,
}

impl Spot {
    /// Everything about a step.
    pub fn of(place: Place) -> Spot {
        Spot { place, side: Side::All }
    }

    /// The step a crossing comes from, as far as the crossing is about it.
    pub fn before(crossing: &Crossing) -> Spot {
        let side = arg(&crossing.source_output_path).map_or(Side::Made, Side::Arg);
        Spot { place: crossing.source.clone(), side }
    }

    /// The step a crossing leads to, as far as the crossing is about it.
    pub fn after(crossing: &Crossing) -> Spot {
        let made = crossing.target_input_path.starts_with("outputs");
        let side = if made { Side::Made } else { Side::All };
        let side = arg(&crossing.target_input_path).map_or(side, Side::Arg);
        Spot { place: crossing.target.clone(), side }
    }

    /// Whether a crossing leads here.
    pub fn is_fed_by(&self, crossing: &Crossing) -> bool {
        let passed = arg(&crossing.target_input_path);
        let matters = match &self.side {
            Side::All => true,
            Side::Arg(arg) => passed.as_ref() == Some(arg),
            Side::Made => passed.is_none(),
        };
        matters && is_at(&self.place, &crossing.target)
    }

    /// Whether a crossing comes from here.
    pub fn feeds(&self, crossing: &Crossing) -> bool {
        let matters = match (arg(&crossing.source_output_path), &self.side) {
            (None, _) | (Some(_), Side::All) => true,
            (Some(passed), Side::Arg(arg)) => passed == *arg,
            (Some(_), Side::Made) => false,
        };
        matters && is_at(&self.place, &crossing.source)
    }
}

/// Whether two places are one: a `for_each` step is all its instances, and a
/// run as a whole all its steps.
fn is_at(one: &Place, other: &Place) -> bool {
    let step = |node: &str| node.split_once('[').map(|(step, _)| step.to_owned());
    one.run == other.run
        && (one.node == other.node
            || one.node.is_empty()
            || step(&one.node).is_some_and(|step| step == other.node)
            || step(&other.node).is_some_and(|step| step == one.node))
}

/// `args.x`, of a path at or below an argument.
fn arg(path: &str) -> Option<String> {
    let name = path.strip_prefix("args.")?;
    let end = name.find(['.', '[']).unwrap_or(name.len());
    Some(format!("args.{}", &name[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(run: u128, node: &str) -> Place {
        Place { run: RunId(run), node: node.to_owned() }
    }

    fn crossing(source: Place, path: &str, target: Place, input: &str) -> Crossing {
        Crossing {
            source,
            source_output_path: path.to_owned(),
            target,
            target_input_path: input.to_owned(),
            transform: None,
        }
    }

    #[test]
    fn an_argument_is_followed_alone() {
        let passed = crossing(place(1, "a"), "x", place(1, "call"), "args.one");
        let other = crossing(place(1, "b"), "x", place(1, "call"), "args.two");
        let read = crossing(place(1, "call"), "args.one.deep", place(2, "c"), "command");
        let up = Spot::before(&read);
        assert!(up.is_fed_by(&passed) && !up.is_fed_by(&other));
        assert!(Spot::after(&passed).feeds(&read));
        assert!(!Spot::after(&other).feeds(&read));
        assert!(Spot::of(place(1, "call")).feeds(&read));
        let outputs = crossing(place(1, "call"), "outputs.n", place(1, "d"), "command");
        assert!(Spot::after(&passed).feeds(&outputs));
        // What it made is not what it passed on.
        let back = crossing(place(2, "c"), "n", place(1, "call"), "outputs.n");
        assert!(!Spot::after(&back).feeds(&read) && Spot::after(&back).feeds(&outputs));
        let made = Spot::before(&outputs);
        assert!(made.is_fed_by(&back) && !made.is_fed_by(&passed));
    }

    #[test]
    fn a_step_is_all_its_instances_but_they_are_not_each_other() {
        let first = crossing(place(1, "a"), "x", place(1, "each[0]"), "item");
        assert!(Spot::of(place(1, "each")).is_fed_by(&first));
        assert!(Spot::of(place(1, "each[0]")).is_fed_by(&first));
        assert!(!Spot::of(place(1, "each[1]")).is_fed_by(&first));
        assert!(!Spot::of(place(2, "each")).is_fed_by(&first));
        let all = crossing(place(1, "each"), "outputs.items", place(1, "join"), "command");
        assert!(Spot::of(place(1, "each[1]")).feeds(&all));
    }
}
