//! What the README shows is what happens.

use crate::session::{binary, root};

/// The fenced blocks of the README with their info strings.
fn blocks() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(root().join("README.md")).unwrap();
    let mut blocks = Vec::new();
    let mut rest = text.as_str();
    while let Some((_, after)) = rest.split_once("\n```") {
        let (info, after) = after.split_once('\n').unwrap();
        let (body, after) = after.split_once("\n```").unwrap();
        blocks.push((info.to_owned(), format!("{body}\n")));
        rest = after;
    }
    blocks
}

/// What a command prints, diagnostics first as on a terminal.
fn run(dir: &std::path::Path, arguments: &[&str]) -> String {
    let done = binary(dir).args(arguments).output().unwrap();
    String::from_utf8(done.stderr).unwrap() + &String::from_utf8(done.stdout).unwrap()
}

#[test]
fn the_ten_lines_and_their_output_are_real() {
    let blocks = blocks();
    let document = &blocks.iter().find(|(info, _)| info == "yaml").unwrap().1;
    let consoles: Vec<&String> =
        blocks.iter().filter(|(info, _)| info == "console").map(|(_, body)| body).collect();
    assert_eq!(consoles.len(), 2);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("review.lobsterx.yaml");

    std::fs::write(&file, document).unwrap();
    let printed = run(dir.path(), &["plan", "review.lobsterx.yaml"]);
    assert_eq!(*consoles[0], format!("$ sluice plan review.lobsterx.yaml\n{printed}"));

    std::fs::write(&file, document.replace("[sign_off]", "[signoff]")).unwrap();
    let printed = run(dir.path(), &["validate", "review.lobsterx.yaml"]);
    assert_eq!(*consoles[1], format!("$ sluice validate review.lobsterx.yaml\n{printed}"));
}
