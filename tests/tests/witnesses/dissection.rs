//! Every header field and CRC of built packets, compared with tshark's values.

use super::tshark::{fields, frames, write_packets};
use proto::wire::infiniband::Packet;
use std::net::Ipv6Addr;

/// tshark's name of a field, and this project's value if the packet has the field.
type Field = (&'static str, fn(&Packet<'_>) -> Option<u128>);

const FIELDS: &[Field] = &[
    ("infiniband.lrh.vl", |p| Some(p.lrh.virtual_lane.get().into())),
    ("infiniband.lrh.lver", |p| Some(p.lrh.version.into())),
    ("infiniband.lrh.sl", |p| Some(p.lrh.service_level.get().into())),
    ("infiniband.lrh.lnh", |p| Some(p.lrh.next_header as u128)),
    ("infiniband.lrh.dlid", |p| Some(p.lrh.dlid.get().into())),
    ("infiniband.lrh.pktlen", |p| Some(p.lrh.packet_length.into())),
    ("infiniband.lrh.slid", |p| Some(p.lrh.slid.get().into())),
    ("infiniband.grh.ipver", |p| Some(p.grh?.version.into())),
    ("infiniband.grh.tclass", |p| Some(p.grh?.traffic_class.into())),
    ("infiniband.grh.flowlabel", |p| Some(p.grh?.flow_label.into())),
    ("infiniband.grh.paylen", |p| Some(p.grh?.payload_length.into())),
    ("infiniband.grh.nxthdr", |p| Some(p.grh?.next_header.into())),
    ("infiniband.grh.hoplmt", |p| Some(p.grh?.hop_limit.into())),
    ("infiniband.grh.sgid", |p| Some(p.grh?.sgid.to_bits())),
    ("infiniband.grh.dgid", |p| Some(p.grh?.dgid.to_bits())),
    ("infiniband.bth.opcode", |p| Some(p.bth?.opcode.0.into())),
    ("infiniband.bth.se", |p| Some(p.bth?.solicited.into())),
    ("infiniband.bth.m", |p| Some(p.bth?.migration_request.into())),
    ("infiniband.bth.padcnt", |p| Some(p.bth?.pad_count.into())),
    ("infiniband.bth.tver", |p| Some(p.bth?.version.into())),
    ("infiniband.bth.p_key", |p| Some(p.bth?.partition_key.into())),
    ("infiniband.bth.destqp", |p| Some(p.bth?.destination.get().into())),
    ("infiniband.bth.a", |p| Some(p.bth?.ack_request.into())),
    ("infiniband.bth.psn", |p| Some(p.bth?.psn.get().into())),
    ("infiniband.deth.q_key", |p| Some(p.extended.deth?.queue_key.into())),
    ("infiniband.deth.srcqp", |p| Some(p.extended.deth?.source.get().into())),
    ("infiniband.reth.va", |p| {
        let reth = p.extended.reth.map(|reth| reth.virtual_address);
        // An AtomicETH begins like a RETH, and tshark uses the RETH's field names.
        Some(reth.or(p.extended.atomic_eth.map(|atomic| atomic.virtual_address))?.into())
    }),
    ("infiniband.reth.r_key", |p| {
        let reth = p.extended.reth.map(|reth| reth.remote_key);
        Some(reth.or(p.extended.atomic_eth.map(|atomic| atomic.remote_key))?.into())
    }),
    ("infiniband.reth.dmalen", |p| Some(p.extended.reth?.dma_length.into())),
    ("infiniband.aeth.syndrome", |p| Some(p.extended.aeth?.syndrome.octet().into())),
    ("infiniband.aeth.msn", |p| Some(p.extended.aeth?.message_sequence_number.into())),
    // tshark shows both CRCs as big-endian numbers.
    ("infiniband.invariant.crc", |p| Some(p.icrc?.swap_bytes().into())),
    ("infiniband.variant.crc", |p| Some(p.vcrc.swap_bytes().into())),
];

fn number(text: &str) -> Option<u128> {
    match text {
        "" => None,
        "True" => Some(1),
        "False" => Some(0),
        _ if text.contains(':') => Some(text.parse::<Ipv6Addr>().expect("a GID").to_bits()),
        _ => Some(
            match text.strip_prefix("0x") {
                Some(hex) => u128::from_str_radix(hex, 16),
                None => text.parse(),
            }
            .unwrap_or_else(|error| panic!("{text:?}: {error}")),
        ),
    }
}

#[test]
fn tshark_agrees_on_every_field() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("fields.pcapng");
    let frames = frames();
    write_packets(&file, &frames);
    let names: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
    let Some(rows) = fields(&file, &names, &[]) else { return };
    assert_eq!(rows.len(), frames.len());
    let mut compared = 0;
    for (octets, row) in frames.iter().zip(&rows) {
        let packet = Packet::parse(octets).expect("a built packet parses");
        let opcode = packet.bth.expect("the packet is not raw").opcode;
        for ((name, ours), theirs) in FIELDS.iter().zip(row) {
            assert_eq!(number(theirs), ours(&packet), "{name} of {opcode}");
            compared += usize::from(!theirs.is_empty());
        }
    }
    assert!(compared > 20 * frames.len(), "{compared} fields of {} packets", frames.len());
    println!("{compared} fields of {} packets", frames.len());
}

#[test]
fn tshark_agrees_on_immediates_and_atomics() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("immediates.pcapng");
    let frames = frames();
    write_packets(&file, &frames);
    let names = [
        "infiniband.immdt",
        "infiniband.ieth",
        "infiniband.atomiceth.swapdt",
        "infiniband.atomiceth.cmpdt",
        "infiniband.atomicacketh.origremdt",
    ];
    let Some(rows) = fields(&file, &names, &[]) else { return };
    let mut seen = [0; 5];
    for (octets, row) in frames.iter().zip(&rows) {
        let packet = Packet::parse(octets).expect("a built packet parses");
        let bth = packet.bth.expect("the packet is not raw");
        let body = Packet::octets_len(&packet) - 6 - packet.payload.len() - packet.pad.len();
        let last = |n: usize| {
            let field = &octets[body - n..body];
            Some(field.iter().fold(0u128, |sum, octet| sum << 8 | u128::from(*octet)))
        };
        let extended = packet.extended;
        let ours = [
            extended.immdt.and_then(|_| last(4)),
            extended.ieth.and_then(|_| last(4)),
            extended.atomic_eth.and_then(|_| last(16).map(|both| both >> 64)),
            extended.atomic_eth.and_then(|_| last(8)),
            extended.atomic_ack_eth.and_then(|_| last(8)),
        ];
        for index in 0..names.len() {
            // tshark shows the first two as octets.
            let theirs = match row[index].as_str() {
                octets if index < 2 && !octets.is_empty() => number(&format!("0x{octets}")),
                text => number(text),
            };
            assert_eq!(theirs, ours[index], "{} of {}", names[index], bth.opcode);
            seen[index] += usize::from(theirs.is_some());
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}

#[test]
fn tshark_without_the_plugin_reports_no_malformed_packet() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("malformed.pcapng");
    write_packets(&file, &frames());
    let Some(rows) = fields(&file, &["frame.number"], &["-Y", "_ws.malformed || _ws.expert"])
    else {
        return;
    };
    assert_eq!(rows, [[""; 0]; 0]);
}
