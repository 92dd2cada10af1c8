//! RoCE packets for tests: captured and published packets, and random valid packets.

use crate::ids::{Dscp, Ecn, Priority, VlanId};
use crate::tests::infiniband as samples;
use crate::wire::ethernet::{MacAddress, VlanTag};
use crate::wire::infiniband::Grh;
use crate::wire::internet::{Ipv4, Ipv6, Udp};
use crate::wire::roce::{NetworkHeaders, PacketBuilder};
use bytes::BytesMut;
use proptest::prelude::*;

/// A CNP over IPv4 that a ConnectX-4 Lx sent. Source: scapy, test/contrib/roce.uts.
pub const CNP: &str = "e41d2dab2bc27cfe90643b32080045c2003c718c4000401191610a0011010a001201000012b700280000\
    8100ffff40000118000000000000000000000000000000000000000082fd002a";

/// The same CNP over IPv6 (written by scapy 2.6, contrib roce).
pub const CNP_IPV6: &str = "e41d2dab2bc27cfe90643b3286dd6c2123450028114020010db800000000000000000000001120010db8\
    000000000000000000000012c12312b70028892d8100ffff400001180000000000000000000000000000\
    000000000000801004d8";

/// RC SEND Only over IPv4 with ECT(0), tagged with priority 3 (written by scapy, contrib roce).
pub const SEND: &str = "e41d2dab2bc27cfe90643b32810060640800456a003c00014000401103450a0011010a001201c35012b7\
    002800000440ffff0000011880abcdef6c6f73736c6573732d7061796c6f616402ed9085";

/// The same SEND after a switch set CE.
pub const SEND_MARKED: &str = "e41d2dab2bc27cfe90643b32810060640800456b003c00014000401103440a0011010a001201c35012b7\
    002800000440ffff0000011880abcdef6c6f73736c6573732d7061796c6f616402ed9085";

/// RC RDMA WRITE Only over RoCEv1 that hardware sent (scapy, test/contrib/roce.uts).
pub const WRITE_V1: &str = "7cfe90753cd87cfe90753cd889156020000000281b4000000000000000000000ffff0f00000200000000\
    000000000000ffff0f0000020a70ffff0000010a80a788bc000055d4c0726000000047b3000000050000\
    000001000000e3d856bb";

/// All samples.
pub const ALL: [&str; 5] = [CNP, CNP_IPV6, SEND, SEND_MARKED, WRITE_V1];

/// The octets of a sample.
pub fn octets(sample: &str) -> Vec<u8> {
    let octet = |at| u8::from_str_radix(&sample[at..at + 2], 16).expect("hexadecimal");
    (0..sample.len()).step_by(2).map(octet).collect()
}

/// The octets of the frame of `builder` with this payload.
pub fn build(builder: &PacketBuilder<'_>, payload: &[u8]) -> BytesMut {
    let mut octets = BytesMut::new();
    builder
        .emit(&mut octets, payload.len(), |place| place.copy_from_slice(payload))
        .expect("the payload fits and the headers match the opcode");
    octets
}

fn tags() -> impl Strategy<Value = Option<VlanTag>> {
    proptest::option::of(any::<u16>().prop_map(|control| VlanTag {
        priority: Priority::truncate((control >> 13) as u8),
        drop_eligible: control & 0x1000 != 0,
        id: VlanId::truncate(control),
        ethertype: 0,
    }))
}

fn networks() -> impl Strategy<Value = NetworkHeaders<'static>> {
    let octets = (any::<[u8; 40]>(), any::<(u16, bool)>(), 0..=10usize);
    (0..3, octets).prop_map(|(which, (octets, (source_port, summed), words))| {
        let udp = Udp { checksum: summed.into(), ..Udp::roce(source_port) };
        match which {
            0 => NetworkHeaders::Global(Grh {
                version: Grh::VERSION,
                next_header: Grh::NEXT_HEADER_BTH,
                ..Grh::parse(&octets).expect("forty octets")
            }),
            1 => {
                let ip = Ipv4::parse(&octets).expect("twenty octets");
                let (version, protocol) = (Ipv4::VERSION, Ipv4::default().protocol);
                let (more_fragments, fragment_offset) = (false, 0);
                let ip = Ipv4 { version, protocol, more_fragments, fragment_offset, ..ip };
                NetworkHeaders::Ipv4(ip, &[0x94; 40][..words * 4], udp)
            }
            _ => {
                let ip = Ipv6::parse(&octets).expect("forty octets");
                let (version, next_header) = (Ipv6::VERSION, Ipv6::default().next_header);
                NetworkHeaders::Ipv6(Ipv6 { version, next_header, ..ip }, udp)
            }
        }
    })
}

/// Strategy for all builders that [`PacketBuilder::emit`] accepts, with every opcode and reserved bit.
pub fn builders() -> impl Strategy<Value = PacketBuilder<'static>> {
    let addresses = (any::<u64>(), any::<u64>());
    (addresses, tags(), networks(), samples::builders()).prop_map(
        |((destination, source), tag, network, native)| PacketBuilder {
            destination: MacAddress::from_number(destination),
            source: MacAddress::from_number(source),
            tag,
            network,
            bth: native.bth,
            extended: native.extended,
        },
    )
}

/// The same network headers with another DSCP and ECN.
pub fn with_class(network: NetworkHeaders<'_>, dscp: Dscp, ecn: Ecn) -> NetworkHeaders<'_> {
    match network {
        NetworkHeaders::Global(grh) => NetworkHeaders::Global(grh),
        NetworkHeaders::Ipv4(ip, options, udp) => {
            NetworkHeaders::Ipv4(Ipv4 { dscp, ecn, ..ip }, options, udp)
        }
        NetworkHeaders::Ipv6(ip, udp) => NetworkHeaders::Ipv6(Ipv6 { dscp, ecn, ..ip }, udp),
    }
}
