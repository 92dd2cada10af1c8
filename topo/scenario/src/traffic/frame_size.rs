//! Messages against the frame size that headroom is made for.

use crate::fabric::FabricSettings;
use crate::frames;
use crate::keyfile::fields::Fields;
use nicd::config::{Operation, Transport};
use proto::units::Bytes;

/// `fabric.frame` is a full frame of the fabric, and buffers hold headroom for frames of that size: no packet of a message
/// of `size` octets is longer. `key` is what to complain about.
pub(super) fn check_frame(
    fields: &Fields<'_>,
    key: &str,
    size: Bytes,
    (transport, operation): (Transport, Operation),
    fabric: &FabricSettings,
) -> Option<()> {
    let longest = size.min(fabric.mtu);
    let packet = frames::message(longest, fabric.mtu, transport, operation, &fabric.nic.wire);
    match fabric.frame {
        Some(frame) if packet > frame => {
            let message = format!("frames of {packet}, longer than fabric.frame = \"{frame}\"");
            fields.refuse(key, message, "smaller messages, or leave fabric.frame out")
        }
        _ => Some(()),
    }
}
