use super::scrub::Scrub;
use super::*;
use serde_json::json;

fn reference(text: &str) -> SecretRef {
    text.parse().expect("it is a reference")
}

fn from(text: &str, value: Option<&[u8]>) -> Result<Secret, NoSecret> {
    Secret::read_in(&reference(text), |name| value.filter(|_| name == "HOOK").map(<[u8]>::to_vec))
}

#[test]
fn a_secret_is_read_where_it_is_kept() {
    let secret = from("env:HOOK", Some(b"hunter2")).expect("it is set");
    assert_eq!(secret.expose(), "hunter2");
    let dir = tempfile::tempdir().expect("there is room");
    let path = dir.path().join("hook");
    std::fs::write(&path, "hunter2\r\n").expect("there is room");
    let secret = Secret::read(&reference(&format!("file:{}", path.display())));
    assert_eq!(secret.expect("it is there").expose(), "hunter2");
    // Something every test has: the process's own environment is asked.
    let secret = Secret::read(&reference("env:CARGO_PKG_NAME")).expect("cargo sets it");
    assert_eq!(secret.expose(), "sluice-bridge");
}

#[test]
fn what_is_not_there_is_told_without_telling_more() {
    let told = |result: Result<Secret, NoSecret>| result.expect_err("there is none").to_string();
    assert_eq!(told(from("env:OTHER", Some(b"x"))), "the variable `OTHER` is not set");
    assert_eq!(told(from("env:HOOK", Some(b"\n"))), "`env:HOOK` holds nothing");
    assert_eq!(told(from("env:HOOK", Some(b"hunter2\xff"))), "`env:HOOK` does not hold UTF-8");
    let long = vec![b'x'; SECRET_BYTES_MAX + 1];
    assert_eq!(told(from("env:HOOK", Some(&long))), "`env:HOOK` holds more than 65536 bytes");
    let missing = told(from("file:/nowhere/at/all", None));
    assert_eq!(missing, "the file `/nowhere/at/all` cannot be read: entity not found");
    assert!(from("file:/dev/zero", None).is_err());
    assert!(from("file:/", None).is_err());
}

#[test]
fn a_secret_is_not_shown_by_formatting_it() {
    let secret = Secret::new("hunter2hunter2");
    let shown = format!("{secret} {secret:?} {:?} {:#?}", Some(&secret), vec![&secret]);
    assert!(!shown.contains("hunter2"), "{shown}");
    let scrub = Scrub::new([&secret]).expect("there is one");
    assert!(!format!("{scrub:?}").contains("hunter2"));
}

#[test]
fn known_secrets_are_taken_out_of_texts() {
    let secrets = ["hunter2hunter2", "hunter2hunter2-long", "a\"b\\c\nd-secret", "short"];
    let secrets = secrets.map(Secret::new);
    let scrub = Scrub::new(&secrets).expect("there are few");
    assert_eq!(scrub.text("nothing here, and short"), "nothing here, and short");
    assert_eq!(scrub.text("x hunter2hunter2y"), "x [redacted]y");
    assert_eq!(scrub.text("hunter2hunter2-long!"), "[redacted]!");
    let mut value =
        json!({"a": ["hunter2hunter2", 1], "hunter2hunter2": {"b": "a\"b\\c\nd-secret"}});
    let encoded = scrub.text(&value.to_string()).into_owned();
    assert_eq!(encoded, r#"{"a":["[redacted]",1],"[redacted]":{"b":"[redacted]"}}"#);
    scrub.value(&mut value);
    assert_eq!(value.to_string(), encoded);
    let none = Scrub::new([]).expect("there are none");
    assert_eq!(none.text("hunter2hunter2"), "hunter2hunter2");
}

#[test]
fn there_is_a_bound_on_what_is_looked_for() {
    let many: Vec<Secret> =
        (0..=crate::limits::SCRUBBED_MAX).map(|n| Secret::new(format!("secret-{n:08}"))).collect();
    assert!(Scrub::new(&many).is_err());
    assert!(Scrub::new(&many[1..]).is_ok());
}

mod flows {
    use super::*;
    use crate::secret::scrub::Flow;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_give_what_the_whole_gives(
            secrets in prop::collection::vec("[ab]{8,11}|ab\"é[ab]{6}", 0..4),
            pieces in prop::collection::vec("[ab]{0,9}|ab\"é[ab]{0,8}|é", 0..12),
        ) {
            let secrets: Vec<Secret> = secrets.into_iter().map(Secret::new).collect();
            let scrub = Scrub::new(&secrets).unwrap();
            let mut flow = Flow::default();
            let mut clean: String = pieces.iter().map(|piece| flow.push(&scrub, piece)).collect();
            clean.push_str(&flow.end(&scrub));
            let whole = pieces.concat();
            prop_assert_eq!(clean, scrub.text(&whole));
        }
    }

    #[test]
    fn a_secret_is_found_as_a_url_writes_it() {
        let scrub = Scrub::new([&Secret::new("pass word/é=1")]).unwrap();
        assert_eq!(scrub.text("?key=pass%20word%2F%C3%A9%3D1&x"), "?key=[redacted]&x");
        assert_eq!(scrub.bytes(b"\xffpass word/\xc3\xa9=1\xfe").unwrap(), b"\xff[redacted]\xfe");
        assert_eq!(scrub.bytes(b"\xff"), None);
    }
}
