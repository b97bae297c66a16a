//! The documentation of error codes, `docs/errors`, embedded in the binary.

use std::borrow::Cow;

#[derive(rust_embed::Embed)]
#[folder = "../../docs/errors"]
struct Pages;

/// The page of an error code, in Markdown.
pub fn page(code: &str) -> Option<Cow<'static, [u8]>> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    let page = Pages::get(&format!("{code}.md")).filter(|_| code.bytes().all(plain))?;
    Some(page.data)
}

/// The remedy of an error code, as one line.
pub fn remedy(code: &str) -> Option<String> {
    let page = page(code)?;
    let text = std::str::from_utf8(&page).ok()?;
    let (_, advice) = text.split_once("\nWhat to do: ")?;
    let lines = advice.lines().take_while(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join(" ");
    Some(line.trim_end_matches('.').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_of_a_page_is_one_line() {
        let advice = remedy("syntax_error").unwrap();
        assert!(advice.starts_with("look at the line named") && !advice.contains('\n'), "{advice}");
        assert_eq!(remedy("no_such_code"), None);
        assert_eq!(remedy("../decisions/001"), None);
    }
}
