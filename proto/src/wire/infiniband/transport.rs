//! The transport part that InfiniBand and RoCE share: BTH to the last octet of pad.
//!
//! Source: IBTA Vol 1, 5.2 (which headers there are, and in which order), 9.2 (PadCnt).

use crate::wire::error::{ParseError, Reason};
use crate::wire::infiniband::bth::Bth;
use crate::wire::infiniband::extended_headers::ExtendedHeaders;
use bytes::BytesMut;

/// Parsed transport headers, with borrowed payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport<'a> {
    /// Base Transport Header.
    pub bth: Bth,
    /// The extended headers of the opcode.
    pub extended: ExtendedHeaders,
    /// The payload without pad.
    pub payload: &'a [u8],
    /// The pad after the payload, with any contents.
    pub pad: &'a [u8],
}

impl<'a> Transport<'a> {
    /// Parses `octets`, which begin with a BTH at `offset` in the frame and end before the
    /// ICRC.
    ///
    /// # Errors
    /// A truncated header, an unknown version, or a PadCnt beyond the octets.
    pub fn parse(octets: &'a [u8], offset: usize) -> Result<Transport<'a>, ParseError> {
        let bth = Bth::parse(octets).map_err(|error| error.within(offset))?;
        if bth.version != 0 {
            let reason = Reason::Version(bth.version);
            return Err(ParseError { layer: Bth::LAYER, offset, reason });
        }
        let body = &octets[Bth::LEN..];
        let set = bth.opcode.extended_headers();
        let extended = ExtendedHeaders::parse(set, body, offset + Bth::LEN)?;
        let padded = &body[set.octets()..];
        let pad_count = usize::from(bth.pad_count);
        let Some(payload_len) = padded.len().checked_sub(pad_count) else {
            return Err(ParseError::length(Bth::LAYER, offset, pad_count, padded.len()));
        };
        let (payload, pad) = padded.split_at(payload_len);
        Ok(Transport { bth, extended, payload, pad })
    }

    /// Length on the wire in octets, BTH to pad.
    pub fn octets_len(&self) -> usize {
        Bth::LEN + self.extended.set().octets() + self.payload.len() + self.pad.len()
    }

    /// Appends the octets to `buffer`, with the parsed PadCnt.
    pub fn append_to(&self, buffer: &mut BytesMut) {
        buffer.extend_from_slice(&self.bth.to_octets());
        let at = buffer.len();
        buffer.resize(at + self.extended.set().octets(), 0);
        self.extended.emit(&mut buffer[at..]);
        buffer.extend_from_slice(self.payload);
        buffer.extend_from_slice(self.pad);
    }
}
