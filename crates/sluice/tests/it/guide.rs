//! The guide's documents are right, and its expressions give what it says.

use crate::markdown::blocks;
use crate::session::root;
use sluice_core::doc::{Registry, check};
use sluice_core::expr::Expr;
use sluice_core::scope::names::Names;
use sluice_core::value::Membership;

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
