use super::*;
use reqwest::header::HeaderValue;

fn waits(headers: &[(&'static str, &str)], body: &str) -> Option<u64> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, HeaderValue::from_str(value).unwrap());
    }
    of_status(429, &map, body.as_bytes(), "").retry_after_ms
}

#[test]
fn how_long_to_wait_is_read_however_it_is_said() {
    assert_eq!(waits(&[], ""), None);
    assert_eq!(waits(&[("retry-after", "2")], ""), Some(2_000));
    assert_eq!(waits(&[("retry-after", "0.25")], ""), Some(250));
    assert_eq!(waits(&[("retry-after", "9"), ("retry-after-ms", "120")], ""), Some(120));
    let dates = [
        ("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT"),
        ("date", "Wed, 21 Oct 2015 07:28:00 GMT"),
    ];
    assert_eq!(waits(&dates, ""), Some(30_000));
    assert_eq!(waits(&dates[..1], ""), Some(0), "it is long past");
    let body = r#"{"error":{"details":[{"@type":"x"},{"retryDelay":"34.07s"}]}}"#;
    assert_eq!(waits(&[], body), Some(34_070));
    for odd in ["-1", "soon", "NaN", "inf", ""] {
        assert_eq!(waits(&[("retry-after", odd)], ""), None, "{odd}");
    }
    assert_eq!(waits(&[("retry-after", "1e30")], ""), Some(RETRY_AFTER_MS_MAX));
}

#[test]
fn a_key_that_gemini_does_not_know_is_about_who_we_are() {
    let body = r#"{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#;
    assert_eq!(of_status(400, &HeaderMap::new(), body.as_bytes(), "").code, CallErrorCode::Auth);
}

#[test]
fn an_overloaded_provider_asks_for_patience_whatever_its_status() {
    let body = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    for status in [500, 503, 529] {
        let told = of_status(status, &HeaderMap::new(), body.as_bytes(), "");
        assert_eq!(told.code, CallErrorCode::RateLimit);
        assert_eq!(told.message, format!("the provider answered {status}: Overloaded"));
    }
}

#[test]
fn what_a_stranger_says_is_one_bounded_line() {
    let long = format!("a\r\nb\u{7}{}", "ß".repeat(10_000));
    let told = of_status(500, &HeaderMap::new(), long.as_bytes(), "").message;
    assert!(told.starts_with("the provider answered 500: a  b ß"), "{}", &told[..60]);
    assert!(told.len() < COMPLAINT_BYTES_MAX + 100);
    for (body, expected) in [
        ("", "the provider answered 502"),
        ("  \n", "the provider answered 502"),
        (r#"{"error":"plainly."}"#, "the provider answered 502: plainly"),
        (r#"{"detail":"of fastapi"}"#, "the provider answered 502: of fastapi"),
        (r#"[{"error":{"message":"in a list"}}]"#, "the provider answered 502: in a list"),
        (r#"{"odd":1}"#, r#"the provider answered 502: {"odd":1}"#),
    ] {
        assert_eq!(of_status(502, &HeaderMap::new(), body.as_bytes(), "").message, expected);
    }
    let invalid = of_status(502, &HeaderMap::new(), b"\xFF\xFE", "").message;
    assert_eq!(invalid, "the provider answered 502: \u{FFFD}\u{FFFD}");
}

#[test]
fn an_error_says_where_it_was_asked_and_nothing_secret() {
    let url = "https://ada:hunter2@api.example:8443/v1/messages?key=hunter2";
    let told = of_status(401, &HeaderMap::new(), b"{\"error\": \"no\"}", url).message;
    assert_eq!(told, "the provider at https://api.example:8443 answered 401: no");
    let wrong = of_status(404, &HeaderMap::new(), b"<html>", url).message;
    assert!(wrong.ends_with("; is its base URL right?"), "{wrong}");
    let gone = OutboundError::Unreachable("Connection refused (os error 111)".to_owned());
    assert_eq!(
        of_outbound(&gone, url).message,
        "the provider at https://api.example:8443 cannot be reached: Connection refused (os error 111)"
    );
}
