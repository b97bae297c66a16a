//! Classes of characters: what is a letter or digit, a space, invisible, a decimal digit.
//!
//! Texts of a stranger hide values with unusual characters, so every class is about all of
//! Unicode.

use unicode_normalization::char::is_combining_mark;

/// The zero of every set of decimal digits, in order.
const ZEROS: [u32; 77] = [
    0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66,
    0xde6, 0xe50, 0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90,
    0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10,
    0x104a0, 0x10d30, 0x10d40, 0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0,
    0x11650, 0x116c0, 0x116d0, 0x116da, 0x11730, 0x118e0, 0x11950, 0x11bf0, 0x11c50, 0x11d50,
    0x11da0, 0x11de0, 0x11f50, 0x16130, 0x16a60, 0x16ac0, 0x16b50, 0x16d70, 0x1ccf0, 0x1d7ce,
    0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e4f0, 0x1e5f1, 0x1e950, 0x1fbf0,
];

/// Whether words consist of it: a letter or a number. Marks and circled letters are neither.
pub(super) fn is_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric();
    }
    c.is_numeric() || (c.is_alphabetic() && !is_combining_mark(c) && !is_circled(c))
}

/// Letters that are symbols: circled, squared and so on.
fn is_circled(c: char) -> bool {
    matches!(c, '\u{24b6}'..='\u{24e9}' | '\u{1f130}'..='\u{1f149}' | '\u{1f150}'..='\u{1f169}'
        | '\u{1f170}'..='\u{1f189}')
}

/// Whether it separates words without being seen.
pub(super) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

/// Whether it is a control or a format character (Unicode's categories Cc and Cf).
pub(super) fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
        | '\u{890}' | '\u{891}' | '\u{8e2}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
        | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0001}' | '\u{e0020}'..='\u{e007f}')
}

/// The ASCII form of a decimal digit of any script.
pub(super) fn ascii_digit(c: char) -> Option<char> {
    let c = u32::from(c);
    let set = ZEROS.partition_point(|zero| *zero <= c).checked_sub(1)?;
    char::from_digit(c - ZEROS[set], 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;

    fn all() -> impl Iterator<Item = char> {
        (0..=u32::from(char::MAX)).filter_map(char::from_u32)
    }

    /// The characters whose class differs from the tables of the library for patterns, which
    /// may be of an older version of Unicode.
    fn differing(class: &str, has: impl Fn(char) -> bool) -> Vec<String> {
        let (pattern, newer) = (Pattern::new(class).unwrap(), Pattern::new(r"\p{Cn}").unwrap());
        let is = |pattern: &Pattern, c: char| pattern.is_match(c.encode_utf8(&mut [0; 4]));
        let differs = |c: &char| is(&pattern, *c) != has(*c) && !is(&newer, *c);
        all().filter(differs).map(|c| format!("{:x}", u32::from(c))).collect()
    }

    #[test]
    fn the_classes_cover_all_of_unicode() {
        assert_eq!(differing(r"[\p{L}\p{N}]", is_word), [""; 0]);
        assert_eq!(differing(r"[\p{Cc}\p{Cf}]", is_invisible), [""; 0]);
        assert_eq!(differing(r"\p{Nd}", |c| ascii_digit(c).is_some()), [""; 0]);
    }

    #[test]
    fn digits_of_every_script_have_their_value() {
        for (digits, plain) in
            [("0123456789", "0123456789"), ("٠١٢٣٤٥٦٧٨٩", "0123456789"), ("४२", "42")]
        {
            let found: String = digits.chars().filter_map(ascii_digit).collect();
            assert_eq!(found, plain);
        }
        assert_eq!(ascii_digit('x'), None);
        assert_eq!(ascii_digit(':'), None);
    }
}
