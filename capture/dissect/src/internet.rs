//! IPv4 and IPv6, UDP, and what UDP carries: RoCEv2 or the cables of this project.

use super::body::Body;
use super::headers::{self, UDP};
use super::infiniband::ICRC;
use super::layer::Layer;
use super::object::{Fault, Object, Placed};
use super::part::Part;
use super::sink::{Check, Sink, wrong};
use super::{shim, transport};
use proto::wire::ethernet::crc::{self, Network};
use proto::wire::ethernet::ethertype::{ROCE_V2_PORT, UDP as UDP_PROTOCOL};
use proto::wire::internet::checksum;
use std::ops::Range;

/// A version of IP, and its properties for dissection.
#[derive(Debug)]
pub(super) struct Version {
    layer: &'static Layer,
    /// The value of the version field.
    number: usize,
    network: Network,
    /// The octet that names the protocol inside.
    protocol_at: usize,
    /// Both addresses.
    addresses: Range<usize>,
    /// The field with the packet's length, and the octets that it does not count.
    length: &'static str,
    uncounted: usize,
}

/// IPv4.
pub(super) static IPV4: Version = Version {
    layer: &headers::IPV4,
    number: 4,
    network: Network::Ipv4,
    protocol_at: 9,
    addresses: 12..20,
    length: "total_length",
    uncounted: 0,
};

/// IPv6.
pub(super) static IPV6: Version = Version {
    layer: &headers::IPV6,
    number: 6,
    network: Network::Ipv6,
    protocol_at: 6,
    addresses: 8..40,
    length: "payload_length",
    uncounted: 40,
};

impl Version {
    fn is_ipv4(&self) -> bool {
        self.number == 4
    }

    /// Length of the header at the front of `octets`, options included; `None` if it is not such a header or not whole.
    fn header_len(&self, octets: &[u8]) -> Option<usize> {
        let said = if self.is_ipv4() { usize::from(octets.first()? & 0xf) * 4 } else { 40 };
        (said >= self.layer.octets && said <= octets.len()).then_some(said)
    }

    /// Length of the packet that its header states; `None` for 0, which hosts write that leave segmentation to
    /// their adapter.
    fn said(&self, header: &[u8]) -> Option<usize> {
        let said = self.layer.get(header, self.length) as usize;
        (said > 0).then_some(said + self.uncounted)
    }

    /// The UDP header and what follows it in a packet whose IP header has `length` octets.
    fn udp<'a>(&self, packet: &'a [u8], length: usize) -> Option<&'a [u8]> {
        let udp = &packet[length..];
        (packet[self.protocol_at] == UDP_PROTOCOL && udp.len() >= UDP.octets).then_some(udp)
    }

    /// The checksum that a UDP datagram should have.
    fn udp_checksum(&self, packet: &[u8], udp: &[u8]) -> u16 {
        checksum::udp(&packet[self.addresses.clone()], udp)
    }
}

impl Body for Version {
    /// By its own field and by that of UDP.
    fn lengths(&self, packet: &[u8]) -> [Option<usize>; 2] {
        let Some(length) = self.header_len(packet) else { return [None, None] };
        let udp = self.udp(packet, length);
        let by_udp = udp.map(|udp| length + UDP.get(udp, "length") as usize);
        [self.said(packet), by_udp]
    }

    fn decode(&self, sink: &mut dyn Sink, part: Part<'_>) -> bool {
        let layer = self.layer;
        let packet = part.octets();
        let Some(length) = self.header_len(packet) else {
            if packet.len() < layer.octets {
                return part.header(sink, layer).is_none();
            }
            let said = usize::from(packet[0] & 0xf) * 4;
            let reason = format_args!("its ihl says {said} octets, {} are left", packet.len());
            sink.error(layer.title, part.start, reason, packet);
            if part.is_whole() || said < layer.octets {
                wrong!(sink, "ipv4.ihl says {said} octets, that is not such a header");
            }
            return true;
        };
        let Some(rest) = part.header(sink, layer) else { return true };
        judge_header(sink, self, part, length);
        if length > layer.octets {
            sink.octets("ipv4_options", &packet[layer.octets..length]);
        }
        let rest = rest.after(length - layer.octets);
        if !is_udp(self, packet, length) {
            sink.octets("payload", rest.octets());
            return false;
        }
        decode_udp(sink, self, part.start, rest)
    }

