//! Faults of the machine: a full disk, a removed directory, little memory, a damaged
//! file; and what is left on the disk when it should be gone.

mod backup;
mod directory;
#[cfg(target_os = "linux")]
mod disk;
mod erased;
mod files;
mod http;
#[cfg(target_os = "linux")]
mod memory;
mod ports;
#[cfg(target_os = "linux")]
mod read_only;
mod tools;
