//! Frames of Ethernet that tests send, and what they read off those that devices send.

use bytes::BytesMut;
use proto::frame::{Frame, FrameKind, Integrity};
use proto::ids::{Dscp, Ecn, Lid, Priority, Psn, QueuePairNumber, VlanId};
use proto::wire::classify::{PriorityMap, classify_ethernet};
use proto::wire::ethernet::{
    Envelope, EthernetHeader, MacAddress, MacControl, Pause, Pfc, VlanTag, ethertype, plan,
};
use proto::wire::infiniband::{Bth, ExtendedHeaders, Opcode, Syndrome};
use proto::wire::internet::{Arp, ArpOperation, Ipv4, Ipv6, Udp};
use proto::wire::roce::{NetworkHeaders, Packet, PacketBuilder, notification};
use std::net::Ipv4Addr;

/// Largest payload.
const MTU: usize = 2048;
/// Octets of the smallest frame without FCS.
const LEAST: usize = 60;

/// The neighbours' own address in what they say about the link.
pub const PEER: MacAddress = MacAddress::from_number(0x0200_0000_f00d);

/// The priority of notifications by habit.
pub const CNP: u8 = 6;

/// An EtherType for local experiments. Source: IEEE 802, 9.2.4.
const EXPERIMENT: u16 = 0x88b5;

/// A RoCEv2 packet over IPv4 between the queue pairs that two adapters have for class 0, from ECT(0);
/// its DSCP is the class selector of `priority`.
pub fn roce(from: u16, to: u16, priority: u8, psn: u32) -> PacketBuilder<'static> {
    let [from, to] = [from, to].map(Lid::new);
    let ip = Ipv4 {
        dscp: Dscp::truncate(priority << 3),
        ecn: Ecn::Capable0,
        source: plan::ipv4(from),
        destination: plan::ipv4(to),
        ..Ipv4::default()
    };
    let queue_pair = QueuePairNumber::planned(0, from);
    PacketBuilder {
        destination: plan::mac(to),
        source: plan::mac(from),
        tag: None,
        network: NetworkHeaders::Ipv4(ip, &[], Udp::roce(0xc000)),
        bth: Bth {
            ack_request: true,
            ..Bth::new(Opcode::RC_SEND_ONLY, queue_pair, Psn::truncate(psn))
        },
        extended: ExtendedHeaders::default(),
    }
}

