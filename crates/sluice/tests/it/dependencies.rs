//! Rules of the crates that come from outside: licences, sources, bans.

use crate::session::root;
use serde_json::Value;
use spdx::{Expression, ParseMode};
use std::process::Command;

/// Licences that a dependency may have.
const LICENCES: [&str; 12] = [
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-3-Clause",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "NCSA",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];
/// Crates that must not be used, and why.
const BANNED: [(&str, &str); 3] = [
    ("aws-lc-sys", "TLS is rustls with ring"),
    ("openssl-sys", "TLS is rustls with ring"),
    ("serde_yaml", "accepts duplicate keys; `sluice_core::yaml` reads documents"),
];

/// The crate with test servers, which only tests and benchmarks may use.
const TESTING: &str = "sluice-testing";

/// Every package that a build for this machine uses, from `cargo metadata`.
fn packages() -> Vec<Value> {
    let run = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).current_dir(root()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let about = run("rustc", &["-vV"]);
    let host = about.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let platform = ["--filter-platform", host];
    let form = ["metadata", "--format-version", "1", "--locked", "--offline"];
    let metadata: Value =
        serde_json::from_str(&run("cargo", &[&form[..], &platform].concat())).unwrap();
    let used: Vec<&str> = metadata["resolve"]["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["id"].as_str().unwrap())
        .collect();
    let all = metadata["packages"].as_array().unwrap();
    let all = all.iter().filter(|package| used.contains(&package["id"].as_str().unwrap()));
    all.cloned().collect()
}

fn name(package: &Value) -> &str {
    package["name"].as_str().unwrap()
}

/// Why a package must not be used.
fn faults(package: &Value) -> Vec<String> {
    let name = name(package);
    let mut faults = Vec::new();
    if let Some((_, why)) = BANNED.iter().find(|(banned, _)| *banned == name) {
        faults.push(format!("{name} is banned: {why}"));
    }
    let licence = package["license"].as_str().unwrap_or_default();
    let allowed = |licence: &str| LICENCES.contains(&licence);
    match Expression::parse_mode(licence, ParseMode::LAX) {
        Ok(parsed) if parsed.evaluate(|one| allowed(&one.to_string())) => {}
        _ => faults.push(format!("{name} has the licence {licence:?}")),
    }
    let source = package["source"].as_str();
    if source.is_some_and(|source| !source.starts_with("registry+")) {
        faults.push(format!("{name} comes from {source:?}"));
    }
    // A package of this repository names the versions that it needs.
    let needs = package["dependencies"].as_array().unwrap().iter();
    for need in
        needs.filter(|need| source.is_none() && !need["source"].is_null() && need["req"] == "*")
    {
        faults.push(format!("{name} needs any version of {}", need["name"]));
    }
    let mut needs = package["dependencies"].as_array().unwrap().iter();
    let is_test_code = |need: &Value| need["name"] == TESTING && need["kind"] != "dev";
    if source.is_none() && name != "bench" && needs.any(is_test_code) {
        faults.push(format!("{name} builds {TESTING} into production code"));
    }
    faults
}

#[test]
fn every_dependency_is_allowed() {
    let packages = packages();
    assert!(packages.len() > 100, "{}", packages.len());
    let faults: Vec<String> = packages.iter().flat_map(faults).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn what_is_not_allowed_is_found() {
    let package = |name: &str, licence: &str, source: &str| serde_json::json!({"name": name, "license": licence, "source": source, "dependencies": []});
    let registry = "registry+any";
    assert_eq!(faults(&package("good", "MIT/Apache-2.0", registry)), [""; 0]);
    assert_eq!(faults(&package("good", "GPL-3.0 OR (MIT AND Zlib)", registry)), [""; 0]);
    for (name, licence, source) in [
        ("openssl-sys", "MIT", registry),
        ("strict", "MIT AND GPL-3.0", registry),
        ("silent", "", registry),
        ("branch", "MIT", "git+somewhere"),
    ] {
        assert_eq!(faults(&package(name, licence, source)).len(), 1, "{name}");
    }
    let own = serde_json::json!({"name": "own", "license": "MIT", "source": null,
        "dependencies": [{"name": "any", "source": registry, "req": "*"}]});
    assert_eq!(faults(&own).len(), 1);
    let user = |kind: Value| {
        serde_json::json!({"name": "own", "license": "MIT", "source": null,
        "dependencies": [{"name": TESTING, "source": null, "req": "*", "kind": kind}]})
    };
    assert_eq!(faults(&user("dev".into())), [""; 0]);
    assert_eq!(faults(&user(Value::Null)).len(), 1);
}
