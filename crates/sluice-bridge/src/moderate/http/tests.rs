use super::*;
use sluice_core::id::RunId;
use sluice_core::plan::policy::ModerationPhase;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A server that answers every request with the same bytes, and records the requests.
struct Server {
    address: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn answering(response: impl Into<Vec<u8>>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
        let address = format!("http://{}/judge", listener.local_addr().expect("it is bound"));
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (kept, response) = (Arc::clone(&heard), response.into());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (kept, response) = (Arc::clone(&kept), response.clone());
                tokio::spawn(async move {
                    let _ = serve(stream, &response, &kept).await;
                });
            }
        });
        Server { address, heard }
    }

    async fn json(body: &str) -> Server {
        Server::answering(http("200 OK", body)).await
    }

    async fn says(&self) -> Verdict {
        asks(&self.address).await
    }
}

fn http(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

async fn serve(
    mut stream: TcpStream,
    response: &[u8],
    kept: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0) {
                kept.lock().expect("the lock is not poisoned").push(text);
                break;
            }
        }
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    if response.is_empty() {
        std::future::pending::<()>().await;
    }
    stream.write_all(response).await
}

async fn asks(address: &str) -> Verdict {
    let moderator = HttpModerator::with_timeout(address, Duration::from_millis(500));
    let moderator = moderator.expect("the address is one");
    let (run, step, text) = (RunId(1), "a[2]".to_owned(), "say \"hello\"\n".to_owned());
    moderator.check(&Subject { phase: ModerationPhase::Output, run, step, text }).await
}

fn unavailable(reason: &str) -> Verdict {
    Verdict::Unavailable(reason.to_owned())
}

#[tokio::test]
async fn the_request_has_the_text_and_its_step() {
    let server = Server::json(r#"{"flagged": false, "score": 0.1}"#).await;
    assert_eq!(server.says().await, Verdict::Clear);
    let heard = server.heard.lock().expect("the lock is not poisoned").clone();
    let (head, body) = heard[0].split_once("\r\n\r\n").expect("it is a request");
    assert!(head.starts_with("POST /judge HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/json"), "{head}");
    let body: Value = serde_json::from_str(body).expect("it is JSON");
    let expected = json!({
        "phase": "output", "run": "run_00000000000000000000000000000001", "step": "a[2]",
        "text": "say \"hello\"\n",
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_finding_is_reported() {
    let server =
        Server::json(r#"{"flagged": true, "reason": "rude", "categories": ["insult"], "x": 1}"#);
    let decision = json!({"by": "http", "reason": "rude", "categories": ["insult"]});
    assert_eq!(server.await.says().await, Verdict::Flagged(decision));
    let server = Server::json(r#"{"flagged": true}"#).await;
    assert_eq!(server.says().await, Verdict::Flagged(json!({"by": "http"})));
}

#[tokio::test]
async fn another_status_does_not_clear() {
    for status in ["204 No Content", "301 Moved", "403 Forbidden", "500 Oops", "201 Created"] {
        let server = Server::answering(http(status, r#"{"flagged": false}"#)).await;
        let told = format!("the moderator answered {}", &status[..3]);
        assert_eq!(server.says().await, unavailable(&told));
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let clear = Server::json(r#"{"flagged": false}"#).await;
    let moved =
        format!("HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", clear.address);
    let server = Server::answering(moved).await;
    assert_eq!(server.says().await, unavailable("the moderator answered 302"));
    assert!(clear.heard.lock().expect("the lock is not poisoned").is_empty());
}

#[tokio::test]
async fn an_answer_without_a_verdict_does_not_clear() {
    for body in ["", "null", "[]", "{}", r#"{"flagged": "no"}"#, r#"{"flagged": 0}"#, "{\"flagged"]
    {
        let server = Server::json(body).await;
        let told = "the moderator's answer has no boolean `flagged`";
        assert_eq!(server.says().await, unavailable(told), "{body}");
    }
}

#[tokio::test]
async fn an_endless_answer_is_not_read_to_its_end() {
    let body = format!(r#"{{"flagged": false, "x": "{}"}}"#, "x".repeat(VERDICT_BYTES_MAX));
    let server = Server::json(&body).await;
    let told = format!("the moderator's answer exceeds {VERDICT_BYTES_MAX} bytes");
    assert_eq!(server.says().await, unavailable(&told));
}

#[tokio::test]
async fn silence_does_not_clear() {
    let server = Server::answering("").await;
    let told = |server: &Server, why: &str| {
        let origin = server.address.trim_end_matches("/judge");
        unavailable(&format!("the moderator at {origin} {why}"))
    };
    assert_eq!(server.says().await, told(&server, "did not answer in time"));
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"flagged\":";
    let server = Server::answering(half).await;
    let Verdict::Unavailable(_) = server.says().await else { panic!("it was no answer") };
    let server = Server::answering("rubbish\r\n\r\n").await;
    assert_eq!(server.says().await, told(&server, "closed the connection early"));
}

#[tokio::test]
async fn an_unreachable_moderator_does_not_clear() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
    let address = format!("http://{}", listener.local_addr().expect("it is bound"));
    drop(listener);
    let Verdict::Unavailable(why) = asks(&address).await else { panic!("no server listens there") };
    let expected = format!("the moderator at {address} cannot be reached: Connection refused");
    assert!(why.starts_with(&expected), "{why}");
    // Plain text where a TLS handshake is expected.
    let server = Server::json(r#"{"flagged": false}"#).await;
    let secure = server.address.replace("http://", "https://");
    let Verdict::Unavailable(_) = asks(&secure).await else { panic!("it is not secure") };
}

#[test]
fn a_url_is_checked_before_it_is_used() {
    for bad in ["", "words.txt", "ftp://x/y", "http://", "file:///etc/passwd", "localhost:80"] {
        assert!(HttpModerator::new(bad).is_err(), "{bad}");
    }
    assert!(HttpModerator::new("https://ada:hunter2@example.com/judge").is_err());
    assert!(HttpModerator::is_address("https://example.com/judge"));
    assert!(!HttpModerator::is_address("words.txt"));
}

#[tokio::test]
async fn a_token_is_sent_and_never_shown() {
    let server = Server::json(r#"{"flagged": false}"#).await;
    let moderator = HttpModerator::new(&server.address).expect("the address is one");
    let moderator = moderator.with_token(&Secret::new("hunter2")).expect("it can be sent");
    assert!(!format!("{moderator:?}").contains("hunter2"));
    let (run, step, text) = (RunId(1), "a".to_owned(), "hello".to_owned());
    let verdict =
        moderator.check(&Subject { phase: ModerationPhase::Input, run, step, text }).await;
    assert_eq!(verdict, Verdict::Clear);
    let heard = server.heard.lock().expect("the lock is not poisoned").clone();
    assert!(heard[0].contains("authorization: Bearer hunter2\r\n"), "{}", heard[0]);
    let bad = HttpModerator::new(&server.address).expect("the address is one");
    assert!(bad.with_token(&Secret::new("a\nb")).is_err());
}
