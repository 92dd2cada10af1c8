//! IPv4 and IPv6, UDP, and what UDP carries: RoCEv2 or the cables of this project.

use super::infiniband;
use super::layer::{Layer, layer};
use super::object::{Fault, Object, Placed};
use super::shim;
use super::sink::{Check, Sink};
use super::{Broken, Rules, encode_check, judge, tell, too_short, transport};
use proto::wire::ethernet::crc::{self, Network};
use proto::wire::ethernet::ethertype::{ROCE_V2_PORT, UDP as UDP_PROTOCOL};
use proto::wire::internet::checksum;
use std::ops::Range;

layer! {
    /// IPv4 without its options.
    IPV4 "ipv4" "IPv4" 20 {
        "version" 4 Number Or(4);
        "ihl" 4 Number Computed;
        "dscp" 6 Number Or(0);
        "ecn" 2 Number Or(0);
        "total_length" 16 Number Computed;
        "id" 16 Number Or(0);
        "reserved1" 1 Number Or(0);
        "df" 1 Number Or(1);
        "mf" 1 Number Or(0);
        "frag_offset" 13 Number Or(0);
        "ttl" 8 Number Or(64);
        "protocol" 8 Number Or(17);
        "checksum" 16 Code Computed;
        "src" 32 Ipv4 Required;
        "dst" 32 Ipv4 Required;
    }
}

layer! {
    /// IPv6.
    IPV6 "ipv6" "IPv6" 40 {
        "version" 4 Number Or(6);
        "dscp" 6 Number Or(0);
        "ecn" 2 Number Or(0);
        "flow_label" 20 Number Or(0);
        "payload_length" 16 Number Computed;
        "next_header" 8 Number Or(17);
        "hop_limit" 8 Number Or(64);
        "src" 128 Ipv6 Required;
        "dst" 128 Ipv6 Required;
    }
}

layer! {
    /// UDP.
    UDP "udp" "UDP" 8 {
        "srcport" 16 Number Or(0xc000);
        "dstport" 16 Number Or(4791);
        "length" 16 Number Computed;
        "checksum" 16 Code Computed;
    }
}

const ICRC: usize = infiniband::ICRC;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Ipv4,
    Ipv6,
}

impl Version {
    fn layer(self) -> &'static Layer {
        match self {
            Version::Ipv4 => &IPV4,
            Version::Ipv6 => &IPV6,
        }
    }

    fn network(self) -> Network {
        match self {
            Version::Ipv4 => Network::Ipv4,
            Version::Ipv6 => Network::Ipv6,
        }
    }

    /// Octets of the header at the front of `octets`, options included; `None` if they are no
    /// such header or not all there.
    fn header_len(self, octets: &[u8]) -> Option<usize> {
        let length = match self {
            Version::Ipv4 => usize::from(octets.first()? & 0xf) * 4,
            Version::Ipv6 => IPV6.octets,
        };
        (length >= self.layer().octets && length <= octets.len()).then_some(length)
    }

    fn protocol(self, header: &[u8]) -> u8 {
        header[if self == Version::Ipv4 { 9 } else { 6 }]
    }

    /// Octets from the header on, as it says; `None` where it says 0, as hosts do that leave the
    /// cutting to their adapter.
    fn said(self, header: &[u8]) -> Option<usize> {
        let said = |name| Some(self.layer().get(header, name) as usize).filter(|said| *said > 0);
        match self {
            Version::Ipv4 => said("total_length"),
            Version::Ipv6 => said("payload_length").map(|said| said + IPV6.octets),
        }
    }
}

/// Where the packet at `at` ends by its own length and by UDP's.
pub(super) fn ends(version: Version, all: &[u8], at: usize) -> [Option<usize>; 2] {
    let packet = &all[at..];
    let Some(length) = version.header_len(packet) else { return [None, None] };
    let udp = packet.get(length..).filter(|udp| udp.len() >= UDP.octets);
    let udp = udp.filter(|_| version.protocol(packet) == UDP_PROTOCOL);
    let by_udp = udp.map(|udp| at + length + UDP.get(udp, "length") as usize);
    [version.said(packet).map(|said| at + said), by_udp]
}

/// Walks over the packet at `at`; true if an error was told.
pub(super) fn decode(
    sink: &mut impl Sink,
    version: Version,
    all: &[u8],
    at: usize,
    end: usize,
    rules: Rules,
) -> bool {
    let layer = version.layer();
    let packet = &all[at..end];
    if packet.len() < layer.octets {
        return too_short(sink, layer, all, at..end, rules);
    }
    let Some(length) = version.header_len(packet) else {
        let said = usize::from(packet[0] & 0xf) * 4;
        let reason = format_args!("its ihl says {said} octets, {} are left", packet.len());
        sink.error(layer.title, at, reason, packet);
        if rules.missing == 0 || said < layer.octets {
            sink.wrong(format_args!("ipv4.ihl says {said} octets, that is no such header"));
        }
        return true;
    };
    tell(sink, layer, packet);
    judge_header(sink, version, packet, length, rules);
    if length > layer.octets {
        sink.octets("ipv4_options", &packet[layer.octets..length]);
    }
    if !is_udp(version, packet, length) {
        sink.octets("payload", &packet[length..]);
        return false;
    }
    decode_udp(sink, version, all, at, at + length..end, rules)
}

