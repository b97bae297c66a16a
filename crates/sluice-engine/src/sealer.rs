//! Seals the journals, at most a second after each write.
//!
//! Any process with the key may seal. The store accepts each seal number once: if two
//! processes seal at the same time, one of them retries. Nothing waits for a seal, and
//! no seal is made when nothing was written.

use crate::engine::Inner;
use sluice_core::evidence::key::Signer;
use sluice_core::evidence::seal;
use sluice_core::port::ledger::Sealed;
use sluice_core::port::store::StoreError;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Interval between seals; leaves part of the second for sealing itself.
const SEAL_MS: u64 = 500;
/// After this many intervals the store is checked for writes of other processes.
const WAITS_MAX: u32 = 20;
/// Approximate maximum of heads in one seal.
const HEADS_MAX: usize = 65_536;
/// Most seals in one pass; the rest waits for the next pass.
const SEALS_MAX: usize = 64;

/// Receives the text of every seal that this process makes.
pub type Witness = Arc<dyn Fn(&str) + Send + Sync>;

/// Key and witness for seals.
#[derive(Clone)]
pub struct Sealer {
    /// Signs the seals.
    pub signer: Signer,
    /// Receives a copy of each seal, for example to store it outside of the database.
    pub witness: Option<Witness>,
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("signer", &self.signer).finish_non_exhaustive()
    }
}

impl Inner {
    pub(crate) async fn seal_loop(self: Arc<Self>) {
        let mut waits = WAITS_MAX;
        while !self.stop.is_cancelled() {
            waits += 1;
            if self.unsealed.swap(false, Ordering::Relaxed) || waits > WAITS_MAX {
                waits = 0;
                if let Err(error) = self.seal().await {
                    tracing::warn!(%error, "nothing can be sealed now");
                    self.unsealed.store(true, Ordering::Relaxed);
                }
            }
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {}
                () = tokio::time::sleep(Duration::from_millis(SEAL_MS)) => {}
            }
        }
    }

    /// Seals everything written so far, up to `SEALS_MAX` seals.
    pub(crate) async fn seal(&self) -> Result<(), StoreError> {
        let Some(sealer) = &self.sealer else { return Ok(()) };
        for _ in 0..SEALS_MAX {
            let unsealed = self.store.unsealed(HEADS_MAX).await?;
            let Some(sealing) = seal::next(&unsealed, self.clock.now_ms(), &sealer.signer) else {
                return Ok(());
            };
            let text = sealing.text.clone();
            // Another process may have sealed first; the next pass sees that.
            if self.store.seal(sealing).await? == Sealed::Done
                && let Some(witness) = &sealer.witness
            {
                witness(&text);
            }
        }
        self.unsealed.store(true, Ordering::Relaxed);
        Ok(())
    }
}
