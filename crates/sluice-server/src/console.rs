//! The console: pages for people, embedded in the binary.
//!
//! The build of `console/` leaves an index and files whose names change with what
//! is in them. The index is served at the paths that the console knows, files at
//! theirs; everything else stays with the API, so that a path which nothing
//! answers to is never a page.
//!
//! INVARIANT: a page runs only scripts and styles of its own origin, from files.
//! Nothing here reads what a request says beyond its method, its path and whether
//! it takes gzip.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::Response;
use std::borrow::Cow;

#[cfg(test)]
mod tests;

/// What a page may load, and from where.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; worker-src 'self'; \
    connect-src 'self'; img-src 'self' data:; media-src data:; font-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";
/// A file whose name tells what is in it never changes.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
/// Others are asked for again each time.
const EACH_TIME: &str = "no-cache";
/// The console's first page.
const INDEX: &str = "index.html";
/// First parts of the paths that are the console's; each may have one part more.
const ROOMS: [&str; 7] =
    ["runs", "approvals", "workflows", "governance", "audit", "cost", "settings"];

#[derive(rust_embed::Embed)]
#[folder = "../../console/dist"]
#[allow_missing = true]
struct Built;

/// What there is of a name.
type Files = dyn Fn(&str) -> Option<Cow<'static, [u8]>>;

fn built(name: &str) -> Option<Cow<'static, [u8]>> {
    Built::get(name).map(|file| file.data)
}

/// The console's answer, if the path is one of its own.
pub fn answer(path: &str, headers: &HeaderMap) -> Option<Response> {
    answer_from(&built, path, headers)
}

/// The methods by which the console is asked.
pub const METHODS: [Method; 2] = [Method::GET, Method::HEAD];

fn answer_from(files: &Files, path: &str, headers: &HeaderMap) -> Option<Response> {
    if is_page(path) {
        return Some(match pick(files, INDEX, headers) {
            Some(file) => respond(file, "text/html; charset=utf-8", EACH_TIME),
            None => not_built(),
        });
    }
    let (name, media, cache) = file(path)?;
    Some(respond(pick(files, name, headers)?, media, cache))
}

/// Whether the console shows something at this path.
fn is_page(path: &str) -> bool {
    if path == "/" {
        return true;
    }
    let mut parts = path.strip_prefix('/').unwrap_or_default().split('/');
    let room = parts.next().is_some_and(|room| ROOMS.contains(&room));
    // Names in paths are encoded as the console writes them.
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    room && parts.next().is_none_or(plain) && parts.next().is_none()
}

/// A file of the build: its name there, its media type, how long it may be kept.
fn file(path: &str) -> Option<(&str, &'static str, &'static str)> {
    let name = path.strip_prefix('/')?;
    let cache = if name.starts_with("assets/") { FOR_EVER } else { EACH_TIME };
    let last = name.strip_prefix("assets/").unwrap_or(name);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if last.starts_with('.') || !last.bytes().all(plain) {
        return None;
    }
    let media = match last.rsplit_once('.')?.1 {
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "woff2" => "font/woff2",
        _ => return None,
    };
    Some((name, media, cache))
}

/// A file as it is sent.
struct Sent {
    bytes: Cow<'static, [u8]>,
    gzipped: Gzipped,
}

/// Whether bytes are compressed.
#[derive(PartialEq)]
enum Gzipped {
    Yes,
    No,
}

/// The file; compressed as the build left it, for those who take it so.
fn pick(files: &Files, name: &str, headers: &HeaderMap) -> Option<Sent> {
    let accepts = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let mut takes = accepts.into_iter().flat_map(|list| list.split(','));
    if takes.any(|one| one.trim() == "gzip")
        && let Some(bytes) = files(&format!("{name}.gz"))
    {
        return Some(Sent { bytes, gzipped: Gzipped::Yes });
    }
    files(name).map(|bytes| Sent { bytes, gzipped: Gzipped::No })
}

fn respond(sent: Sent, media: &'static str, cache: &'static str) -> Response {
    let mut response = Response::new(Body::from(sent.bytes.into_owned()));
    let fixed = [
        (header::CONTENT_TYPE, media),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, cache),
        (header::VARY, "accept-encoding"),
    ];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if sent.gzipped == Gzipped::Yes {
        let gzip = HeaderValue::from_static("gzip");
        response.headers_mut().insert(header::CONTENT_ENCODING, gzip);
    }
    response
}

/// Said instead of the console by a binary that was built without it.
const NOT_BUILT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width\"><title>Sluice</title>\
    <h1>The console was not built</h1>\
    <p>This binary serves the API, and was compiled without the console. <code>make start</code> \
    builds both; or run <code>npm ci &amp;&amp; npm run build</code> in <code>console/</code> and \
    compile again.</p><p>The API: <a href=\"/api/docs\">/api/docs</a></p></html>";

fn not_built() -> Response {
    let bytes = Cow::Borrowed(NOT_BUILT.as_bytes());
    let sent = Sent { bytes, gzipped: Gzipped::No };
    respond(sent, "text/html; charset=utf-8", EACH_TIME)
}
