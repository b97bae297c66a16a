use super::scrub::Scrub;
use super::*;
use serde_json::json;

fn reference(text: &str) -> SecretRef {
    text.parse().expect("it is a reference")
}

fn from(text: &str, value: Option<&[u8]>) -> Result<Secret, NoSecret> {
    let variable = |name: &str| value.filter(|_| name == "HOOK").map(<[u8]>::to_vec);
    Secret::read_in(&reference(text), variable, &[])
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
    // A variable that every test process has.
    let secret = Secret::read(&reference("env:CARGO_PKG_NAME")).expect("cargo sets it");
    assert_eq!(secret.expose(), "sluice-bridge");
}

#[test]
fn a_missing_secret_has_a_reason_that_reveals_nothing() {
    let told = |result: Result<Secret, NoSecret>| result.expect_err("there is none").to_string();
    assert_eq!(told(from("env:OTHER", Some(b"x"))), "the variable `OTHER` is not set");
    assert_eq!(told(from("env:HOOK", Some(b"\n"))), "`env:HOOK` is empty");
    assert_eq!(told(from("env:HOOK", Some(b"hunter2\xff"))), "`env:HOOK` is not valid UTF-8");
    let long = vec![b'x'; SECRET_BYTES_MAX + 1];
    assert_eq!(told(from("env:HOOK", Some(&long))), "`env:HOOK` exceeds 65536 bytes");
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
fn known_secrets_are_redacted() {
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
fn the_number_of_secrets_is_limited() {
    let many: Vec<Secret> =
        (0..=SECRETS_MAX).map(|n| Secret::new(format!("secret-{n:08}"))).collect();
    assert!(Scrub::new(&many).is_err());
    assert!(Scrub::new(&many[1..]).is_ok());
}

mod written_otherwise {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE, URL_SAFE_NO_PAD};
    use std::fmt::Write as _;

    const KEY: &str = "sk-proj/very+secret?key~0001 é";

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    #[test]
    fn a_secret_is_found_in_common_encodings() {
        let scrub = Scrub::new([&Secret::new(KEY)]).unwrap();
        let mut texts = vec![hex(KEY.as_bytes()), hex(KEY.as_bytes()).to_uppercase()];
        texts.push(serde_json::to_string(KEY).unwrap());
        texts.push(serde_json::to_string(KEY).unwrap().replace('/', "\\/"));
        texts.push(KEY.replace('é', "\\u00e9"));
        for escaped in [
            "sk-proj%2Fvery%2Bsecret%3Fkey~0001%20%C3%A9",
            "sk-proj%2fvery%2bsecret%3fkey~0001%20%c3%a9",
            "sk-proj%2Fvery%2Bsecret%3Fkey~0001+%C3%A9",
        ] {
            texts.push(escaped.to_owned());
        }
        for text in texts {
            let clean = scrub.text(&text).into_owned();
            assert!(matches!(clean.as_str(), "[redacted]" | "\"[redacted]\""), "{text} -> {clean}");
        }
    }

    #[test]
    fn a_secret_is_found_in_base64_wherever_it_begins() {
        let key = Secret::new(KEY);
        let scrub = Scrub::new([&key]).unwrap();
        for before in 0..7 {
            for after in 0..4 {
                let whole = format!("{}{KEY}{}", "a".repeat(before), "z".repeat(after));
                for engine in [&STANDARD, &URL_SAFE, &URL_SAFE_NO_PAD] {
                    let text = engine.encode(&whole);
                    let clean = scrub.text(&text).into_owned();
                    assert!(clean.contains("[redacted]"), "{before} {after} {text}");
                    // The rest consists of the characters at both ends.
                    let left = clean.replacen("[redacted]", "", 1).len();
                    assert!(left <= (before + after).div_ceil(3) * 4 + 6, "{clean}");
                }
            }
        }
    }

    #[test]
    fn a_long_secret_is_found_in_the_lines_that_tools_make() {
        let key = "0123456789abcdef".repeat(12);
        let scrub = Scrub::new([&Secret::new(&*key)]).unwrap();
        let lines = |text: &str, length: usize| {
            let parts: Vec<&[u8]> = text.as_bytes().chunks(length).collect();
            String::from_utf8(parts.join(&b'\n')).unwrap()
        };
        let encoded = STANDARD.encode(&key);
        for text in [lines(&encoded, 76), lines(&encoded, 64), lines(&hex(key.as_bytes()), 60)] {
            assert_eq!(scrub.text(&text), "[redacted]");
        }
    }

    #[test]
    fn an_encoded_secret_is_found_in_pieces() {
        let scrub = Scrub::new([&Secret::new(KEY)]).unwrap();
        let encoded = STANDARD.encode(format!("key={KEY}"));
        for text in [encoded, hex(KEY.as_bytes()), serde_json::to_string(KEY).unwrap()] {
            for length in [1, 2, 5, 11] {
                let mut flow = scrub::ScrubStream::default();
                let letters: Vec<char> = text.chars().collect();
                let pieces = letters.chunks(length).map(|piece| piece.iter().collect::<String>());
                let mut clean: String = pieces.map(|piece| flow.push(&scrub, &piece)).collect();
                clean.push_str(&flow.end(&scrub));
                assert_eq!(clean, scrub.text(&text));
                assert!(clean.contains("[redacted]"), "{text}");
            }
        }
    }
}

mod flows {
    use super::*;
    use crate::secret::scrub::ScrubStream;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_give_what_the_whole_gives(
            secrets in prop::collection::vec("[ab]{8,11}|ab\"é[ab]{6}", 0..4),
            pieces in prop::collection::vec("[ab]{0,9}|ab\"é[ab]{0,8}|é", 0..12),
        ) {
            let secrets: Vec<Secret> = secrets.into_iter().map(Secret::new).collect();
            let scrub = Scrub::new(&secrets).unwrap();
            let mut flow = ScrubStream::default();
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
