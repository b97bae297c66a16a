//! Moderation of what goes into steps and what comes out of them.
//!
//! `ask` calls the moderator, `pending` tracks the open checks of one loaded
//! run, `stream` withholds streamed output until its check has passed.

pub(crate) mod ask;
pub(crate) mod pending;
pub(crate) mod stream;
