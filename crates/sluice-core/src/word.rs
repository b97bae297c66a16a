//! What a word is made of, for those who look for phrases in text.
//!
//! A phrase is found only as whole words where the script writes blanks between
//! them. Where it does not, every character stands for itself.

/// Whether a character joins those beside it to one word.
pub fn joins(c: char) -> bool {
    c.is_alphanumeric() && !is_unspaced(c)
}

/// Whether a character counts for nothing: it only says how a word is shown.
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