    fn encode(&self, object: &mut Object, out: &mut Vec<u8>) -> Result<(), Fault> {
        let network = out.len();
        let layer = self.layer;
        let Some(header) = object.header(layer, out)? else { return Ok(()) };
        let options = object.hex("ipv4_options")?.unwrap_or_default();
        out.extend_from_slice(&options);
        if self.is_ipv4() {
            header.fill(out, "ihl", (layer.octets + options.len()) / 4)?;
        }
        let length = out.len() - network;
        let udp = object.header(&UDP, out)?;
        let at = out.len();
        // The ICRC covers the lengths, so they are set before it is computed.
        let set_lengths = |out: &mut Vec<u8>, to_come: usize| {
            let end = out.len() + to_come;
            header.fill(out, self.length, end - header.at - self.uncounted)?;
            udp.as_ref().map_or(Ok(()), |udp: &Placed| udp.fill(out, "length", end - udp.at))
        };
        if udp.is_some() && object.has("shim") {
            shim::Records.encode(object, out)?;
        } else if transport::encode(object, out)? || object.has("icrc") {
            set_lengths(out, ICRC)?;
            object.check("icrc", ICRC, out, |octets| {
                crc::icrc(self.network, at - network, &octets[network..])
            })?;
        }
        set_lengths(out, 0)?;
        if let Some(udp) = udp.filter(|udp| udp.wants("checksum") && !self.is_ipv4()) {
            let right = self.udp_checksum(&out[network..], &out[udp.at..]);
            udp.fill(out, "checksum", usize::from(right))?;
        }
        if self.is_ipv4() {
            let right = checksum::ipv4_header(&out[network..network + length]);
            header.fill(out, "checksum", usize::from(right))?;
        }
        Ok(())
    }
}

/// A later fragment has no UDP header. RoCEv2 is never fragmented, so a whole RoCEv2 datagram counts as one even if
/// damage set a fragment offset.
fn is_udp(version: &Version, packet: &[u8], length: usize) -> bool {
    let Some(udp) = version.udp(packet, length) else { return false };
    let is_whole_roce = UDP.get(udp, "dstport") == u64::from(ROCE_V2_PORT)
        && UDP.get(udp, "length") as usize == udp.len();
    !version.is_ipv4() || headers::IPV4.get(packet, "frag_offset") == 0 || is_whole_roce
}

fn judge_header(sink: &mut dyn Sink, version: &Version, part: Part<'_>, length: usize) {
    let (packet, layer) = (part.octets(), version.layer);
    let number = usize::from(packet[0] >> 4);
    sink.judge(&format_args!("{}.version", layer.key), number, version.number);
    let present = packet.len();
    if let Some(said) = version.said(packet).filter(|said| part.is_whole() && *said != present) {
        wrong!(sink, "{}: its length says {said} octets, {present} are there", layer.title);
    }
    if version.is_ipv4() {
        let right = checksum::ipv4_header(&packet[..length]);
        judge_checksum(sink, "ipv4", layer.get(packet, "checksum") as u16, right);
    }
}

fn judge_checksum(sink: &mut dyn Sink, key: &str, found: u16, right: u16) {
    if found != right {
        wrong!(sink, "{key}.checksum is {found} ({found:#06x}), should be {right} ({right:#06x})");
    }
}

/// Dissects the UDP datagram `part`, whose header is whole, of the packet that begins at `network`.
fn decode_udp(sink: &mut dyn Sink, version: &Version, network: usize, part: Part<'_>) -> bool {
    let udp = part.octets();
    let Some(rest) = part.header(sink, &UDP) else { return true };
    let found = UDP.get(udp, "checksum") as u16;
    if part.is_whole() {
        sink.judge(&"udp.length", UDP.get(udp, "length") as usize, udp.len());
        if found != 0 {
            let right = version.udp_checksum(&part.frame[network..], udp);
            judge_checksum(sink, "udp", found, right);
        }
    }
    if UDP.get(udp, "dstport") != u64::from(ROCE_V2_PORT) {
        if shim::begins(rest.octets()) {
            return shim::Records.decode(sink, rest);
        }
        sink.octets("payload", rest.octets());
        return false;
    }
    decode_roce(sink, rest, version.network, network, transport::decode)
}

/// Dissects RoCE up to its ICRC, which covers the frame from `network` on.
pub(super) fn decode_roce(
    sink: &mut dyn Sink,
    part: Part<'_>,
    kind: Network,
    network: usize,
    decode: fn(&mut dyn Sink, Part<'_>) -> bool,
) -> bool {
    let icrc = if part.is_whole() && part.len() >= ICRC { ICRC } else { 0 };
    let end = part.end - icrc;
    let broken = decode(sink, part.up_to(end));
    if icrc > 0 {
        let bth = if kind == Network::Global { headers::GRH.octets } else { part.start - network };
        let expected = crc::icrc(kind, bth, &part.frame[network..end]);
        sink.check(Check::new("icrc", &part.frame[end..part.end], expected));
    }
    broken
}
