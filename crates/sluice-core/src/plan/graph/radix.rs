//! Sorts ids in time linear in their length.
//!
//! A comparison sort of a hundred thousand ids with a common prefix would be the slowest part
//! of planning.

/// Shorter ranges are sorted by comparison.
const SMALL: usize = 48;

/// Positions of `ids`, in the order of their bytes.
pub(super) fn sorted(ids: &[&str]) -> Vec<u32> {
    let mut order: Vec<u32> = (0u32..).zip(ids).map(|(at, _)| at).collect();
    let mut scratch = vec![0u32; ids.len()];
    let mut ranges = vec![(0, ids.len(), 0)];
    while let Some((start, end, depth)) = ranges.pop() {
        let part = &mut order[start..end];
        if part.len() < SMALL {
            part.sort_unstable_by(|a, b| rest(ids, *a, depth).cmp(rest(ids, *b, depth)));
            continue;
        }
        // Bucket 0 holds the ids that end at this depth, bucket b + 1 those that
        // continue with byte b.
        let mut starts = [0usize; 258];
        for at in part.iter() {
            starts[bucket(ids, *at, depth) + 1] += 1;
        }
        for at in 0..257 {
            starts[at + 1] += starts[at];
        }
        let mut next = starts;
        for at in part.iter() {
            let bucket = bucket(ids, *at, depth);
            scratch[next[bucket]] = *at;
            next[bucket] += 1;
        }
        part.copy_from_slice(&scratch[..part.len()]);
        // Ids that end at this depth are equal and need no more sorting.
        for bucket in 1..257 {
            if starts[bucket + 1] > starts[bucket] + 1 {
                ranges.push((start + starts[bucket], start + starts[bucket + 1], depth + 1));
            }
        }
    }
    order
}

fn bucket(ids: &[&str], at: u32, depth: usize) -> usize {
    ids[at as usize].as_bytes().get(depth).map_or(0, |byte| usize::from(*byte) + 1)
}

fn rest<'a>(ids: &[&'a str], at: u32, depth: usize) -> &'a [u8] {
    ids[at as usize].as_bytes().get(depth..).unwrap_or_default()
}
