//! Ethernet frames: addresses, tags, what the EtherType announces, padding and FCS.
//!
//! Few captures state whether frames end with an FCS. The lengths inside a frame show it ([`Extent`]): behind the end
//! that they name come padding up to the least size, an FCS, or both.

use super::body::Body;
use super::headers::{CN_TAG, ETHERNET, GRH, RATE_TAG, VLAN, VLAN_INNER};
use super::infiniband::{self, ICRC};
use super::layer::Layer;
use super::object::{Fault, Object};
use super::part::{Fcs, Part};
use super::sink::{Check, Sink};
use super::{control, internet, project, shim, transport};
use proto::wire::ethernet::crc::{self, FCS_LEN, Network};
use proto::wire::ethernet::envelope::LEAST;
use proto::wire::ethernet::{Preface, ethertype};
use proto::wire::infiniband::Grh;
use proto::wire::project::{ProjectTypes, Subtype};

/// Where the body of a frame ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    /// One past the last octet of the body; padding follows.
    end: usize,
    /// One past the padding: the first octet of the FCS, if there is one.
    fcs: usize,
}

impl Extent {
    /// Weighs the ends that lengths inside the frame name, the most trustworthy first.
    fn find(all: &[u8], at: usize, named: [Option<usize>; 2], fcs: Fcs) -> Extent {
        let length = all.len();
        let without = if length < at + FCS_LEN { length } else { length - FCS_LEN };
        let fcs = match fcs {
            Fcs::No => length,
            Fcs::Yes => without,
            Fcs::Auto => {
                let fits = |end: &usize| *end >= at && *end <= length;
                let mut ends = named.iter().flatten().copied().filter(fits);
                match ends.find_map(|end| fcs_begins(all, end)) {
                    Some(fcs) => fcs,
                    None if length == LEAST + FCS_LEN || holds(all) => without,
                    None => length,
                }
            }
        };
        // If two ends disagree, one is damaged; behind the right one is only what a sender adds.
        let exact = |end: &usize| *end == fcs || *end < fcs && fcs == LEAST;
        let ends = || named.iter().flatten().copied().filter(|end| *end >= at && *end <= fcs);
        Extent { end: ends().find(exact).or_else(|| ends().next()).unwrap_or(fcs), fcs }
    }
}

/// Where the FCS begins if `end` is right; `None` if it cannot be.
fn fcs_begins(all: &[u8], end: usize) -> Option<usize> {
    let length = all.len();
    let zeros = || all[end..].iter().all(|octet| *octet == 0);
    match length - end {
        0 => Some(length),
        FCS_LEN if length == LEAST && zeros() => Some(length),
        FCS_LEN => Some(end),
        _ if length == LEAST => Some(length),
        _ if length == LEAST + FCS_LEN => Some(LEAST),
        _ => None,
    }
}

/// True if the last four octets are the FCS of those before.
fn holds(all: &[u8]) -> bool {
    all.split_last_chunk::<FCS_LEN>()
        .is_some_and(|(before, found)| crc::fcs(before).to_le_bytes() == *found)
}

/// Dissects a frame; true if an error was reported.
pub(super) fn decode(sink: &mut dyn Sink, part: Part<'_>) -> bool {
    let all = part.frame;
    let Some(tags) = part.header(sink, &ETHERNET) else { return true };
    let (kind, body) = decode_tags(sink, tags);
    let named = ends(all, kind, body.start);
    // The octets that are missing are the last of the frame.
    let fcs = if part.is_whole() { part.rules.fcs } else { Fcs::No };
    let extent = Extent::find(all, body.start, named, fcs);
    let part_of_body = body.up_to(extent.end);
    let broken = match body_of(kind) {
        Some(body) => body.decode(sink, part_of_body),
        None => {
            sink.octets("payload", part_of_body.octets());
            false
        }
    };
    // A frame below the least size is shown with its padding, even if it has none.
    if extent.fcs > extent.end || extent.fcs < LEAST && part.is_whole() {
        let padding = &all[extent.end..extent.fcs];
        if kind == ethertype::MAC_CONTROL {
            control::judge_padding(sink, padding);
        }
        sink.octets("padding", padding);
    }
    if extent.fcs < all.len() {
        let (before, fcs) = all.split_at(extent.fcs);
        sink.check(Check::new("fcs", fcs, crc::fcs(before)));
    }
    broken
}

/// Where the FCS of a whole frame begins, if the frame seems to end with one.
pub(super) fn fcs_begins_at(all: &[u8]) -> Option<usize> {
    let preface = Preface::parse(all, &ProjectTypes::DEFAULT).ok()?;
    let at = preface.octets_len();
    let named = ends(all, preface.ethertype(), at);
    let fcs = Extent::find(all, at, named, Fcs::Auto).fcs;
    (fcs < all.len()).then_some(fcs)
}

/// The tags in the order of a frame, with the EtherTypes that announce them. A frame has one of the last two, as in
/// `proto::wire::ethernet::congestion_tag`.
static TAGS: [(&Layer, u16); 4] = [
    (&VLAN, ethertype::VLAN),
    (&VLAN_INNER, ethertype::VLAN),
    (&CN_TAG, ethertype::CN_TAG),
    (&RATE_TAG, ethertype::PROJECT),
];

