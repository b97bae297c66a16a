//! The key of a data directory, and where its seals are kept beside it.
//!
//! Whoever opens the directory first makes the key. It is a file that only its
//! owner can read; its public half stands in every seal, and in a file of its
//! own that may be given to anybody.

use crate::seal_file::SealFile;
use sluice_bridge::gitignore;
use sluice_core::evidence::hex;
use sluice_core::evidence::key::{PublicKey, Signer};
use sluice_core::port::Entropy as _;
use sluice_core::port::store::Hash;
use sluice_engine::sealer::Sealer;
use sluice_engine::world::SystemEntropy;
use sluice_server::refused::{Refused, SEAL_UNUSABLE};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The secret half.
pub(crate) const SECRET: &str = "seal.key";
/// What dispatches have their tokens of.
pub(crate) const DISPATCH: &str = "dispatch.key";
/// The public half, a line for each key there ever was.
pub(crate) const PUBLIC: &str = "seal.pub";

/// A key.
pub(crate) type Secret = [u8; 32];

/// What a directory's seals are made with. Each is copied to `copy`, if that
/// is named.
pub(crate) fn sealer(dir: &Path, copy: Option<&SealFile>) -> Result<Sealer, Refused> {
    sealer_with(&secret(dir, SECRET)?, dir, copy)
}

/// The same with a key that is known. Its public half is noted in the directory.
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

/// Makes a directory that keys can be in.
pub(crate) fn directory(dir: &Path) -> Result<(), Refused> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    let made = made.and_then(|()| gitignore::write(dir));
    made.map_err(|error| unusable(dir, &error))
}

/// The key of an organisation that has no file of its own for it: one that only who
/// has the first organisation's can know.
pub(crate) fn derived(first: &Secret, organisation: &str) -> Secret {
    Hash::of(&[first.as_slice(), b"organisation ", organisation.as_bytes()].concat()).0
}

pub(crate) fn unusable(path: &Path, error: &dyn std::fmt::Display) -> Refused {
    let what = match path.file_name().and_then(|name| name.to_str()) {
        Some(DISPATCH) => "the key that dispatches have their tokens of",
        _ => "the key that seals are signed with",
    };
    let message = format!("{what}, `{}`: {error}", path.display());
    let remedy = "put the file back from a backup, or its permissions right; if it is lost, move it \
                  away and `sluice audit adopt` makes a new key, which others must be told";
    Refused::new(SEAL_UNUSABLE, message, remedy)
}

/// A key in a file, made where there is none.
pub(crate) fn secret(dir: &Path, name: &str) -> Result<Secret, Refused> {
    let path = dir.join(name);
    if let Some(secret) = found(dir, name)? {
        return Ok(secret);
    }
    let made = gitignore::write(dir).and_then(|()| make(&path));
    made.map_err(|error| unusable(&path, &error))?;
    found(dir, name)?.ok_or_else(|| unusable(&path, &"it was made and is gone"))
}

/// A key in a file, if there is one.
pub(crate) fn found(dir: &Path, name: &str) -> Result<Option<Secret>, Refused> {
    let path = dir.join(name);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let secret = hex::parse(text.trim_end());
            secret.map(Some).ok_or_else(|| unusable(&path, &"it is no key"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unusable(&path, &error)),
    }
}

/// Makes a key. Of two who do so at once, one wins: the file appears whole.
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

/// The public keys that a directory's seals are believed by: of the key there
/// is, and of those that were there before it.
pub(crate) fn public(dir: &Path) -> Vec<PublicKey> {
    let text = fs::read_to_string(dir.join(PUBLIC)).unwrap_or_default();
    text.lines().filter_map(PublicKey::parse).collect()
}
