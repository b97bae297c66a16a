use super::*;
use crate::outbound::address::ClosedReason;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE};
use sluice_core::port::Later;
use std::collections::VecDeque;
use std::net::IpAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A server on a loopback address that answers each path by a rule, and records the requests.
struct Server {
    at: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
}

type Rule = Arc<dyn Fn(&str) -> String + Send + Sync>;

impl Server {
    async fn at(address: &str, rule: impl Fn(&str) -> String + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind(address).await.expect("there is a port");
        let at = listener.local_addr().expect("it is bound");
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (kept, rule): (_, Rule) = (Arc::clone(&heard), Arc::new(rule));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (kept, rule) = (Arc::clone(&kept), Arc::clone(&rule));
                tokio::spawn(async move {
                    let _ = serve(stream, &rule, &kept).await;
                });
            }
        });
        Server { at, heard }
    }

    async fn ok() -> Server {
        Server::at("127.0.0.1:0", |_| http("200 OK", "", "hello")).await
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.at)
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().expect("the lock is not poisoned").clone()
    }
}

fn http(status: &str, header: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{header}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

async fn serve(
    mut stream: TcpStream,
    rule: &Rule,
    kept: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut request = Vec::new();
    let text = loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0) {
                break text;
            }
        }
        if stream.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    };
    let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
    kept.lock().expect("the lock is not poisoned").push(text);
    stream.write_all(rule(&path).as_bytes()).await
}

/// Resolves to these addresses in turn; the last one repeats.
#[derive(Debug)]
struct Script {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl Script {
    fn new(answers: &[&[&str]]) -> Arc<Script> {
        let parse = |list: &&[&str]| -> Vec<IpAddr> {
            list.iter().map(|one| one.parse().expect("it is an address")).collect()
        };
        let answers = Mutex::new(answers.iter().map(parse).collect());
        Arc::new(Script { answers, asked: Mutex::default() })
    }

