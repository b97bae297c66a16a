//! Checks URLs in contracts: http or https, with a host.
//!
//! Not a full parser. It decides whether a value may be passed to a component that fetches it,
//! and rejects everything doubtful.

/// Whether `text` is an http or https URL.
pub(crate) fn is_url(text: &str) -> bool {
    if text.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\') {
        return false;
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return false;
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host_and_port = authority.rsplit('@').next().unwrap_or_default();
    is_host_and_port(host_and_port)
}

fn is_host_and_port(text: &str) -> bool {
    if let Some(bracketed) = text.strip_prefix('[') {
        let Some((address, port)) = bracketed.split_once(']') else {
            return false;
        };
        let port = port.strip_prefix(':').map_or(port.is_empty(), is_port);
        return port && address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    match text.split_once(':') {
        Some((host, port)) => is_host(host) && is_port(port),
        None => is_host(text),
    }
}

fn is_host(text: &str) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_' | '~' | '%');
    text.chars().all(allowed) && text.chars().any(char::is_alphanumeric)
}

/// An empty port after the colon means the default port.
fn is_port(text: &str) -> bool {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    digits && (text.is_empty() || text.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_addresses_with_a_host_are_urls() {
        for text in [
            "http://a",
            "https://example.org",
            "HTTPS://Example.ORG/path?q=1#top",
            "http://a:80",
            "http://a:65535/x",
            "http://a:/x",
            "http://user:pw@a.b/x",
            "http://a?b@c",
            "http://a#b",
            "http://[::1]",
            "http://[::1]:8080/x",
            "http://bücher.example/",
            "http://127.0.0.1/",
            "http://a_b.c-d.e/%20",
        ] {
            assert!(is_url(text), "{text}");
        }
    }

    #[test]
    fn everything_else_is_not() {
        for text in [
            "",
            "a",
            "example.org",
            "/path",
            "//a/b",
            "http:a",
            "http:/a",
            "http://",
            "http:///x",
            "http://?x",
            "http://#x",
            "http://@/x",
            "http://:80",
            "http://a:b",
            "http://a:65536",
            "http://a:+1",
            "http://a:1:2",
            "http://.",
            "http://a b",
            "http://a/b c",
            " http://a",
            "http://a\n",
            "http://a/\u{7}",
            "http://a\\b",
            "http://a/\\b",
            "http://<a>",
            "http://[::1",
            "http://[]",
            "http://[a.b]",
            "http://[::1]x",
            "http://[::1]:x",
            "ftp://a",
            "file:///etc/passwd",
            "javascript:alert(1)//http://a",
            "xhttp://a",
            "httpss://a",
        ] {
            assert!(!is_url(text), "{text:?}");
        }
    }
}
