//! Ethernet frames: addresses, tags, what the EtherType announces, padding and FCS.
//!
//! Few captures state whether frames end with an FCS. The lengths inside a frame show it ([`Extent`]): behind the end
//! that they name come padding up to the least size, an FCS, or both.

use super::headers::{CN_TAG, ETHERNET, GRH, RATE_TAG, VLAN, VLAN_INNER};
use super::infiniband::{self, ICRC};
use super::layer::Layer;
use super::object::{Broken, Fault, Object, Placed};
use super::part::{Fcs, Part, Rules};
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
    fn find(all: &[u8], at: usize, named: [Option<usize>; 2], rules: Rules) -> Extent {
        let length = all.len();
        let without = if length < at + FCS_LEN { length } else { length - FCS_LEN };
        let fcs = match rules.fcs {
            _ if rules.missing > 0 => length,
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
pub(super) fn decode(sink: &mut impl Sink, part: Part<'_>) -> bool {
    let all = part.frame;
    let Some(tags) = part.header(sink, &ETHERNET) else { return true };
    let (kind, body) = decode_tags(sink, tags);
    let named = ends(all, kind, body.start);
    let extent = Extent::find(all, body.start, named, part.rules);
    let broken = decode_body(sink, kind, body.up_to(extent.end));
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
    let fcs = Extent::find(all, at, named, Rules::default()).fcs;
    (fcs < all.len()).then_some(fcs)
}

/// Reports every tag; returns the EtherType behind the tags, and what follows it.
fn decode_tags<'a>(sink: &mut impl Sink, mut part: Part<'a>) -> (u16, Part<'a>) {
    let kind = |part: Part<'_>| {
        u16::from_be_bytes([part.frame[part.start - 2], part.frame[part.start - 1]])
    };
    for place in [vlan_tag, inner_vlan_tag, congestion_tag] {
        let layer = place(kind(part), part.octets());
        if let Some(layer) = layer.filter(|layer| part.len() >= layer.octets) {
            sink.header(layer, part.octets());
            part = part.after(layer.octets);
        }
    }
    (kind(part), part)
}

fn vlan_tag(kind: u16, _: &[u8]) -> Option<&'static Layer> {
    matches!(kind, ethertype::VLAN | ethertype::SERVICE_VLAN).then_some(&VLAN)
}

fn inner_vlan_tag(kind: u16, octets: &[u8]) -> Option<&'static Layer> {
    vlan_tag(kind, octets).map(|_| &VLAN_INNER)
}

/// A frame has one of both, as in `proto::wire::ethernet::congestion_tag`.
fn congestion_tag(kind: u16, octets: &[u8]) -> Option<&'static Layer> {
    let is_rate_tag = || project::subtype(kind, octets) == Some(Subtype::RateTag);
    match kind {
        ethertype::CN_TAG => Some(&CN_TAG),
        _ => is_rate_tag().then_some(&RATE_TAG),
    }
}

/// The ends of the body at `at` by the lengths inside it.
fn ends(all: &[u8], kind: u16, at: usize) -> [Option<usize>; 2] {
    let body = &all[at..];
    match kind {
        ethertype::IPV4 => internet::ends(&internet::IPV4, all, at),
        ethertype::IPV6 => internet::ends(&internet::IPV6, all, at),
        ethertype::ROCE_V1 if body.len() >= Grh::LEN => {
            [Some(at + Grh::LEN + GRH.get(body, "paylen") as usize), None]
        }
        ethertype::MAC_CONTROL => {
            [control::mac_control_octets(body).map(|octets| at + octets), None]
        }
        ethertype::CNM => [control::cnm_octets(body).map(|octets| at + octets), None],
        ethertype::PROJECT => [project::octets(body).map(|octets| at + octets), None],
        ethertype::CABLE_SHIM => [shim::octets(body).map(|octets| at + octets), None],
        0..0x600 => [Some(at + usize::from(kind)), None],
        _ => [None, None],
    }
}

fn decode_body(sink: &mut impl Sink, kind: u16, part: Part<'_>) -> bool {
    match kind {
        ethertype::IPV4 => internet::decode(sink, &internet::IPV4, part),
        ethertype::IPV6 => internet::decode(sink, &internet::IPV6, part),
        ethertype::ROCE_V1 => {
            let decode = infiniband::decode_global;
            internet::decode_roce(part, sink, Network::Global, part.start, decode)
        }
        ethertype::MAC_CONTROL => control::decode_mac_control(sink, part),
        ethertype::CNM => control::decode_cnm(sink, part),
        ethertype::PROJECT => project::decode(sink, part),
        ethertype::CABLE_SHIM => shim::decode(sink, part),
        _ => {
            sink.octets("payload", part.octets());
            false
        }
    }
}

