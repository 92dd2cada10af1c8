//! The layout of a RoCE packet in its frame: offsets of the headers, payload and ICRC.
//!
//! Lengths and versions up to the BTH are checked, checksums and ICRC are not. A frame without a RoCE EtherType or
//! UDP port has no layout, which is not an error. Source: IBTA Vol 1, annexes A16 and A17; RFC 791, RFC
//! 8200, RFC 768.

use crate::wire::error::{ParseError, Reason};
use crate::wire::ethernet::crc::Network;
use crate::wire::ethernet::{Preface, ethertype};
use crate::wire::infiniband::envelope::ICRC_LEN;
use crate::wire::infiniband::{Bth, Grh, GrhView};
use crate::wire::internet::{Ipv4, Ipv4View, Ipv6, Ipv6View, Udp, UdpView};
use crate::wire::project::ProjectTypes;

/// Offsets of a RoCE packet's parts from the first octet of the frame.
///
/// The frame contains the complete packet: at least a BTH and an ICRC are between `bth` and `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Addresses and tags before the network header.
    pub preface: Preface,
    /// Kind of network header.
    pub network: Network,
    /// Offset of the network header.
    pub network_at: usize,
    /// Offset of the BTH.
    pub bth_at: usize,
    /// Offset after the ICRC; padding of the frame follows.
    pub end: usize,
}

impl Layout {
    /// Finds the parts of a RoCE packet; `None` for other frames and for IPv4 fragments.
    ///
    /// # Errors
    /// A truncated layer, a length that disagrees with the octets, an unknown version, or a GRH whose next header
    /// is not a BTH.
    #[inline]
    pub fn find(octets: &[u8]) -> Result<Option<Layout>, ParseError> {
        Layout::find_by(octets, &ProjectTypes::DEFAULT)
    }

    /// As [`Self::find`], with these EtherTypes for the project's tags.
    ///
    /// # Errors
    /// Those of [`Self::find`].
    #[inline]
    pub fn find_by(octets: &[u8], types: &ProjectTypes) -> Result<Option<Layout>, ParseError> {
        Layout::behind(octets, octets.len(), Preface::parse(octets, types)?)
    }

    /// As [`Self::find`], for a frame of `length` octets with a parsed preface. `octets` are the first of them, with all
    /// headers up to the BTH.
    ///
    /// # Errors
    /// Those of [`Self::find`], except errors of the preface.
    #[inline]
    pub fn behind(
        octets: &[u8],
        length: usize,
        preface: Preface,
    ) -> Result<Option<Layout>, ParseError> {
        let network_at = preface.octets_len();
        let (network, found) = match preface.ethertype() {
            ethertype::IPV4 => (Network::Ipv4, ipv4(octets, length, network_at)?),
            ethertype::IPV6 => (Network::Ipv6, ipv6(octets, length, network_at)?),
            ethertype::ROCE_V1 => (Network::Global, Some(global(octets, length, network_at)?)),
            _ => return Ok(None),
        };
        let Some(Inside { bth_at, end }) = found else { return Ok(None) };
        let present = end - bth_at;
        if present < Bth::LEN {
            return Err(ParseError::short(Bth::LAYER, bth_at, Bth::LEN, present));
        }
        let present = present - Bth::LEN;
        if present < ICRC_LEN {
            return Err(ParseError::short("ICRC", bth_at + Bth::LEN, ICRC_LEN, present));
        }
        Ok(Some(Layout { preface, network, network_at, bth_at, end }))
    }

    /// Offset of the ICRC.
    pub fn icrc_at(&self) -> usize {
        self.end - ICRC_LEN
    }

    /// Offset of the UDP header; `None` without one.
    pub fn udp_at(&self) -> Option<usize> {
        (self.network != Network::Global).then(|| self.bth_at - Udp::LEN)
    }
}

/// Offsets of the BTH and of the end of the packet.
struct Inside {
    bth_at: usize,
    end: usize,
}

fn ipv4(octets: &[u8], length: usize, at: usize) -> Result<Option<Inside>, ParseError> {
    let refuse = |reason| Err(ParseError::new(Ipv4::LAYER, at, reason));
    let packet = &octets[at..];
    let header = Ipv4View::new(packet).map_err(|error| error.within(at))?;
    if header.version() != Ipv4::VERSION {
        return refuse(Reason::Version(header.version()));
    }
    if header.header_words() < Ipv4::WORDS_MIN {
        return refuse(Reason::Illegal("IHL is below 5"));
    }
    let header_len = usize::from(header.header_words()) * 4;
    let (declared, present) = (usize::from(header.total_length()), length - at);
    if declared < header_len || declared > present {
        return refuse(Reason::Length { declared, present });
    }
    if header.protocol() != ethertype::UDP || header.is_fragment() {
        return Ok(None);
    }
    udp(octets, at + header_len, at + declared)
}

fn ipv6(octets: &[u8], length: usize, at: usize) -> Result<Option<Inside>, ParseError> {
    let refuse = |reason| Err(ParseError::new(Ipv6::LAYER, at, reason));
    let packet = &octets[at..];
    let header = Ipv6View::new(packet).map_err(|error| error.within(at))?;
    if header.version() != Ipv6::VERSION {
        return refuse(Reason::Version(header.version()));
    }
    let (declared, present) = (usize::from(header.payload_length()), length - at - Ipv6::LEN);
    if declared > present {
        return refuse(Reason::Length { declared, present });
    }
    if header.next_header() != ethertype::UDP {
        return Ok(None);
    }
    udp(octets, at + Ipv6::LEN, at + Ipv6::LEN + declared)
}

/// The UDP datagram from `at` to `end`, which are within the frame, though not all of it may be in `octets`.
fn udp(octets: &[u8], at: usize, end: usize) -> Result<Option<Inside>, ParseError> {
    let header =
        UdpView::new(&octets[at..end.min(octets.len())]).map_err(|error| error.within(at))?;
    if header.destination_port() != ethertype::ROCE_V2_PORT {
        return Ok(None);
    }
    let (declared, present) = (usize::from(header.length()), end - at);
    if declared != present {
        return Err(ParseError::length(Udp::LAYER, at, declared, present));
    }
    Ok(Some(Inside { bth_at: at + Udp::LEN, end }))
}

fn global(octets: &[u8], length: usize, at: usize) -> Result<Inside, ParseError> {
    let refuse = |reason| Err(ParseError::new(Grh::LAYER, at, reason));
    let packet = &octets[at..];
    let grh = GrhView::new(packet).map_err(|error| error.within(at))?;
    if grh.version() != Grh::VERSION {
        return refuse(Reason::Version(grh.version()));
    }
    if grh.next_header() != Grh::NEXT_HEADER_BTH {
        return refuse(Reason::Illegal("the next header is not a BTH"));
    }
    let (declared, present) = (usize::from(grh.payload_length()), length - at - Grh::LEN);
    if declared > present {
        return refuse(Reason::Length { declared, present });
    }
    let bth_at = at + Grh::LEN;
    Ok(Inside { bth_at, end: bth_at + declared })
}
