//! Labels: which ones each node needs, and what binds them.

use super::check::{Lens, Wire, id, span};
use super::written::{EdgeDoc, NodeDoc, VersionDoc};
use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::leaf::Table;
use crate::doc::read::{DocumentReader, PathPart};
use crate::label::label;
use crate::merge::{Strategy, choose};
use crate::template::lens::{Certainty, LensTemplate};
use crate::template::tree::LabelTree;
use crate::visible::shorten;
use std::collections::{BTreeMap, BTreeSet};

/// Checks that every required label is bound, and that merged sources have different labels.
pub(super) fn check(lens: &Lens<'_>, cx: &mut DocumentReader<'_, '_>) {
    let bound = bound(lens);
    let needs = Needs::of_document(lens);
    let roots = root_labels(lens, &needs, &bound);
    for (at, node) in lens.nodes.iter().enumerate() {
        let Some(needs) = needs.of_node(lens, at) else { continue };
        let is_bound = |label: &String| bound[at].contains(label) || roots.contains(label);
        for (labels, written) in &needs.required {
            if labels.iter().any(is_bound) {
                continue;
            }
            let message = format!("nothing binds `{}` of node `{}`", shorten(written), id(node));
            let known = || bound[at].iter().chain(&roots).map(String::as_str);
            let likely = labels.iter().find_map(|label| cx.suggest(label, known()));
            let problem = Problem::new(Code::MissingBinding, span(node), message);
            let problem = match likely {
                Some(_) => problem.with_suggestion(likely),
                None => problem.with_hint(
                    "wire an edge to it, set it in `param_overrides` or declare it under `args`",
                ),
            };
            cx.deeper(&[PathPart::Key("nodes"), PathPart::Index(at)], |cx| cx.add(problem));
        }
    }
    check_merges(lens, cx);
}

/// The labels that edges and overrides bind, one set for each node.
pub(super) fn bound(lens: &Lens<'_>) -> Vec<BTreeSet<String>> {
    let overridden = lens.nodes.iter().map(|node| {
        let tables = node.config.iter().flat_map(|config| &config.param_overrides);
        tables.flat_map(Table::names).map(label).collect()
    });
    let mut bound: Vec<BTreeSet<String>> = overridden.collect();
    for (_, edge, wire) in lens.wired() {
        bound[wire.target as usize].extend(edge.target_param_label.as_deref().map(label));
    }
    bound
}

/// Labels that the caller of the run may set: the declared arguments, else the unbound labels
/// of entry nodes.
fn root_labels(lens: &Lens<'_>, needs: &Needs, bound: &[BTreeSet<String>]) -> BTreeSet<String> {
    if let Some(args) = &lens.document.args {
        return args.names().map(label).collect();
    }
    let mut has_parent = vec![false; lens.nodes.len()];
    for (_, _, wire) in lens.wired() {
        has_parent[wire.target as usize] = true;
    }
    let mut roots = BTreeSet::new();
    for at in (0..lens.nodes.len()).filter(|at| !has_parent[*at]) {
        let labels = needs.of_node(lens, at).into_iter().flat_map(|needs| &needs.labels);
        roots.extend(labels.filter(|label| !bound[at].contains(*label)).cloned());
    }
    roots
}

/// The labels that each lens version needs. Many nodes may share a version, so each is analysed
/// once.
struct Needs {
    versions: BTreeMap<*const VersionDoc, LabelNeeds>,
    /// The needs of nodes that run another workflow.
    nodes: BTreeMap<usize, LabelNeeds>,
}

/// The labels that a lens version or a node needs, in normal form.
struct LabelNeeds {
    /// Groups of labels with the text to report; of each group, one must be bound.
    required: Vec<(Vec<String>, String)>,
    /// Every label that it uses.
    labels: Vec<String>,
}

impl Needs {
    fn of_document(lens: &Lens<'_>) -> Needs {
        let mut versions = BTreeMap::new();
        for (_, version) in lens.versions.iter().flatten() {
            let key = std::ptr::from_ref(*version);
            versions.entry(key).or_insert_with(|| LabelNeeds::of_version(version));
        }
        let nodes = lens.nodes.iter().enumerate();
        let nodes = nodes.filter_map(|(at, node)| Some((at, LabelNeeds::of_args(node)?)));
        Needs { versions, nodes: nodes.collect() }
    }

