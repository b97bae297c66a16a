//! Every code has a page, and the pages tell the truth.

use crate::markdown::{Block, blocks};
use crate::session::root;
use sluice_core::code::{Code, Severity};
use sluice_core::doc::setup::Setup;
use sluice_core::doc::{Format, Registry, check};
use sluice_core::rows::{cautions, faults};
use sluice_core::run::command::Refusal;
use std::collections::BTreeSet;

/// Codes of documents that would be too long for a page, or that no document gets.
const WITHOUT_BLOCKS: [Code; 10] = [
    Code::DocumentTooLarge,
    Code::InvalidEncoding,
    Code::TooDeep,
    Code::TooManyNodes,
    Code::TooManySteps,
    Code::UnknownFormat,
    Code::MoreProblems,
    Code::InvalidArgs,
    Code::PossibleFlow,
    Code::ForbiddenFlow,
];
/// Pages of codes that the command line answers with by itself.
const OF_THE_COMMAND_LINE: [&str; 1] = ["document_unreadable"];
/// What the command line refuses by itself.
const REFUSED_BY_THE_COMMAND_LINE: [&str; 42] = [
    "run_unknown",
    "id_ambiguous",
    "run_owned",
    "run_not_ended",
    "run_paused",
    "run_unreadable",
    "checkpoint_unknown",
    "config_invalid",
    "server_unreachable",
    "needs_data_directory",
    "data_unusable",
    "idempotency_conflict",
    "not_confirmed",
    "start_needs_approval",
    "nothing_failed",
    "document_changed",
    "seal_unusable",
    "store_not_authentic",
    "store_rolled_back",
    "seal_unreadable",
    "not_sealed",
    "event_unknown",
    "row_unknown",
    "row_in_use",
    "row_unreadable",
    "version_taken",
    "out_of_resources",
    "policies_refused",
    "change_refused",
    "secret_not_named",
    "secret_unknown",
    "role_bound",
    "registry_busy",
    "not_on_trial",
    "file_exists",
    "moderation_unusable",
    "recording_unusable",
    "cost_too_wide",
    "migrate_refused",
    "migrate_unverified",
    "usage_invalid",
    "command_failed",
];

/// What the server refuses by itself, and the commands about it.
const REFUSED_BY_THE_SERVER: [&str; 21] = [
    "bad_request",
    "unauthenticated",
    "forbidden",
    "csrf_refused",
    "not_found",
    "method_not_allowed",
    "unsupported_media_type",
    "body_too_large",
    "too_many_requests",
    "overloaded",
    "request_timeout",
    "store_unavailable",
    "stopping",
    "internal_error",
    "document_refused",
    "callback_refused",
    "replayed",
    "role_unknown",
    "organisation_unknown",
    "organisation_exists",
    "listen_refused",
];

/// Every code there is, with what its page begins with.
fn codes() -> Vec<(&'static str, &'static str)> {
    let of_code = |code: &Code| match code.severity() {
        Severity::Error => (code.as_str(), "Error. "),
        Severity::Warning => (code.as_str(), "Warning. "),
        Severity::Failure => (code.as_str(), "Failure. "),
    };
    let of_documents_and_steps = Code::ALL.iter().map(of_code);
    let of_commands = Refusal::CODES.iter().map(|code| (*code, "Refusal. "));
    let of_the_command_line = OF_THE_COMMAND_LINE.into_iter().map(|code| (code, "Error. "));
    let refused_by_it = REFUSED_BY_THE_COMMAND_LINE.into_iter().map(|code| (code, "Refusal. "));
    let of_runs = of_documents_and_steps.chain(of_commands);
    let by_the_server = REFUSED_BY_THE_SERVER.into_iter().map(|code| (code, "Refusal. "));
    of_runs.chain(of_the_command_line).chain(refused_by_it).chain(by_the_server).collect()
}

fn page(code: &str) -> String {
    let path = root().join(format!("docs/errors/{code}.md"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn registry(blocks: &[Block]) -> Registry {
    match blocks.iter().find(|block| block.info == ["yaml", "registry"]) {
        None => Registry::default(),
        Some(block) => {
            let (registry, diagnostics) = Registry::parse(&block.text);
            registry.unwrap_or_else(|| panic!("{diagnostics:#?}"))
        }
    }
}

/// What is wrong with a block, if anything.
fn fault(code: Code, block: &Block, registry: &Registry) -> Option<String> {
    let document = |format| check(block.text.as_bytes(), Some(format), registry).diagnostics;
    let found = match block.info[2].as_str() {
        "lobsterx" => document(Format::Lobsterx),
        "lens" => document(Format::Lens),
        "setup" => match Setup::parse(&block.text) {
            (Some(setup), _) => {
                let (faults, cautions) = (faults(&setup.rows), cautions(&setup.rows));
                setup.place(faults.into_iter().chain(cautions).collect()).0
            }
            (None, found) => found,
        },
        other => return Some(format!("unknown format `{other}`")),
    };
    let errors: BTreeSet<Code> = found.iter().filter(|d| d.is_error()).map(|d| d.code).collect();
    let has = found.iter().any(|d| d.code == code);
    let good = match block.info[1].as_str() {
        "refused" => has && errors.iter().all(|error| *error == code),
        "fixed" => !has && errors.is_empty(),
        _ => false,
    };
    let told: Vec<String> = found.iter().map(|d| format!("{}: {}", d.code, d.message)).collect();
    (!good).then(|| format!("{code}, {}: {told:?}", block.info.join(" ")))
}

#[test]
fn every_code_has_a_page_headed_by_it() {
    for (code, kind) in codes() {
        let page = page(code);
        assert!(page.starts_with(&format!("# `{code}`\n\n{kind}")), "{code}: not headed `{kind}`");
        assert!(page.contains("\nWhat to do: "), "{code}: the page says no remedy");
    }
}

#[test]
fn every_page_is_of_one_code_and_in_the_index() {
    let index = page("README");
    let mut known = BTreeSet::new();
    for (code, _) in codes() {
        assert!(known.insert(code), "{code} means two things");
        assert!(
            index.contains(&format!("| [`{code}`]({code}.md) |")),
            "{code} is not in the index"
        );
    }
    for file in std::fs::read_dir(root().join("docs/errors")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let code = name.trim_end_matches(".md");
        assert!(code == "README" || known.contains(code), "{name} is of no code");
    }
}

#[test]
fn refused_and_fixed_blocks_are_what_they_say() {
    let mut faults = Vec::new();
    for code in Code::ALL {
        let blocks = blocks(&page(code.as_str()));
        let registry = registry(&blocks);
        let kinds = ["refused", "fixed"];
        let checked = |block: &&Block| block.info.len() == 3 && kinds.contains(&&*block.info[1]);
        faults.extend(blocks.iter().filter(checked).filter_map(|b| fault(code, b, &registry)));
        let has = |kind| blocks.iter().filter(checked).any(|block| block.info[1] == kind);
        let needs = code.severity() != Severity::Failure && !WITHOUT_BLOCKS.contains(&code);
        if needs && !kinds.into_iter().all(has) {
            faults.push(format!("{code}: a refused or a fixed block is missing"));
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
