//! The console: the web pages, embedded in the binary.
//!
//! The build of `console/` produces an index and files whose names contain a hash of their
//! content. The index is served at the paths of the console's pages, files at their own
//! paths; all other paths belong to the API, so that an unknown path is an error and never
//! a page.
//!
//! INVARIANT: a page runs only scripts and styles of its own origin, from files. This
//! module reads nothing of a request but its method, its path and whether it accepts gzip.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::Response;
use std::borrow::Cow;

#[cfg(test)]
mod tests;

/// The content security policy of a page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; worker-src 'self'; \
    connect-src 'self'; img-src 'self' data:; media-src data:; font-src 'self'; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'";
/// Cache policy of files whose name contains a hash of their content.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
/// Cache policy of all other files.
const EACH_TIME: &str = "no-cache";
/// The file of the index page.
const INDEX: &str = "index.html";
/// First segments of the console's paths; each may be followed by one more segment.
const PAGES: [&str; 7] =
    ["runs", "approvals", "workflows", "governance", "audit", "cost", "settings"];

#[derive(rust_embed::Embed)]
#[folder = "../../console/dist"]
#[allow_missing = true]
struct Built;

/// Looks a file up by name.
type Files = dyn Fn(&str) -> Option<Cow<'static, [u8]>>;

fn built(name: &str) -> Option<Cow<'static, [u8]>> {
    Built::get(name).map(|file| file.data)
}

/// The console's response; `None` if the path is not one of its own.
pub fn answer(path: &str, headers: &HeaderMap) -> Option<Response> {
    answer_from(&built, path, headers)
}

/// The methods that the console supports.
pub(crate) const METHODS: [Method; 2] = [Method::GET, Method::HEAD];

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

/// Whether the console has a page at this path.
fn is_page(path: &str) -> bool {
    if path == "/" {
        return true;
    }
    let mut parts = path.strip_prefix('/').unwrap_or_default().split('/');
    let page = parts.next().is_some_and(|first| PAGES.contains(&first));
    // The console percent-encodes names in paths.
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    page && parts.next().is_none_or(plain) && parts.next().is_none()
}

/// A file of the build: its name, media type and cache policy.
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

/// A file to send.
struct ServedFile {
    bytes: Cow<'static, [u8]>,
    gzipped: Gzipped,
}

#[derive(PartialEq)]
enum Gzipped {
    Yes,
    No,
}

/// Finds a file; the compressed variant of the build if the client accepts gzip.
fn pick(files: &Files, name: &str, headers: &HeaderMap) -> Option<ServedFile> {
    let accepts = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let mut encodings = accepts.into_iter().flat_map(|list| list.split(','));
    if encodings.any(|one| one.trim() == "gzip")
        && let Some(bytes) = files(&format!("{name}.gz"))
    {
        return Some(ServedFile { bytes, gzipped: Gzipped::Yes });
    }
    files(name).map(|bytes| ServedFile { bytes, gzipped: Gzipped::No })
}

fn respond(sent: ServedFile, media: &'static str, cache: &'static str) -> Response {
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

/// The page that a binary without the console serves.
const NOT_BUILT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width\"><title>Sluice</title>\
    <h1>The console was not built</h1>\
    <p>This binary serves the API, and was compiled without the console. <code>make start</code> \
    builds both; or run <code>npm ci &amp;&amp; npm run build</code> in <code>console/</code> and \
    compile again.</p><p>The API: <a href=\"/api/docs\">/api/docs</a></p></html>";

fn not_built() -> Response {
    let bytes = Cow::Borrowed(NOT_BUILT.as_bytes());
    let sent = ServedFile { bytes, gzipped: Gzipped::No };
    respond(sent, "text/html; charset=utf-8", EACH_TIME)
}
