//! What the README shows is what happens.

use crate::markdown::blocks;
use crate::session::{Session, binary, root};
use crate::world::plain;

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
    assert_eq!(consoles.len(), 4);

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
    assert_eq!(plain(shown), plain(&printed));

    let id = |kind: &str| {
        let from = printed.find(kind).unwrap();
        printed[from..].split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap()
    };
    let approve = ["approvals", "approve", id("apr_")];
    let resume = ["resume", id("run_"), "--mock", "answers.yaml"];
    let mut told = String::new();
    for arguments in [&approve[..], &resume] {
        told += &format!("$ sluice {}\n{}", arguments.join(" "), run(&session, arguments));
    }
    assert_eq!(plain(consoles[2]), plain(&told));
    assert!(told.contains("write_offer: Dear Northwind"), "the result is shown: {told}");

    let session = session.file("review.lobsterx.yaml", document.replace("[sign_off]", "[signoff]"));
    let printed = run(&session, &["validate", "review.lobsterx.yaml"]);
    assert_eq!(*consoles[3], format!("$ sluice validate review.lobsterx.yaml\n{printed}"));
}
