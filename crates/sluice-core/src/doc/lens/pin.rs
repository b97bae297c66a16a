//! Pins the lens version that each node applies.

use super::written::{LensDoc, LensDocument, NodeDoc, VersionDoc};
use crate::code::Code;
use crate::diagnostic::Problem;
use crate::doc::leaf::Table;
use crate::doc::read::{DocumentReader, PathPart};
use crate::doc::registry::Registry;
use crate::limits::COPIED_BYTES_MAX;
use crate::span::Spanned;
use crate::template::lens::LensTemplate;
use crate::visible::shorten;
use std::collections::BTreeMap;

/// The lens version that a node applies, with its name; `None` if the lens is not loaded.
pub(super) type Applied<'d> = Option<(&'d str, &'d VersionDoc)>;

/// Pins a version for each node. Returns `None` if the copies of lenses are too large for a
/// plan.
pub(super) fn pin_all<'d>(
    document: &'d LensDocument,
    registry: &'d Registry,
    cx: &mut DocumentReader<'_, '_>,
) -> Option<Vec<Applied<'d>>> {
    let inline = document.lenses.iter().flat_map(|lenses| &lenses.0);
    let inline = inline.map(|(id, lens)| (id.value.as_str(), lens)).collect();
    let mut pinner = Pinner { document, registry, inline, known: BTreeMap::new() };
    let mut applied = Vec::new();
    let mut bytes = 0;
    for (at, node) in document.nodes().iter().enumerate() {
        cx.deeper(&[PathPart::Key("nodes"), PathPart::Index(at)], |cx| {
            let found = pinner.pin(node, cx);
            bytes += found.map_or(0, |version| version.bytes);
            applied.push(found.map(|version| (version.name, version.doc)));
            if bytes > COPIED_BYTES_MAX {
                let message =
                    format!("the nodes repeat over {COPIED_BYTES_MAX} bytes of their lenses");
                let span = super::check::span(node);
                cx.add(Problem::new(Code::TooManyNodes, span, message).with_hint(
                    "each node holds a copy of its lens; shorten the lens or split the workflow",
                ));
            }
        });
        if bytes > COPIED_BYTES_MAX {
            return None;
        }
    }
    Some(applied)
}

/// A version of a lens.
#[derive(Clone, Copy)]
struct PinnedVersion<'d> {
    name: &'d str,
    doc: &'d VersionDoc,
    /// The size of a copy of it in the plan.
    bytes: usize,
}

/// The versions of one lens.
struct Versions<'d> {
    by_name: BTreeMap<&'d str, PinnedVersion<'d>>,
    head: Option<PinnedVersion<'d>>,
}

/// Lenses by id. Thousands of nodes may share one, so each is analysed once.
struct Pinner<'d> {
    document: &'d LensDocument,
    registry: &'d Registry,
    inline: BTreeMap<&'d str, &'d LensDoc>,
    known: BTreeMap<&'d str, Versions<'d>>,
}

impl<'d> Pinner<'d> {
    /// Finds the version of a node: its own, or the newest version of the lens.
    fn pin(
        &mut self,
        node: &'d NodeDoc,
        cx: &mut DocumentReader<'_, '_>,
    ) -> Option<PinnedVersion<'d>> {
        let wanted = node.lens()?;
        let registered = || self.registry.lenses.as_ref()?.get(&wanted.value);
        let Some(lens) = self.inline.get(wanted.value.as_str()).copied().or_else(registered) else {
            self.report_lens(wanted, cx);
            return None;
        };
        let table = lens.versions.as_ref()?;
        let versions = self.known.entry(&wanted.value).or_insert_with(|| Versions::index(table));
        let found = match &node.version_id {
            Some(name) => versions.by_name.get(name.value.0.as_str()).copied(),
            None => versions.head,
        };
        if found.is_none() {
            report_version(node, wanted, table, cx);
        }
        found
    }

    fn report_lens(&self, wanted: &Spanned<String>, cx: &mut DocumentReader<'_, '_>) {
        let shown = shorten(&wanted.value);
        let inline = self.document.lenses.iter().flat_map(Table::names);
        // A lens that could not be read is reported already.
        if inline.clone().any(|id| id == wanted.value) {
            return;
        }
        let problem = match &self.registry.lenses {
            Some(known) => {
                let names = inline.chain(known.keys().map(String::as_str));
                Problem::new(Code::UnknownLens, wanted.span, format!("there is no lens `{shown}`"))
                    .with_suggestion(cx.suggest(&wanted.value, names))
            }
            None => {
                let message = format!("lens `{shown}` cannot be checked: no registry is loaded");
                Problem::new(Code::UnresolvedReference, wanted.span, message)
                    .with_suggestion(cx.suggest(&wanted.value, inline))
            }
        };
        cx.within(PathPart::Key("lens_id"), |cx| cx.add(problem));
    }
}

