//! Which paths belong to the console, and the headers of its responses.

use super::*;

/// A build with one script.
fn files(name: &str) -> Option<Cow<'static, [u8]>> {
    let text = match name {
        "index.html" => "<!doctype html>",
        "index.html.gz" => "packed page",
        "assets/app-1a2b.js" => "go()",
        "assets/app-1a2b.js.gz" => "packed",
        "favicon.svg" => "<svg/>",
        ".gitkeep" | "secret.txt" => "not for everybody",
        _ => return None,
    };
    Some(Cow::Borrowed(text.as_bytes()))
}

fn nothing(_: &str) -> Option<Cow<'static, [u8]>> {
    None
}

fn gzip() -> HeaderMap {
    let value = HeaderValue::from_static("br;q=1.0, gzip, deflate");
    HeaderMap::from_iter([(header::ACCEPT_ENCODING, value)])
}

fn told(response: &Response, name: header::HeaderName) -> &str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

async fn text(response: Response) -> String {
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn the_index_is_served_only_at_the_paths_of_the_console() {
    let ours = ["/", "/runs", "/runs/run_1", "/approvals", "/approvals/apr_1", "/workflows"];
    let more = ["/workflows/vendor-review", "/workflows/a%2Fb", "/governance/policies", "/audit"];
    for path in ours.iter().chain(&more).chain(&["/cost", "/settings"]) {
        let page = answer_from(&files, path, &HeaderMap::new()).expect(path);
        assert_eq!(told(&page, header::CONTENT_TYPE), "text/html; charset=utf-8", "{path}");
        assert_eq!(told(&page, header::CACHE_CONTROL), "no-cache", "{path}");
        assert_eq!(text(page).await, "<!doctype html>", "{path}");
    }
    let others = ["", "*", "/api", "/api/v1/run", "/runs/", "/runs/a/b", "/runs/..", "/RUNS", "//"];
    for path in others.iter().chain(&["/index.html", "/elsewhere", "/hooks/x", "runs", "/runs//"]) {
        assert!(answer_from(&files, path, &HeaderMap::new()).is_none(), "{path}");
    }
}

#[tokio::test]
async fn a_file_has_its_media_type_and_is_cached_permanently() {
    let script = answer_from(&files, "/assets/app-1a2b.js", &HeaderMap::new()).unwrap();
    assert_eq!(told(&script, header::CONTENT_TYPE), "text/javascript; charset=utf-8");
    assert_eq!(told(&script, header::CACHE_CONTROL), FOR_EVER);
    assert_eq!(told(&script, header::CONTENT_ENCODING), "");
    assert_eq!(text(script).await, "go()");
    let icon = answer_from(&files, "/favicon.svg", &HeaderMap::new()).unwrap();
    assert_eq!(told(&icon, header::CONTENT_TYPE), "image/svg+xml");
    assert_eq!(told(&icon, header::CACHE_CONTROL), EACH_TIME);
}

#[test]
fn files_that_do_not_belong_to_a_page_are_not_served() {
    let odd = ["/.gitkeep", "/secret.txt", "/assets/none.js", "/assets/../secret.txt", "/assets/"];
    for path in odd.iter().chain(&["/assets/app-1a2b.js.gz", "/assets/%61pp-1a2b.js", "/../x.js"]) {
        assert!(answer_from(&files, path, &HeaderMap::new()).is_none(), "{path}");
    }
}

#[tokio::test]
async fn compressed_files_are_sent_only_to_clients_that_accept_gzip() {
    for path in ["/", "/assets/app-1a2b.js"] {
        let packed = answer_from(&files, path, &gzip()).unwrap();
        assert_eq!(told(&packed, header::CONTENT_ENCODING), "gzip");
        assert_eq!(told(&packed, header::VARY), "accept-encoding");
        assert!(text(packed).await.starts_with("packed"));
    }
    // A file without a compressed variant is sent as it is.
    let icon = answer_from(&files, "/favicon.svg", &gzip()).unwrap();
    assert_eq!(told(&icon, header::CONTENT_ENCODING), "");
}

#[tokio::test]
async fn a_page_runs_only_scripts_from_files_of_its_origin() {
    let files: [&Files; 2] = [&files, &nothing];
    for files in files {
        let page = answer_from(files, "/", &HeaderMap::new()).unwrap();
        let policy = told(&page, header::CONTENT_SECURITY_POLICY).to_owned();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"));
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
    }
}

#[tokio::test]
async fn a_binary_without_the_console_says_how_to_build_it() {
    let page = answer_from(&nothing, "/runs", &HeaderMap::new()).unwrap();
    let said = text(page).await;
    assert!(said.contains("make start") && said.contains("npm run build"), "{said}");
    // Its policy allows no styles within the page.
    assert!(!said.contains("<style") && !said.contains("style="), "{said}");
    assert!(answer_from(&nothing, "/assets/app-1a2b.js", &HeaderMap::new()).is_none());
}
