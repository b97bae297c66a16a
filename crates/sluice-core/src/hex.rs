//! Bytes as hexadecimal digits, in one spelling only.
//!
//! INVARIANT: there is one spelling for each byte, and `parse` accepts no other. A second
//! spelling of the same bytes would be a change that no hash shows.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends the digits of `bytes`.
pub fn push(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        out.extend_from_slice(&pair(*byte));
    }
}

/// Writes the digits of `N` bytes into `room`, without an allocation.
pub(crate) fn pairs<'r, const N: usize>(room: &'r mut [[u8; 2]; N], bytes: &[u8; N]) -> &'r str {
    for (two, byte) in room.iter_mut().zip(bytes) {
        *two = pair(*byte);
    }
    std::str::from_utf8(room.as_flattened()).expect("digits are text")
}

fn pair(byte: u8) -> [u8; 2] {
    [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]
}

/// The digits of `bytes`.
pub fn to_string(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len() * 2);
    push(&mut out, bytes);
    String::from_utf8(out).expect("digits are text")
}

/// Parses exactly `N` bytes. Upper-case digits are not accepted.
pub fn parse<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(bytes)
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_reads_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = to_string(&bytes);
        assert!(text.starts_with("000102") && text.ends_with("fdfeff"));
        assert_eq!(parse::<256>(&text).unwrap().as_slice(), bytes);
        assert_eq!(pairs(&mut [[0; 2]; 3], &[0, 0x9a, 0xff]), "009aff");
    }

    #[test]
    fn another_spelling_is_refused() {
        for text in ["", "0", "0A", "+f", " f", "0f0", "0f0f", "0x", "é"] {
            assert_eq!(parse::<1>(text), None, "{text}");
        }
    }
}
