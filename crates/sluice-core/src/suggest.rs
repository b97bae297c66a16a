//! "Did you mean": the known name a misspelt one most likely stands for.
//!
//! Case, `-` and `_` are ignored, since `dependsOn`, `depends-on` and
//! `depends_on` are one word to a reader. Work per candidate is linear in its
//! length: documents may hold ten thousand names and two hundred misspelt ones.

/// Names longer than this are only compared for equality.
const CHARS_MAX: usize = 64;
/// Most edits between a name and its suggestion, however long it is.
const EDITS_MAX: usize = 4;

/// The candidate nearest to `name`, if one is near enough: at most a third of
/// its letters differ. Of several equally near ones, the first.
pub fn suggest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = folded(name);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let other = folded(candidate);
        let limit = (name.len().max(other.len()) / 3).min(EDITS_MAX);
        let Some(edits) = edits(&name, &other, limit) else {
            continue;
        };
        if best.is_none_or(|(least, _)| edits < least) {
            best = Some((edits, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn folded(name: &str) -> Vec<char> {
    let letters = name.chars().filter(|c| !matches!(c, '-' | '_'));
    letters.flat_map(char::to_lowercase).collect()
}

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a`
/// into `b` (no part edited twice); none if there are more than `limit`.
fn edits(a: &[char], b: &[char], limit: usize) -> Option<usize> {
    if a == b {
        return Some(0);
    }
    if a.len().max(b.len()) > CHARS_MAX || a.len().abs_diff(b.len()) > limit {
        return None;
    }
    // Cells further than `limit` from the diagonal cannot lead to a near enough
    // end, so they are never computed.
    let far = limit + 1;
    let mut before = vec![far; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![far; b.len() + 1];
        row[0] = i;
        let first = i.saturating_sub(limit).max(1);
        for j in first..=b.len().min(i + limit) {
            let differs = usize::from(a[i - 1] != b[j - 1]);
            let mut cost = (above[j - 1] + differs)
                .min(above[j] + 1)
                .min(row[j - 1] + 1);
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
