//! Classic pcap: one header, then records of one link type.
//!
//! Source: draft-ietf-opsawg-pcap.

use super::{ByteOrder, LENGTH_MAX, RawPacket, ReadError, Stamps, fill, take};
use std::io::Read;

/// Magic of files with time stamps in microseconds; another magic stands for nanoseconds.
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;

/// The content of the file's header.
pub(super) struct Records {
    order: ByteOrder,
    ns_per_unit: u64,
    link_type: u16,
    fcs_len: Option<u8>,
    /// The file ended within the last packet.
    is_torn: bool,
}

impl Records {
    /// Reads the header, which begins with `magic`.
    pub(super) fn begin(magic: [u8; 4], input: &mut impl Read) -> Result<Records, ReadError> {
        let known = ByteOrder::of(magic, [MICROSECONDS, NANOSECONDS]);
        let unknown = ReadError::NotACapture(u32::from_be_bytes(magic));
        let (order, unit) = known.ok_or(unknown)?;
        let mut header = [0; 24];
        fill(input, &mut header, "file header")?;
        // The upper half of the word may give the length of the FCS, in words of sixteen bits.
        let word = order.u32(&header, 20).unwrap_or(0);
        let fcs_len = (word & 0x0400_0000 != 0).then_some((word >> 28) as u8 * 2);
        let (ns_per_unit, link_type) = ([1_000, 1][unit], word as u16);
        Ok(Records { order, ns_per_unit, link_type, fcs_len, is_torn: false })
    }

    /// The next record.
    pub(super) fn next<'a>(
        &mut self,
        input: &mut impl Read,
        buffer: &'a mut Vec<u8>,
    ) -> Result<Option<RawPacket<'a>>, ReadError> {
        if self.is_torn {
            return Err(ReadError::Torn);
        }
        let mut header = [0; 16];
        if !fill(input, &mut header, "record header")? {
            return Ok(None);
        }
        let word = |at| self.order.u32(&header, at).ok_or(ReadError::Truncated("record header"));
        let (seconds, fraction, length, wire_size) = (word(0)?, word(4)?, word(8)?, word(12)?);
        if length > LENGTH_MAX {
            return Err(ReadError::Length { what: "record", length });
        }
        self.is_torn = !take(input, buffer, length)?;
        if self.is_torn && buffer.is_empty() {
            return Err(ReadError::Truncated("record"));
        }
        let at_ns = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.ns_per_unit;
        Ok(Some(RawPacket {
            number: 0,
            at_ns,
            stamps: Stamps { tick_ns: self.ns_per_unit, is_fabric: false, is_exact: false },
            interface: None,
            link_type: self.link_type,
            fcs_len: self.fcs_len,
            speed: None,
            direction: None,
            wire_size: if self.is_torn { wire_size.max(length) } else { wire_size },
            octets: buffer,
        }))
    }
}
