//! Approvals and assignments: what is requested from people, and what they answer.
//!
//! Nothing here starts, completes or fails a step: the scheduler does, by the answers.

pub(crate) mod answer;
pub(crate) mod approval;
pub(crate) mod assign;
pub(crate) mod tool;
