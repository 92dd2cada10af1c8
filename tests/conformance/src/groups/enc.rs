//! ENC: encoders, decoders and CRCs.

use crate::case::{Case, Group, Run};

mod checks;
mod congestion;
mod control;
mod ecn;
mod frames;
mod layout;
mod octets;
mod roce;
mod samples;
pub mod scapy;
mod wireshark;

/// The group.
pub const GROUP: Group =
    Group { name: "ENC", subject: "Encoders, decoders and CRCs", cases: CASES };

const CASES: &[Case] = &[
    Case {
        id: "ENC-01",
        title: "ICRC of the published local-packet sample",
        source: "IBA Vol 1 §7.8 sample packet; octets recalled from the standard, confirmed because zlib gives exactly this ICRC (tshark parses the packet but does not verify CRCs)",
        note: "",
        runs: &[Run::codec(checks::icrc_of_the_sample)],
    },
    Case {
        id: "ENC-02",
        title: "VCRC of the same sample",
        source: "IBA Vol 1 §7.8.2; algorithm as in Endace dagcrc (reflected 0xD008, seed/complement FFFF)",
        note: "Octet order of the VCRC as of the ICRC, least significant first; captured packets confirm it.",
        runs: &[Run::codec(checks::vcrc_of_the_sample)],
    },
    Case {
        id: "ENC-03",
        title: "ICRC of a CNP captured from a real NIC",
        source: "secdev/scapy test/contrib/roce.uts (ConnectX-4 Lx capture); recomputed here",
        note: "",
        runs: &[Run::codec(roce::icrc_of_a_captured_notification)],
    },
    Case {
        id: "ENC-04",
        title: "Do not encode to a published sample that is wrong",
        source: "secdev/scapy test/contrib/roce.uts keeps the mismatch as a TODO",
        note: "Encoded from the fields that scapy keeps of it, identification and TTL among them; the ICRC is also computed bit by bit.",
        runs: &[Run::codec(roce::a_published_sample_that_is_wrong)],
    },
    Case {
        id: "ENC-05",
        title: "ICRC is blind to exactly the variant fields",
        source: "IBA Vol 1 §7.8.1, Annex A17 (RoCEv2 ICRC); torvalds/linux drivers/infiniband/sw/rxe/rxe_icrc.c masks the same set",
        note: "RoCEv1 too. With a GRH the whole LRH counts as ones, not its VL alone: captured packets and the clause agree, the text of the case names VL for both. A flipped LNH makes another kind of packet, whose ICRC differs.",
        runs: &[Run::codec(checks::icrc_is_blind_to_the_variant_fields)],
    },
    Case {
        id: "ENC-06",
        title: "RoCEv2 CNP layout",
        source: "IBA Annex A17 §17.9.3; scapy roce.uts asserts",
        note: "",
        runs: &[Run::codec(roce::notification_layout)],
    },
    Case {
        id: "ENC-07",
        title: "InfiniBand CN packet layout",
        source: "IBA Annex A10 §10.3.2; torvalds/linux include/rdma/ib_pack.h IB_OPCODE_CNP 0x80",
        note: "Annex A10 was not at hand for the body: sixteen octets are sent, none with cnp_body = \"none\".",
        runs: &[Run::codec(layout::native_congestion_notification)],
    },
    Case {
        id: "ENC-08",
        title: "PFC frame layout",
        source: "IEEE 802.3 Annex 31D, 802.1Q cl.36; sonic-mgmt tests/common/snappi_tests/pfc_packet.py validity rules; tshark expert info “8 MSbs of ENBV must be 0”, “dst must be 01-80-C2-00-00-01”",
        note: "The FCS is computed and appended: frames of this product are without.",
        runs: &[Run::codec(control::pfc_layout)],
    },
    Case {
        id: "ENC-09",
        title: "802.3x PAUSE layout and distinction",
        source: "IEEE 802.3 Annex 31A/31B; sonic-mgmt docs/testplan/pfc/GLOBAL_PAUSE_README.md",
        note: "",
        runs: &[Run::codec(control::pause_layout)],
    },
    Case {
        id: "ENC-10",
        title: "CNM PDU layout",
        source: "IEEE 802.1Qau cl.33.3–33.4; UNH-IOL 802.1Qau suite tests 33.1.1–33.1.11",
        note: "Every value of each field among fixed neighbours; ReservedV and the 13 bits behind the priority are kept as received. An independent encoder's message is read and written in tests.",
        runs: &[Run::codec(congestion::message_layout)],
    },
    Case {
        id: "ENC-11",
        title: "CN-TAG position and value",
        source: "IEEE 802.1Qau cl.33.2; UNH-IOL 30.2.1, 33.2.2",
        note: "",
        runs: &[Run::codec(congestion::tag_position)],
    },
    Case {
        id: "ENC-12",
        title: "LRH packing",
        source: "IBA Vol 1 §7.7; tshark field masks infiniband.lrh.*",
        note: "",
        runs: &[Run::codec(layout::lrh_packing)],
    },
    Case {
        id: "ENC-13",
        title: "Link (flow-control) packet layout",
        source: "IBA Vol 1 §7.9.4; tshark infiniband_link field masks",
        note: "Every value of each field, in pairs of two partners, not the product of all fields.",
        runs: &[Run::codec(layout::link_packet_layout)],
    },
    Case {
        id: "ENC-14",
        title: "PktLen and pad arithmetic",
        source: "IBA Vol 1 §7.7, §9.2; sample packet",
        note: "An ACK carries no payload, so its size is 0 alone.",
        runs: &[Run::codec(layout::packet_length_and_padding)],
    },
    Case {
        id: "ENC-15",
        title: "Round trip",
        source: "property used by s2n-quic (bolero) and hickory fuzz target preserve_rdata",
        note: "Types: packets without and with GRH (every opcode and reserved bit), raw packets, link packets, RoCE over GRH, IPv4 and IPv6, PAUSE and PFC.",
        runs: &[Run::codec(octets::round_trip)],
    },
    Case {
        id: "ENC-16",
        title: "Every truncation is an error, never a panic",
        source: "tailscale/tailscale#21232, zeek/zeek#3671 (caplen < len not fuzzed)",
        note: "",
        runs: &[Run::codec(octets::truncations_are_errors)],
    },
    Case {
        id: "ENC-17",
        title: "Agreement with Wireshark",
        source: "measured on this project’s VM, tshark 4.0.17",
        note: "InfiniBand families; those of Ethernet are compared by tests/tests/witnesses/roce.rs. Link packets are read as data on USER0, as captures write them.",
        runs: &[Run::codec(wireshark::agreement_with_wireshark)],
    },
    Case {
        id: "ENC-18",
        title: "Agreement with a second decoder",
        source: "secdev/scapy scapy/contrib/roce.py",
        note: "Over IPv6 scapy decodes, and computes no ICRC before its version 2.6.",
        runs: &[Run::codec(scapy::agreement_with_scapy)],
    },
    Case {
        id: "ENC-19",
        title: "IPv4 checksum after CE",
        source: "RFC 1624 eqn 3; RFC 3168 §5",
        note: "Every checksum a header can have: 0xFFFF is none of them but is as good as 0, so headers carrying it are marked too.",
        runs: &[Run::codec(ecn::checksum_after_the_mark)],
    },
];