/// Reports every tag; returns the EtherType behind the tags, and what follows it.
fn decode_tags<'a>(sink: &mut dyn Sink, mut part: Part<'a>) -> (u16, Part<'a>) {
    let before = |part: Part<'_>| {
        u16::from_be_bytes([part.frame[part.start - 2], part.frame[part.start - 1]])
    };
    for (layer, announced_by) in TAGS {
        let is_tag = match (before(part), announced_by) {
            (ethertype::SERVICE_VLAN, ethertype::VLAN) => true,
            (kind, ethertype::PROJECT) => {
                project::subtype(kind, part.octets()) == Some(Subtype::RateTag)
            }
            (kind, announced_by) => kind == announced_by,
        };
        if is_tag && part.len() >= layer.octets {
            sink.header(layer, part.octets());
            part = part.after(layer.octets);
            if announced_by == ethertype::CN_TAG {
                break;
            }
        }
    }
    (before(part), part)
}

/// The bodies by EtherType, with the keys that announce each in JSON.
static BODIES: [(u16, &[&str], &dyn Body); 7] = [
    (ethertype::IPV4, &["ipv4"], &internet::IPV4),
    (ethertype::IPV6, &["ipv6"], &internet::IPV6),
    (ethertype::MAC_CONTROL, &["mac_control"], &control::MacControl),
    (ethertype::CNM, &["cnm"], &control::CNM_MESSAGE),
    (ethertype::PROJECT, &["test_frame", "bcn"], &project::ProjectFrame),
    (ethertype::CABLE_SHIM, &["shim"], &shim::Records),
    (ethertype::ROCE_V1, &["grh"], &RoceV1),
];

/// The body that the EtherType `kind` announces.
fn body_of(kind: u16) -> Option<&'static dyn Body> {
    BODIES.iter().find(|(known, ..)| *known == kind).map(|(.., body)| *body)
}

/// The ends of the body at `at` by the lengths inside it.
fn ends(all: &[u8], kind: u16, at: usize) -> [Option<usize>; 2] {
    let lengths = match body_of(kind) {
        Some(body) => body.lengths(&all[at..]),
        None => [(kind < 0x600).then_some(usize::from(kind)), None],
    };
    lengths.map(|length| length.map(|length| at + length))
}

/// Appends a frame. Without `padding` it is filled up to the least size, without `fcs` it has none.
pub(super) fn encode(object: &mut Object, out: &mut Vec<u8>) -> Result<(), Fault> {
    let start = out.len();
    let mut last = object.header(&ETHERNET, out)?;
    // The type field of each header follows from what comes next.
    for (layer, kind) in TAGS {
        if let Some(tag) = object.header(layer, out)?
            && let Some(before) = last.replace(tag)
        {
            before.fill(out, "type", usize::from(kind))?;
        }
    }
    match (encode_body(object, out)?, last) {
        (Some(kind), Some(last)) => last.fill(out, "type", usize::from(kind))?,
        (None, Some(last)) if last.wants("type") => {
            return Err(object.fault("ethernet.type", "is missing", "an EtherType, 16 bits"));
        }
        _ => {}
    }
    match object.hex("padding")? {
        Some(padding) => out.extend(padding),
        None if object.is_broken => {}
        None => out.resize(out.len().max(start + LEAST), 0),
    }
    if object.has("fcs") {
        object.check("fcs", FCS_LEN, out, |frame| crc::fcs(&frame[start..]))?;
    }
    Ok(())
}

/// Appends what follows the tags; returns its EtherType, `None` if the body does not show it.
fn encode_body(object: &mut Object, out: &mut Vec<u8>) -> Result<Option<u16>, Fault> {
    let mut bodies = BODIES.iter();
    if let Some((kind, _, body)) = bodies.find(|(_, keys, _)| keys.iter().any(|k| object.has(k))) {
        return body.encode(object, out).map(|()| Some(*kind));
    }
    object.ignore(&["grh"]);
    if transport::encode(object, out)? {
        return Err(object.fault("bth", "has no header before it", "after \"grh\" or \"udp\""));
    }
    // The GRH of a RoCEv1 frame is too short to be one; its ICRC is still at the end.
    if object.has("icrc") {
        object.check("icrc", ICRC, out, |_| crc::icrc(Network::Global, Grh::LEN, &[]))?;
    }
    Ok(None)
}

/// RoCEv1: a GRH, and what follows it up to the ICRC.
struct RoceV1;

impl Body for RoceV1 {
    fn lengths(&self, octets: &[u8]) -> [Option<usize>; 2] {
        let is_there = octets.len() >= Grh::LEN;
        [is_there.then(|| Grh::LEN + GRH.get(octets, "paylen") as usize), None]
    }

    fn decode(&self, sink: &mut dyn Sink, part: Part<'_>) -> bool {
        let decode = infiniband::decode_global;
        internet::decode_roce(sink, part, Network::Global, part.start, decode)
    }

    fn encode(&self, object: &mut Object, out: &mut Vec<u8>) -> Result<(), Fault> {
        let at = out.len();
        let grh = object.header(&GRH, out)?;
        transport::encode(object, out)?;
        if let Some(grh) = grh {
            let length = out.len() + ICRC - at - Grh::LEN;
            grh.fill(out, "paylen", length)?;
        }
        object
            .check("icrc", ICRC, out, |octets| crc::icrc(Network::Global, Grh::LEN, &octets[at..]))
    }
}

#[cfg(test)]
mod tests;
