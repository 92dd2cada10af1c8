//! An Ethernet frame: emit reproduces every frame that parses, an ECN mark changes no verdict, and `encode`
//! reverses `decode`.

use bytes::BytesMut;
use dissect::json::JsonSink;
use dissect::{Meta, Rules, decode, encode};
use proto::frame::{FrameHeaders, FrameKind};
use proto::ids::{Ecn, Priority};
use proto::technology::Technology;
use proto::wire::classify::{PriorityMap, classify, classify_ethernet};
use proto::wire::ethernet::{EthernetHeader, MacControl, crc};
use proto::wire::internet::mark_congestion;
use proto::wire::roce::checks::{verify_checksums, verify_icrc};
use proto::wire::roce::{Layout, Packet, PacketBuilder};

/// The first octet selects repairs of the others: bit 0 the lengths of IPv4 and UDP, bit 1 those of IPv6 and
/// UDP, bit 2 the length in a GRH, bit 3 appends an FCS.
pub fn check(input: &[u8]) {
    let Some((mend, octets)) = input.split_first() else { return };
    let mut octets = octets.to_vec();
    let length = octets.len();
    let mut put = |at: usize, behind: usize| {
        if let Some(place) = octets.get_mut(at..at + 2) {
            place.copy_from_slice(&(length.saturating_sub(behind) as u16).to_be_bytes());
        }
    };
    if mend & 1 != 0 {
        put(16, 14);
        put(38, 34);
    }
    if mend & 2 != 0 {
        put(18, 54);
        put(58, 54);
    }
    if mend & 4 != 0 {
        put(18, 54);
    }
    if mend & 8 != 0 {
        octets.extend(crc::fcs(&octets).to_le_bytes());
        assert!(crc::without_fcs(&octets).is_ok());
    }
    taken_apart(&octets);
    control(&octets);
    marked(&octets);
    told_and_encoded(&octets);
}

fn taken_apart(octets: &[u8]) {
    let classified = classify(FrameKind::Ethernet, octets);
    // The checks must not panic, whatever their result.
    let _ = (verify_icrc(octets), verify_checksums(octets), Layout::find(octets));
    let by_dscp = classify_ethernet(octets, &PriorityMap::BY_DSCP);
    assert_eq!(by_dscp.is_ok(), classified.is_ok(), "a priority map refuses no valid frame");
    let Ok(Some(packet)) = Packet::parse(octets) else { return };
    assert_eq!(packet.octets_len(), octets.len());
    assert_eq!(packet.to_octets(), octets, "emit reproduces the parsed octets");
    let headers = classified.expect("a frame that parses can be classified");
    let bth = packet.transport.bth;
    assert_eq!(headers.payload.get(), packet.transport.payload.len() as u64);
    assert_eq!((headers.psn, headers.fecn), (bth.psn.get(), bth.fecn));
    let builder = PacketBuilder {
        destination: packet.ethernet.header.destination,
        source: packet.ethernet.header.source,
        tag: packet.ethernet.tag,
        network: packet.network,
        bth,
        extended: packet.transport.extended,
    };
    let payload = packet.transport.payload;
    let mut built = BytesMut::new();
    builder
        .emit(&mut built, payload.len(), |place| place.copy_from_slice(payload))
        .expect("a parsed packet can be emitted");
    assert_eq!((verify_icrc(&built), verify_checksums(&built)), (Ok(()), Ok(())));
    let again = Packet::parse(&built).expect("a complete frame").expect("a RoCE frame");
    assert_eq!(again.transport.payload, payload);
    assert_eq!(again.transport.extended, packet.transport.extended);
}

/// Emitting a parsed MAC control frame and parsing it again gives the same frame.
fn control(octets: &[u8]) {
    let Ok(control) = MacControl::parse(octets) else { return };
    let source =
        EthernetHeader::parse(octets).expect("a MAC control frame has an Ethernet header").source;
    let sent = control.to_octets(source);
    assert_eq!(MacControl::parse(&sent), Ok(control));
    if let MacControl::Pfc(pfc) = control {
        let speaks = |n| pfc.time(Priority::truncate(n)).is_some();
        assert_eq!((0..8).filter(|n| speaks(*n)).count() as u32, pfc.enabled.count_ones());
    }
}

fn marked(octets: &[u8]) {
    let mut after = octets.to_vec();
    let is_marked = mark_congestion(&mut after);
    assert!(is_marked || after == octets, "a frame without a mark is unchanged");
    let Ok(before) = classify(FrameKind::Ethernet, octets) else { return };
    assert_eq!(is_marked, before.ecn.is_capable());
    let ecn = if is_marked { Ecn::CongestionExperienced } else { before.ecn };
    let headers = classify(FrameKind::Ethernet, &after).expect("a marked frame can be classified");
    assert_eq!(headers, FrameHeaders { ecn, ..before });
    let verdicts = |octets: &[u8]| (verify_icrc(octets).is_ok(), verify_checksums(octets).is_ok());
    assert_eq!(verdicts(octets), verdicts(&after));
    let once = after.clone();
    mark_congestion(&mut after);
    assert_eq!(once, after, "a second mark changes nothing");
}

pub(crate) fn told_and_encoded(octets: &[u8]) {
    let (technology, length) = (Technology::Ethernet, octets.len());
    let mut sink = JsonSink::default();
    sink.begin(&Meta::new(1, technology, length));
    decode(&mut sink, technology, octets, length, Rules::default());
    let line = std::str::from_utf8(sink.finish()).expect("JSON is text");
    let encoded = encode(line).expect("the output of decode can be encoded");
    assert_eq!(encoded.octets, octets, "{line}");
}
