//! Octets that the cases of ENC begin with, and CRCs computed one bit after another: slow, short, and
//! sharing nothing with the product's.

use crate::prelude::*;
use proto::ids::{Dscp, Psn, ServiceLevel};
use proto::random::Random;
use proto::wire::error::ParseError;
use proto::wire::ethernet::MacAddress;
use proto::wire::infiniband::{
    Aeth, AtomicAckEth, AtomicEth, Bth, Deth, ExtendedHeaders, Grh, Ieth, ImmDt, Lrh, Opcode,
    PacketBuilder, Rdeth, Reth, XrcEth,
};
use proto::wire::internet::{Ipv4, Ipv6, Udp};
use proto::wire::roce::{self, NetworkHeaders};
use std::ops::Range;

/// RC RDMA WRITE Only inside a subnet, two octets of pad, without its CRCs.
/// Source: IBTA Vol 1, 7.8, sample packet.
pub const LOCAL: [u8; 52] = [
    0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2, // LRH
    0x0a, 0x20, 0x24, 0x87, 0x00, 0x87, 0xb1, 0xb3, 0x00, 0x0d, 0xec, 0x2a, // BTH
    0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02, // RETH
    0x38, 0xf2, 0x7a, 0x05, 0x00, 0x00, 0x00, 0x0e, //
    0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4, // payload
    0x72, 0x8b, 0xc0, 0x69, 0x0e, 0xd4, 0x00, 0x00, // and pad
];
/// Its ICRC as sent.
pub const LOCAL_ICRC: [u8; 4] = [0x96, 0x25, 0xb7, 0x5a];
/// Its VCRC as sent.
pub const LOCAL_VCRC: [u8; 2] = [0x45, 0xfa];

/// The sample with both CRCs.
pub fn local() -> Vec<u8> {
    [&LOCAL[..], &LOCAL_ICRC, &LOCAL_VCRC].concat()
}

/// A reflected CRC with all ones to begin and to end with, bit by bit.
pub fn crc_bit_by_bit(reflected: u32, width: u32, octets: &[u8]) -> u32 {
    let ones = u32::MAX >> (32 - width);
    let mut register = ones;
    for octet in octets {
        register ^= u32::from(*octet);
        for _ in 0..8 {
            let carry = register & 1;
            register = (register >> 1) ^ (reflected * carry);
        }
    }
    register ^ ones
}

/// VCRC and LPCRC: generator 0x100B. Source: IBTA Vol 1, 7.8.2.
pub fn crc16(octets: &[u8]) -> u16 {
    crc_bit_by_bit(0xd008, 16, octets) as u16
}

/// The CRC of Ethernet, of which the ICRC is one.
pub fn crc32(octets: &[u8]) -> u32 {
    crc_bit_by_bit(0xedb8_8320, 32, octets)
}

/// A GRH in which no field is zero.
pub fn grh() -> Grh {
    Grh {
        traffic_class: 0x5a,
        flow_label: 0x1_2345,
        hop_limit: 64,
        sgid: [0x2001, 0xdb8, 1, 2, 3, 4, 5, 6].into(),
        dgid: [0x2001, 0xdb8, 7, 8, 9, 10, 11, 12].into(),
        ..Grh::default()
    }
}

/// A packet with this opcode, with the headers it calls for, and a GRH if wanted. No field is zero.
pub fn builder(opcode: Opcode, global: bool) -> PacketBuilder {
    let octets: Vec<u8> = (1..=60).collect();
    let extended = ExtendedHeaders::parse(opcode.extended_headers(), &octets, 0)
        .expect("the longest extended headers have fewer than sixty octets");
    PacketBuilder {
        virtual_lane: VirtualLane::truncate(3),
        service_level: ServiceLevel::truncate(5),
        dlid: Lid::new(0x1234),
        slid: Lid::new(0x2345),
        grh: global.then(grh),
        bth: Bth::new(opcode, QueuePairNumber::truncate(0x34_5678), Psn::truncate(0x45_6789)),
        extended,
    }
}

/// The three that carry RoCE. No field is zero.
pub fn networks() -> [(&'static str, NetworkHeaders<'static>); 3] {
    let (dscp, ecn, udp) = (Dscp::truncate(26), Ecn::Capable0, Udp::roce(0xc123));
    let v4 = Ipv4 {
        dscp,
        ecn,
        identification: 0x1234,
        source: [10, 0, 17, 1].into(),
        destination: [10, 0, 18, 1].into(),
        ..Ipv4::default()
    };
    let (source, destination) = (grh().sgid, grh().dgid);
    let v6 = Ipv6 { dscp, ecn, flow_label: 0x1_2345, source, destination, ..Ipv6::default() };
    [
        ("RoCEv2/IPv4", NetworkHeaders::Ipv4(v4, &[], udp)),
        ("RoCEv2/IPv6", NetworkHeaders::Ipv6(v6, udp)),
        ("RoCEv1", NetworkHeaders::Global(grh())),
    ]
}

