//! The headers of a data packet as far as the file holds them; more patient than a device would be.
//!
//! A device refuses a packet whose lengths disagree. Here the headers are read all the same, so that
//! every disagreement can be reported by itself, and those of a cut packet are read up to the cut.
//! Source: IBTA Vol 1, 5.2 (which headers a packet has).

use proto::ids::{Dscp, Ecn};
use proto::wire::ethernet::crc::Network;
use proto::wire::infiniband::envelope::{ICRC_LEN, VCRC_LEN};
use proto::wire::infiniband::{Bth, ExtendedHeaders, Grh, LinkNextHeader, Lrh};
use proto::wire::internet::{Ipv4View, Ipv6View};
use proto::wire::roce::Layout;
use std::net::Ipv6Addr;

/// Who sends or receives, as the network knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    /// A LID of InfiniBand.
    Lid(u16),
    /// An IP address of RoCEv2, or a GID of RoCEv1; IPv4 as IPv6 writes it.
    Address(Ipv6Addr),
}

/// What is known of a data packet without looking at its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anatomy {
    /// Who sent it.
    pub source: Endpoint,
    /// To whom.
    pub destination: Endpoint,
    /// Local Route Header; `None` on Ethernet.
    pub lrh: Option<Lrh>,
    /// Global Route Header behind an LRH, if LNH says so and it is there.
    pub grh: Option<Grh>,
    /// The DSCP of an IP header; `None` where there is none.
    pub dscp: Option<Dscp>,
    /// What an IP header says of congestion.
    pub ecn: Ecn,
    /// Base Transport Header; `None` in a raw packet and where the octets end before it.
    pub bth: Option<Bth>,
    /// What the opcode calls for, if all of it is there.
    pub extended: Option<ExtendedHeaders>,
    /// Octets between headers and ICRC, pad included, on the wire.
    pub padded: Option<usize>,
}

impl Anatomy {
    /// Reads what `octets` hold of a packet that had `wire_size` octets on the wire, LRH to VCRC.
    /// `None` if not even the LRH is whole.
    pub fn of(octets: &[u8], wire_size: usize) -> Option<Anatomy> {
        let lrh = Lrh::parse(octets).ok()?;
        let mut anatomy = Anatomy {
            source: Endpoint::Lid(lrh.slid.get()),
            destination: Endpoint::Lid(lrh.dlid.get()),
            lrh: Some(lrh),
            grh: None,
            dscp: None,
            ecn: Ecn::NotCapable,
            bth: None,
            extended: None,
            padded: None,
        };
        let mut at = Lrh::LEN;
        match lrh.next_header {
            LinkNextHeader::RawEthertype | LinkNextHeader::RawIpv6 => return Some(anatomy),
            LinkNextHeader::Local => {}
            LinkNextHeader::Global => {
                anatomy.grh = Grh::parse(&octets[at..]).ok();
                at += Grh::LEN;
                if anatomy.grh.is_none_or(|grh| grh.next_header != Grh::NEXT_HEADER_BTH) {
                    return Some(anatomy);
                }
            }
        }
        let end = wire_size.saturating_sub(ICRC_LEN + VCRC_LEN);
        Some(anatomy.with_transport(octets, at, end))
    }

    /// Reads what `octets` hold of a RoCE packet with such a layout. `None` if not even its BTH is
    /// whole.
    pub fn of_roce(octets: &[u8], layout: &Layout) -> Option<Anatomy> {
        let (source, destination) = addresses(octets, layout)?;
        let (dscp, ecn) = differentiated(octets, layout);
        let anatomy = Anatomy {
            source: Endpoint::Address(source),
            destination: Endpoint::Address(destination),
            lrh: None,
            grh: None,
            dscp,
            ecn,
            bth: None,
            extended: None,
            padded: None,
        };
        let anatomy = anatomy.with_transport(octets, layout.bth_at, layout.icrc_at());
        anatomy.bth.is_some().then_some(anatomy)
    }

    /// The same, with what stands from a BTH at `at` to the ICRC at `end`.
    fn with_transport(self, octets: &[u8], at: usize, end: usize) -> Anatomy {
        let Ok(bth) = Bth::parse(&octets[at..]) else { return self };
        let at = at + Bth::LEN;
        let set = bth.opcode.extended_headers();
        Anatomy {
            bth: Some(bth),
            extended: ExtendedHeaders::parse(set, &octets[at..], at).ok(),
            padded: end.checked_sub(at + set.octets()),
            ..self
        }
    }

    /// True for a packet without a BTH, which InfiniBand alone has.
    pub fn is_raw(&self) -> bool {
        self.lrh.is_some_and(|lrh| lrh.next_header.is_raw())
    }

    /// Octets of payload on the wire, if the packet has a payload and PadCnt leaves one.
    pub fn payload(&self) -> Option<usize> {
        self.padded?.checked_sub(usize::from(self.bth?.pad_count))
    }
}

/// DSCP and ECN of the IP header of RoCEv2.
fn differentiated(octets: &[u8], layout: &Layout) -> (Option<Dscp>, Ecn) {
    let network = &octets[layout.network_at..];
    match layout.network {
        Network::Global => None,
        Network::Ipv6 => Ipv6View::new(network).ok().map(|ip| (ip.dscp(), ip.ecn())),
        Network::Ipv4 => Ipv4View::new(network).ok().map(|ip| (ip.dscp(), ip.ecn())),
    }
    .map_or((None, Ecn::NotCapable), |(dscp, ecn)| (Some(dscp), ecn))
}

fn addresses(octets: &[u8], layout: &Layout) -> Option<(Ipv6Addr, Ipv6Addr)> {
    let network = &octets[layout.network_at..];
    match layout.network {
        Network::Global => Grh::parse(network).ok().map(|grh| (grh.sgid, grh.dgid)),
        Network::Ipv6 => Ipv6View::new(network).ok().map(|ip| (ip.source(), ip.destination())),
        Network::Ipv4 => {
            let ip = Ipv4View::new(network).ok()?;
            Some((ip.source().to_ipv6_mapped(), ip.destination().to_ipv6_mapped()))
        }
    }
}
