//! Decisions: one golden matrix, and properties for any facts.

mod brief;
mod grants;
mod matrix;
mod properties;
mod scene;
