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
fn retry_after_is_parsed_in_every_form() {
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
fn an_unknown_gemini_key_is_an_auth_error() {
    let body = r#"{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#;
    assert_eq!(of_status(400, &HeaderMap::new(), body.as_bytes(), "").code, CallErrorCode::Auth);
}

#[test]
fn an_overloaded_provider_is_a_rate_limit_whatever_its_status() {
    let body = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    for status in [500, 503, 529] {
        let error = of_status(status, &HeaderMap::new(), body.as_bytes(), "");
        assert_eq!(error.code, CallErrorCode::RateLimit);
        assert_eq!(error.message, format!("the provider answered {status}: Overloaded"));
    }
}

#[test]
fn untrusted_text_becomes_one_bounded_line() {
    let long = format!("a\r\nb\u{7}{}", "ß".repeat(10_000));
    let error = of_status(500, &HeaderMap::new(), long.as_bytes(), "").message;
    assert!(error.starts_with("the provider answered 500: a  b ß"), "{}", &error[..60]);
    assert!(error.len() < COMPLAINT_BYTES_MAX + 100);
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
fn an_error_has_the_origin_and_no_secret() {
    let url = "https://ada:hunter2@api.example:8443/v1/messages?key=hunter2";
    let error = of_status(401, &HeaderMap::new(), b"{\"error\": \"no\"}", url).message;
    assert_eq!(error, "the provider at https://api.example:8443 answered 401: no");
    let wrong = of_status(404, &HeaderMap::new(), b"<html>", url).message;
    assert!(wrong.ends_with("; check the base URL"), "{wrong}");
    let gone = OutboundError::Unreachable("Connection refused (os error 111)".to_owned());
    assert_eq!(
        of_outbound(&gone, url).message,
        "the provider at https://api.example:8443 cannot be reached: Connection refused (os error 111)"
    );
}