/// A later fragment has no UDP header; but no RoCEv2 is ever fragmented, so what reads as one is one
/// whatever damage did to the offset.
fn is_udp(version: Version, packet: &[u8], length: usize) -> bool {
    let udp = &packet[length..];
    if version.protocol(packet) != UDP_PROTOCOL || udp.len() < UDP.octets {
        return false;
    }
    let offset = if version == Version::Ipv4 { IPV4.get(packet, "frag_offset") } else { 0 };
    let is_whole_roce = UDP.get(udp, "dstport") == u64::from(ROCE_V2_PORT)
        && UDP.get(udp, "length") as usize == udp.len();
    offset == 0 || is_whole_roce
}

fn judge_header(
    sink: &mut impl Sink,
    version: Version,
    packet: &[u8],
    length: usize,
    rules: Rules,
) {
    let title = version.layer().title;
    let said = usize::from(packet[0] >> 4);
    match version {
        Version::Ipv4 => judge(sink, "ipv4.version", said, 4),
        Version::Ipv6 => judge(sink, "ipv6.version", said, 6),
    }
    if let Some(said) = version.said(packet)
        && said != packet.len()
        && rules.missing == 0
    {
        let present = packet.len();
        sink.wrong(format_args!("{title}: its length says {said} octets, {present} are there"));
    }
    if version == Version::Ipv4 {
        let found = IPV4.get(packet, "checksum") as u16;
        let right = checksum::ipv4_header(&packet[..length]);
        if found != right {
            sink.wrong(format_args!(
                "ipv4.checksum is {found} ({found:#06x}), should be {right} ({right:#06x})"
            ));
        }
    }
}

/// `place` is from the UDP header, which is all there, to the end of what UDP carries.
fn decode_udp(
    sink: &mut impl Sink,
    version: Version,
    all: &[u8],
    network: usize,
    place: Range<usize>,
    rules: Rules,
) -> bool {
    let Range { start, end } = place;
    let udp = &all[start..end];
    sink.header(&UDP, udp);
    if rules.missing == 0 {
        judge(sink, "udp.length", UDP.get(udp, "length") as usize, udp.len());
    }
    let found = UDP.get(udp, "checksum") as u16;
    if rules.missing == 0 && found != 0 {
        let right = udp_checksum(version, &all[network..], udp);
        if found != right {
            sink.wrong(format_args!(
                "udp.checksum is {found} ({found:#06x}), should be {right} ({right:#06x})"
            ));
        }
    }
    let at = start + UDP.octets;
    if UDP.get(udp, "dstport") != u64::from(ROCE_V2_PORT) {
        if shim::begins(&all[at..end]) {
            return shim::decode(sink, all, at, end, rules);
        }
        sink.octets("payload", &all[at..end]);
        return false;
    }
    let icrc = if rules.missing == 0 && end - at >= ICRC { ICRC } else { 0 };
    let broken = transport::decode(sink, all, at, end - icrc, rules);
    if icrc > 0 {
        let covered = &all[network..end - ICRC];
        let expected = crc::icrc(version.network(), at - network, covered);
        sink.check(Check::of_32("icrc", &all[end - ICRC..end], expected));
    }
    broken
}

/// Appends a packet.
pub(super) fn encode(
    version: Version,
    object: &mut Object,
    out: &mut Vec<u8>,
    error: Option<Broken>,
) -> Result<(), Fault> {
    let network = out.len();
    let broken = error.is_some();
    let layer = version.layer();
    let Some(header) = object.header(layer, out)? else { return Ok(()) };
    let options = object.hex("ipv4_options")?.unwrap_or_default();
    out.extend_from_slice(&options);
    if version == Version::Ipv4 {
        header.fill(out, "ihl", (layer.octets + options.len()) / 4)?;
    }
    let length = out.len() - network;
    let udp = object.header(&UDP, out)?;
    let at = out.len();
    if udp.is_some() && object.has("shim") {
        shim::encode(object, out, error)?;
    } else {
        let has_bth = transport::encode(object, out, error)?;
        if has_bth || object.has("icrc") {
            set_lengths(version, (&header, udp.as_ref()), out, ICRC)?;
            encode_check(object, "icrc", ICRC, broken, out, |octets| {
                crc::icrc(version.network(), at - network, &octets[network..])
            })?;
        }
    }
    set_lengths(version, (&header, udp.as_ref()), out, 0)?;
    if let Some(udp) = udp.filter(|udp| udp.wants("checksum") && version == Version::Ipv6) {
        let right = udp_checksum(version, &out[network..], &out[udp.at..]);
        udp.fill(out, "checksum", usize::from(right))?;
    }
    if version == Version::Ipv4 {
        let right = checksum::ipv4_header(&out[network..network + length]);
        header.fill(out, "checksum", usize::from(right))?;
    }
    Ok(())
}

/// Lengths are inside the ICRC, so they are set before it is there.
fn set_lengths(
    version: Version,
    (header, udp): (&Placed, Option<&Placed>),
    out: &mut [u8],
    to_come: usize,
) -> Result<(), Fault> {
    let length = out.len() + to_come - header.at;
    match version {
        Version::Ipv4 => header.fill(out, "total_length", length)?,
        Version::Ipv6 => header.fill(out, "payload_length", length - IPV6.octets)?,
    }
    let Some(udp) = udp else { return Ok(()) };
    let length = out.len() + to_come - udp.at;
    udp.fill(out, "length", length)
}

/// The checksum that a UDP datagram should have, if any.
fn udp_checksum(version: Version, packet: &[u8], udp: &[u8]) -> u16 {
    let addresses = match version {
        Version::Ipv4 => &packet[12..20],
        Version::Ipv6 => &packet[8..40],
    };
    checksum::udp(addresses, udp)
}
