//! What happens next in a run: the part that starts steps and carries out what the
//! other parts return.

pub(crate) mod advance;
pub(crate) mod approval;
pub(crate) mod dispatch;
pub(crate) mod end;
mod fan_out;
mod queue;
pub(crate) mod rewind;
pub(crate) mod take_over;
mod timer;
pub(crate) mod tool;