    fn asked(&self) -> usize {
        self.asked.lock().expect("the lock is not poisoned").len()
    }
}

impl NameResolver for Script {
    fn addresses<'a>(&'a self, name: &'a str) -> Later<'a, std::io::Result<Vec<IpAddr>>> {
        self.asked.lock().expect("the lock is not poisoned").push(name.to_owned());
        let mut answers = self.answers.lock().expect("the lock is not poisoned");
        let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        Box::pin(std::future::ready(Ok(answer.unwrap_or_default())))
    }
}

fn allowing(entries: &[&str]) -> AllowList {
    AllowList::parse(entries.iter().copied()).expect("the entries are some")
}

fn get(url: &str) -> Request {
    let patience = Duration::from_secs(5);
    let request = Request::post(url, Vec::new(), patience, 1024);
    Request { method: Method::GET, redirects: Redirects::Follow, ..request }
}

async fn why(outbound: &Outbound, url: &str) -> Option<ClosedReason> {
    match outbound.send(&get(url)).await {
        Err(OutboundError::Refused(OutboundRefusal::Closed { why, .. })) => Some(why),
        _ => None,
    }
}

#[tokio::test]
async fn every_notation_of_a_closed_address_is_refused() {
    let server = Server::ok().await;
    let port = server.at.port();
    let hosts = [
        ("127.0.0.1", ClosedReason::Loopback),
        ("127.0.0.1.", ClosedReason::Loopback),
        ("2130706433", ClosedReason::Loopback),
        ("0x7f000001", ClosedReason::Loopback),
        ("0x7f.1", ClosedReason::Loopback),
        ("0177.0.0.1", ClosedReason::Loopback),
        ("127.1", ClosedReason::Loopback),
        ("%31%32%37.0.0.1", ClosedReason::Loopback),
        ("１２７.0.0.1", ClosedReason::Loopback),
        ("127。0。0。1", ClosedReason::Loopback),
        ("[::1]", ClosedReason::Loopback),
        ("[::ffff:127.0.0.1]", ClosedReason::Loopback),
        ("[::ffff:7f00:1]", ClosedReason::Loopback),
        ("[::127.0.0.1]", ClosedReason::Loopback),
        ("[64:ff9b::7f00:1]", ClosedReason::Loopback),
        ("[2002:7f00:1::]", ClosedReason::Loopback),
        ("0.0.0.0", ClosedReason::Unspecified),
        ("0", ClosedReason::Unspecified),
        ("[::]", ClosedReason::Unspecified),
        ("10.0.0.1", ClosedReason::Private),
        ("169.254.169.254", ClosedReason::Metadata),
        ("2852039166", ClosedReason::Metadata),
        ("[::ffff:a9fe:a9fe]", ClosedReason::Metadata),
        ("[fd00:ec2::254]", ClosedReason::Metadata),
        ("localhost", ClosedReason::Loopback),
    ];
    let outbound = Outbound::new(AllowList::none());
    for (host, expected) in hosts {
        let found = why(&outbound, &format!("http://{host}:{port}/")).await;
        assert_eq!(found, Some(expected), "{host}");
    }
    assert!(server.heard().is_empty());
}

#[tokio::test]
async fn other_schemes_users_and_nonsense_are_refused() {
    let outbound = Outbound::new(AllowList::none());
    for url in ["ftp://example.com/", "file:///etc/passwd", "gopher://x:70/", "data:,x", "ws://x/"]
    {
        let refused = outbound.send(&get(url)).await.expect_err(url);
        assert!(
            matches!(refused, OutboundError::Refused(OutboundRefusal::Scheme(_))),
            "{url}: {refused}"
        );
    }
    for url in ["http://ada@example.com/", "http://ada:pw@example.com/", "http://:pw@example.com/"]
    {
        let refused = outbound.send(&get(url)).await.expect_err(url);
        assert_eq!(refused, OutboundRefusal::UserInfo.into(), "{url}");
    }
    for url in
        ["", "/x", "example.com", "http://", "http://a b/", "http://[::1", "http://256.1.1.1/"]
    {
        let refused = outbound.send(&get(url)).await.expect_err(url);
        assert_eq!(refused, OutboundRefusal::NoUrl.into(), "{url}");
    }
    let long = Request::post(
        "http://example.com/",
        vec![0; REQUEST_BYTES_MAX + 1],
        Duration::from_secs(1),
        1,
    );
    assert_eq!(
        outbound.send(&long).await.expect_err("it is long"),
        OutboundRefusal::LongRequest.into()
    );
}

#[tokio::test]
async fn an_allowed_address_is_called_and_its_neighbour_is_not() {
    let (open, closed) = (Server::ok().await, Server::ok().await);
    let outbound = Outbound::new(allowing(&[&open.at.to_string()]));
    let answer = outbound.send(&get(&open.url("/x"))).await.expect("it is open");
    assert_eq!((answer.status, answer.body.as_slice()), (200, b"hello".as_slice()));
    assert_eq!(why(&outbound, &closed.url("/x")).await, Some(ClosedReason::Loopback));
    // A name is allowed by its own entry, or by that of its address.
    let port = open.at.port();
    let url = format!("http://hooks.internal:{port}/");
    for entry in ["hooks.internal", &format!("hooks.internal:{port}"), "127.0.0.0/8"] {
        let outbound = Outbound::with_names(allowing(&[entry]), Script::new(&[&["127.0.0.1"]]));
        assert_eq!(outbound.send(&get(&url)).await.expect(entry).status, 200);
    }
    for entry in ["other.internal", "hooks.internal:1", "10.0.0.0/8"] {
        let outbound = Outbound::with_names(allowing(&[entry]), Script::new(&[&["127.0.0.1"]]));
        assert_eq!(why(&outbound, &url).await, Some(ClosedReason::Loopback), "{entry}");
    }
    assert!(closed.heard().is_empty());
}

#[tokio::test]
async fn a_name_that_points_inside_is_refused() {
    for address in
        ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "fd00:ec2::254"]
    {
        let outbound = Outbound::with_names(AllowList::none(), Script::new(&[&[address]]));
        assert!(why(&outbound, "http://rebind.example/").await.is_some(), "{address}");
        assert!(why(&outbound, "https://rebind.example/").await.is_some(), "{address}");
    }
    let outbound = Outbound::with_names(AllowList::none(), Script::new(&[&[]]));
    let error = outbound.send(&get("http://rebind.example/")).await.expect_err("it is nowhere");
    assert_eq!(error, OutboundError::Unreachable("`rebind.example` has no address".to_owned()));
}

/// The name resolves to an open address first and to a closed one later. A client that resolved
/// it twice, to check and to connect, would connect to the closed one.
#[tokio::test]
async fn dns_rebinding_has_no_effect() {
    let open = Server::at("127.0.0.2:0", |_| http("200 OK", "", "open")).await;
    let port = open.at.port();
    let closed = Server::at(&format!("127.0.0.1:{port}"), |_| http("200 OK", "", "closed")).await;
    let names = Script::new(&[&["127.0.0.2"], &["127.0.0.1"]]);
    let outbound = Outbound::with_names(allowing(&["127.0.0.2"]), Arc::clone(&names) as Arc<_>);
    let url = format!("http://rebind.example:{port}/");
    let answer = outbound.send(&get(&url)).await.expect("it was open");
    assert_eq!((answer.body.as_slice(), names.asked()), (b"open".as_slice(), 1));
    assert_eq!(why(&outbound, &url).await, Some(ClosedReason::Loopback));
    // Of several addresses, only the open ones are called.
    let names = Script::new(&[&["127.0.0.1", "127.0.0.2", "10.0.0.1"]]);
    let outbound = Outbound::with_names(allowing(&["127.0.0.2"]), names);
    assert_eq!(outbound.send(&get(&url)).await.expect("one is open").body, b"open");
    assert!(closed.heard().is_empty());
}

