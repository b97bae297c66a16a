//! Decisions: one golden matrix, and what must hold for any facts.

mod brief;
mod grants;
mod matrix;
mod properties;
mod scene;
