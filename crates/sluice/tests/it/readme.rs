//! What the README shows is what happens.

use crate::markdown::blocks;
use crate::session::{Session, binary, root};

/// What a command prints, diagnostics first as on a terminal.
fn run(session: &Session, arguments: &[&str]) -> String {
    let done = binary(session.path()).args(arguments).output().unwrap();
    String::from_utf8(done.stderr).unwrap() + &String::from_utf8(done.stdout).unwrap()
}

#[test]
fn the_ten_lines_and_their_output_are_real() {
    let blocks = blocks(&std::fs::read_to_string(root().join("README.md")).unwrap());
    let of = |info: &'static str| blocks.iter().filter(move |block| block.info == [info]);
    let document = &of("yaml").next().unwrap().text;
    let consoles: Vec<&String> = of("console").map(|block| &block.text).collect();
    assert_eq!(consoles.len(), 2);

    let session = Session::new().file("review.lobsterx.yaml", document);
    let printed = run(&session, &["plan", "review.lobsterx.yaml"]);
    assert_eq!(*consoles[0], format!("$ sluice plan review.lobsterx.yaml\n{printed}"));

    let session = session.file("review.lobsterx.yaml", document.replace("[sign_off]", "[signoff]"));
    let printed = run(&session, &["validate", "review.lobsterx.yaml"]);
    assert_eq!(*consoles[1], format!("$ sluice validate review.lobsterx.yaml\n{printed}"));
}
