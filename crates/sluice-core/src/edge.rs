//! What flows along an edge of a lens graph, and whether it flows at all.

pub mod key;
pub mod test;

#[cfg(test)]
mod tests;
