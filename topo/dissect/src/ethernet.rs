//! Ethernet frames: addresses, tags, what the EtherType says, padding and FCS.
//!
//! Few captures say whether frames end with an FCS. Lengths inside tell ([`Extent`]): what follows
//! the end they name is padding up to the least size, an FCS, or both.

use super::control;
use super::infiniband;
use super::internet::{self, Version};
use super::layer::{Layer, layer};
use super::object::{Fault, Object, Placed};
use super::project::{self, RATE_TAG};
use super::shim;
use super::sink::{Check, Sink};
use super::{Broken, Fcs, Rules, encode_check, encode_error, too_short, transport};
use proto::wire::ethernet::crc::{self, FCS_LEN, Network};
use proto::wire::ethernet::envelope::LEAST;
use proto::wire::ethernet::{Preface, ethertype};
use proto::wire::infiniband::Grh;
use proto::wire::project::{ProjectTypes, Subtype};

layer! {
    /// Addresses and EtherType (or length).
    ETHERNET "ethernet" "Ethernet" 14 {
        "dst" 48 Mac Required;
        "src" 48 Mac Required;
        "type" 16 Code Computed;
    }
}

layer! {
    /// VLAN tag: what its EtherType announces, with the EtherType that follows.
    VLAN "vlan" "VLAN" 4 {
        "pcp" 3 Number Or(0);
        "dei" 1 Number Or(0);
        "vid" 12 Number Required;
        "type" 16 Code Computed;
    }
}

layer! {
    /// A second VLAN tag.
    VLAN_INNER "vlan_inner" "VLAN" 4 {
        "pcp" 3 Number Or(0);
        "dei" 1 Number Or(0);
        "vid" 12 Number Required;
        "type" 16 Code Computed;
    }
}

layer! {
    /// Congestion notification tag.
    CN_TAG "cn_tag" "CN-TAG" 4 {
        "flow_id" 16 Number Required;
        "type" 16 Code Computed;
    }
}

const ICRC: usize = infiniband::ICRC;

/// Where what the frame carries ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    /// One past its last octet; padding follows.
    end: usize,
    /// One past the padding.
    fcs: usize,
}

impl Extent {
    /// Weighs the ends that lengths inside the frame name, the more trustworthy first.
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
        // Of two ends that disagree one is damaged; the right one leaves only what a sender adds.
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

/// The last four octets are the FCS of those before.
fn holds(all: &[u8]) -> bool {
    all.split_last_chunk::<FCS_LEN>()
        .is_some_and(|(before, found)| crc::fcs(before).to_le_bytes() == *found)
}

/// Walks over a frame; true if an error was told.
pub(super) fn decode(sink: &mut impl Sink, all: &[u8], rules: Rules) -> bool {
    let present = all.len();
    if present < ETHERNET.octets {
        return too_short(sink, &ETHERNET, all, 0..present, rules);
    }
    sink.header(&ETHERNET, all);
    let (kind, at) = decode_tags(sink, all);
    let named = ends(all, kind, at);
    let extent = Extent::find(all, at, named, rules);
    let broken = decode_body(sink, all, kind, at, extent.end, rules);
    // A frame below the least size is shown with its padding, even if there is none.
    if extent.fcs > extent.end || extent.fcs < LEAST && rules.missing == 0 {
        if kind == ethertype::MAC_CONTROL {
            control::judge_padding(sink, &all[extent.end..extent.fcs]);
        }
        sink.octets("padding", &all[extent.end..extent.fcs]);
    }
    if extent.fcs < present {
        let (before, fcs) = all.split_at(extent.fcs);
        sink.check(Check::of_32("fcs", fcs, crc::fcs(before)));
    }
    broken
}

/// Where the FCS of a whole frame begins, if it seems to end with one.
pub fn fcs_begins_at(all: &[u8]) -> Option<usize> {
    let preface = Preface::parse(all, &ProjectTypes::DEFAULT).ok()?;
    let at = preface.octets_len();
    let named = ends(all, preface.ethertype(), at);
    let fcs = Extent::find(all, at, named, Rules::default()).fcs;
    (fcs < all.len()).then_some(fcs)
}

/// Tells of every tag: the EtherType behind them, and where what that announces begins.
fn decode_tags(sink: &mut impl Sink, all: &[u8]) -> (u16, usize) {
    let mut at = ETHERNET.octets;
    let mut kind = u16::from_be_bytes([all[at - 2], all[at - 1]]);
    for place in [vlan_tag, inner_vlan_tag, congestion_tag] {
        let layer = place(kind, &all[at..]).filter(|layer| all.len() >= at + layer.octets);
        if let Some(layer) = layer {
            sink.header(layer, &all[at..]);
            at += layer.octets;
            kind = u16::from_be_bytes([all[at - 2], all[at - 1]]);
        }
    }
    (kind, at)
}

fn vlan_tag(kind: u16, _: &[u8]) -> Option<&'static Layer> {
    matches!(kind, ethertype::VLAN | ethertype::SERVICE_VLAN).then_some(&VLAN)
}

fn inner_vlan_tag(kind: u16, octets: &[u8]) -> Option<&'static Layer> {
    vlan_tag(kind, octets).map(|_| &VLAN_INNER)
}

/// One or the other, as `proto::wire::ethernet::congestion_tag` has it.
fn congestion_tag(kind: u16, octets: &[u8]) -> Option<&'static Layer> {
    let is_rate_tag = || project::subtype(kind, octets) == Some(Subtype::RateTag);
    match kind {
        ethertype::CN_TAG => Some(&CN_TAG),
        _ => is_rate_tag().then_some(&RATE_TAG),
    }
}

