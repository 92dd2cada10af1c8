//! Connection requests: which timeout they state.
//!
//! A REQ states the Local ACK Timeout that its recipient applies to requests to the sender's queue pair.
//! Source: IBTA Vol 1, 12.6.5 (REQ), 13.4.2 (MAD header).

use crate::verify::Seen;
use crate::verify::frame::Carried;
use proto::wire::infiniband::envelope;
use proto::wire::infiniband::{Bth, Deth};

/// Base version 1, communication management, class version 2, method Send.
const HEADER: [u8; 4] = [1, 7, 2, 3];
/// Attribute ID of a REQ, and where the MAD has it.
const REQ: [u8; 2] = [0, 0x10];
const ATTRIBUTE_AT: usize = 16;
/// Offsets in the MAD: its header has 24 octets.
const LOCAL_QPN_AT: usize = 24 + 32;
const LOCAL_ACK_TIMEOUT_AT: usize = 24 + 95;

/// The queue pair of the sender of a REQ, and the Local ACK Timeout for requests to it; `None` for other packets, and
/// if the timeout is 0.
pub fn timeout(seen: &Seen<'_>) -> Option<(u32, u8)> {
    let (octets, bth_at) = match seen.ethernet.map(|frame| (frame.octets, frame.carried)) {
        Some((octets, Carried::Roce(layout))) => (octets, layout.bth_at),
        Some(_) => return None,
        None => (seen.octets, envelope::bth_offset(seen.octets).ok()??),
    };
    let mad = octets.get(bth_at + Bth::LEN + Deth::LEN..)?;
    let is_request = mad.starts_with(&HEADER) && mad.get(ATTRIBUTE_AT..)?.starts_with(&REQ);
    let timeout = mad.get(LOCAL_ACK_TIMEOUT_AT)? >> 3;
    let [high, middle, low] = *mad.get(LOCAL_QPN_AT..)?.first_chunk()?;
    let queue_pair = u32::from_be_bytes([0, high, middle, low]);
    (is_request && timeout > 0).then_some((queue_pair, timeout))
}
