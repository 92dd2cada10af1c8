//! The transport part that InfiniBand and RoCE share: BTH to the last octet of pad.
//!
//! Source: IBTA Vol 1, 5.2 (which headers there are, and in which order), 9.2 (PadCnt).

use super::envelope::{ICRC_LEN, WORD};
use super::{Bth, ExtendedHeaders};
use crate::wire::error::{ParseError, Reason};
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
        Transport::parse_part(octets, octets.len(), offset)
    }

    /// As [`Transport::parse`], of `length` octets, the first of which are `octets`, with all headers. Payload and pad are
    /// cut at the end of `octets`.
    ///
    /// # Errors
    /// Those of [`Transport::parse`].
    pub fn parse_part(
        octets: &'a [u8],
        length: usize,
        offset: usize,
    ) -> Result<Transport<'a>, ParseError> {
        let bth = Bth::parse(octets).map_err(|error| error.within(offset))?;
        if bth.version != 0 {
            return Err(ParseError::new(Bth::LAYER, offset, Reason::Version(bth.version)));
        }
        let body = &octets[Bth::LEN..];
        let set = bth.opcode.extended_headers();
        let extended = ExtendedHeaders::parse(set, body, offset + Bth::LEN)?;
        let padded = &body[set.octets()..];
        let padded_len = length - Bth::LEN - set.octets();
        let pad_count = usize::from(bth.pad_count);
        let Some(payload_len) = padded_len.checked_sub(pad_count) else {
            return Err(ParseError::length(Bth::LAYER, offset, pad_count, padded_len));
        };
        let (payload, pad) = padded.split_at(payload_len.min(padded.len()));
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

/// The transport part of a packet to be built. Places count octets from the first octet of the frame.
pub(crate) struct TransportPlan<'a> {
    bth: &'a Bth,
    extended: &'a ExtendedHeaders,
    /// Place of the BTH.
    pub bth_at: usize,
    /// Place of the payload.
    pub payload_at: usize,
    payload_length: usize,
    /// End of the ICRC, on a word boundary behind the pad.
    pub end: usize,
}

impl<'a> TransportPlan<'a> {
    /// A plan for a payload of `payload_length` octets; `None` if the extended headers are not those of the opcode.
    #[inline]
    pub fn new(
        bth: &'a Bth,
        extended: &'a ExtendedHeaders,
        bth_at: usize,
        payload_length: usize,
    ) -> Option<TransportPlan<'a>> {
        let set = extended.set();
        let payload_at = bth_at + Bth::LEN + set.octets();
        let padded = payload_length.div_ceil(WORD).saturating_mul(WORD);
        let end = padded.saturating_add(payload_at + ICRC_LEN);
        let plan = TransportPlan { bth, extended, bth_at, payload_at, payload_length, end };
        (set == bth.opcode.extended_headers()).then_some(plan)
    }

    /// Replaces the contents of `buffer` by all headers. `lower` writes those before the BTH. There is room for `room`
    /// octets in all.
    #[inline]
    pub fn emit_headers(&self, buffer: &mut BytesMut, room: usize, lower: impl FnOnce(&mut [u8])) {
        buffer.clear();
        buffer.reserve(room);
        buffer.resize(self.payload_at, 0);
        lower(buffer);
        let pad_count = (self.payload_length.wrapping_neg() % WORD) as u8;
        Bth { pad_count, ..*self.bth }.emit(&mut buffer[self.bth_at..]);
        self.extended.emit(&mut buffer[self.bth_at + Bth::LEN..]);
    }

    /// Replaces the contents of `buffer` by `total` octets. `lower` writes the headers before the BTH, `append`
    /// appends the payload. Pad, ICRC and everything after it are zero.
    ///
    /// # Panics
    /// If `append` does not write the planned number of octets.
    #[inline]
    pub fn emit(
        &self,
        buffer: &mut BytesMut,
        total: usize,
        lower: impl FnOnce(&mut [u8]),
        append: impl FnOnce(&mut BytesMut),
    ) {
        self.emit_headers(buffer, total, lower);
        append(buffer);
        let appended = buffer.len() - self.payload_at;
        assert_eq!(appended, self.payload_length, "the payload has the planned length");
        buffer.resize(total, 0);
    }
}

/// Appends `length` zeroed octets and lets `fill` write the payload to them.
pub(crate) fn zeroed(length: usize, fill: impl FnOnce(&mut [u8])) -> impl FnOnce(&mut BytesMut) {
    move |buffer| {
        let at = buffer.len();
        buffer.resize(at + length, 0);
        fill(&mut buffer[at..]);
    }
}
