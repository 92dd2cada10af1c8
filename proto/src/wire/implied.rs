//! Implied octets of a frame: payload, pad and checks that are made where they are needed.
//!
//! ```text
//! | headers | first octets of the payload | the pattern … | pad | ICRC | VCRC |
//! |----------- in memory -----------------|------------- implied ------------|
//! ```
//!
//! A relay, a queue and a receiver in the same process need headers and lengths alone. A capture, a socket and an impairment
//! need octets. The checks are computed then, so they are right for what the headers say then.

mod tail;

use crate::frame::{Frame, FrameKind, Integrity};
use crate::wire::infiniband::crc;
use crate::wire::project::pattern;
use crate::wire::roce::checks;
use bytes::{BufMut, BytesMut};
use std::ops::DerefMut;
use tail::Tail;

/// Octets of payload that stay in memory. They hold the stamp of a message.
pub const PAYLOAD_KEPT: usize = 24;

impl Frame {
    /// A frame with right checks whose payload, behind the [`PAYLOAD_KEPT`] octets at the end of `octets`, goes on with
    /// `implied` octets of the pattern. `octets` are an InfiniBand packet with ICRC, or a packet of RoCE.
    pub fn with_implied(kind: FrameKind, octets: BytesMut, implied: u16) -> Frame {
        Frame { octets, implied, kind, integrity: Integrity::Intact }
    }

    /// Appends all octets of the frame to `out`.
    pub fn append_to<B: BufMut + DerefMut<Target = [u8]>>(&self, out: &mut B) {
        let begin = out.len();
        out.put_slice(&self.octets);
        if self.implied > 0 {
            self.append_implied(out, begin);
        }
    }

    /// All octets of the frame: its own, or made in `room`, whose contents they replace.
    pub fn whole<'a>(&'a self, room: &'a mut BytesMut) -> &'a [u8] {
        if self.implied == 0 {
            return &self.octets;
        }
        room.clear();
        self.append_to(room);
        room
    }

    /// Makes the implied octets, so that all are in memory.
    pub fn materialise(&mut self) {
        if self.implied > 0 {
            let mut octets = std::mem::take(&mut self.octets);
            self.append_implied(&mut octets, 0);
            (self.octets, self.implied) = (octets, 0);
        }
    }

    /// Appends the implied octets to `out`, which has the others from octet `begin` on.
    #[inline(never)]
    fn append_implied<B: BufMut + DerefMut<Target = [u8]>>(&self, out: &mut B, begin: usize) {
        let (payload, head) = (usize::from(self.implied), out.len() - begin);
        let tail = Tail::of(self.kind, &out[begin..], payload, head + self.implied_len());
        pattern::append(out, PAYLOAD_KEPT, payload);
        match tail {
            Some(tail) => out.put_slice(tail.octets()),
            None => {
                out.put_bytes(0, self.implied_len() - payload);
                refresh(self.kind, &mut out[begin..]);
            }
        }
    }
}

/// Writes the correct checks of a packet with ICRC.
fn refresh(kind: FrameKind, octets: &mut [u8]) {
    if kind != FrameKind::Ethernet {
        crc::refresh_both(octets);
    } else if let Some(layout) = tail::layout(octets, octets.len()) {
        checks::refresh(octets, &layout);
    }
}

#[cfg(test)]
mod tests;
