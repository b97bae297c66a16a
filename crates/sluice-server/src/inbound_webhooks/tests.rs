use super::*;
use crate::signature::sign;
use serde_json::json;

const NOW_S: u64 = 1_700_000_000;

fn secret() -> Secret {
    Secret::new("secret-of-the-hook")
}

fn signed(at_s: u64, body: &[u8]) -> Result<(), NotSigned> {
    let timestamp = at_s.to_string();
    let signature = sign(&secret(), &timestamp, body);
    verify(&secret(), &timestamp, body, &signature, NOW_S * 1000)
}

#[test]
fn a_request_signed_just_now_passes() {
    for at_s in [NOW_S, NOW_S - HOOK_WINDOW_S, NOW_S + HOOK_WINDOW_S] {
        assert_eq!(signed(at_s, b"{}"), Ok(()), "{at_s}");
    }
    assert_eq!(signed(NOW_S, b""), Ok(()));
    assert_eq!(signed(NOW_S, b"\xff\x00"), Ok(()));
}

#[test]
fn an_old_request_and_one_from_the_future_do_not_pass() {
    for at_s in [0, NOW_S - HOOK_WINDOW_S - 1, NOW_S + HOOK_WINDOW_S + 1, u64::MAX] {
        assert_eq!(signed(at_s, b"{}"), Err(NotSigned::NotNow), "{at_s}");
    }
}

#[test]
fn a_forged_request_does_not_pass() {
    let now = NOW_S.to_string();
    let right = sign(&secret(), &now, b"{}");
    let other = Secret::new("another-secret");
    let check = |timestamp: &str, body: &[u8], signature: &str| {
        verify(&secret(), timestamp, body, signature, NOW_S * 1000)
    };
    assert_eq!(check(&now, b"{}", &right), Ok(()));
    assert_eq!(check(&now, b"{} ", &right), Err(NotSigned::Wrong));
    assert_eq!(check(&now, b"{}", ""), Err(NotSigned::Wrong));
    assert_eq!(check(&now, b"{}", &sign(&other, &now, b"{}")), Err(NotSigned::Wrong));
    // The timestamp of an old request cannot be changed to make it recent.
    let later = (NOW_S + 1).to_string();
    assert_eq!(check(&later, b"{}", &right), Err(NotSigned::Wrong));
    for odd in ["", "now", "-1", "+1700000000", " 1700000000", "1.7e9", "99999999999999999999999"] {
        let signature = sign(&secret(), odd, b"{}");
        assert_eq!(check(odd, b"{}", &signature), Err(NotSigned::NoTime), "{odd}");
    }
}

#[test]
fn only_a_repeated_request_has_the_same_key() {
    let first = key("orders", "1700000000", b"{}");
    assert_eq!(first, key("orders", "1700000000", b"{}"));
    assert_eq!(first.len(), "hook:orders:".len() + 64);
    for other in [
        key("orders", "1700000001", b"{}"),
        key("orders", "1700000000", b"{ }"),
        key("order", "1700000000", b"{}"),
    ] {
        assert_ne!(first, other);
    }
}

#[test]
fn arguments_are_taken_from_the_body_by_their_paths() {
    let body = json!({"order": {"id": 7, "items": [{"sku": "a"}], "note": null}, "a key": 1});
    let paths = [
        ("id", "order.id"),
        ("sku", "order.items[0].sku"),
        ("dotted", "order.items.0.sku"),
        ("odd", "$[\"a key\"]"),
        ("note", "order.note"),
        ("gone", "order.items[9]"),
        ("deep", "order.id.x"),
        ("bad", ".."),
    ];
    let paths = paths.map(|(name, path)| (name.to_owned(), path.to_owned()));
    let expected = json!({"id": 7, "sku": "a", "dotted": "a", "odd": 1, "note": null});
    let mut found = Value::Object(args(&body, &paths.into()));
    found.sort_all_objects();
    let mut expected = expected;
    expected.sort_all_objects();
    assert_eq!(found, expected);
    let whole = BTreeMap::from([("all".to_owned(), "$".to_owned())]);
    assert_eq!(args(&body, &whole)["all"], body);
    assert!(args(&json!([1]), &BTreeMap::from([("a".to_owned(), "a".to_owned())])).is_empty());
}
