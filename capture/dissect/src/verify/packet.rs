//! The headers of a data packet, as far as the file holds them.
//!
//! A device refuses a packet whose lengths disagree. Here its headers are read nevertheless, so that each disagreement
//! is reported by itself, and the headers of a cut packet are read up to the cut.
//! Source: IBTA Vol 1, 5.2 (which headers a packet has).

use proto::ids::{Dscp, Ecn};
use proto::wire::ethernet::crc::Network;
use proto::wire::infiniband::envelope::{ICRC_LEN, VCRC_LEN};
use proto::wire::infiniband::{Bth, ExtendedHeaders, Grh, LinkNextHeader, Lrh};
use proto::wire::internet::{Ipv4View, Ipv6View};
use proto::wire::roce::Layout;
use std::net::Ipv6Addr;

/// The network address of a sender or receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    /// A LID of InfiniBand.
    Lid(u16),
    /// An IP address of RoCEv2 or a GID of RoCEv1; an IPv4 address is mapped to IPv6.
    Address(Ipv6Addr),
}

/// The headers of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeaders {
    /// Source.
    pub source: Endpoint,
    /// Destination.
    pub destination: Endpoint,
    /// Local Route Header; `None` on Ethernet.
    pub lrh: Option<Lrh>,
    /// Global Route Header behind an LRH, if LNH announces one and it is whole.
    pub grh: Option<Grh>,
    /// DSCP of the IP header; `None` without one.
    pub dscp: Option<Dscp>,
    /// ECN of the IP header; not capable without one.
    pub ecn: Ecn,
    /// Base Transport Header; `None` in a raw packet and if the octets end before it.
    pub bth: Option<Bth>,
    /// The extended headers of the opcode, if all are whole.
    pub extended: Option<ExtendedHeaders>,
    /// Octets between headers and ICRC on the wire, pad included.
    pub padded: Option<usize>,
}

impl PacketHeaders {
    /// The headers of an InfiniBand packet of which the file holds `octets` of `wire_size`, LRH to VCRC. `None` if the
    /// LRH is not whole.
    pub fn of(octets: &[u8], wire_size: usize) -> Option<PacketHeaders> {
        let lrh = Lrh::parse(octets).ok()?;
        let (source, destination) = (lrh.slid.get(), lrh.dlid.get());
        let between = PacketHeaders::between(Endpoint::Lid(source), Endpoint::Lid(destination));
        let mut headers = PacketHeaders { lrh: Some(lrh), ..between };
        let mut at = Lrh::LEN;
        match lrh.next_header {
            LinkNextHeader::RawEthertype | LinkNextHeader::RawIpv6 => return Some(headers),
            LinkNextHeader::Local => {}
            LinkNextHeader::Global => {
                headers.grh = Grh::parse(&octets[at..]).ok();
                at += Grh::LEN;
                if headers.grh.is_none_or(|grh| grh.next_header != Grh::NEXT_HEADER_BTH) {
                    return Some(headers);
                }
            }
        }
        let end = wire_size.saturating_sub(ICRC_LEN + VCRC_LEN);
        Some(headers.with_transport(octets, at, end))
    }

    /// The headers of a RoCE packet with this layout. `None` if the BTH is not whole.
    pub fn of_roce(octets: &[u8], layout: &Layout) -> Option<PacketHeaders> {
        let (source, destination, service) = network(octets, layout)?;
        let between =
            PacketHeaders::between(Endpoint::Address(source), Endpoint::Address(destination));
        let (dscp, ecn) = service.unzip();
        let headers = PacketHeaders { dscp, ecn: ecn.unwrap_or(Ecn::NotCapable), ..between };
        let headers = headers.with_transport(octets, layout.bth_at, layout.icrc_at());
        headers.bth.is_some().then_some(headers)
    }

    const fn between(source: Endpoint, destination: Endpoint) -> PacketHeaders {
        PacketHeaders {
            source,
            destination,
            lrh: None,
            grh: None,
            dscp: None,
            ecn: Ecn::NotCapable,
            bth: None,
            extended: None,
            padded: None,
        }
    }

    /// Adds the BTH at `at`, the extended headers and the length up to the ICRC at `end`.
    fn with_transport(self, octets: &[u8], at: usize, end: usize) -> PacketHeaders {
        let Ok(bth) = Bth::parse(&octets[at..]) else { return self };
        let at = at + Bth::LEN;
        let set = bth.opcode.extended_headers();
        PacketHeaders {
            bth: Some(bth),
            extended: ExtendedHeaders::parse(set, &octets[at..], at).ok(),
            padded: end.checked_sub(at + set.octets()),
            ..self
        }
    }

    /// True for a raw packet, which has no BTH (InfiniBand only).
    pub fn is_raw(&self) -> bool {
        self.lrh.is_some_and(|lrh| lrh.next_header.is_raw())
    }

    /// Octets of payload on the wire; `None` if PadCnt is larger than what is there.
    pub fn payload(&self) -> Option<usize> {
        self.padded?.checked_sub(usize::from(self.bth?.pad_count))
    }
}

/// The addresses, and in RoCEv2 DSCP and ECN.
type Addressing = (Ipv6Addr, Ipv6Addr, Option<(Dscp, Ecn)>);

fn network(octets: &[u8], layout: &Layout) -> Option<Addressing> {
    let network = &octets[layout.network_at..];
    Some(match layout.network {
        Network::Global => {
            let grh = Grh::parse(network).ok()?;
            (grh.sgid, grh.dgid, None)
        }
        Network::Ipv6 => {
            let ip = Ipv6View::new(network).ok()?;
            (ip.source(), ip.destination(), Some((ip.dscp(), ip.ecn())))
        }
        Network::Ipv4 => {
            let ip = Ipv4View::new(network).ok()?;
            let service = Some((ip.dscp(), ip.ecn()));
            (ip.source().to_ipv6_mapped(), ip.destination().to_ipv6_mapped(), service)
        }
    })
}
