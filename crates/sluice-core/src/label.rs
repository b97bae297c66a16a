//! The normal form of labels.
//!
//! Templates, contracts, wires and overrides name the same input in slightly
//! different ways; they meet here. Two labels are one when their normal forms
//! are equal, and nothing compares labels in any other way.

/// A label in normal form: trimmed, lower case, each white-space character a `_`.
pub fn label(text: &str) -> String {
    let blank = |c: char| if c.is_whitespace() { '_' } else { c };
    text.trim().to_lowercase().chars().map(blank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_trimmed_lower_case_and_without_blanks() {
        for (text, normal) in [
            ("topic", "topic"),
            ("  Topic\n", "topic"),
            ("Main Topic", "main_topic"),
            ("main_topic", "main_topic"),
            ("a  b", "a__b"),
            ("a\tb\u{a0}c", "a_b_c"),
            ("ÄRGER", "ärger"),
            ("a-b", "a-b"),
            ("", ""),
        ] {
            assert_eq!(label(text), normal, "{text:?}");
        }
    }
}
