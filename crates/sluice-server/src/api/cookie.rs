//! The session cookie: its name, how it is set, and from which pages it is accepted.
//!
//! Browsers send cookies to every port of a host, and keep one value for each name. So the
//! name contains a hash of the server's URL: two servers on one host do not overwrite each
//! other's sessions. A request that comes from another origin according to the browser is
//! refused, even if that origin is another port of the same host.

use super::problem::{CSRF_REFUSED, Rejection};
use crate::app::{App, Settings};
use crate::auth::secret;
use crate::refused::Refused;
use axum::http::{HeaderMap, Method, header, request};
use sha2::{Digest as _, Sha256};
use sluice_core::hex;

/// The common part of the cookie name.
pub const BASE: &str = "sluice_session";
/// The header that a page of the console sends with every change.
pub(crate) const CSRF: &str = "x-csrf-token";
/// The header with the site that a request comes from, set by browsers.
const SEC_FETCH_SITE: &str = "sec-fetch-site";
/// Bytes of the hash in the cookie name.
const HASH_BYTES: usize = 4;

/// The name of the cookie. Browsers accept the prefix `__Host-` only over TLS, for the
/// whole host, and from the host itself.
pub fn name(settings: &Settings) -> String {
    let hash = Sha256::digest(settings.public_url.as_bytes());
    let prefix = if is_secure(settings) { "__Host-" } else { "" };
    format!("{prefix}{BASE}_{}", hex::to_string(&hash[..HASH_BYTES]))
}

/// Whether the cookie is sent over TLS only.
fn is_secure(settings: &Settings) -> bool {
    settings.secure_cookies || settings.public_url.starts_with("https://")
}

/// The `Set-Cookie` header value, with a lifetime in seconds.
pub(super) fn set(app: &App, secret: &str, seconds: u64) -> String {
    let secure = if is_secure(app.settings()) { "; Secure" } else { "" };
    let name = app.cookie();
    format!("{name}={secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}")
}

/// The session secret of a request.
pub(super) fn secret<'a>(app: &App, headers: &'a HeaderMap) -> Option<&'a str> {
    let sent = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = sent.flat_map(|line| line.split(';')).filter_map(|pair| pair.split_once('='));
    let mut ours = pairs.filter(|(name, _)| name.trim() == app.cookie());
    ours.next().map(|(_, secret)| secret.trim())
}

/// Refuses a request with a session cookie that a page of another origin sends.
pub(super) fn own_page(head: &request::Parts, session: &str) -> Result<(), Rejection> {
    let sent = |name| head.headers.get(name).map(|value| value.to_str().unwrap_or("unreadable"));
    // Browsers omit it on connections that they do not trust.
    if !matches!(sent(SEC_FETCH_SITE), None | Some("same-origin" | "none")) {
        let remedy = "a session is for pages of this server; other pages send a token as \
                      `Authorization: Bearer TOKEN`";
        let message = "the request comes from a page of another origin";
        return Err(Refused::new(CSRF_REFUSED, message, remedy).into());
    }
    if matches!(head.method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    if secret::same(sent(CSRF).unwrap_or_default(), &secret::csrf(session)) {
        return Ok(());
    }
    let remedy = "send the `csrf_token` of `/api/v1/session` as `X-CSRF-Token`";
    Err(Refused::new(CSRF_REFUSED, "the CSRF token is missing or wrong", remedy).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_servers_of_one_host_have_cookies_of_two_names() {
        let at = |url: &str| Settings { public_url: url.to_owned(), ..Settings::default() };
        let (one, other) = (at("http://127.0.0.1:7400"), at("http://127.0.0.1:7401"));
        assert_ne!(name(&one), name(&other));
        assert_eq!(name(&one), name(&one.clone()));
        assert!(name(&one).starts_with("sluice_session_"), "{}", name(&one));
        assert!(name(&at("https://sluice.example")).starts_with("__Host-sluice_session_"));
        let behind = Settings { secure_cookies: true, ..one };
        assert!(name(&behind).starts_with("__Host-sluice_session_"));
    }
}
