//! Checks the tools of MCP servers: whether their definitions are accepted, and whether declared
//! tools exist.
//!
//! No server is started: the check uses the definitions of the last listing.

use super::DoctorCheck;
use sluice_bridge::pinned::{FILE, PinFile, Pins};
use sluice_core::visible;
use sluice_govern::catalog::{ServerDeclaration, ToolState, own_name};
use std::path::Path;

const NAME: &str = "tools";

pub(super) fn checks(dir: &Path, servers: &[ServerDeclaration]) -> Vec<DoctorCheck> {
    if servers.is_empty() {
        return Vec::new();
    }
    let pins = match PinFile::new(dir).read() {
        Ok(pins) => pins,
        Err(error) => {
            let message = format!("`{FILE}` cannot be read: {error}; no tool can be used");
            return vec![DoctorCheck::fail(
                NAME,
                message,
                "restore it from a backup, or remove it",
            )];
        }
    };
    let mut checks = not_accepted(&pins);
    checks.extend(servers.iter().flat_map(|server| not_listed(server, &pins)));
    if checks.is_empty() {
        let message = format!("{} tools are accepted", pins.len());
        checks.push(DoctorCheck::ok(NAME, message));
    }
    checks
}

fn not_accepted(pins: &Pins) -> Vec<DoctorCheck> {
    let blocked = pins.iter().filter_map(|(name, pin)| {
        let name = visible::brief(name);
        let what = match pin.state() {
            ToolState::New => "is new on a known server",
            ToolState::Changed => "has a new definition",
            ToolState::Accepted | ToolState::Unseen => return None,
        };
        let remedy =
            format!("read it with `sluice tools show {name}`, then `sluice tools accept {name}`");
        Some(DoctorCheck::warn(NAME, format!("`{name}` {what} and cannot be used"), remedy))
    });
    blocked.collect()
}

/// Declarations of a listed server that apply to none of its tools.
fn not_listed(server: &ServerDeclaration, pins: &Pins) -> Vec<DoctorCheck> {
    let listed: Vec<&str> = pins.keys().filter_map(|name| own_name(name, &server.name)).collect();
    if listed.is_empty() {
        return Vec::new();
    }
    let applies = |declared: &str| match declared.strip_suffix('*') {
        Some(start) => listed.iter().any(|own| own.starts_with(start)),
        None => listed.contains(&declared),
    };
    let missing = server.tools.keys().filter(|declared| !applies(declared));
    let warn = |declared: &String| {
        let (server, declared) = (&server.name, visible::brief(declared));
        let message = format!("`{server}` lists no tool `{declared}`, which sluice.toml declares");
        DoctorCheck::warn(NAME, message, "correct the name under `[tool_servers]` in sluice.toml")
    };
    missing.map(warn).collect()
}
