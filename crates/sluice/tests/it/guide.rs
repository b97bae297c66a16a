//! The guide's documents are right, and its expressions give what it says.

use crate::markdown::blocks;
use crate::session::root;
use serde_json::Value;
use sluice_core::doc::{Registry, check};
use sluice_core::expr::Expr;
use sluice_core::scope::names::Names;
use sluice_core::value::Membership;
use sluice_govern::policy::{Policies, PolicyFacts};
use std::collections::BTreeMap;

fn pages() -> Vec<(String, String)> {
    let files = std::fs::read_dir(root().join("docs/guide")).unwrap().map(|file| file.unwrap());
    files
        .map(|file| {
            let text = std::fs::read_to_string(file.path()).unwrap();
            (file.file_name().into_string().unwrap(), text)
        })
        .collect()
}

#[test]
fn every_whole_document_of_the_guide_is_right() {
    let registry = std::fs::read_to_string(root().join("examples/registry.yaml")).unwrap();
    let registry = Registry::parse(&registry).0.unwrap();
    let mut documents = 0;
    for (name, page) in pages() {
        for block in blocks(&page) {
            let has = |key: &str| block.text.lines().any(|line| line.starts_with(key));
            if has("name:") && (has("steps:") || has("nodes:")) {
                let checked = check(block.text.as_bytes(), None, &registry);
                assert!(checked.diagnostics.is_empty(), "{name}: {:#?}", checked.diagnostics);
                documents += 1;
            }
        }
    }
    assert!(documents >= 3, "{documents}");
}

#[test]
fn the_table_of_expressions_tells_the_truth() {
    let page = std::fs::read_to_string(root().join("docs/guide/expressions.md")).unwrap();
    let values = blocks(&page).into_iter().find(|block| block.info == ["json"]).unwrap().text;
    let scope = Names::from_value(serde_json::from_str(&values).unwrap()).unwrap();
    let table = page.split_once("| expression | result | why |").unwrap().1;
    let mut rows = 0;
    for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let source = cells[0].trim_start_matches("| ").trim_matches('`');
        let expected = cells[1].ends_with("true");
        let expr = Expr::parse(source).unwrap();
        assert_eq!(expr.holds(&scope, Membership::Tolerant), Ok(expected), "{source}");
        rows += 1;
    }
    assert!(rows >= 15, "{rows}");
}

/// A policy of the cookbook and its cases.
struct Recipe {
    policy: String,
    cases: Vec<PolicyCase>,
}

/// What a policy decides on some facts.
struct PolicyCase {
    name: String,
    /// What differs from the facts of the action, as in RFC 7386.
    facts: Value,
    result: String,
}

/// The policies of the cookbook: each is followed by a table of cases.
fn recipes(page: &str) -> Vec<Recipe> {
    let mut recipes: Vec<Recipe> = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line == "```cedar" {
            let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            recipes.push(Recipe { policy: text.join("\n"), cases: Vec::new() });
        } else if line == "| case | facts | result |" {
            let rows = lines.by_ref().skip(1).take_while(|line| line.starts_with('|'));
            let cases = &mut recipes.last_mut().expect("a policy comes before its cases").cases;
            for row in rows {
                let cells = row.trim_start_matches("| ").trim_end_matches(" |");
                let (before, result) = cells.rsplit_once(" | ").unwrap();
                let (name, facts) = before.split_once(" | `").unwrap();
                let facts = serde_json::from_str(facts.trim_end_matches('`'));
                let facts = facts.unwrap_or_else(|error| panic!("{row}: {error}"));
                cases.push(PolicyCase { name: name.to_owned(), facts, result: result.to_owned() });
            }
        }
    }
    recipes
}

/// A field replaces the one of `into`; null removes it.
fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = Value::Object(serde_json::Map::new());
    }
    let fields = into.as_object_mut().unwrap();
    for (name, value) in patch {
        match value {
            Value::Null => {
                fields.remove(name);
            }
            value => merge(fields.entry(name.clone()).or_insert(Value::Null), value),
        }
    }
}

#[test]
fn every_policy_of_the_cookbook_decides_its_cases_as_the_page_says() {
    let page = std::fs::read_to_string(root().join("docs/guide/policy-cookbook.md")).unwrap();
    let facts: BTreeMap<String, Value> = blocks(&page)
        .iter()
        .filter_map(|block| match &block.info[..] {
            [_, what, verb] if what == "facts" => {
                Some((verb.clone(), serde_json::from_str(&block.text).unwrap()))
            }
            _ => None,
        })
        .collect();
    let recipes = recipes(&page);
    assert!(recipes.len() >= 20, "{}", recipes.len());
    for Recipe { policy, cases } in &recipes {
        let files = [("permit", "permit (principal, action, resource);"), ("recipe", policy)];
        let files = files.map(|(name, text)| (format!("{name}.cedar"), text.to_owned()));
        let set = Policies::load(&files).unwrap_or_else(|errors| panic!("{policy}: {errors:#?}"));
        for case in cases {
            let verb = case.facts["verb"].as_str().unwrap_or("use_tool");
            let mut case_facts = facts[verb].clone();
            merge(&mut case_facts, &case.facts);
            let case_facts: PolicyFacts<'_> = serde_json::from_value(case_facts).unwrap();
            let explained = set.explain(&case_facts);
            let matched = explained.policies.iter().any(|one| one.matched && !one.decides);
            let result = explained.replayed.disposition.to_string();
            let result = if matched { result + ", matched" } else { result };
            assert_eq!(result, case.result, "{policy}\n{}: {:#?}", case.name, explained.policies);
            // Who is refused learns from which policy, and why.
            let decides = explained.policies.iter().filter(|one| one.decides);
            assert!(decides.clone().all(|one| one.description.is_some() && one.error.is_none()));
        }
        let has = |result: &str| cases.iter().any(|case| case.result == result);
        let refuses = has("block") || has("hold") || has("allow, matched");
        assert!(has("allow") && refuses, "a case that passes and one that does not: {policy}");
    }
}
