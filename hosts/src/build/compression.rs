//! Compressed kernels and modules.

use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;
use std::io::{self, Read};

/// Most octets of an uncompressed kernel or module.
const LIMIT: u64 = 512 << 20;

/// Uncompresses xz or zstd; anything else is taken as it is.
pub fn uncompressed(file: &[u8]) -> io::Result<Vec<u8>> {
    let mut output = Vec::new();
    if file.starts_with(b"\xfd7zXZ\0") {
        XzReader::new(file, false).take(LIMIT).read_to_end(&mut output)?;
    } else if file.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        let decoder = StreamingDecoder::new(file).map_err(io::Error::other)?;
        decoder.take(LIMIT).read_to_end(&mut output)?;
    } else {
        return Ok(file.to_vec());
    }
    if output.len() as u64 == LIMIT {
        return Err(io::Error::other("the file is too large"));
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A zstd frame with one raw block (RFC 8878, 3.1.1).
    const ZSTD: &[u8] =
        &[0x28, 0xb5, 0x2f, 0xfd, 0x20, 5, 0x29, 0, 0, b'h', b'e', b'l', b'l', b'o'];

    #[test]
    fn the_format_is_told_by_its_first_octets() {
        assert_eq!(uncompressed(ZSTD).unwrap(), b"hello");
        assert_eq!(uncompressed(b"plain").unwrap(), b"plain");
        assert!(uncompressed(&ZSTD[..10]).is_err());
        assert!(uncompressed(b"\xfd7zXZ\0broken").is_err());
    }
}