/// A RoCE packet with this opcode and the headers it calls for, untagged.
pub fn roce_builder(opcode: Opcode, network: NetworkHeaders<'_>) -> roce::PacketBuilder<'_> {
    let PacketBuilder { bth, extended, .. } = builder(opcode, false);
    roce::PacketBuilder {
        destination: MacAddress::new([0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2]),
        source: MacAddress::new([0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32]),
        tag: None,
        network,
        bth,
        extended,
    }
}

/// The frame of `builder` around this payload.
pub fn roce_octets(builder: &roce::PacketBuilder<'_>, payload: &[u8]) -> Vec<u8> {
    let mut buffer = bytes::BytesMut::new();
    builder
        .emit(&mut buffer, payload.len(), |place| place.copy_from_slice(payload))
        .expect("short enough, and with the headers of its opcode");
    buffer.to_vec()
}

/// The octets of `builder` around this payload.
pub fn octets(builder: &PacketBuilder, payload: &[u8]) -> Vec<u8> {
    let mut buffer = bytes::BytesMut::new();
    builder
        .emit(&mut buffer, payload.len(), |place| place.copy_from_slice(payload))
        .expect("short enough, and with the headers of its opcode");
    buffer.to_vec()
}

/// The longest headers an opcode can call for.
const EXTENDED_MAX: usize = Rdeth::LEN
    + Deth::LEN
    + AtomicEth::LEN
    + XrcEth::LEN
    + Reth::LEN
    + Aeth::LEN
    + AtomicAckEth::LEN
    + ImmDt::LEN
    + Ieth::LEN;

/// Octets in hexadecimal, as in "96 25 b7 5a".
pub fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect::<Vec<_>>().join(" ")
}

/// Bits of a packet, bit 0 being the most significant of its first octet.
pub const fn octet(index: usize) -> Range<usize> {
    index * 8..index * 8 + 8
}

/// Fills `octets` at random.
pub fn fill(random: &mut Random, octets: &mut [u8]) {
    for chunk in octets.chunks_mut(8) {
        let number = random.next_u64().to_le_bytes();
        chunk.copy_from_slice(&number[..chunk.len()]);
    }
}

/// A packet with random fields.
pub fn random_builder(random: &mut Random, global: bool) -> PacketBuilder {
    let mut octets = [0; Lrh::LEN + Grh::LEN + Bth::LEN + EXTENDED_MAX];
    fill(random, &mut octets);
    let (lrh, rest) = octets.split_at(Lrh::LEN);
    let (grh, rest) = rest.split_at(Grh::LEN);
    let (bth, extended) = rest.split_at(Bth::LEN);
    let opcode = match random.below(4) {
        0 => Opcode(bth[0]),
        _ => Opcode::ALL[random.below(Opcode::ALL.len() as u64) as usize],
    };
    let bth = Bth::parse(bth).expect("twelve octets");
    let grh = Grh::parse(grh).expect("forty octets");
    PacketBuilder {
        virtual_lane: VirtualLane::truncate(lrh[0]),
        service_level: ServiceLevel::truncate(lrh[1]),
        dlid: Lid::new(u16::from_le_bytes([lrh[2], lrh[3]])),
        slid: Lid::new(u16::from_le_bytes([lrh[6], lrh[7]])),
        grh: global.then_some(Grh {
            version: Grh::VERSION,
            next_header: Grh::NEXT_HEADER_BTH,
            ..grh
        }),
        bth: Bth { opcode, version: 0, ..bth },
        extended: ExtendedHeaders::parse(opcode.extended_headers(), extended, 0)
            .expect("enough octets for any opcode"),
    }
}

/// Holds if an error names the layer where it was found.
pub fn names_a_layer(error: &ParseError) -> Result<()> {
    ensure!(!error.layer.is_empty(), "{error} names no layer");
    Ok(())
}

/// Flips each of the first `covered` bits; how many of how many the ICRC did not see, which must be those in
/// `variant`.
pub fn blind_bits(
    name: &str,
    packet: &[u8],
    covered: usize,
    variant: &[Range<usize>],
    icrc: impl Fn(&[u8]) -> Option<u32>,
) -> Finding {
    let carried = icrc(packet);
    ensure!(carried.is_some(), "the {name} packet has no ICRC");
    let mut blind = 0;
    for bit in 0..covered {
        let mut flipped = packet.to_vec();
        flipped[bit / 8] ^= 0x80 >> (bit % 8);
        let unchanged = icrc(&flipped) == carried;
        let may_change = variant.iter().any(|range| range.contains(&bit));
        same(format!("bit {bit} of the {name} packet leaves the ICRC"), unchanged, may_change)?;
        blind += usize::from(unchanged);
    }
    Ok(format!("{blind} of {covered}"))
}
