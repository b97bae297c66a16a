//! The catalog of tools of this process: the operator's declarations, and the pinned
//! definitions of the tools that servers listed.

use crate::pinned::{PinFile, Pins};
use sluice_core::port::authority::CatalogSource;
use sluice_govern::catalog::{Catalog, ServerDeclaration};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Interval after which the file is checked for changes of other processes.
const CHECK_MS: u64 = 1000;

/// Builds a catalog again when the pins have changed.
pub struct PinnedCatalog {
    servers: Vec<ServerDeclaration>,
    file: Arc<PinFile>,
    cached: Mutex<CachedCatalog>,
}

struct CachedCatalog {
    catalog: Arc<Catalog>,
    /// Pins that the catalog was built from, and when they were read.
    pins: Option<Arc<Pins>>,
    checked_at: Instant,
    /// Number of changes of the file when it was read.
    changes: u64,
}

impl PinnedCatalog {
    /// The catalog of these servers. `file` must be the one that their tools are pinned in.
    pub fn new(servers: Vec<ServerDeclaration>, file: Arc<PinFile>) -> PinnedCatalog {
        let catalog = Arc::new(Catalog::new(&servers, []));
        let (checked_at, changes) = (Instant::now(), file.changes());
        let cached = CachedCatalog { catalog, pins: None, checked_at, changes };
        PinnedCatalog { servers, file, cached: Mutex::new(cached) }
    }
}

impl CatalogSource for PinnedCatalog {
    fn catalog(&self) -> Arc<Catalog> {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = cached.checked_at.elapsed() < Duration::from_millis(CHECK_MS);
        let changes = self.file.changes();
        if cached.pins.is_some() && is_recent && cached.changes == changes {
            return Arc::clone(&cached.catalog);
        }
        cached.checked_at = Instant::now();
        cached.changes = changes;
        match self.file.read() {
            Ok(pins) => {
                if cached.pins.as_ref().is_none_or(|known| !Arc::ptr_eq(known, &pins)) {
                    let listed = pins.iter().map(|(name, pin)| (name.clone(), pin.clone()));
                    cached.catalog = Arc::new(Catalog::new(&self.servers, listed));
                    cached.pins = Some(pins);
                }
            }
            // A server does not list its tools either while the file cannot be read.
            Err(error) => tracing::error!(%error, "the accepted tools cannot be read"),
        }
        Arc::clone(&cached.catalog)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use sluice_govern::catalog::ToolState;

    #[test]
    fn a_catalog_follows_the_file_of_pins() {
        let dir = tempfile::tempdir().unwrap();
        let file = Arc::new(PinFile::new(dir.path()));
        let server = ServerDeclaration { name: "box".into(), ..ServerDeclaration::default() };
        let source = PinnedCatalog::new(vec![server], Arc::clone(&file));
        let state = || source.catalog().tool("box.mail").unwrap().state;
        assert_eq!(state(), ToolState::Unseen);
        let tool = |description: &str| crate::tools::Tool {
            name: "box.mail".to_owned(),
            description: description.to_owned(),
            input_schema: json!({"type": "object"}),
            read_only: false,
        };
        file.check_and_pin("box", &[tool("sends mail")]).unwrap();
        assert_eq!(state(), ToolState::Accepted, "at once");
        let before = source.catalog();
        assert!(Arc::ptr_eq(&before, &source.catalog()));
        let schema = before.tool("box.mail").unwrap().input_schema.clone();
        assert_eq!(schema.as_deref(), Some(&json!({"type": "object"})));
        file.check_and_pin("box", &[tool("sends mail; and a copy to me")]).unwrap();
        assert_eq!(state(), ToolState::Changed);
    }
}
