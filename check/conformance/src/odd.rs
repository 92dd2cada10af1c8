//! Packets that are not quite RoCE.

use crate::prelude::*;
use proto::wire::internet::{Ipv4, Udp};
use proto::wire::roce::{NetworkHeaders, PacketBuilder};
use testbed::frames::ethernet::{frame, roce, with_ecn};

/// The adapter of the NIC on stage.
pub const OWN: u16 = 4;
/// Octets of payload.
pub const PAYLOAD: usize = 64;
/// The mark.
pub const CE: Ecn = Ecn::CongestionExperienced;
/// The lossless priority.
const LOSSLESS: u8 = crate::ethernet::LOSSLESS;

/// A marked packet from adapter 1 to adapter 4.
fn odd_packet() -> PacketBuilder<'static> {
    with_ecn(&roce(1, OWN, LOSSLESS, 0), CE)
}

/// A frame that is not quite RoCE: what it is, what a NIC calls it, and a switch, if it does not pass.
pub struct Odd {
    /// What it is.
    pub what: &'static str,
    /// Its octets.
    pub frame: Frame,
    /// What a NIC drops it for.
    pub at_nic: DropReason,
    /// What a switch drops it for, if it does.
    pub at_switch: Option<DropReason>,
}

fn ipv4(change: impl FnOnce(&mut Ipv4, &mut Udp)) -> Frame {
    let builder = odd_packet();
    let NetworkHeaders::Ipv4(mut ip, options, mut udp) = builder.network else {
        return frame(&builder, PAYLOAD);
    };
    change(&mut ip, &mut udp);
    frame(&PacketBuilder { network: NetworkHeaders::Ipv4(ip, options, udp), ..builder }, PAYLOAD)
}

/// The length in the UDP header, changed by so much.
fn with_length(by: i16) -> Frame {
    let mut frame = frame(&odd_packet(), PAYLOAD);
    let place = 14 + Ipv4::LEN + 4;
    let length = u16::from_be_bytes([frame.octets[place], frame.octets[place + 1]]);
    let length = length.wrapping_add_signed(by);
    frame.octets[place..place + 2].copy_from_slice(&length.to_be_bytes());
    frame
}

fn cut(octets: usize) -> Frame {
    let mut frame = frame(&odd_packet(), PAYLOAD);
    frame.octets.truncate(octets);
    frame
}

/// All of them, from adapter 1 to adapter 4.
pub fn odd() -> Vec<Odd> {
    let length = DropReason::PacketLength;
    let plain = |what, frame| Odd { what, frame, at_nic: DropReason::NotRoce, at_switch: None };
    let wrong = |what, frame| Odd { what, frame, at_nic: length, at_switch: Some(length) };
    vec![
        plain("to UDP port 4792", ipv4(|_, udp| udp.destination_port = 4_792)),
        plain(
            "from UDP port 4791 to 4790",
            ipv4(|_, udp| {
                (udp.source_port, udp.destination_port) = (4_791, 4_790);
            }),
        ),
        plain("with MF", ipv4(|ip, _| ip.more_fragments = true)),
        plain("a last fragment", ipv4(|ip, _| ip.fragment_offset = 100)),
        plain("of TCP", ipv4(|ip, _| ip.protocol = 6)),
        wrong("with a UDP length beyond IP's", with_length(4)),
        wrong("with a UDP length below IP's", with_length(-4)),
        wrong("with a UDP length of less than its header", with_length(-(PAYLOAD as i16 + 17))),
        wrong("cut within its payload", cut(80)),
    ]
}
