//! Names of flow labels: where data came from, and which secrets it contains.
//!
//! Documents, setups and the operator's settings declare them; they are compared byte by byte.

/// Maximum length of a name.
pub const CHARS_MAX: usize = 64;
/// Maximum number of names in one declaration.
pub const NAMES_MAX: usize = 16;
/// The pattern of a name, for JSON Schemas.
pub const PATTERN: &str = "^[a-z][a-z0-9_.-]*$";
/// The origin of data from a tool or gateway that declares none.
pub const UNKNOWN: &str = "unknown";

/// Whether a text can be a name: lower-case letters, digits and `_ . -`, a letter first.
pub fn is_name(text: &str) -> bool {
    text.len() <= CHARS_MAX
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_.-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_in_lower_case() {
        for name in ["web", "inbound_mail", "a", "eu-customers.2", &"a".repeat(CHARS_MAX)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "Web", "_a", "2nd", "a b", "caf\u{e9}", &"a".repeat(CHARS_MAX + 1)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
