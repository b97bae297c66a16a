//! Edges of a lens graph: the value that flows along an edge, and its condition.

pub mod key;
pub mod test;

#[cfg(test)]
mod tests;
