//! Word boundaries, for the search of phrases in text.
//!
//! In a script with blanks between words, a phrase matches only whole words. In other scripts,
//! every character is a word of its own.

/// Whether a character belongs to the same word as its neighbours.
pub fn joins(c: char) -> bool {
    c.is_alphanumeric() && !is_unspaced(c)
}

/// Whether a character is ignored: it only affects how a word is displayed.
pub fn is_ignored(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}')
}

/// Scripts that are written without blanks between words: Thai, Lao, Tibetan,
/// Burmese, Khmer; Kana, Bopomofo, Han and what belongs to it.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{fff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{2e80}'..='\u{312f}'
        | '\u{31a0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}'
        | '\u{1b000}'..='\u{1b16f}'
        | '\u{20000}'..='\u{323af}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_digits_join_but_not_where_nobody_writes_blanks() {
        for c in ['a', 'Ä', 'ß', 'я', '7', '한', 'ع'] {
            assert!(joins(c), "{c}");
        }
        for c in [' ', '-', '.', '_', '坏', 'ア', 'か', 'ก', '\u{200b}'] {
            assert!(!joins(c), "{c}");
        }
    }
}
