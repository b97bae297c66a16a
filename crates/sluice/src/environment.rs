//! Every environment variable that this program reads by itself and that is no
//! setting; those are read in `config`. (`NO_COLOR` and its kin are read by the
//! library that writes colours.)

/// `USER`: in whose name things are done, unless `--as` says.
pub(crate) fn user() -> Option<String> {
    std::env::var("USER").ok().filter(|name| !name.trim().is_empty())
}

/// `TERM`: whether the terminal can do no more than print.
pub(crate) fn terminal_is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|kind| kind == "dumb")
}
