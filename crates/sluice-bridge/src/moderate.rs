//! Moderators for the inputs and outputs of steps: a word list, or a remote service.

pub mod http;
pub mod word_list;
