//! Octets from third parties: captured packets and published vectors.
//!
//! The folder is `../shared/captures` beside the repository, or the one that `PAUSEBED_CAPTURES` names. It is
//! never committed. Without the default folder the tests are skipped. Without a folder named by
//! `PAUSEBED_CAPTURES` they fail.

#[path = "captures/connection.rs"]
mod connection;
#[path = "captures/ethernet.rs"]
mod ethernet;
#[path = "captures/rxe.rs"]
mod rxe;

use bytes::BytesMut;
use proto::frame::{FrameClass, FrameKind};
use proto::ids::{Lid, Psn, QueuePairNumber, VirtualLane};
use proto::wire::classify::classify;
use proto::wire::infiniband::{
    Bth, ExtendedHeaders, FlowControlOp, FlowControlPacket, Opcode, Packet, PacketBuilder, crc,
    refresh_vcrc, relabel, set_fecn, set_virtual_lane,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn captures() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PAUSEBED_CAPTURES") {
        let folder = PathBuf::from(named);
        assert!(
            folder.is_dir(),
            "PAUSEBED_CAPTURES names {}, which is not a folder",
            folder.display()
        );
        return Some(folder);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/captures");
    if !folder.is_dir() {
        skip::because!("no captures at {}; set PAUSEBED_CAPTURES", folder.display());
        return None;
    }
    Some(folder)
}

/// The link type and the records of a classic pcap file in little-endian byte order.
fn pcap_records(octets: &[u8]) -> (u32, Vec<&[u8]>) {
    let word = |at: usize| u32::from_le_bytes(octets[at..at + 4].try_into().expect("four octets"));
    assert_eq!(word(0), 0xa1b2_c3d4, "the file is a little-endian pcap with microseconds");
    let mut records = Vec::new();
    let mut at = 24;
    while at < octets.len() {
        let (captured, original) = (word(at + 8) as usize, word(at + 12) as usize);
        assert_eq!(captured, original, "the record is whole");
        records.push(&octets[at + 16..at + 16 + captured]);
        at += 16 + captured;
    }
    (word(20), records)
}

/// The InfiniBand packet of an ERF record of type 21: it follows a 16-octet header, and padding may
/// follow it.
fn erf_infiniband(record: &[u8]) -> &[u8] {
    assert_eq!(record[8] & 0x7f, 21, "the record is InfiniBand without extension headers");
    let wire_length = u16::from_be_bytes([record[14], record[15]]);
    &record[16..16 + usize::from(wire_length)]
}

/// Checks that an InfiniBand packet round-trips and that both CRCs are valid.
fn assert_genuine(octets: &[u8], name: &str) {
    let packet = Packet::parse(octets).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(packet.to_octets(), octets, "{name}: emit reproduces the parsed octets");
    assert_eq!(crc::verify_icrc(octets), Ok(()), "{name}");
    assert_eq!(crc::verify_vcrc(octets), Ok(()), "{name}");
    let headers =
        classify(FrameKind::Infiniband, octets).expect("a parsed frame can be classified");
    let bth = packet.bth.expect("no captured packet is raw");
    assert_eq!(headers.payload.get(), packet.payload.len() as u64, "{name}");
    assert_eq!(headers.psn, bth.psn.get(), "{name}");

    let rebuilt = rebuild(&packet);
    assert_eq!(rebuilt, octets, "{name}: a packet built from the fields has the same octets");
}

fn rebuild(packet: &Packet<'_>) -> BytesMut {
    let builder = PacketBuilder::of(packet).expect("no captured packet is raw");
    let mut octets = BytesMut::new();
    let fill = |place: &mut [u8]| place.copy_from_slice(packet.payload);
    builder.emit(&mut octets, packet.payload.len(), fill).expect("a parsed packet can be emitted");
    octets
}

#[test]
fn every_captured_infiniband_frame_round_trips_with_valid_crcs() {
    let Some(folder) = captures() else { return };
    let mut frames = 0;
    for entry in std::fs::read_dir(folder.join("ib")).expect("the folder ib") {
        let path = entry.expect("a readable folder").path();
        let octets = std::fs::read(&path).expect("a readable file");
        let (link_type, records) = pcap_records(&octets);
        assert_eq!(link_type, 197, "{} holds ERF records", path.display());
        for (index, record) in records.into_iter().enumerate() {
            assert_genuine(erf_infiniband(record), &format!("{} #{}", path.display(), index + 1));
            frames += 1;
        }
    }
    assert!(frames >= 25, "the public sample has 25 frames, found {frames}");
    println!("{frames} captured InfiniBand frames");
}

