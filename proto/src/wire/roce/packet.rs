//! A whole RoCE packet: parsing it, and building it with computed lengths and checks.
//!
//! Source: IBTA Vol 1, annexes A16 and A17 (which headers a packet has, and in which order).

pub mod builder;

pub use builder::{EmitError, PacketBuilder};

use crate::wire::error::ParseError;
use crate::wire::ethernet::crc::Network;
use crate::wire::ethernet::{CongestionTag, Envelope, Preface, ethertype};
use crate::wire::infiniband::envelope::ICRC_LEN;
use crate::wire::infiniband::{Grh, Transport};
use crate::wire::internet::{Ipv4, Ipv6, Udp};
use crate::wire::roce::checks::carried_icrc;
use crate::wire::roce::layout::Layout;
use bytes::BytesMut;

/// The network headers between Ethernet and the BTH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkHeaders<'a> {
    /// RoCEv1.
    Global(Grh),
    /// RoCEv2 over IPv4.
    Ipv4(Ipv4, &'a [u8], Udp),
    /// RoCEv2 over IPv6.
    Ipv6(Ipv6, Udp),
}

impl<'a> NetworkHeaders<'a> {
    /// The kind of network header.
    pub const fn network(&self) -> Network {
        match self {
            NetworkHeaders::Global(_) => Network::Global,
            NetworkHeaders::Ipv4(..) => Network::Ipv4,
            NetworkHeaders::Ipv6(..) => Network::Ipv6,
        }
    }

    /// The EtherType that announces it.
    pub const fn ethertype(&self) -> u16 {
        match self {
            NetworkHeaders::Global(_) => ethertype::ROCE_V1,
            NetworkHeaders::Ipv4(..) => ethertype::IPV4,
            NetworkHeaders::Ipv6(..) => ethertype::IPV6,
        }
    }

    /// Length on the wire, in octets.
    pub const fn octets_len(&self) -> usize {
        match self {
            NetworkHeaders::Global(_) => Grh::LEN,
            NetworkHeaders::Ipv4(_, options, _) => Ipv4::LEN + options.len() + Udp::LEN,
            NetworkHeaders::Ipv6(..) => Ipv6::LEN + Udp::LEN,
        }
    }

    /// Writes the headers, with their own lengths and checksums, to the front of `octets`.
    ///
    /// # Panics
    /// If there are fewer than [`Self::octets_len`].
    pub fn emit(&self, octets: &mut [u8]) {
        match self {
            NetworkHeaders::Global(grh) => grh.emit(octets),
            NetworkHeaders::Ipv4(ip, options, udp) => {
                let at = Ipv4::LEN + options.len();
                ip.emit(octets);
                octets[Ipv4::LEN..at].copy_from_slice(options);
                udp.emit(&mut octets[at..]);
            }
            NetworkHeaders::Ipv6(ip, udp) => {
                ip.emit(octets);
                udp.emit(&mut octets[Ipv6::LEN..]);
            }
        }
    }

    /// Parses the network headers of a packet with this layout.
    fn parse(octets: &'a [u8], layout: &Layout) -> Result<NetworkHeaders<'a>, ParseError> {
        let packet = &octets[layout.network_at..layout.bth_at];
        let udp_at = packet.len().saturating_sub(Udp::LEN);
        Ok(match layout.network {
            Network::Global => NetworkHeaders::Global(Grh::parse(packet)?),
            Network::Ipv4 => {
                let options = &packet[Ipv4::LEN..udp_at];
                NetworkHeaders::Ipv4(Ipv4::parse(packet)?, options, Udp::parse(&packet[udp_at..])?)
            }
            Network::Ipv6 => {
                NetworkHeaders::Ipv6(Ipv6::parse(packet)?, Udp::parse(&packet[udp_at..])?)
            }
        })
    }
}

/// A parsed RoCE packet, with borrowed payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Addresses and VLAN tags.
    pub ethernet: Envelope,
    /// Congestion control tag.
    pub congestion_tag: Option<CongestionTag>,
    /// GRH, or IP and UDP.
    pub network: NetworkHeaders<'a>,
    /// BTH to pad.
    pub transport: Transport<'a>,
    /// ICRC in the packet.
    pub icrc: u32,
    /// Octets after the ICRC, usually zeros that pad the frame to the minimum size.
    pub trailer: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Parses a frame without FCS; `None` if it is not RoCE. Checks lengths and versions, but neither checksums
    /// nor ICRC.
    ///
    /// # Errors
    /// Those of [`Layout::find`] and [`Transport::parse`].
    pub fn parse(octets: &'a [u8]) -> Result<Option<Packet<'a>>, ParseError> {
        let layout = Layout::find(octets)?;
        layout.map(|layout| Packet::parse_at(octets, &layout)).transpose()
    }

    /// As [`Self::parse`], for a frame with a known layout. `octets` may end within the payload; then the payload is cut,
    /// and the ICRC is 0.
    ///
    /// # Errors
    /// Those of [`Transport::parse`].
    pub fn parse_at(octets: &'a [u8], layout: &Layout) -> Result<Packet<'a>, ParseError> {
        let (bth_at, icrc_at) = (layout.bth_at, layout.icrc_at());
        let present = &octets[bth_at..icrc_at.min(octets.len())];
        Ok(Packet {
            ethernet: layout.preface.envelope,
            congestion_tag: layout.preface.tag,
            network: NetworkHeaders::parse(octets, layout)?,
            transport: Transport::parse_part(present, icrc_at - bth_at, bth_at)?,
            icrc: carried_icrc(octets, layout),
            trailer: octets.get(layout.end..).unwrap_or_default(),
        })
    }

    fn preface(&self) -> Preface {
        Preface { envelope: self.ethernet, tag: self.congestion_tag }
    }

    /// Length of the frame in octets, without FCS.
    pub fn octets_len(&self) -> usize {
        self.preface().octets_len()
            + self.network.octets_len()
            + self.transport.octets_len()
            + ICRC_LEN
            + self.trailer.len()
    }

    /// The frame's octets, with its own lengths and checks.
    pub fn to_octets(&self) -> BytesMut {
        let preface = self.preface();
        let network_at = preface.octets_len();
        let mut octets = BytesMut::with_capacity(self.octets_len());
        octets.resize(network_at + self.network.octets_len(), 0);
        preface.emit(&mut octets);
        self.network.emit(&mut octets[network_at..]);
        self.transport.append_to(&mut octets);
        octets.extend_from_slice(&self.icrc.to_le_bytes());
        octets.extend_from_slice(self.trailer);
        octets
    }
}

#[cfg(test)]
mod tests;