    fn of_node(&self, lens: &Lens<'_>, at: usize) -> Option<&LabelNeeds> {
        match lens.versions[at] {
            Some((_, version)) => self.versions.get(&std::ptr::from_ref(version)),
            None => self.nodes.get(&at),
        }
    }
}

impl LabelNeeds {
    /// The labels that the arguments of a node's sub-workflow need.
    fn of_args(node: &NodeDoc) -> Option<LabelNeeds> {
        let args = node.config.as_ref()?.args.as_ref()?;
        let trees = args.value.0.iter().map(|(_, tree)| tree);
        let templates = trees.flat_map(LabelTree::templates);
        let placeholders = templates.flat_map(LensTemplate::placeholders);
        let certain = placeholders.filter(|one| one.certainty == Certainty::Certain);
        let mut needs = LabelNeeds { required: Vec::new(), labels: Vec::new() };
        for one in certain {
            needs.labels.push(one.label.clone());
            if !one.optional {
                needs.required.push((vec![one.label.clone()], one.written.clone()));
            }
        }
        needs.required.sort();
        needs.required.dedup_by(|a, b| a.0 == b.0);
        Some(needs)
    }

    fn of_version(version: &VersionDoc) -> LabelNeeds {
        let contract = version.input_contract.iter().map(|contract| &contract.0);
        let fields = || contract.clone().flat_map(|contract| &contract.fields);
        let groups = || contract.clone().flat_map(|contract| &contract.require_any_of);
        // `[ label ]` is a placeholder only if another part of the document declares
        // the label.
        let placeholders = || {
            let all = version.template.iter().flat_map(LensTemplate::placeholders);
            all.filter(|one| one.certainty == Certainty::Certain)
        };

        let declared: BTreeSet<String> = fields().map(|(name, _)| label(name)).collect();
        let mut single: BTreeMap<String, String> = BTreeMap::new();
        for (name, _) in fields().filter(|(_, field)| field.required) {
            single.insert(label(name), name.clone());
        }
        for one in placeholders().filter(|one| !one.optional && !declared.contains(&one.label)) {
            single.entry(one.label.clone()).or_insert_with(|| one.written.clone());
        }
        let mut required: Vec<(Vec<String>, String)> =
            single.into_iter().map(|(label, written)| (vec![label], written)).collect();
        for group in groups().filter(|group| !group.is_empty()) {
            required.push((group.iter().map(|name| label(name)).collect(), group.join("|")));
        }
        let named = declared.into_iter().chain(groups().flatten().map(|name| label(name)));
        let labels = named.chain(placeholders().map(|one| one.label.clone())).collect();
        LabelNeeds { required, labels }
    }
}

/// The edges that bind one label of one node, with their positions.
type Group<'d> = Vec<(usize, &'d EdgeDoc, Wire)>;

/// Checks that the sources of a merged object have different labels.
fn check_merges(lens: &Lens<'_>, cx: &mut DocumentReader<'_, '_>) {
    let mut groups: BTreeMap<(u32, String), Group<'_>> = BTreeMap::new();
    for (index, edge, wire) in lens.wired() {
        if let Some(written) = &edge.target_param_label {
            groups.entry((wire.target, label(written))).or_default().push((index, edge, wire));
        }
    }
    for ((target, _), group) in groups {
        let own = lens.nodes[target as usize].config.as_ref().and_then(|config| config.merge);
        if choose(group[0].1.merge_strategy, own) != Strategy::JsonObject {
            continue;
        }
        let mut seen = BTreeSet::new();
        for (index, edge, wire) in group {
            let source = &lens.nodes[wire.source as usize];
            let key = source.label.as_deref().unwrap_or(id(source));
            if !seen.insert(key) {
                let message =
                    format!("two sources merged into one object are labelled `{}`", shorten(key));
                let problem =
                    Problem::new(Code::DuplicateMergeLabel, lens.edge_span(edge), message)
                        .with_hint("the later value replaces the earlier one");
                cx.deeper(&[PathPart::Key("edges"), PathPart::Index(index)], |cx| cx.add(problem));
            }
        }
    }
}
