//! "Did you mean": finds the known name that a misspelt one most likely means.
//!
//! Case, `-` and `_` are ignored, so `dependsOn`, `depends-on` and `depends_on` are the same.
//! Work per candidate is linear in its length: documents may have ten thousand names and two
//! hundred misspelt ones.

/// Longer names, after folding, are only compared for equality.
const CHARS_MAX: usize = 64;
/// Longer names are not examined.
const BYTES_MAX: usize = 1024;
/// The maximum number of edits between a name and its suggestion.
const EDITS_MAX: usize = 4;
/// The minimum length of a word that may be a prefix of another name.
const WORD_BYTES_MIN: usize = 3;

/// The candidate nearest to `name`, if at most a third of its letters differ; the first of
/// equally near ones. If none is within one edit, the first candidate that starts with the
/// name's words, or the other way round.
pub fn suggest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > BYTES_MAX {
        return None;
    }
    let (written, name) = (name, folded(name));
    let mut best: Option<(usize, &str)> = None;
    let mut begun: Option<&str> = None;
    for candidate in candidates.into_iter().filter(|candidate| candidate.len() <= BYTES_MAX) {
        if begun.is_none() && begins(written, candidate) {
            begun = Some(candidate);
        }
        let other = folded(candidate);
        let limit = (name.len().max(other.len()) / 3).min(EDITS_MAX);
        let Some(edits) = edits(&name, &other, limit) else {
            continue;
        };
        if best.is_none_or(|(least, _)| edits < least) {
            best = Some((edits, candidate));
        }
    }
    match best {
        // One edit is nearer than missing words; several edits are not.
        Some((edits, candidate)) if edits < 2 || begun.is_none() => Some(candidate),
        _ => begun,
    }
}

/// The candidate that `name` most likely misspells: one letter is different, missing, added or
/// swapped. Names that differ only in their digits are different names.
pub(crate) fn misspelt<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    /// Shorter names often differ in one letter only.
    const CHARS_MIN: usize = 4;
    let letters = |name: &str| name.replace(|c: char| c.is_ascii_digit(), "");
    let (name, own) = (folded(name), letters(name));
    let likely = |candidate: &&str| {
        let other = folded(candidate);
        let long = name.len().min(other.len()) >= CHARS_MIN;
        letters(candidate) != own && edits(&name, &other, usize::from(long)).is_some()
    };
    candidates.into_iter().find(likely)
}

/// Whether one name is a prefix of the other, up to the end of a word: `gather` and
/// `gather_data`.
fn begins(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    let rest = long.strip_prefix(short);
    short.len() >= WORD_BYTES_MIN && rest.is_some_and(|rest| rest.starts_with(['-', '_']))
}

fn folded(name: &str) -> Vec<char> {
    let letters = name.chars().filter(|c| !matches!(c, '-' | '_'));
    letters.flat_map(char::to_lowercase).collect()
}

