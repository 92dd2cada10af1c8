//! The tables of all headers: one row for each 32-bit word, as the standards draw them.
//!
//! Field names follow tshark (docs/spec/wire.md 8). A field is `"name" bits`, then `as` its form unless it is a
//! decimal number, then the value that `encode` assumes: none if the field is required, `= auto` if it follows from
//! the rest of the frame.

use super::layer::{Layer, headers};
use proto::wire::infiniband::extended_headers::ExtendedHeader;
use proto::wire::infiniband::{NakCode, Opcode, Syndrome};

headers! {
    /// Local Route Header. Source: IBTA Vol 1, 7.7.
    LRH "lrh" "LRH" 8 {
        "vl" 4 = 0, "lver" 4 = 0, "sl" 4 = 0, "reserved2" 2 = 0, "lnh" 2 = auto, "dlid" 16,
        "reserved5" 5 = 0, "pktlen" 11 = auto, "slid" 16,
    }

    /// Global Route Header, also of RoCEv1. Source: IBTA Vol 1, 8.3.
    GRH "grh" "GRH" 40 {
        "ipver" 4 = 6, "tclass" 8 = 0, "flowlabel" 20 = 0,
        "paylen" 16 = auto, "nxthdr" 8 = 0x1b, "hoplmt" 8 = 64,
        "sgid" 128 as Ipv6,
        "dgid" 128 as Ipv6,
    }

    /// Flow control packet, without its LPCRC. Source: IBTA Vol 1, 7.9.4.
    FLOW_CONTROL "flow_control" "flow control" 4 named flow_control_op {
        "op" 4 = 0, "fctbs" 12, "vl" 4, "fccl" 12,
    }

    /// Base Transport Header. Source: IBTA Vol 1, 9.2.
    BTH "bth" "BTH" 12 named opcode_name {
        "opcode" 8, "se" 1 = 0, "m" 1 = 0, "padcnt" 2 = auto, "tver" 4 = 0, "p_key" 16 as Code = 0xffff,
        "f" 1 = 0, "b" 1 = 0, "reserved6" 6 = 0, "destqp" 24 as Code,
        "a" 1 = 0, "reserved7" 7 = 0, "psn" 24,
    }

    /// Reliable Datagram Extended Transport Header. Source: IBTA Vol 1, 9.3.1.
    RDETH "rdeth" "RDETH" 4 { "reserved8" 8 = 0, "ee_context" 24, }

    /// XRC Extended Transport Header. Source: IBTA Vol 1, annex A14.
    XRCETH "xrceth" "XRCETH" 4 { "reserved8" 8 = 0, "srqn" 24, }

    /// Datagram Extended Transport Header. Source: IBTA Vol 1, 9.3.2.
    DETH "deth" "DETH" 8 { "q_key" 32 as Code, "reserved8" 8 = 0, "srcqp" 24 as Code, }

    /// RDMA Extended Transport Header. Source: IBTA Vol 1, 9.3.3.
    RETH "reth" "RETH" 16 { "va" 64 as Wide, "r_key" 32 as Code, "dmalen" 32, }

    /// Atomic Extended Transport Header. Source: IBTA Vol 1, 9.3.4.
    ATOMICETH "atomiceth" "AtomicETH" 28 {
        "va" 64 as Wide, "r_key" 32 as Code, "swapdt" 64 as Wide, "cmpdt" 64 as Wide,
    }

    /// ACK Extended Transport Header. Source: IBTA Vol 1, 9.3.5.
    AETH "aeth" "AETH" 4 named syndrome_name { "syndrome" 8, "msn" 24, }

    /// Atomic ACK Extended Transport Header. Source: IBTA Vol 1, 9.3.5.
    ATOMICACKETH "atomicacketh" "AtomicAckETH" 8 { "origremdt" 64 as Wide, }

    /// Immediate data. Source: IBTA Vol 1, 9.3.6.
    IMMDT "immdt" "ImmDt" 4 { "data" 32, }

    /// Invalidate Extended Transport Header. Source: IBTA Vol 1, 9.3.7.
    IETH "ieth" "IETH" 4 { "r_key" 32 as Code, }

    /// Addresses and EtherType (or length). Source: IEEE 802.3, 3.1.1.
    ETHERNET "ethernet" "Ethernet" 14 {
        "dst" 48 as Mac, "src" 48 as Mac, "type" 16 as Code = auto,
    }

    /// VLAN tag: the octets behind its EtherType, and the EtherType that follows. Source: IEEE 802.1Q, 9.6.
    VLAN "vlan" "VLAN" 4 { "pcp" 3 = 0, "dei" 1 = 0, "vid" 12, "type" 16 as Code = auto, }

    /// A second VLAN tag.
    VLAN_INNER "vlan_inner" "VLAN" 4 { "pcp" 3 = 0, "dei" 1 = 0, "vid" 12, "type" 16 as Code = auto, }

    /// Congestion notification tag, with the EtherType that follows. Source: IEEE 802.1Q, 33.2.
    CN_TAG "cn_tag" "CN-TAG" 4 { "flow_id" 16, "type" 16 as Code = auto, }

    /// IPv4 without its options. Source: RFC 791, 3.1; RFC 3168, 5.
    IPV4 "ipv4" "IPv4" 20 {
        "version" 4 = 4, "ihl" 4 = auto, "dscp" 6 = 0, "ecn" 2 = 0, "total_length" 16 = auto,
        "id" 16 = 0, "reserved1" 1 = 0, "df" 1 = 1, "mf" 1 = 0, "frag_offset" 13 = 0,
        "ttl" 8 = 64, "protocol" 8 = 17, "checksum" 16 as Code = auto,
        "src" 32 as Ipv4,
        "dst" 32 as Ipv4,
    }

    /// IPv6. Source: RFC 8200, 3.
    IPV6 "ipv6" "IPv6" 40 {
        "version" 4 = 6, "dscp" 6 = 0, "ecn" 2 = 0, "flow_label" 20 = 0,
        "payload_length" 16 = auto, "next_header" 8 = 17, "hop_limit" 8 = 64,
        "src" 128 as Ipv6,
        "dst" 128 as Ipv6,
    }

    /// UDP. Source: RFC 768.
    UDP "udp" "UDP" 8 {
        "srcport" 16 = 0xc000, "dstport" 16 = 4791,
        "length" 16 = auto, "checksum" 16 as Code = auto,
    }

    /// PAUSE. Source: IEEE 802.3, 31B.
    PAUSE "mac_control" "PAUSE" 4 named mac_control_name { "opcode" 16 as Code = 0x0001, "pause_time" 16, }

    /// Priority-based flow control. Source: IEEE 802.3, 31D; IEEE 802.1Q, 36.
    PFC "mac_control" "PFC" 20 named mac_control_name {
        "opcode" 16 as Code = 0x0101, "enbv" 16 as Code,
        "pause_time_c0" 16 = 0, "pause_time_c1" 16 = 0, "pause_time_c2" 16 = 0, "pause_time_c3" 16 = 0,
        "pause_time_c4" 16 = 0, "pause_time_c5" 16 = 0, "pause_time_c6" 16 = 0, "pause_time_c7" 16 = 0,
    }

    /// MAC control with any other opcode; its parameters are payload. Source: IEEE 802.3, 31.4.
    MAC_CONTROL "mac_control" "MAC control" 2 named mac_control_name { "opcode" 16 as Code, }

    /// Congestion notification message, before its sample. Source: IEEE 802.1Q, 33.4.
    CNM "cnm" "CNM" 24 {
        "version" 4 = 0, "reserved_v" 6 = 0, "qfb" 6, "cpid" 64 as Wide,
        "qoffset" 16 as Signed, "qdelta" 16 as Signed,
        "encap_priority" 3 = 0, "reserved13" 13 = 0, "encap_dst" 48 as Mac, "msdu_length" 16 = auto,
    }

    /// A test frame, before its pattern. Source: docs/spec/design.md 3.
    TEST_FRAME "test_frame" "test frame" 18 {
        "subtype" 8 = 1, "reserved8" 8 = 0, "flow" 32, "sequence" 32 = 0, "departure" 64 = 0,
    }

    /// A BCN message, before its sample. Source: docs/spec/design.md 3.
    BCN "bcn" "BCN" 20 {
        "subtype" 8 = 2, "version" 8 = 1, "cpid" 64 as Wide, "qoffset" 16 as Signed, "qdelta" 16 as Signed,
        "timestamp" 32 = 0, "mild" 1 = 0, "severe" 1 = 0, "stop" 1 = 0, "reserved5" 5 = 0, "length" 8 = auto,
    }

    /// A rate-regulated tag, with the EtherType that follows. Source: docs/spec/design.md 3.
    RATE_TAG "rate_tag" "RRT" 16 {
        "subtype" 8 = 3, "reserved8" 8 = 0, "cpid" 64 as Wide, "timestamp" 32 = 0, "type" 16 as Code = auto,
    }

    /// The shim of this project's cables, one header for each record. Source: `emulation::cable::shim`.
    SHIM "shim" "shim" 32 {
        "magic" 32 = 0x7062_6564,
        "version" 8 = 1, "kind" 8, "flags" 8 = 0, "end" 8 = 0,
        "link" 32 = 0,
        "epoch" 32 = 0,
        "sequence" 32 = 0,
        "length" 32 = auto,
        "stamp" 64 = 0,
    }

    /// The body of a promise, behind a shim whose `link` is the sending process, whose `sequence` the low bits of `number`,
    /// and whose `stamp` the instant promised. Source: `emulation::exact::promise`.
    PROMISE "promise" "promise" 48 {
        "secret_high" 64 as Wide, "secret_low" 64 as Wide,
        "number" 64, "complete" 64, "frames" 64, "idle" 64,
    }
}

