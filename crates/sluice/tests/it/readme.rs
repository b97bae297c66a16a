//! What the README shows is what happens.

use crate::markdown::blocks;
use crate::session::{Session, binary, root};

/// What a command prints, diagnostics first as on a terminal.
fn run(session: &Session, arguments: &[&str]) -> String {
    let done = binary(session.path()).args(arguments).output().unwrap();
    String::from_utf8(done.stderr).unwrap() + &String::from_utf8(done.stdout).unwrap()
}

/// The text with every digit of ids and times as the same one.
fn without_chance(text: &str) -> String {
    let word = |word: &str| match word {
        word if word.starts_with("run_") || word.starts_with("apr_") => word[..4].to_owned(),
        word if !word.is_empty() && word.chars().all(|c| c.is_ascii_digit()) => "N".to_owned(),
        word => word.to_owned(),
    };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_ten_lines_and_their_output_are_real() {
    let blocks = blocks(&std::fs::read_to_string(root().join("README.md")).unwrap());
    let of = |info: &'static str| blocks.iter().filter(move |block| block.info == [info]);
    let document = &of("yaml").next().unwrap().text;
    let consoles: Vec<&String> = of("console").map(|block| &block.text).collect();
    assert_eq!(consoles.len(), 3);

    let session = Session::new().file("review.lobsterx.yaml", document);
    let printed = run(&session, &["plan", "review.lobsterx.yaml"]);
    assert_eq!(*consoles[0], format!("$ sluice plan review.lobsterx.yaml\n{printed}"));

    let answers = &of("yaml").nth(1).unwrap().text;
    let session = session.file("answers.yaml", answers);
    let arguments = [
        "run",
        "review.lobsterx.yaml",
        "--mock",
        "answers.yaml",
        "--arg",
        "vendor=Northwind Paper",
    ];
    let printed = run(&session, &arguments);
    let (command, shown) = consoles[1].split_once('\n').unwrap();
    let written =
        "$ sluice run review.lobsterx.yaml --mock answers.yaml --arg vendor=\"Northwind Paper\"";
    assert_eq!(command, written);
    assert_eq!(without_chance(shown), without_chance(&printed));

    let session = session.file("review.lobsterx.yaml", document.replace("[sign_off]", "[signoff]"));
    let printed = run(&session, &["validate", "review.lobsterx.yaml"]);
    assert_eq!(*consoles[2], format!("$ sluice validate review.lobsterx.yaml\n{printed}"));
}
