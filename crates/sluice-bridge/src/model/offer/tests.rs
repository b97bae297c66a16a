use super::*;

#[test]
fn every_tool_gets_a_unique_name_that_every_provider_accepts() {
    let long = format!("server.{}", "x".repeat(100));
    let longer = format!("{long}y");
    let names = [
        "a.b",
        "a_b",
        "a-b",
        "a.b ",
        "9.lives",
        "größe.x",
        &long,
        &longer,
        "a.b_2",
        "",
        "-x.y",
        "🦞.🦞",
    ];
    let mut taken = BTreeSet::new();
    let aliases: Vec<String> = names.iter().map(|name| alias(name, &mut taken)).collect();
    assert_eq!(taken.len(), names.len(), "{aliases:?}");
    for one in &aliases {
        let plain = one.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        let begins = one.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        assert!(plain && begins && (1..=64).contains(&one.len()), "{one}");
    }
    assert_eq!(&aliases[..5], ["a_b", "a_b_2", "a-b", "a_b_", "_9_lives"]);
    assert_eq!(aliases[7].len(), 64);
}

#[test]
fn an_entry_is_of_a_server_only_with_its_whole_name() {
    assert!(is_of("files.read", "files") && is_of("files.*", "files"));
    assert!(!is_of("files", "files") && !is_of("files2.read", "files") && !is_of("x", "files"));
}
