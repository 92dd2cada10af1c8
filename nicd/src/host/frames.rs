//! Frames that the host stack sends: its addresses, and how it builds Ethernet, IP and RoCEv2 around a payload.

use bytes::BytesMut;
use proto::frame::{Frame, FrameKind, FramePool};
use proto::ids::{Dscp, Ecn, MacAddress, QueuePairNumber};
use proto::wire::ethernet::envelope::LEAST;
use proto::wire::ethernet::{Envelope, VlanTag, ethertype};
use proto::wire::infiniband::{Bth, ExtendedHeaders};
use proto::wire::internet::{Ipv4, Ipv6, Udp, checksum, icmp};
use proto::wire::roce::{NetworkHeaders, PacketBuilder};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses of this NIC, and how it marks its packets.
#[derive(Clone, Copy, Debug)]
pub struct Local {
    /// MAC address.
    pub mac: MacAddress,
    /// IPv4 address.
    pub ipv4: Ipv4Addr,
    /// IPv6 address.
    pub ipv6: Ipv6Addr,
    /// DSCP of RoCE packets.
    pub dscp: Dscp,
    /// The tag of RoCE frames, on a link that takes the priority from it.
    pub tag: Option<VlanTag>,
}

/// Another host, as its frames show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// MAC address.
    pub mac: MacAddress,
    /// IP address.
    pub ip: IpAddr,
}

/// DSCP and ECN field, as the traffic class of IPv6 and the octet of IPv4 have them. Source: RFC 2474, RFC 3168.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficClass {
    /// DSCP.
    pub dscp: Dscp,
    /// ECN.
    pub ecn: Ecn,
}

impl TrafficClass {
    /// The fields of an octet.
    pub fn from_octet(octet: u8) -> TrafficClass {
        TrafficClass { dscp: Dscp::truncate(octet >> 2), ecn: Ecn::from_bits(octet) }
    }
}

/// A transport packet to send.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// The sending queue pair.
    pub from: QueuePairNumber,
    /// Base Transport Header.
    pub bth: Bth,
    /// The extended headers of its opcode.
    pub extended: ExtendedHeaders,
    /// Traffic class.
    pub traffic_class: TrafficClass,
}

impl Local {
    /// The traffic class of queue pairs that ask for none.
    pub fn traffic_class(&self) -> TrafficClass {
        TrafficClass { dscp: self.dscp, ecn: Ecn::Capable0 }
    }

    /// Whether `address` belongs to this NIC.
    pub fn has(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(ip) => ip == self.ipv4,
            IpAddr::V6(ip) => ip == self.ipv6,
        }
    }

    /// A frame with `body` behind the Ethernet header, padded to the least size.
    pub fn ethernet(
        &self,
        pool: &mut FramePool,
        to: MacAddress,
        ethertype: u16,
        body: impl FnOnce(&mut BytesMut),
    ) -> Frame {
        let envelope = Envelope::untagged(to, self.mac, ethertype);
        let mut octets = pool.take();
        octets.resize(envelope.octets_len(), 0);
        envelope.emit(&mut octets);
        body(&mut octets);
        octets.resize(octets.len().max(LEAST), 0);
        Frame::intact(FrameKind::Ethernet, octets)
    }

    /// An ICMP message to `peer`; its checksum is computed here. `hops` is TTL or hop limit.
    pub fn icmp(&self, pool: &mut FramePool, peer: &Peer, hops: u8, message: &[u8]) -> Frame {
        match peer.ip {
            IpAddr::V4(destination) => {
                let ip = Ipv4 {
                    ecn: Ecn::NotCapable,
                    total_length: (Ipv4::LEN + message.len()) as u16,
                    time_to_live: hops,
                    protocol: icmp::ICMP_V4,
                    source: self.ipv4,
                    destination,
                    ..Ipv4::default()
                };
                let checksum = checksum::ipv4_header(&ip.to_octets());
                self.ethernet(pool, peer.mac, ethertype::IPV4, |octets| {
                    octets.extend_from_slice(&Ipv4 { checksum, ..ip }.to_octets());
                    let at = octets.len();
                    octets.extend_from_slice(message);
                    icmp::seal_v4(&mut octets[at..]);
                })
            }
            IpAddr::V6(destination) => {
                let ip = Ipv6 {
                    ecn: Ecn::NotCapable,
                    payload_length: message.len() as u16,
                    next_header: icmp::ICMP_V6,
                    hop_limit: hops,
                    source: self.ipv6,
                    destination,
                    ..Ipv6::default()
                };
                self.ethernet(pool, peer.mac, ethertype::IPV6, |octets| {
                    octets.extend_from_slice(&ip.to_octets());
                    let at = octets.len();
                    octets.extend_from_slice(message);
                    icmp::seal_v6(&mut octets[at..], self.ipv6, destination);
                })
            }
        }
    }

    /// A RoCEv2 frame to `peer` with this payload.
    ///
    /// # Panics
    /// If `packet` lacks a header of its opcode.
    pub fn roce(
        &self,
        pool: &mut FramePool,
        peer: &Peer,
        packet: &Packet,
        payload: &[u8],
    ) -> Frame {
        let Packet { from, bth, extended, traffic_class } = *packet;
        let TrafficClass { dscp, ecn } = traffic_class;
        let udp = Udp::roce(crate::wire::roce::source_port(from, bth.destination));
        let network = match peer.ip {
            IpAddr::V4(destination) => {
                let ip = Ipv4 { dscp, ecn, source: self.ipv4, destination, ..Ipv4::default() };
                NetworkHeaders::Ipv4(ip, &[], udp)
            }
            IpAddr::V6(destination) => {
                let ip = Ipv6 { dscp, ecn, source: self.ipv6, destination, ..Ipv6::default() };
                NetworkHeaders::Ipv6(ip, udp)
            }
        };
        let builder = PacketBuilder {
            destination: peer.mac,
            source: self.mac,
            tag: self.tag,
            network,
            bth,
            extended,
        };
        let mut octets = pool.take();
        builder
            .emit_around(&mut octets, payload.len(), |octets| octets.extend_from_slice(payload))
            .expect("the packet fits a validated MTU and has the headers of its opcode");
        Frame::intact(FrameKind::Ethernet, octets)
    }
}