fn report_version(
    node: &NodeDoc,
    lens: &Spanned<String>,
    table: &Table<VersionDoc>,
    cx: &mut DocumentReader<'_, '_>,
) {
    let lens_id = shorten(&lens.value);
    let Some(version) = &node.version_id else {
        if table.names().next().is_some() {
            return;
        }
        let message = format!("lens `{lens_id}` has no versions");
        let problem = Problem::new(Code::UnknownLens, lens.span, message);
        cx.within(PathPart::Key("lens_id"), |cx| cx.add(problem));
        return;
    };
    let name = &version.value.0;
    if table.names().any(|one| one == name) {
        return;
    }
    let message = format!("lens `{lens_id}` has no version `{}`", shorten(name));
    let problem = Problem::new(Code::UnknownLens, version.span, message)
        .with_suggestion(cx.suggest(name, table.names()));
    cx.within(PathPart::Key("version_id"), |cx| cx.add(problem));
}

impl<'d> Versions<'d> {
    fn index(table: &'d Table<VersionDoc>) -> Versions<'d> {
        let versions = || {
            table.0.iter().map(|(name, doc)| PinnedVersion {
                name: &name.value,
                doc,
                bytes: bytes(doc),
            })
        };
        let by_name: BTreeMap<&str, PinnedVersion<'d>> =
            versions().map(|version| (version.name, version)).collect();
        let head = newest_version(table.names()).and_then(|id| by_name.get(id).copied());
        Versions { by_name, head }
    }
}

/// Picks the newest version of a lens from its version ids, oldest first: the highest
/// number if every id is a number (`3` or `v3`), else the last id.
pub fn newest_version<'v>(ids: impl Iterator<Item = &'v str> + Clone) -> Option<&'v str> {
    let number = |id: &str| {
        let digits = id.strip_prefix('v').unwrap_or(id);
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<u64>().ok().filter(|_| plain)
    };
    if ids.clone().all(|id| number(id).is_some()) {
        ids.max_by_key(|id| number(id))
    } else {
        ids.last()
    }
}

/// The estimated overhead of a field, a placeholder or an allowed value.
const PART_BYTES: usize = 256;

/// The estimated size of a copy of a version; rather too high than too low.
fn bytes(version: &VersionDoc) -> usize {
    let input = version.input_contract.as_ref().map(|contract| &contract.0);
    let output = version.output_contract.as_ref().map(|contract| &contract.0);
    let fields = || {
        let input = input.into_iter().flat_map(|contract| contract.fields.values());
        let output = output.into_iter().flat_map(|contract| contract.schema.iter().flatten());
        input.chain(output.map(|(_, field)| field))
    };
    let placeholders = || version.template.iter().flat_map(LensTemplate::placeholders);
    // A placeholder with a type becomes a field.
    let typed = placeholders().filter(|one| one.kind.is_some()).count();
    let values: usize = fields().map(|field| field.values.len()).sum();
    let parts = placeholders().count() + typed + fields().count() + values;
    let template = version.template.as_ref().map_or(0, |template| template.source().len());
    template + json_bytes(input) + json_bytes(output) + parts * PART_BYTES
}

fn json_bytes(contract: Option<&impl serde::Serialize>) -> usize {
    contract.map_or(0, |contract| serde_json::to_vec(contract).map_or(0, |json| json.len()))
}
