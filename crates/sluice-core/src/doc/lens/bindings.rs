//! Labels: what each node needs, and who binds it.

use super::check::{Lens, Wire, id, span};
use super::written::{EdgeDoc, VersionDoc};
use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::leaf::Table;
use crate::doc::read::{Part, Reader};
use crate::label::label;
use crate::merge::{Strategy, choose};
use crate::template::lens::Certainty;
use crate::yaml::shorten;
use std::collections::{BTreeMap, BTreeSet};

/// Every required label is bound, and merged sources can be told apart.
pub(super) fn check(lens: &Lens<'_>, cx: &mut Reader<'_, '_>) {
    let bound = bound(lens);
    let roots = root_labels(lens);
    for (at, node) in lens.nodes.iter().enumerate() {
        let Some((_, version)) = lens.versions[at] else { continue };
        for (label, written) in required_labels(version) {
            if bound[at].contains(&label) || roots.contains(&label) {
                continue;
            }
            let message = format!("nothing binds `{}` of node `{}`", shorten(&written), id(node));
            let likely = cx.suggest(&label, bound[at].iter().chain(&roots).map(String::as_str));
            let problem = Problem::new(Code::MissingBinding, span(node), message);
            let problem = match likely {
                Some(_) => problem.with_suggestion(likely),
                None => problem.with_hint(
                    "wire an edge to it, set it in `param_overrides` or declare it under `args`",
                ),
            };
            cx.deeper(&[Part::Key("nodes"), Part::Index(at)], |cx| cx.add(problem));
        }
    }
    check_merges(lens, cx);
}

/// Labels that an edge or an override binds, a set a node.
fn bound(lens: &Lens<'_>) -> Vec<BTreeSet<String>> {
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

/// Labels that whoever starts the run may give: the declared arguments, else
/// what entry nodes leave open, since nothing else could bind those.
fn root_labels(lens: &Lens<'_>) -> BTreeSet<String> {
    if let Some(args) = &lens.document.args {
        return args.names().map(label).collect();
    }
    let mut has_parent = vec![false; lens.nodes.len()];
    for (_, _, wire) in lens.wired() {
        has_parent[wire.target as usize] = true;
    }
    let entries = lens.versions.iter().zip(&has_parent).filter(|(_, parent)| !**parent);
    entries.flat_map(|(version, _)| version.iter().flat_map(|(_, one)| all_labels(one))).collect()
}

/// Labels a version cannot do without, in normal form and as written.
fn required_labels(version: &VersionDoc) -> BTreeMap<String, String> {
    let mut required = BTreeMap::new();
    let mut optional = BTreeSet::new();
    for (name, field) in version.input_contract.iter().flat_map(|contract| &contract.0.fields) {
        if field.required {
            required.insert(label(name), name.clone());
        } else {
            optional.insert(label(name));
        }
    }
    for placeholder in
        version.template.iter().flat_map(crate::template::lens::LensTemplate::placeholders)
    {
        let certain = placeholder.certainty == Certainty::Certain && !placeholder.optional;
        if certain && !optional.contains(&placeholder.label) {
            let written = || placeholder.written.clone();
            required.entry(placeholder.label.clone()).or_insert_with(written);
        }
    }
    required
}

/// Every label a version has a use for, in normal form.
fn all_labels(version: &VersionDoc) -> Vec<String> {
    let contract = version.input_contract.iter();
    let fields = contract.clone().flat_map(|contract| contract.0.fields.keys());
    let groups = contract.flat_map(|contract| contract.0.require_any_of.iter().flatten());
    let placeholders =
        version.template.iter().flat_map(crate::template::lens::LensTemplate::placeholders);
    let declared = fields.chain(groups).map(|name| label(name));
    declared.chain(placeholders.map(|placeholder| placeholder.label.clone())).collect()
}

/// The edges that bind one label of one node, with their positions.
type Group<'d> = Vec<(usize, &'d EdgeDoc, Wire)>;

/// Two sources of one merged object need two labels.
fn check_merges(lens: &Lens<'_>, cx: &mut Reader<'_, '_>) {
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
                        .with_hint("the later one replaces the earlier");
                cx.deeper(&[Part::Key("edges"), Part::Index(index)], |cx| cx.add(problem));
            }
        }
    }
}
