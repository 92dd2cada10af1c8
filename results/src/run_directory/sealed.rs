//! A file that counts and hashes what is written to it.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The summary of a file in `run.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSummary {
    /// Rows, the header excepted; lines; or entries.
    pub rows: u64,
    /// Octets.
    pub bytes: u64,
    /// SHA-256, in hexadecimal digits.
    pub sha256: String,
}

impl FileSummary {
    /// Whether the file at `path` has these octets.
    pub fn is_of(&self, path: &Path) -> bool {
        let octets = std::fs::read(path);
        octets
            .is_ok_and(|octets| octets.len() as u64 == self.bytes && sha256(&octets) == self.sha256)
    }
}

/// SHA-256 of `octets`, in hexadecimal digits.
pub fn sha256(octets: &[u8]) -> String {
    digits(Sha256::new().chain_update(octets))
}

fn digits(hash: Sha256) -> String {
    hash.finalize().iter().map(|octet| format!("{octet:02x}")).collect()
}

/// A file being written.
pub(super) struct Sealed {
    file: BufWriter<File>,
    hash: Sha256,
    bytes: u64,
}

impl Sealed {
    /// Creates a file, or replaces an existing one.
    pub(super) fn create(path: &Path) -> io::Result<Sealed> {
        let file = BufWriter::with_capacity(1 << 16, File::create(path)?);
        Ok(Sealed { file, hash: Sha256::new(), bytes: 0 })
    }

    /// Finishes the file.
    pub(super) fn finish(mut self, rows: u64) -> io::Result<FileSummary> {
        self.file.flush()?;
        Ok(FileSummary { rows, bytes: self.bytes, sha256: digits(self.hash) })
    }
}

impl Write for Sealed {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let written = self.file.write(octets)?;
        self.hash.update(&octets[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
