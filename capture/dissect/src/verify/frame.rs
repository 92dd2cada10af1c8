//! An Ethernet frame as far as the file holds it: where its FCS is, and what it carries.
//!
//! Few captures state whether frames end with an FCS; [`fcs_begins_at`] weighs the lengths inside the frame.

use crate::ethernet::fcs_begins_at;
use proto::wire::error::ParseError;
use proto::wire::ethernet::crc::without_fcs;
use proto::wire::ethernet::{Preface, ethertype};
use proto::wire::infiniband::Bth;
use proto::wire::internet::Ipv4View;
use proto::wire::project::{ProjectTypes, Subtype};
use proto::wire::roce::Layout;

/// A frame up to its BTH.
#[derive(Clone, Copy, Debug)]
pub struct EthernetFrame<'a> {
    /// The octets that the file holds, without the FCS.
    pub octets: &'a [u8],
    /// Result of its FCS; `None` if the file holds no FCS.
    pub fcs: Option<Result<(), ParseError>>,
    /// What it carries.
    pub carried: Carried,
}

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// RoCE of either version with consistent lengths and a whole BTH.
    Roce(Layout),
    /// MAC control such as PAUSE and PFC, well formed or not.
    MacControl,
    /// A message of QCN or BCN, or a test frame, well formed or not.
    Congestion(Preface),
    /// Anything else; no rule is about it.
    Other,
    /// Its headers contradict each other.
    Refused(ParseError),
    /// The file holds too few octets to decide.
    Cut,
}

/// Protocol number of TCP. Source: RFC 9293, 3.1.
const TCP: u8 = 6;

/// Longer frames are not judged, octets: no length field reaches this value.
const LENGTH_MAX: usize = 1 << 17;

impl<'a> EthernetFrame<'a> {
    /// The frame of which the file holds `octets` of `wire_size`.
    pub fn of(octets: &'a [u8], wire_size: usize) -> EthernetFrame<'a> {
        if octets.len() < wire_size {
            return EthernetFrame { octets, fcs: None, carried: carried_by_cut(octets, wire_size) };
        }
        let (octets, fcs) = match fcs_begins_at(octets) {
            Some(at) => (&octets[..at], Some(without_fcs(octets).map(drop))),
            None => (octets, None),
        };
        EthernetFrame { octets, fcs, carried: carried(octets) }
    }
}

fn carried(octets: &[u8]) -> Carried {
    let preface = match Preface::parse(octets, &ProjectTypes::DEFAULT) {
        Ok(preface) => preface,
        Err(error) => return Carried::Refused(error),
    };
    if preface.ethertype() == ethertype::MAC_CONTROL {
        return Carried::MacControl;
    }
    let subtype =
        ProjectTypes::DEFAULT.subtype(preface.ethertype(), &octets[preface.octets_len()..]);
    if preface.ethertype() == ethertype::CNM
        || matches!(subtype, Some(Subtype::TestFrame | Subtype::Bcn))
    {
        return Carried::Congestion(preface);
    }
    match Layout::find(octets) {
        Ok(Some(layout)) => Carried::Roce(layout),
        Ok(None) => Carried::Other,
        Err(_) if is_unsegmented(&octets[preface.octets_len()..], preface.ethertype()) => {
            Carried::Other
        }
        Err(error) => Carried::Refused(error),
    }
}

/// True for a TCP packet as a host hands it to an adapter that segments it: its IPv4 length may be 0.
fn is_unsegmented(packet: &[u8], kind: u16) -> bool {
    let ip = Ipv4View::new(packet).ok().filter(|_| kind == ethertype::IPV4);
    ip.is_some_and(|ip| ip.version() == 4 && ip.protocol() == TCP && ip.total_length() == 0)
}

/// Parses the frame with zeros for the octets that were cut off; only results from the others count.
fn carried_by_cut(octets: &[u8], wire_size: usize) -> Carried {
    match with_zeros(octets, wire_size).map(|whole| carried(&whole)) {
        Some(Carried::Roce(layout)) if layout.bth_at + Bth::LEN <= octets.len() => {
            Carried::Roce(layout)
        }
        _ => Carried::Cut,
    }
}

/// The frame with zeros for the octets that were cut off; `None` if it is too long to be judged.
pub fn with_zeros(octets: &[u8], wire_size: usize) -> Option<Vec<u8>> {
    (wire_size <= LENGTH_MAX).then(|| {
        let mut whole = octets.to_vec();
        whole.resize(wire_size, 0);
        whole
    })
}
