//! Frames that tests send: short to ask for, whole on the wire.

use proto::frame::{Frame, FrameKind};
use proto::wire::ethernet::MacControl;

pub mod congestion;
pub mod ethernet;
pub mod infiniband;

/// A frame of these octets.
pub fn raw(kind: FrameKind, octets: &[u8]) -> Frame {
    Frame::unchecked(kind, octets.into())
}

/// Whether a frame goes on beyond its link, and is not flow control of it.
pub fn is_packet(frame: &Frame) -> bool {
    match frame.kind {
        FrameKind::Infiniband => true,
        FrameKind::InfinibandLink => false,
        FrameKind::Ethernet => !MacControl::is_announced(&frame.octets),
    }
}

/// Payload octets, each the low bits of its place.
fn fill(place: &mut [u8]) {
    place.iter_mut().enumerate().for_each(|(index, octet)| *octet = index as u8);
}
