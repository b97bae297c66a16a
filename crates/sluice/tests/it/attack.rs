//! Attacks on the real binary: what a stranger, a tenant, a token of few rights or
//! a writer of the store tries. Each test fails without the defence it is named after.

mod authority;
mod edges;
mod faults;
mod flood;
mod forgery;
mod older_rows;
mod rollback;
mod secrets;
mod tampering;

/// Whether the whole suite was asked for (`make attack`), not its short form.
pub(crate) fn full() -> bool {
    std::env::var_os("ATTACK").is_some_and(|size| size == "full")
}