/// Where the lengths inside say that the body at `at` ends.
fn ends(all: &[u8], kind: u16, at: usize) -> [Option<usize>; 2] {
    let body = &all[at..];
    match kind {
        ethertype::IPV4 => internet::ends(Version::Ipv4, all, at),
        ethertype::IPV6 => internet::ends(Version::Ipv6, all, at),
        ethertype::ROCE_V1 if body.len() >= Grh::LEN => {
            [Some(at + Grh::LEN + infiniband::GRH.get(body, "paylen") as usize), None]
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

fn decode_body(
    sink: &mut impl Sink,
    all: &[u8],
    kind: u16,
    at: usize,
    end: usize,
    rules: Rules,
) -> bool {
    match kind {
        ethertype::IPV4 => internet::decode(sink, Version::Ipv4, all, at, end, rules),
        ethertype::IPV6 => internet::decode(sink, Version::Ipv6, all, at, end, rules),
        ethertype::ROCE_V1 => decode_roce_v1(sink, all, at, end, rules),
        ethertype::MAC_CONTROL => control::decode_mac_control(sink, all, at, end, rules),
        ethertype::CNM => control::decode_cnm(sink, all, at, end, rules),
        ethertype::PROJECT => project::decode(sink, all, at, end, rules),
        ethertype::CABLE_SHIM => shim::decode(sink, all, at, end, rules),
        _ => {
            sink.octets("payload", &all[at..end]);
            false
        }
    }
}

fn decode_roce_v1(sink: &mut impl Sink, all: &[u8], at: usize, end: usize, rules: Rules) -> bool {
    let icrc = if rules.missing == 0 && end - at >= ICRC { ICRC } else { 0 };
    let broken = infiniband::decode_global(sink, all, at, end - icrc, rules);
    if icrc > 0 {
        let expected = crc::icrc(Network::Global, Grh::LEN, &all[at..end - ICRC]);
        sink.check(Check::of_32("icrc", &all[end - ICRC..end], expected));
    }
    broken
}

/// Appends a frame; without `padding` it is filled up to the least size, without `fcs` it has none.
pub(super) fn encode(object: &mut Object, out: &mut Vec<u8>) -> Result<(), Fault> {
    let start = out.len();
    let error = encode_error(object)?;
    let broken = error.is_some();
    let mut announce = Announcer::default();
    announce.header(object.header(&ETHERNET, out)?, 0, out)?;
    for (layer, kind) in [
        (&VLAN, ethertype::VLAN),
        (&VLAN_INNER, ethertype::VLAN),
        (&CN_TAG, ethertype::CN_TAG),
        (&RATE_TAG, ethertype::PROJECT),
    ] {
        let tag = object.header(layer, out)?;
        if tag.is_some() {
            announce.header(tag, kind, out)?;
        }
    }
    let kind = encode_body(object, out, error)?;
    announce.body(kind, object, out)?;
    match object.hex("padding")? {
        Some(padding) => out.extend(padding),
        None if broken => {}
        None => out.resize(out.len().max(start + LEAST), 0),
    }
    if object.has("fcs") {
        encode_check(object, "fcs", FCS_LEN, broken, out, |frame| crc::fcs(&frame[start..]))?;
    }
    Ok(())
}

/// Tells each header what follows it.
#[derive(Default)]
struct Announcer {
    last: Option<Placed>,
}

impl Announcer {
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

/// Appends what follows the tags, and answers its EtherType if that goes without saying.
fn encode_body(
    object: &mut Object,
    out: &mut Vec<u8>,
    error: Option<Broken>,
) -> Result<Option<u16>, Fault> {
    if object.has("ipv4") {
        internet::encode(Version::Ipv4, object, out, error)?;
        return Ok(Some(ethertype::IPV4));
    }
    if object.has("ipv6") {
        internet::encode(Version::Ipv6, object, out, error)?;
        return Ok(Some(ethertype::IPV6));
    }
    if object.has("mac_control") {
        control::encode_mac_control(object, out, error)?;
        return Ok(Some(ethertype::MAC_CONTROL));
    }
    if object.has("cnm") {
        control::encode_cnm(object, out, error)?;
        return Ok(Some(ethertype::CNM));
    }
    if object.has("test_frame") || object.has("bcn") {
        project::encode(object, out, error)?;
        return Ok(Some(ethertype::PROJECT));
    }
    if object.has("shim") {
        shim::encode(object, out, error)?;
        return Ok(Some(ethertype::CABLE_SHIM));
    }
    let at = out.len();
    let broken = error.is_some();
    let grh = object.header(&infiniband::GRH, out)?;
    let has_bth = transport::encode(object, out, error)?;
    let Some(grh) = grh else {
        if has_bth {
            return Err(object.fault("bth", "hangs in the air", "after \"grh\" or \"udp\""));
        }
        encode_loose_icrc(object, out)?;
        return Ok(None);
    };
    let length = out.len() + ICRC - at - Grh::LEN;
    grh.fill(out, "paylen", length)?;
    encode_check(object, "icrc", ICRC, broken, out, |octets| {
        crc::icrc(Network::Global, Grh::LEN, &octets[at..])
    })?;
    Ok(Some(ethertype::ROCE_V1))
}

/// Where the GRH of a RoCEv1 frame is too short to be one, its ICRC still stands at the end.
fn encode_loose_icrc(object: &mut Object, out: &mut Vec<u8>) -> Result<(), Fault> {
    let start = out.len();
    if object.has("icrc") {
        encode_check(object, "icrc", ICRC, true, out, |octets| {
            crc::icrc(Network::Global, Grh::LEN, &octets[start..])
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
