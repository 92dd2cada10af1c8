//! An Ethernet frame as far as the file holds it: where its FCS is, and what it carries.
//!
//! Few captures say whether frames end with an FCS; `crate` weighs what lengths inside say.

use super::notification;
use crate::ethernet::fcs_begins_at;
use proto::wire::error::ParseError;
use proto::wire::ethernet::crc::without_fcs;
use proto::wire::ethernet::{Preface, ethertype};
use proto::wire::infiniband::Bth;
use proto::wire::project::ProjectTypes;
use proto::wire::roce::Layout;

/// What is known of a frame without looking behind its BTH.
#[derive(Clone, Copy, Debug)]
pub struct EthernetFrame<'a> {
    /// What the file holds of it, FCS left out.
    pub octets: &'a [u8],
    /// Its FCS; `None` if it has none here.
    pub fcs: Option<Result<(), ParseError>>,
    /// What it carries.
    pub carried: Carried,
}

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// RoCE of either version, whose lengths agree and whose BTH is there.
    Roce(Layout),
    /// PAUSE, PFC or their like, well formed or not.
    MacControl,
    /// A message of QCN or BCN, or a test frame, well formed or not.
    Congestion(Preface),
    /// Something that nobody here judges.
    Other,
    /// What it says of itself cannot be.
    Refused(ParseError),
    /// The file holds too little of it to tell.
    Cut,
}

/// Longer frames than this are not judged: no length inside reaches it.
const LENGTH_MAX: usize = 1 << 17;

impl<'a> EthernetFrame<'a> {
    /// Looks at what `octets` hold of a frame that had `wire_size` octets where it was captured.
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
    if notification::is_announced(&preface, &octets[preface.octets_len()..]) {
        return Carried::Congestion(preface);
    }
    match Layout::find(octets) {
        Ok(Some(layout)) => Carried::Roce(layout),
        Ok(None) => Carried::Other,
        Err(error) => Carried::Refused(error),
    }
}

/// What was cut off is taken as zeros, and only what was not is believed.
fn carried_by_cut(octets: &[u8], wire_size: usize) -> Carried {
    if wire_size > LENGTH_MAX {
        return Carried::Cut;
    }
    let mut whole = octets.to_vec();
    whole.resize(wire_size, 0);
    match carried(&whole) {
        Carried::Roce(layout) if layout.bth_at + Bth::LEN <= octets.len() => Carried::Roce(layout),
        _ => Carried::Cut,
    }
}