#[tokio::test]
async fn a_redirect_is_checked_like_any_other_url() {
    let closed = Server::ok().await;
    let port = closed.at.port();
    let places = [
        (format!("http://127.0.0.1:{port}/"), "loopback"),
        (format!("//localhost:{port}/"), "loopback"),
        (format!("http://2130706433:{port}/"), "loopback"),
        ("http://169.254.169.254/latest/meta-data/".to_owned(), "metadata"),
        ("http://[::ffff:169.254.169.254]/".to_owned(), "metadata"),
        ("file:///etc/passwd".to_owned(), "`file:`"),
        ("http://ada:pw@127.0.0.2/".to_owned(), "password"),
    ];
    for (place, translate_error) in places {
        let header = format!("location: {place}\r\n");
        let server = Server::at("127.0.0.2:0", move |_| http("302 Found", &header, "")).await;
        let outbound = Outbound::new(allowing(&["127.0.0.2"]));
        let error = outbound.send(&get(&server.url("/"))).await.expect_err(&place).to_string();
        assert!(error.contains(translate_error), "{place}: {error}");
    }
    assert!(closed.heard().is_empty());
}

#[tokio::test]
async fn redirects_end() {
    let server = Server::at("127.0.0.1:0", |path| {
        let n: usize = path.trim_start_matches('/').parse().unwrap_or(0);
        if n == 0 {
            http("200 OK", "", "there")
        } else {
            http("302 Found", &format!("location: /{}\r\n", n - 1), "")
        }
    });
    let server = server.await;
    let outbound = Outbound::new(allowing(&["127.0.0.1"]));
    let most = server.url(&format!("/{REDIRECTS_MAX}"));
    assert_eq!(outbound.send(&get(&most)).await.expect("it ends").body, b"there");
    let more = server.url(&format!("/{}", REDIRECTS_MAX + 1));
    assert_eq!(
        outbound.send(&get(&more)).await.expect_err("too many"),
        OutboundRefusal::Redirects.into()
    );
    // Without following, the redirect response is returned.
    let kept = Request { redirects: Redirects::Keep, ..get(&server.url("/1")) };
    assert_eq!(outbound.send(&kept).await.expect("it answers").status, 302);
}

fn post(url: &str) -> Request {
    let request = Request::post(url, b"payload".to_vec(), Duration::from_secs(5), 1024)
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .header(AUTHORIZATION, HeaderValue::from_static("Bearer hunter2"))
        .header(COOKIE, HeaderValue::from_static("a=hunter2"))
        .header(
            HeaderName::from_static("sluice-signature"),
            HeaderValue::from_static("v1=hunter2"),
        );
    Request { redirects: Redirects::Follow, ..request }
}

#[tokio::test]
async fn credentials_stay_with_their_origin() {
    for (status, sent) in [
        ("307 Temporary", "POST / "),
        ("308 Permanent", "POST / "),
        ("302 Found", "GET / "),
        ("303 See", "GET / "),
    ] {
        let target = Server::ok().await;
        let header = format!("location: {}\r\n", target.url("/"));
        let server = Server::at("127.0.0.1:0", move |_| http(status, &header, "")).await;
        let outbound = Outbound::new(allowing(&["127.0.0.1"]));
        outbound.send(&post(&server.url("/"))).await.expect("both are open");
        let (first, second) = (server.heard().remove(0), target.heard().remove(0));
        assert!(first.contains("authorization: Bearer hunter2"), "{first}");
        assert!(second.starts_with(sent) && !second.contains("hunter2"), "{status}: {second}");
        assert_eq!(second.ends_with("payload"), sent.starts_with("POST"), "{status}: {second}");
        assert_eq!(second.contains("content-type"), sent.starts_with("POST"), "{status}: {second}");
    }
    // Within one origin they are kept.
    let server = Server::at("127.0.0.1:0", |path| match path {
        "/" => http("307 Temporary", "location: /b\r\n", ""),
        _ => http("200 OK", "", ""),
    });
    let server = server.await;
    let outbound = Outbound::new(allowing(&["127.0.0.1"]));
    outbound.send(&post(&server.url("/"))).await.expect("it is open");
    assert!(server.heard()[1].contains("authorization: Bearer hunter2"));
}

