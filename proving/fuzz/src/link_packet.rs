//! A link packet: emit reproduces every packet that parses.

use proto::frame::FrameKind;
use proto::wire::classify::classify;
use proto::wire::infiniband::FlowControlPacket;
use proto::wire::infiniband::crc::verify_lpcrc;

/// The octets are the packet.
pub fn check(octets: &[u8]) {
    assert!(classify(FrameKind::InfinibandLink, octets).is_err(), "a link packet has no headers");
    let parsed = FlowControlPacket::parse(octets);
    let intact = FlowControlPacket::parse_intact(octets);
    assert_eq!(intact.is_ok(), octets.len() == FlowControlPacket::LEN);
    let Ok(packet) = intact else { return };
    assert_eq!(parsed.is_ok(), verify_lpcrc(octets).is_ok());
    let written = packet.to_octets();
    assert_eq!(written[..4], octets[..4], "emit reproduces the parsed octets");
    assert_eq!(parsed.is_ok(), written[..] == *octets);
    assert_eq!(FlowControlPacket::parse(&written), Ok(packet));
}