/// The same packet over IPv6.
pub fn over_ipv6(builder: &PacketBuilder<'static>) -> PacketBuilder<'static> {
    let network = match builder.network {
        NetworkHeaders::Ipv4(ip, _, udp) => {
            let adapter = |mac| plan::adapter_of_mac(mac).unwrap_or_default();
            let source = plan::ipv6(adapter(builder.source));
            let destination = plan::ipv6(adapter(builder.destination));
            let (dscp, ecn) = (ip.dscp, ip.ecn);
            NetworkHeaders::Ipv6(Ipv6 { dscp, ecn, source, destination, ..Ipv6::default() }, udp)
        }
        other => other,
    };
    PacketBuilder { network, ..*builder }
}

/// The same packet with this code point of ECN.
pub fn with_ecn(builder: &PacketBuilder<'static>, ecn: Ecn) -> PacketBuilder<'static> {
    let mut changed = *builder;
    match &mut changed.network {
        NetworkHeaders::Ipv4(ip, ..) => ip.ecn = ecn,
        NetworkHeaders::Ipv6(ip, _) => ip.ecn = ecn,
        NetworkHeaders::Global(_) => {}
    }
    changed
}

/// The same packet with another DSCP.
pub fn with_dscp(builder: &PacketBuilder<'static>, dscp: u8) -> PacketBuilder<'static> {
    let mut changed = *builder;
    match &mut changed.network {
        NetworkHeaders::Ipv4(ip, ..) => ip.dscp = Dscp::truncate(dscp),
        NetworkHeaders::Ipv6(ip, _) => ip.dscp = Dscp::truncate(dscp),
        NetworkHeaders::Global(_) => {}
    }
    changed
}

/// The frame that `builder` makes around `payload` octets, each the low bits of its place.
///
/// # Panics
/// If there is no such packet.
pub fn frame(builder: &PacketBuilder<'_>, payload: usize) -> Frame {
    let mut octets = BytesMut::new();
    builder
        .emit(&mut octets, payload, super::fill)
        .expect("a case asks for packets that there are");
    Frame::unchecked(FrameKind::Ethernet, octets)
}

/// The frame that `builder` makes around `payload` octets of zeros.
///
/// # Panics
/// If there is no such packet.
pub fn blank(builder: &PacketBuilder<'_>, payload: usize) -> Frame {
    let mut octets = BytesMut::new();
    builder.emit(&mut octets, payload, |_| ()).expect("a case asks for packets that there are");
    Frame::unchecked(FrameKind::Ethernet, octets)
}

/// A notification from adapter to adapter about what the latter sends on its queue pair for class 0.
pub fn cnp(from: u16, to: u16) -> Frame {
    let queue_pair = QueuePairNumber::planned(0, Lid::new(from));
    let bth = notification::bth(queue_pair, Bth::DEFAULT_PARTITION);
    let builder = PacketBuilder { bth, ..roce(from, to, CNP, 0) };
    blank(&with_ecn(&builder, Ecn::NotCapable), notification::BODY_LEN)
}

/// The code point that an IP header carries; none where there is no such header.
pub fn ecn(frame: &Frame) -> Ecn {
    let headers = classify_ethernet(&frame.octets, &PriorityMap::BY_DSCP);
    headers.map_or(Ecn::NotCapable, |headers| headers.ecn)
}

/// The opcode of a packet of RoCE; `None` for any other frame.
pub fn opcode(frame: &Frame) -> Option<Opcode> {
    Packet::parse(&frame.octets).ok().flatten().map(|packet| packet.transport.bth.opcode)
}

/// PSN, syndrome and MSN of an acknowledgement of RoCE; `None` for any other frame.
pub fn acknowledged(frame: &Frame) -> Option<(u32, Syndrome, u32)> {
    let packet = Packet::parse(&frame.octets).ok().flatten()?.transport;
    let aeth = packet.extended.aeth?;
    Some((packet.bth.psn.get(), aeth.syndrome, aeth.message_sequence_number))
}

/// Whether it is a CNP of RoCEv2.
pub fn is_cnp(frame: &Frame) -> bool {
    opcode(frame) == Some(Opcode::ROCEV2_CNP)
}

/// A full frame of data from adapter to adapter.
pub fn data(from: u16, to: u16, priority: u8, psn: u32) -> Frame {
    frame(&roce(from, to, priority, psn), MTU)
}

/// A tag of IEEE 802.1Q with this PCP.
pub fn tag(pcp: u8) -> VlanTag {
    VlanTag {
        priority: Priority::truncate(pcp),
        drop_eligible: false,
        id: VlanId::truncate(100),
        ethertype: 0,
    }
}

/// A frame that is not IP, from adapter to adapter, of so many octets without FCS.
pub fn plain(from: u16, to: u16, tag: Option<VlanTag>, length: usize) -> Frame {
    let [from, to] = [from, to].map(|number| plan::mac(Lid::new(number)));
    let envelope = Envelope::untagged(to, from, EXPERIMENT);
    let envelope = tag.map_or(envelope, |tag| envelope.tagged(tag));
    let mut octets = BytesMut::zeroed(length);
    envelope.emit(&mut octets);
    Frame::unchecked(FrameKind::Ethernet, octets)
}

/// PFC for `priorities`, bit n being priority n; 0 quanta are XON.
pub fn pfc(priorities: u8, quanta: u16) -> Frame {
    let times = std::array::from_fn(|n| quanta * u16::from(priorities >> n & 1));
    control(MacControl::Pfc(Pfc { reserved: 0, enabled: priorities, times }))
}

/// PAUSE.
pub fn pause(quanta: u16) -> Frame {
    control(MacControl::Pause(Pause { time: quanta }))
}

/// Any MAC control, from the neighbours' own address.
pub fn control(control: MacControl) -> Frame {
    super::raw(FrameKind::Ethernet, &control.to_octets(PEER))
}

/// `frame` as it is when its FCS is wrong: frames have no FCS here, so the cable marks it.
pub fn damaged(frame: Frame) -> Frame {
    Frame { integrity: Integrity::Aborted, ..frame }
}

/// The content of a MAC control frame; `None` for any other frame.
pub fn control_of(frame: &Frame) -> Option<MacControl> {
    let is_ethernet = frame.kind == FrameKind::Ethernet;
    if !is_ethernet || !MacControl::is_announced(&frame.octets) {
        return None;
    }
    MacControl::parse(&frame.octets).ok()
}

/// The priority of a data frame by its DSCP; `None` for MAC control.
pub fn priority(frame: &Frame) -> Option<u8> {
    if control_of(frame).is_some() {
        return None;
    }
    classify_ethernet(&frame.octets, &PriorityMap::BY_DSCP).ok().map(|headers| headers.lane.get())
}

/// The quanta of a pause for `priority`, 0 for XON; `None` if `frame` does not name it.
pub fn quanta_for(frame: &Frame, priority: u8) -> Option<u16> {
    match control_of(frame)? {
        MacControl::Pfc(pfc) => pfc.time(Priority::truncate(priority)),
        MacControl::Pause(pause) => Some(pause.time),
        MacControl::Unknown(_) => None,
    }
}

/// An ARP packet: from its sender to the station of its target.
pub fn arp(
    operation: ArpOperation,
    sender: (MacAddress, Ipv4Addr),
    target: (MacAddress, Ipv4Addr),
) -> Frame {
    let header = Envelope::untagged(target.0, sender.0, ethertype::ARP);
    let mut octets = BytesMut::zeroed(LEAST);
    header.emit(&mut octets);
    Arp::new(operation, sender, target).emit(&mut octets[header.octets_len()..]);
    Frame::unchecked(FrameKind::Ethernet, octets)
}

/// `frame` with other addresses.
///
/// # Panics
/// If it ends within its header.
pub fn readdressed(mut frame: Frame, to: MacAddress, from: MacAddress) -> Frame {
    let header = EthernetHeader::parse(&frame.octets).expect("a test readdresses whole frames");
    EthernetHeader { destination: to, source: from, ..header }.emit(&mut frame.octets);
    frame
}

/// `frame` with a VLAN tag of this PCP.
///
/// # Panics
/// If it ends within its header.
pub fn tagged(mut frame: Frame, pcp: u8) -> Frame {
    let rest = frame.octets.split_off(EthernetHeader::LEN);
    let envelope = Envelope::parse(&frame.octets).expect("a test tags whole frames");
    let envelope = envelope.tagged(tag(pcp));
    frame.octets.resize(envelope.octets_len(), 0);
    envelope.emit(&mut frame.octets);
    frame.octets.unsplit(rest);
    frame
}