struct Vector {
    octets: Vec<u8>,
    fields: BTreeMap<String, Value>,
}

impl Vector {
    /// A field's value as a number, from a JSON number or a decimal or hexadecimal string.
    fn number(&self, field: &str) -> u64 {
        match &self.fields[field] {
            Value::Number(number) => number.as_u64().expect("not negative"),
            Value::String(text) => match text.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16),
                None => text.parse(),
            }
            .unwrap_or_else(|error| panic!("{field} = {text:?}: {error}")),
            other => panic!("{field} = {other}"),
        }
    }
}

fn hex(text: &str) -> Vec<u8> {
    let octet = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(octet).collect()
}

/// The InfiniBand vectors of `vectors.json` by name.
fn infiniband_vectors(folder: &Path) -> BTreeMap<String, Vector> {
    let text = std::fs::read_to_string(folder.join("vectors.json")).expect("vectors.json");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    let vectors = file["vectors"].as_array().expect("a list");
    let text = |value: &Value| value.as_str().expect("a string").to_owned();
    vectors
        .iter()
        .map(|vector| (text(&vector["name"]), vector))
        .filter(|(name, _)| name.starts_with("ib-"))
        .map(|(name, vector)| {
            let fields = vector["fields"].as_object().expect("an object").clone();
            let octets = hex(&text(&vector["hex"]));
            assert_eq!(vector["length"], octets.len(), "{name}");
            (name, Vector { octets, fields: fields.into_iter().collect() })
        })
        .collect()
}

/// The value of a decoded packet's field, by tshark's name.
fn decoded(packet: &Packet<'_>, field: &str) -> String {
    let number = |value: u64| value.to_string();
    let lrh = &packet.lrh;
    let bth = packet.bth.as_ref().expect("the packet is not raw");
    match field {
        "lrh.vl" => number(lrh.virtual_lane.get().into()),
        "lrh.lver" => number(lrh.version.into()),
        "lrh.sl" => number(lrh.service_level.get().into()),
        "lrh.lnh" => number(lrh.next_header as u64),
        "lrh.dlid" => number(lrh.dlid.get().into()),
        "lrh.pktlen" => number(lrh.packet_length.into()),
        "lrh.slid" => number(lrh.slid.get().into()),
        "bth.opcode" => number(bth.opcode.0.into()),
        "bth.m" => number(bth.migration_request.into()),
        "bth.padcnt" => number(bth.pad_count.into()),
        "bth.p_key" => number(bth.partition_key.into()),
        "bth.destqp" => number(bth.destination.get().into()),
        "bth.a" => number(bth.ack_request.into()),
        "bth.psn" => number(bth.psn.get().into()),
        "bth.fecn" => number(bth.fecn.into()),
        "bth.becn" => number(bth.becn.into()),
        "invariant.crc" => number(packet.icrc.expect("the packet is not raw").swap_bytes().into()),
        "variant.crc" => number(packet.vcrc.swap_bytes().into()),
        _ => decoded_optional(packet, field).unwrap_or_else(|| panic!("no such field: {field}")),
    }
}

fn decoded_optional(packet: &Packet<'_>, field: &str) -> Option<String> {
    let ExtendedHeaders { deth, aeth, .. } = packet.extended;
    Some(match field {
        "deth.q_key" => deth?.queue_key.to_string(),
        "deth.srcqp" => deth?.source.to_string(),
        "aeth.syndrome" => aeth?.syndrome.octet().to_string(),
        "aeth.msn" => aeth?.message_sequence_number.to_string(),
        "grh.nxthdr" => packet.grh?.next_header.to_string(),
        "grh.paylen" => packet.grh?.payload_length.to_string(),
        "grh.hoplmt" => packet.grh?.hop_limit.to_string(),
        "grh.sgid" => packet.grh?.sgid.to_string(),
        "grh.dgid" => packet.grh?.dgid.to_string(),
        _ => return None,
    })
}