#[test]
fn a_redirect_from_https_to_http_is_refused() {
    let hop = Hop::first(&get("https://example.com/")).expect("it is a URL");
    let headers = HeaderMap::from_iter([(
        reqwest::header::LOCATION,
        HeaderValue::from_static("http://example.com/"),
    )]);
    let next = hop.next(reqwest::StatusCode::FOUND, &headers);
    assert_eq!(next.expect_err("it is in the open"), OutboundRefusal::Downgrade.into());
}

#[tokio::test]
async fn answers_are_bounded_in_length_and_time() {
    let server = Server::at("127.0.0.1:0", |path| match path {
        "/half" => "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_owned(),
        "/rubbish" => "rubbish\r\n\r\n".to_owned(),
        _ => http("200 OK", "", &"x".repeat(1025)),
    });
    let server = server.await;
    let outbound = Outbound::new(allowing(&["127.0.0.1"]));
    let error = outbound.send(&get(&server.url("/"))).await.expect_err("it is long");
    assert_eq!(error, OutboundError::TooLong(1024));
    for path in ["/half", "/rubbish"] {
        let error = outbound.send(&get(&server.url(path))).await.expect_err(path);
        assert_eq!(error, OutboundError::Broken, "{path}");
    }
    // The listener accepts the connection and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
    let url = format!("http://{}/", silent.local_addr().expect("it is bound"));
    let hasty = Request { patience: Duration::from_millis(100), ..get(&url) };
    assert_eq!(outbound.send(&hasty).await.expect_err("silence"), OutboundError::Late);
    drop(silent);
    let closed = outbound.send(&get(&url)).await.expect_err("no server listens");
    assert!(matches!(&closed, OutboundError::Unreachable(_)), "{closed}");
    assert!(closed.to_string().contains("refused"), "{closed}");
}

#[tokio::test]
async fn a_refusal_names_the_entry_that_would_open_it() {
    let entry = |error: OutboundError| match error {
        OutboundError::Refused(OutboundRefusal::Closed { allow, .. }) => allow,
        other => panic!("{other}"),
    };
    let closed = Outbound::new(AllowList::none());
    let translate_error =
        closed.send(&get("http://127.0.0.1:11434/v1/x?key=hunter2")).await.expect_err("closed");
    assert_eq!(
        translate_error.to_string(),
        "has a loopback address (`127.0.0.1`), which is not called unless the operator allows it: \
         add `127.0.0.1:11434` to `allow` of `[outbound]` in sluice.toml, or to \
         SLUICE_OUTBOUND_ALLOW"
    );
    for (address, url, expected) in [
        ("10.0.0.7", "http://models.internal/", "models.internal:80"),
        ("10.0.0.7", "https://models.internal:8443/", "models.internal:8443"),
        // A name is not enough for a metadata service.
        ("169.254.169.254", "http://models.internal/", "169.254.169.254:80"),
        ("fd00:ec2::254", "http://models.internal/", "[fd00:ec2::254]:80"),
    ] {
        let names = || Script::new(&[&[address]]);
        let closed = Outbound::with_names(AllowList::none(), names());
        let found = entry(closed.send(&get(url)).await.expect_err("closed"));
        assert_eq!(found, expected);
        // The named entry is valid, and allows the address.
        let open = Outbound::with_names(allowing(&[&found]), names());
        assert_eq!(why(&open, url).await, None, "{found}");
    }
}

#[tokio::test]
async fn reachability_is_checked_without_sending_anything() {
    let patience = Duration::from_secs(2);
    let server = Server::ok().await;
    let outbound = Outbound::new(allowing(&["127.0.0.1"]));
    assert_eq!(outbound.reach(&server.url("/x"), patience).await, Ok(()));
    let closed = Outbound::new(AllowList::none()).reach(&server.url("/x"), patience).await;
    assert!(
        matches!(closed, Err(OutboundError::Refused(OutboundRefusal::Closed { .. }))),
        "{closed:?}"
    );
    let gone = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
    let url = format!("http://{}/", gone.local_addr().expect("it is bound"));
    drop(gone);
    let gone = outbound.reach(&url, patience).await.expect_err("no server listens");
    assert!(gone.to_string().starts_with("cannot be reached: Connection refused"), "{gone}");
    assert!(server.heard().is_empty());
}

#[test]
fn an_origin_contains_no_secret() {
    use super::error::origin;
    for (url, expected) in [
        (
            "https://ada:hunter2@api.example/v1/hunter2?key=hunter2#hunter2",
            Some("https://api.example"),
        ),
        ("http://127.0.0.1:11434/v1", Some("http://127.0.0.1:11434")),
        ("http://[::1]:80/x", Some("http://[::1]")),
        ("nonsense", None),
    ] {
        assert_eq!(origin(url).as_deref(), expected, "{url}");
    }
}
