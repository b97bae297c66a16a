//! Reads the files that arguments name, up to the size limit.

use crate::problem::Unreadable;
use sluice_core::limits::DOCUMENT_BYTES_MAX;
use sluice_server::service::document::Input;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads a file; `-` is standard input.
pub(crate) fn read(name: &OsStr) -> Result<Input, Unreadable> {
    let read = if name == "-" { bounded(io::stdin().lock()) } else { file(Path::new(name)) };
    let name = name.to_string_lossy().into_owned();
    match read {
        Ok(bytes) => Ok(Input { name, bytes }),
        Err(cause) => Err(Unreadable { name, cause }),
    }
}
fn file(path: &Path) -> io::Result<Vec<u8>> {
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // Opening a named pipe blocks until a writer opens it. The pipe of the shell's `<(…)` is open
    // already.
    let open_already = path.starts_with("/dev/fd") || path == Path::new("/dev/stdin");
    if !kind.is_file() && !open_already {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    bounded(File::open(path)?)
}

fn bounded(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(DOCUMENT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
