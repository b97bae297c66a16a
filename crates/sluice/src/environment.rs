//! Every environment variable that this program reads by itself. (`NO_COLOR`
//! and its kin are read by the library that writes colours.)

use std::ffi::OsString;
use std::path::PathBuf;

/// `SLUICE_DATA`: where runs are kept, unless `--data` says.
pub(crate) fn data() -> Option<PathBuf> {
    std::env::var_os("SLUICE_DATA").filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// `SLUICE_SEAL_FILE`: where seals are copied to, unless `--seal-file` says.
pub(crate) fn seal_file() -> Option<PathBuf> {
    std::env::var_os("SLUICE_SEAL_FILE").filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// `SLUICE_MODERATION`: who judges texts, unless `--moderation` says.
pub(crate) fn moderation() -> Option<OsString> {
    std::env::var_os("SLUICE_MODERATION").filter(|value| !value.is_empty())
}

/// `SLUICE_MODERATION_TOKEN`: where the token for a moderator at an address is
/// found: `env:NAME` or `file:PATH`.
pub(crate) fn moderation_token() -> Option<String> {
    std::env::var("SLUICE_MODERATION_TOKEN").ok().filter(|value| !value.is_empty())
}

/// `USER`: in whose name things are done, unless `--as` says.
pub(crate) fn user() -> Option<String> {
    std::env::var("USER").ok().filter(|name| !name.trim().is_empty())
}

/// `TERM`: whether the terminal can do no more than print.
pub(crate) fn terminal_is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|kind| kind == "dumb")
}
