//! Raises the limit of file handles, and divides them between connections and the rest.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::sync::Semaphore;

/// Handles for the store, logs, steps and their pipes.
const BESIDE: u64 = 4096;
/// Handles that an idle process needs.
const OWN: u64 = 32;
/// Handles of a command: its pipes, both ends of them while it starts, and its process.
const PER_COMMAND: u64 = 8;
/// Fewest connections, however few handles there are.
const CONNECTIONS_MIN: u64 = 8;

/// Raises the limit of handles as `connections` need it and the system allows it. Returns the
/// number of connections that leaves half of the handles to everything else.
pub(crate) fn connections(connections: usize) -> usize {
    let wanted = u64::try_from(connections).unwrap_or(u64::MAX);
    let there = raise(wanted.saturating_mul(2).saturating_add(BESIDE));
    let most = there.map_or(wanted, |there| most(there).min(wanted));
    usize::try_from(most).unwrap_or(connections)
}

/// Number of commands that steps run at once without taking the handles of connections.
pub(crate) fn commands(connections: usize) -> usize {
    let wanted = u64::try_from(connections).unwrap_or(u64::MAX);
    let there = raise(wanted.saturating_mul(2).saturating_add(BESIDE));
    let commands = there.map(|there| commands_of(there, most(there).min(wanted)));
    commands.and_then(|commands| usize::try_from(commands).ok()).unwrap_or(Semaphore::MAX_PERMITS)
}

fn commands_of(handles: u64, connections: u64) -> u64 {
    (handles.saturating_sub(OWN + connections) / PER_COMMAND).max(1)
}

fn most(handles: u64) -> u64 {
    (handles.saturating_sub(OWN) / 2).max(CONNECTIONS_MIN)
}

/// Raises the limit of handles towards `wanted`. Returns the new limit; `None` if the system
/// sets no limit.
fn raise(wanted: u64) -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = current?;
    let raised = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    if raised <= current {
        return Some(current);
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }) {
        Ok(()) => Some(raised),
        Err(error) => {
            tracing::warn!(%error, current, "the limit of file handles cannot be raised");
            Some(current)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_half_of_the_handles_to_everything_else() {
        for (handles, connections) in [(0, 8), (64, 16), (1024, 496), (20_000, 9984)] {
            assert_eq!(most(handles), connections);
        }
    }

    #[test]
    fn commands_leave_the_handles_of_connections_alone() {
        for (handles, connections, commands) in [(0, 8, 1), (64, 16, 2), (20_000, 4096, 1984)] {
            assert_eq!(commands_of(handles, connections), commands);
        }
    }
}
