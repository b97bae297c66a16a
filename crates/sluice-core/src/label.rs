//! The normal form of labels.
//!
//! Templates, contracts, wires and overrides write the same label in slightly different ways.
//! Two labels are equal if their normal forms are, and no code compares labels in another way.

/// The normal form of a label: trimmed, lower case, each white-space character replaced by `_`.
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