/// The number of insertions, deletions, substitutions and swaps of neighbours that turn `a`
/// into `b`, without editing a part twice; `None` if it exceeds `limit`.
fn edits(a: &[char], b: &[char], limit: usize) -> Option<usize> {
    if a == b {
        return Some(0);
    }
    if a.len().max(b.len()) > CHARS_MAX || a.len().abs_diff(b.len()) > limit {
        return None;
    }
    // Cells further than `limit` from the diagonal cannot lead to a near enough result, so
    // they are not computed.
    let far = limit + 1;
    let mut before = vec![far; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![far; b.len() + 1];
        row[0] = i;
        let first = i.saturating_sub(limit).max(1);
        for j in first..=b.len().min(i + limit) {
            let differs = usize::from(a[i - 1] != b[j - 1]);
            let mut cost = (above[j - 1] + differs).min(above[j] + 1).min(row[j - 1] + 1);
            let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if swapped {
                cost = cost.min(before[j - 2] + 1);
            }
            row[j] = cost;
        }
        before = above;
        above = row;
    }
    Some(above[b.len()]).filter(|edits| *edits <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_of_a_thousand_letters_is_compared_and_a_longer_one_is_not() {
        let (long, longer) = ("a".repeat(BYTES_MAX), "a".repeat(BYTES_MAX + 1));
        assert_eq!(suggest(&long, [long.as_str()]), Some(long.as_str()));
        assert_eq!(suggest(&longer, [longer.as_str()]), None);
        assert_eq!(suggest("a", [longer.as_str()]), None);
    }

    #[test]
    fn a_misspelt_name_differs_in_one_letter() {
        for (name, other) in [
            ("custmer", "customer"),
            ("csutomer", "customer"),
            ("inboundmail", "inbound_mail"),
            ("payrol", "payroll"),
        ] {
            assert_eq!(misspelt(name, ["web", other]), Some(other));
        }
        for (name, other) in [
            ("team1", "team2"),
            ("web", "wef"),
            ("customer", "customer_data"),
            ("inbound", "outbound"),
        ] {
            assert_eq!(misspelt(name, [other]), None, "{name}");
        }
    }

    #[test]
    fn the_nearest_name_is_suggested() {
        for (name, candidates, expected) in [
            ("gather_dta", &["gather", "gather_data"][..], Some("gather_data")),
            ("ouputs", &["inputs", "outputs"], Some("outputs")),
            ("comand", &["command", "condition"], Some("command")),
            ("timeuot", &["timeout"], Some("timeout")),
            // Spelling habits are no mistakes.
            ("dependsOn", &["depends_on"], Some("depends_on")),
            ("depends-on", &["depends_on"], Some("depends_on")),
            ("ID", &["id"], Some("id")),
            // Short names must match but for that.
            ("ab", &["ac", "x"], None),
            ("abc", &["abd"], Some("abd")),
            ("id", &["idx"], Some("idx")),
            // A third of the letters, rounded down.
            ("abcde", &["abcxx"], None),
            ("abcdef", &["abcdxx"], Some("abcdxx")),
            ("abcdef", &["abcxxx"], None),
            // Ties go to the first, and a nearer one later still wins.
            ("stepX", &["step1", "step2"], Some("step1")),
            ("abcdef", &["abcdxx", "abcdex"], Some("abcdex")),
            // Left-out words, unless something is nearer.
            ("gather", &["other", "gather_data", "gather_more"], Some("gather_data")),
            ("gather_data_now", &["gather-data", "gather_data"], Some("gather_data")),
            ("gather", &["gather_data", "gathers"], Some("gathers")),
            ("gather", &["gatherers_of_data"], None),
            ("ga", &["ga_data_and_more"], None),
            ("gat", &["gat_data_and_more"], Some("gat_data_and_more")),
            ("retry", &[], None),
            ("", &["a"], None),
            ("unlike", &["entirely"], None),
        ] {
            let found = suggest(name, candidates.iter().copied());
            assert_eq!(found, expected, "{name}");
        }
    }

    fn distance(a: &str, b: &str, limit: usize) -> Option<usize> {
        edits(&folded(a), &folded(b), limit)
    }

    #[test]
    fn edits_are_insertions_deletions_substitutions_and_swaps() {
        for (a, b, expected) in [
            ("abcd", "abcd", 0),
            ("abcd", "abxcd", 1),
            ("abcd", "abd", 1),
            ("abcd", "abxd", 1),
            ("abcd", "bacd", 1),
            ("abcd", "abdc", 1),
            ("abcd", "acbd", 1),
            ("abcd", "badc", 2),
            ("abcd", "bcda", 2),
            ("ca", "abc", 3),
            ("abcd", "xbcx", 2),
            ("abcdef", "bcdefg", 2),
            ("abcdef", "abef", 2),
            ("aab", "aba", 1),
        ] {
            assert_eq!(distance(a, b, 4), Some(expected), "{a} {b}");
            assert_eq!(distance(b, a, 4), Some(expected), "{b} {a}");
            assert_eq!(distance(a, b, expected), Some(expected), "{a} {b}");
            if let Some(fewer) = expected.checked_sub(1) {
                assert_eq!(distance(a, b, fewer), None, "{a} {b}");
            }
        }
    }

    #[test]
    fn long_names_are_compared_for_equality_only() {
        let longest = "x".repeat(CHARS_MAX);
        let one_off = format!("{}y", "x".repeat(CHARS_MAX - 1));
        assert_eq!(suggest(&longest, [one_off.as_str()]), Some(one_off.as_str()));
        let long = "x".repeat(CHARS_MAX + 1);
        assert_eq!(suggest(&long, [longest.as_str()]), None);
        assert_eq!(suggest(&longest, [long.as_str()]), None);
        let upper = long.to_uppercase();
        assert_eq!(suggest(&upper, [long.as_str()]), Some(long.as_str()));
    }

    #[test]
    fn however_long_a_name_a_few_edits_are_the_most() {
        let name = "abcdefghijklmnopqrst";
        assert_eq!(suggest(name, ["abcdefghijklmnopXXXX"]), Some("abcdefghijklmnopXXXX"));
        assert_eq!(suggest(name, ["abcdefghijklmnoXXXXX"]), None);
    }

    /// The textbook version, without limit or band.
    fn plain(a: &[char], b: &[char]) -> usize {
        let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
        for i in 0..=a.len() {
            for j in 0..=b.len() {
                if i == 0 || j == 0 {
                    table[i][j] = i + j;
                    continue;
                }
                let differs = usize::from(a[i - 1] != b[j - 1]);
                let mut cost = (table[i - 1][j - 1] + differs)
                    .min(table[i - 1][j] + 1)
                    .min(table[i][j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    cost = cost.min(table[i - 2][j - 2] + 1);
                }
                table[i][j] = cost;
            }
        }
        table[a.len()][b.len()]
    }

    proptest! {
        #[test]
        fn the_band_gives_what_the_whole_table_gives(a in "[ab]{0,9}", b in "[abc]{0,9}", limit in 0usize..5) {
            let (a, b) = (folded(&a), folded(&b));
            let whole = plain(&a, &b);
            prop_assert_eq!(edits(&a, &b, limit), Some(whole).filter(|edits| *edits <= limit));
        }

        #[test]
        fn any_text_is_answered(name in ".{0,80}", candidates in prop::collection::vec(".{0,80}", 0..5)) {
            suggest(&name, candidates.iter().map(String::as_str));
        }
    }
}
