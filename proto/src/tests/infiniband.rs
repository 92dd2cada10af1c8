//! Packets for tests: the standard's sample, and random valid packets.

use crate::ids::{Lid, ServiceLevel, VirtualLane};
use crate::wire::infiniband::{Bth, ExtendedHeaders, Grh, Opcode, PacketBuilder};
use bytes::BytesMut;
use proptest::prelude::*;

/// RC RDMA WRITE Only inside a subnet, two octets of pad, with both CRCs.
/// Source: IBTA Vol 1, 7.8, sample packet.
pub const LOCAL: [u8; 58] = [
    0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2, // LRH
    0x0a, 0x20, 0x24, 0x87, 0x00, 0x87, 0xb1, 0xb3, 0x00, 0x0d, 0xec, 0x2a, // BTH
    0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02, // RETH
    0x38, 0xf2, 0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e, //
    0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4, // payload
    0x72, 0x8b, 0xc0, 0x69, 0x0e, 0xd4, 0x00, 0x00, // and pad
    0x96, 0x25, 0xb7, 0x5a, // ICRC
    0x45, 0xfa, // VCRC
];

/// Offset of the BTH in [`LOCAL`] and [`global`].
pub const LOCAL_BTH: usize = 8;
/// Offset of the BTH in the global sample; see [`LOCAL_BTH`].
pub const GLOBAL_BTH: usize = 48;

/// The same request with a GRH in which no field is zero.
pub fn global() -> BytesMut {
    let packet = crate::wire::infiniband::Packet::parse(&LOCAL).expect("the sample packet parses");
    let builder = PacketBuilder {
        grh: Some(Grh {
            traffic_class: 0x5a,
            flow_label: 0x1_2345,
            hop_limit: 64,
            sgid: "2001:db8::1".parse().expect("an address"),
            dgid: "2001:db8::2".parse().expect("an address"),
            ..Grh::default()
        }),
        ..PacketBuilder::of(&packet).expect("the packet is not raw")
    };
    build(&builder, packet.payload)
}

/// The octets of the packet of `builder` with this payload.
pub fn build(builder: &PacketBuilder, payload: &[u8]) -> BytesMut {
    let mut octets = BytesMut::new();
    builder
        .emit(&mut octets, payload.len(), |place| place.copy_from_slice(payload))
        .expect("the payload fits and the headers match the opcode");
    octets
}

/// Strategy for all builders that [`PacketBuilder::emit`] accepts, with every opcode and reserved bit.
pub fn builders() -> impl Strategy<Value = PacketBuilder> {
    let addresses = (any::<u8>(), any::<u16>(), any::<u16>());
    let grh = proptest::option::of(any::<[u8; Grh::LEN]>());
    let opcode = prop_oneof![3 => proptest::sample::select(Opcode::ALL.to_vec()),
                             1 => any::<u8>().prop_map(Opcode)];
    let rest = (any::<[u8; Bth::LEN]>(), any::<[u8; 28]>(), any::<[u8; 16]>());
    (addresses, grh, opcode, rest).prop_map(|((lanes, dlid, slid), grh, opcode, rest)| {
        let (bth, long, short) = rest;
        let bth = Bth { opcode, version: 0, ..Bth::parse(&bth).expect("twelve octets") };
        let octets = [&long[..], &short[..]].concat();
        let set = opcode.extended_headers();
        PacketBuilder {
            virtual_lane: VirtualLane::truncate(lanes >> 4),
            service_level: ServiceLevel::truncate(lanes & 0xf),
            dlid: Lid::new(dlid),
            slid: Lid::new(slid),
            grh: grh.map(|octets| Grh {
                version: Grh::VERSION,
                next_header: Grh::NEXT_HEADER_BTH,
                ..Grh::parse(&octets).expect("forty octets")
            }),
            bth,
            extended: ExtendedHeaders::parse(set, &octets, 0)
                .expect("the octets suffice for any opcode"),
        }
    })
}

/// Strategy for payloads, mostly short.
pub fn payloads() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        9 => proptest::collection::vec(any::<u8>(), 0..70),
        1 => (0..=4096usize, any::<u8>()).prop_map(|(length, octet)| vec![octet; length]),
    ]
}