fn assert_fields(name: &str, vector: &Vector) {
    let packet = Packet::parse(&vector.octets).expect("a packet");
    for field in vector.fields.keys() {
        let found = match field.as_str() {
            "icrc_bytes_on_wire" => {
                let end = vector.octets.len() - 2;
                assert_eq!(vector.octets[end - 4..end], hex(text(vector, field)), "{name}");
                continue;
            }
            "vcrc_bytes_on_wire" => {
                assert_eq!(packet.vcrc.to_le_bytes(), hex(text(vector, field))[..], "{name}");
                continue;
            }
            _ => decoded(&packet, field),
        };
        let expected = match field.as_str() {
            "grh.sgid" | "grh.dgid" => text(vector, field).to_owned(),
            _ => vector.number(field).to_string(),
        };
        assert_eq!(found, expected, "{name}: {field}");
    }
}

fn text<'a>(vector: &'a Vector, field: &str) -> &'a str {
    vector.fields[field].as_str().expect("a string")
}

#[test]
fn every_infiniband_vector_decodes_to_its_fields() {
    let Some(folder) = captures() else { return };
    let vectors = infiniband_vectors(&folder);
    let mut packets = 0;
    for (name, vector) in vectors.iter().filter(|(name, _)| !name.starts_with("ib-fcp-")) {
        assert_genuine(&vector.octets, name);
        assert_fields(name, vector);
        packets += 1;
    }
    assert!(packets >= 7, "found only {packets}");
}

/// IBRX-09 on a captured packet: the marked vector equals the plain one after a switch.
#[test]
fn setting_fecn_turns_the_plain_vector_into_the_marked_one() {
    let Some(folder) = captures() else { return };
    let vectors = infiniband_vectors(&folder);
    let plain = &vectors["ib-rc-send-only"].octets;
    let marked = &vectors["ib-rc-send-only-vl3-fecn"].octets;
    let lane = VirtualLane::truncate(3);

    let mut octets = plain.clone();
    set_virtual_lane(&mut octets, lane);
    assert!(set_fecn(&mut octets));
    assert_ne!(&octets, marked, "the VCRC is not updated yet");
    refresh_vcrc(&mut octets);
    assert_eq!(&octets, marked);

    let mut octets = plain.clone();
    assert!(relabel::relabel(&mut octets, lane, true));
    assert_eq!(&octets, marked);
}

#[test]
fn the_cnp_vector_is_built_from_its_fields() {
    let Some(folder) = captures() else { return };
    let vectors = infiniband_vectors(&folder);
    let qpn = QueuePairNumber::truncate(0x118);
    let bth = Bth { becn: true, ..Bth::new(Opcode::CNP, qpn, Psn::truncate(0)) };
    let builder = PacketBuilder { slid: Lid::new(1), dlid: Lid::new(4), ..PacketBuilder::new(bth) };
    let mut octets = BytesMut::new();
    builder.emit(&mut octets, 0, |_| ()).expect("six words");
    assert_eq!(octets, vectors["ib-cnp-header-only"].octets);
    let headers = classify(FrameKind::Infiniband, &octets).expect("a built packet parses");
    assert_eq!((headers.class, headers.becn), (FrameClass::Notification, true));
}

#[test]
fn flow_control_vectors_parse_and_emit() {
    let Some(folder) = captures() else { return };
    let vectors = infiniband_vectors(&folder);
    let mut packets = 0;
    for (name, vector) in vectors.iter().filter(|(name, _)| name.starts_with("ib-fcp-")) {
        let packet = FlowControlPacket {
            op: FlowControlOp::from_bits(vector.number("op") as u8),
            fctbs: vector.number("fctbs") as u16,
            virtual_lane: VirtualLane::truncate(vector.number("vl") as u8),
            fccl: vector.number("fccl") as u16,
        };
        assert_eq!(FlowControlPacket::parse(&vector.octets), Ok(packet), "{name}");
        assert_eq!(packet.to_octets(), vector.octets[..], "{name}");
        let lpcrc = crc::lpcrc(&vector.octets).to_le_bytes();
        assert_eq!(lpcrc, hex(text(vector, "lpcrc_bytes_on_wire"))[..], "{name}");
        packets += 1;
    }
    assert!(packets >= 4, "found only {packets}");
}