/// The tables of extended transport headers, in the order of `ExtendedHeader::ALL`.
pub(super) static EXTENDED: [&Layer; ExtendedHeader::ALL.len()] =
    [&RDETH, &XRCETH, &DETH, &RETH, &ATOMICETH, &AETH, &ATOMICACKETH, &IMMDT, &IETH];

fn flow_control_op(op: u64) -> Option<&'static str> {
    ["normal", "init"].get(usize::try_from(op).ok()?).copied()
}

pub(super) fn opcode_name(code: u64) -> Option<&'static str> {
    Opcode(u8::try_from(code).ok()?).row().map(|row| row.name)
}

fn syndrome_name(code: u64) -> Option<&'static str> {
    Some(match Syndrome::from_octet(u8::try_from(code).ok()?) {
        Syndrome::Ack { .. } => "ACK",
        Syndrome::Rnr { .. } => "RNR NAK",
        Syndrome::Nak(NakCode::PsnSequence) => "NAK PSN sequence error",
        Syndrome::Nak(NakCode::InvalidRequest) => "NAK invalid request",
        Syndrome::Nak(NakCode::RemoteAccess) => "NAK remote access error",
        Syndrome::Nak(NakCode::RemoteOperational) => "NAK remote operational error",
        Syndrome::Nak(NakCode::InvalidRdRequest) => "NAK invalid RD request",
        Syndrome::Nak(NakCode::Unknown(_)) | Syndrome::Unknown(_) => return None,
    })
}

/// The name of a MAC control opcode, if the opcode is known.
pub(super) fn mac_control_name(opcode: u64) -> Option<&'static str> {
    match opcode {
        0x0001 => Some("PAUSE"),
        0x0101 => Some("PFC"),
        _ => None,
    }
}