/// Appends a frame. Without `padding` it is filled up to the least size, without `fcs` it has none.
pub(super) fn encode(object: &mut Object, out: &mut Vec<u8>) -> Result<(), Fault> {
    let start = out.len();
    let error = object.error()?;
    let broken = error.is_some();
    let mut types = TypeFields::default();
    types.header(object.header(&ETHERNET, out)?, 0, out)?;
    for (layer, kind) in [
        (&VLAN, ethertype::VLAN),
        (&VLAN_INNER, ethertype::VLAN),
        (&CN_TAG, ethertype::CN_TAG),
        (&RATE_TAG, ethertype::PROJECT),
    ] {
        let tag = object.header(layer, out)?;
        if tag.is_some() {
            types.header(tag, kind, out)?;
        }
    }
    let kind = encode_body(object, out, error)?;
    types.body(kind, object, out)?;
    match object.hex("padding")? {
        Some(padding) => out.extend(padding),
        None if broken => {}
        None => out.resize(out.len().max(start + LEAST), 0),
    }
    if object.has("fcs") {
        object.check("fcs", FCS_LEN, broken, out, |frame| crc::fcs(&frame[start..]))?;
    }
    Ok(())
}

/// Sets the type field of each header once it is known what follows.
#[derive(Default)]
struct TypeFields {
    last: Option<Placed>,
}

impl TypeFields {
    fn header(&mut self, header: Option<Placed>, kind: u16, out: &mut [u8]) -> Result<(), Fault> {
        if let Some(last) = std::mem::replace(&mut self.last, header) {
            last.fill(out, "type", usize::from(kind))?;
        }
        Ok(())
    }

    fn body(self, kind: Option<u16>, object: &Object, out: &mut [u8]) -> Result<(), Fault> {
        let Some(last) = self.last else { return Ok(()) };
        match kind {
            Some(kind) => last.fill(out, "type", usize::from(kind)),
            None if last.wants("type") => {
                Err(object.fault("ethernet.type", "is missing", "an EtherType, 16 bits"))
            }
            None => Ok(()),
        }
    }
}

/// Appends the body that an object describes.
type Encode = fn(&mut Object, &mut Vec<u8>, Option<Broken>) -> Result<(), Fault>;

/// Bodies by the key that announces them, with their EtherTypes.
const BODIES: [(&str, u16, Encode); 7] = [
    ("ipv4", ethertype::IPV4, |o, out, error| internet::encode(&internet::IPV4, o, out, error)),
    ("ipv6", ethertype::IPV6, |o, out, error| internet::encode(&internet::IPV6, o, out, error)),
    ("mac_control", ethertype::MAC_CONTROL, control::encode_mac_control),
    ("cnm", ethertype::CNM, control::encode_cnm),
    ("test_frame", ethertype::PROJECT, project::encode),
    ("bcn", ethertype::PROJECT, project::encode),
    ("shim", ethertype::CABLE_SHIM, shim::encode),
];

/// Appends what follows the tags; returns its EtherType, `None` if the body does not show it.
fn encode_body(
    object: &mut Object,
    out: &mut Vec<u8>,
    error: Option<Broken>,
) -> Result<Option<u16>, Fault> {
    if let Some((_, kind, encode)) = BODIES.iter().find(|(key, ..)| object.has(key)) {
        return encode(object, out, error).map(|()| Some(*kind));
    }
    let at = out.len();
    let broken = error.is_some();
    let icrc = |octets: &[u8]| crc::icrc(Network::Global, Grh::LEN, &octets[at..]);
    let grh = object.header(&GRH, out)?;
    let has_bth = transport::encode(object, out, error)?;
    match grh {
        Some(grh) => {
            let length = out.len() + ICRC - at - Grh::LEN;
            grh.fill(out, "paylen", length)?;
            object.check("icrc", ICRC, broken, out, icrc)?;
            Ok(Some(ethertype::ROCE_V1))
        }
        None if has_bth => {
            Err(object.fault("bth", "has no header before it", "after \"grh\" or \"udp\""))
        }
        // The GRH of a RoCEv1 frame is too short to be one; its ICRC is still at the end.
        None if object.has("icrc") => {
            let end = out.len();
            let icrc = |octets: &[u8]| crc::icrc(Network::Global, Grh::LEN, &octets[end..]);
            object.check("icrc", ICRC, true, out, icrc).map(|()| None)
        }
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests;
