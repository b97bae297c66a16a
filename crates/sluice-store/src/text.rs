//! Text search over runs, the same in every store.

use sluice_core::id::RunId;

/// The smallest and the greatest run id that begin with a text, or `None` if no id can.
/// The text must contain more than `run_`, the prefix of every id.
pub(crate) fn ids_beginning(text: &str) -> Option<(RunId, RunId)> {
    let text = text.to_ascii_lowercase();
    let digits = text.strip_prefix("run_").unwrap_or(&text);
    let known = u32::try_from(digits.len()).ok().filter(|known| (1..=32).contains(known))?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let least = u128::from_str_radix(digits, 16).ok()? << (4 * (32 - known));
    let open = u128::MAX.checked_shr(4 * known).unwrap_or(0);
    Some((RunId(least), RunId(least | open)))
}

/// ASCII case-insensitive substring search.
pub(crate) fn is_in(text: &str, whole: &str) -> bool {
    whole.to_ascii_lowercase().contains(&text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_begin_with_their_digits_with_or_without_the_prefix() {
        let range = |text: &str| ids_beginning(text).map(|(least, most)| (least.0, most.0));
        let one = 0x0199_0000_0000_0000_0000_0000_0000_0000;
        assert_eq!(range("0199"), Some((one, one | (u128::MAX >> 16))));
        assert_eq!(range("RUN_0199"), range("0199"));
        let whole = RunId(one | 7).to_string();
        assert_eq!(range(&whole), Some((one | 7, one | 7)));
        assert_eq!(range(&format!("{whole}0")), None);
        for none in ["", "run_", "run", "x", "+1", "run_run_1", "é"] {
            assert_eq!(range(none), None, "{none}");
        }
    }
}
