//! `sluice schema`, and whether the schemas say what the validator says.

use crate::session::{Session, examples, output, root};
use serde_json::{Value, json};
use sluice_core::diagnostic::Problems;
use sluice_core::yaml;

fn schema(format: &str) -> Value {
    let output = Session::new().output(&["schema", format], b"");
    assert_eq!(output.status.code(), Some(0));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn document(path: &str) -> Value {
    let text = std::fs::read_to_string(root().join(path)).unwrap();
    yaml::parse(&text, &mut Problems::default()).unwrap().to_value()
}

fn format_of(path: &str) -> &'static str {
    if path.contains(".lens.") { "lens" } else { "lobsterx" }
}

#[test]
fn both_forms_hold_the_same_schema() {
    for format in ["lobsterx", "lens", "setup", "openapi"] {
        let compact = Session::new().output(&["schema", format, "--json"], b"").stdout;
        assert_eq!(compact.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert_eq!(serde_json::from_slice::<Value>(&compact).unwrap(), schema(format));
    }
}

/// Clients and the console are generated from this file, without a server.
#[test]
fn the_openapi_description_in_docs_is_what_the_routes_make() {
    let printed = Session::new().output(&["schema", "openapi"], b"").stdout;
    let kept = std::fs::read(root().join("docs/openapi.json")).unwrap_or_default();
    assert!(printed == kept, "docs/openapi.json is out of date: run `make openapi`");
}

#[test]
fn the_openapi_description_needs_no_data_directory() {
    let session = Session::new();
    let output = session.output(&["schema", "openapi", "--json"], b"");
    assert_eq!(output.status.code(), Some(0));
    let described: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(described["openapi"], "3.1.0");
    assert!(described["paths"]["/api/v1/runs"]["get"].is_object());
    assert_eq!(session.path().read_dir().unwrap().count(), 0);
}

#[test]
fn every_example_fits_its_schema() {
    let mut errors = Vec::new();
    for path in examples() {
        let validator = jsonschema::validator_for(&schema(format_of(&path))).unwrap();
        let document = document(&path);
        let found = validator.iter_errors(&document);
        errors.extend(found.map(|error| format!("{path}: {}: {error}", error.instance_path())));
    }
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn the_example_of_a_setup_fits_its_schema_and_slips_do_not() {
    let validator = jsonschema::validator_for(&schema("setup")).unwrap();
    let setup = document("examples/governance/config.yaml");
    let errors: Vec<String> = validator.iter_errors(&setup).map(|e| e.to_string()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let slips: [(&str, Value); 4] = [
        ("/agents/scribe/trust_level", json!(11)),
        ("/agents/scribe/rate", json!({"limit": 1})),
        ("/budgets/everything/period", json!("hourly")),
        ("/deployments/brief/roles", json!(["scribe"])),
    ];
    for (place, value) in slips {
        let mut broken = setup.clone();
        let (above, field) = place.rsplit_once('/').unwrap();
        broken.pointer_mut(above).unwrap()[field] = value;
        assert!(!validator.is_valid(&broken), "{place}");
    }
}

/// Changes that break the structure of any document of the format.
fn broken(format: &str, whole: &Value) -> Vec<(&'static str, Value)> {
    let list = if format == "lens" { "nodes" } else { "steps" };
    let change = |change: &dyn Fn(&mut Value)| {
        let mut document = whole.clone();
        change(&mut document);
        document
    };
    vec![
        ("no list of steps", change(&|d| drop(d.as_object_mut().unwrap().remove(list)))),
        ("a list for a map", json!([whole])),
        ("a text for the list", change(&|d| d[list] = json!("all of them"))),
        ("an unknown field", change(&|d| d["stpes"] = json!([]))),
        ("an unknown field of a step", change(&|d| d[list][0]["comand"] = json!("x"))),
        ("a step without id", change(&|d| drop(d[list][0].as_object_mut().unwrap().remove("id")))),
        ("a number for an id", change(&|d| d[list][0]["id"] = json!(7))),
    ]
}

#[test]
fn broken_documents_fit_neither_the_schema_nor_the_validator() {
    for path in examples() {
        let format = format_of(&path);
        let validator = jsonschema::validator_for(&schema(format)).unwrap();
        for (what, document) in broken(format, &document(&path)) {
            assert!(!validator.is_valid(&document), "{path} with {what} fits the schema");
            let session = Session::new().file(&format!("x.{format}.json"), document.to_string());
            let told = session.output(&["validate", &format!("x.{format}.json")], b"");
            assert_eq!(told.status.code(), Some(2), "{path} with {what} is valid");
        }
    }
}

#[test]
fn the_examples_are_valid_without_a_warning() {
    let examples = examples();
    let mut args = vec!["validate", "--json", "--registry", "examples/registry.yaml"];
    args.extend(examples.iter().map(String::as_str));
    let output = output(&root(), &args, b"");
    assert_eq!(output.status.code(), Some(0));
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let report: Value = serde_json::from_str(line).unwrap();
        assert_eq!(report["warnings"], json!([]), "{line}");
    }
}
