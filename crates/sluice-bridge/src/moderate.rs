//! Who judges what goes into a step and what comes out: a list of phrases, or
//! somebody elsewhere.

pub mod http;
pub mod word_list;
