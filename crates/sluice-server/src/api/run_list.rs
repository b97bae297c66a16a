//! Placeholder of the first room.
use super::route::Route;
pub(super) fn routes() -> Vec<Route> {
    Vec::new()
}
