//! The keys of a data directory.
//!
//! The first process that opens the directory creates the key, in a file that only its owner
//! can read. The public half is part of every seal, and is stored in its own file, which may be
//! published.

use crate::seal_file::SealFile;
use sluice_bridge::gitignore;
use sluice_core::evidence::key::{PublicKey, Signer};
use sluice_core::hash::Hash;
use sluice_core::hex;
use sluice_core::id::Entropy as _;
use sluice_engine::sealer::Sealer;
use sluice_engine::world::SystemEntropy;
use sluice_server::refused::{Refused, SEAL_UNUSABLE};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The secret half.
pub(crate) const SECRET: &str = "seal.key";
/// The key that tokens of dispatches are derived from.
pub(crate) const DISPATCH: &str = "dispatch.key";
/// The public half of every key so far, one per line.
pub(crate) const PUBLIC: &str = "seal.pub";

pub(crate) type Secret = [u8; 32];

/// Makes the seals of a directory, and appends each to `copy`, if given.
pub(crate) fn sealer(dir: &Path, copy: Option<&SealFile>) -> Result<Sealer, Refused> {
    sealer_with(&secret(dir, SECRET)?, dir, copy)
}

/// The same with this key. Its public half is added to the directory.
pub(crate) fn sealer_with(
    secret: &Secret,
    dir: &Path,
    copy: Option<&SealFile>,
) -> Result<Sealer, Refused> {
    let signer = Signer::new(secret);
    if !public(dir).contains(&signer.public()) {
        directory(dir)?;
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(dir.join(PUBLIC));
        let line = format!("{}\n", signer.public());
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .map_err(|error| unusable(&dir.join(PUBLIC), &error))?;
    }
    let witness = copy.map(SealFile::witness).transpose()?;
    Ok(Sealer { signer, witness })
}

/// Creates a directory for keys.
pub(crate) fn directory(dir: &Path) -> Result<(), Refused> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    let made = made.and_then(|()| gitignore::write(dir));
    made.map_err(|error| unusable(dir, &error))
}

/// Derives the key of an organisation without a key file from the key of the first
/// organisation.
pub(crate) fn derived(first: &Secret, organisation: &str) -> Secret {
    Hash::of(&[first.as_slice(), b"organisation ", organisation.as_bytes()].concat()).0
}

pub(crate) fn unusable(path: &Path, error: &dyn std::fmt::Display) -> Refused {
    let what = match path.file_name().and_then(|name| name.to_str()) {
        Some(DISPATCH) => "the key that makes the tokens of dispatches",
        _ => "the key that seals are signed with",
    };
    let message = format!("{what}, `{}`: {error}", path.display());
    let remedy = "restore the file from a backup, or correct its permissions; if it is lost, move it \
                  away, run `sluice audit adopt`, and give the new public key to everyone who verifies seals";
    Refused::new(SEAL_UNUSABLE, message, remedy)
}

/// Reads a key, and creates it if it is missing.
pub(crate) fn secret(dir: &Path, name: &str) -> Result<Secret, Refused> {
    let path = dir.join(name);
    if let Some(secret) = found(dir, name)? {
        return Ok(secret);
    }
    let made = gitignore::write(dir).and_then(|()| make(&path));
    made.map_err(|error| unusable(&path, &error))?;
    found(dir, name)?.ok_or_else(|| unusable(&path, &"it was made and is gone"))
}

/// Reads a key, if its file exists.
pub(crate) fn found(dir: &Path, name: &str) -> Result<Option<Secret>, Refused> {
    let path = dir.join(name);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let secret = hex::parse(text.trim_end());
            secret.map(Some).ok_or_else(|| unusable(&path, &"it does not hold a key"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable(&path, &error)),
    }
}

/// Creates a key. The file appears atomically, so of two processes one wins.
fn make(path: &Path) -> io::Result<()> {
    let mut entropy = SystemEntropy;
    let secret: Vec<u8> = (0..4).flat_map(|_| entropy.bits().to_be_bytes()).collect();
    let own = path.with_extension(format!("{:016x}", entropy.bits()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&own)?;
    file.write_all(format!("{}\n", hex::to_string(&secret)).as_bytes())?;
    file.sync_all()?;
    let linked = fs::hard_link(&own, path);
    fs::remove_file(&own)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// The public keys that verify the seals of a directory: of the current key and all earlier
/// ones.
pub(crate) fn public(dir: &Path) -> Vec<PublicKey> {
    let text = fs::read_to_string(dir.join(PUBLIC)).unwrap_or_default();
    text.lines().filter_map(PublicKey::parse).collect()
}
