//! ENC: encoders, decoders and CRCs.

use crate::case::cases;

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

cases! { "ENC", "Encoders, decoders and CRCs";
    "ENC-01" codec(checks::icrc_of_the_sample), "ICRC of the published local-packet sample",
        "IBA Vol 1 §7.8 sample packet; octets recalled from the standard, confirmed because zlib gives exactly this ICRC (tshark parses the packet but does not verify CRCs)";
    "ENC-02" codec(checks::vcrc_of_the_sample), "VCRC of the same sample",
        "IBA Vol 1 §7.8.2; algorithm as in Endace dagcrc (reflected 0xD008, seed/complement FFFF)",
        "Octet order of the VCRC as of the ICRC, least significant first; captured packets confirm it.";
    "ENC-03" codec(roce::icrc_of_a_captured_notification), "ICRC of a CNP captured from a real NIC",
        "secdev/scapy test/contrib/roce.uts (ConnectX-4 Lx capture); recomputed here";
    "ENC-04" codec(roce::a_published_sample_that_is_wrong), "Do not encode to a published sample that is wrong",
        "secdev/scapy test/contrib/roce.uts keeps the mismatch as a TODO",
        "Encoded from the fields that scapy keeps of it, identification and TTL among them; the ICRC is also computed bit by bit.";
    "ENC-05" codec(checks::icrc_is_blind_to_the_variant_fields), "ICRC is blind to exactly the variant fields",
        "IBA Vol 1 §7.8.1, Annex A17 (RoCEv2 ICRC); torvalds/linux drivers/infiniband/sw/rxe/rxe_icrc.c masks the same set",
        "RoCEv1 too. With a GRH the whole LRH counts as ones, not its VL alone: captured packets and the clause agree, the text of the case names VL for both. A flipped LNH makes another kind of packet, whose ICRC differs.";
    "ENC-06" codec(roce::notification_layout), "RoCEv2 CNP layout",
        "IBA Annex A17 §17.9.3; scapy roce.uts asserts";
    "ENC-07" codec(layout::native_congestion_notification), "InfiniBand CN packet layout",
        "IBA Annex A10 §10.3.2; torvalds/linux include/rdma/ib_pack.h IB_OPCODE_CNP 0x80",
        "Annex A10 was not at hand for the body: sixteen octets are sent, none with cnp_body = \"none\".";
    "ENC-08" codec(control::pfc_layout), "PFC frame layout",
        "IEEE 802.3 Annex 31D, 802.1Q cl.36; sonic-mgmt tests/common/snappi_tests/pfc_packet.py validity rules; tshark expert info “8 MSbs of ENBV must be 0”, “dst must be 01-80-C2-00-00-01”",
        "The FCS is computed and appended: frames of this product are without.";
    "ENC-09" codec(control::pause_layout), "802.3x PAUSE layout and distinction",
        "IEEE 802.3 Annex 31A/31B; sonic-mgmt docs/testplan/pfc/GLOBAL_PAUSE_README.md";
    "ENC-10" codec(congestion::message_layout), "CNM PDU layout",
        "IEEE 802.1Qau cl.33.3–33.4; UNH-IOL 802.1Qau suite tests 33.1.1–33.1.11",
        "Every value of each field among fixed neighbours; ReservedV and the 13 bits behind the priority are kept as received. An independent encoder's message is read and written in tests.";
    "ENC-11" codec(congestion::tag_position), "CN-TAG position and value",
        "IEEE 802.1Qau cl.33.2; UNH-IOL 30.2.1, 33.2.2";
    "ENC-12" codec(layout::lrh_packing), "LRH packing",
        "IBA Vol 1 §7.7; tshark field masks infiniband.lrh.*";
    "ENC-13" codec(layout::link_packet_layout), "Link (flow-control) packet layout",
        "IBA Vol 1 §7.9.4; tshark infiniband_link field masks",
        "Every value of each field, in pairs of two partners, not the product of all fields.";
    "ENC-14" codec(layout::packet_length_and_padding), "PktLen and pad arithmetic",
        "IBA Vol 1 §7.7, §9.2; sample packet",
        "An ACK carries no payload, so its size is 0 alone.";
    "ENC-15" codec(octets::round_trip), "Round trip",
        "property used by s2n-quic (bolero) and hickory fuzz target preserve_rdata",
        "Types: packets without and with GRH (every opcode and reserved bit), raw packets, link packets, RoCE over GRH, IPv4 and IPv6, PAUSE and PFC.";
    "ENC-16" codec(octets::truncations_are_errors), "Every truncation is an error, never a panic",
        "tailscale/tailscale#21232, zeek/zeek#3671 (caplen < len not fuzzed)";
    "ENC-17" codec(wireshark::agreement_with_wireshark), "Agreement with Wireshark",
        "measured on this project’s VM, tshark 4.0.17",
        "InfiniBand families; those of Ethernet are compared by tests/tests/witnesses/roce.rs. Link packets are read as data on USER0, as captures write them.";
    "ENC-18" codec(scapy::agreement_with_scapy), "Agreement with a second decoder",
        "secdev/scapy scapy/contrib/roce.py",
        "Over IPv6 scapy decodes, and computes no ICRC before its version 2.6.";
    "ENC-19" codec(ecn::checksum_after_the_mark), "IPv4 checksum after CE",
        "RFC 1624 eqn 3; RFC 3168 §5",
        "Every checksum a header can have: 0xFFFF is none of them but is as good as 0, so headers carrying it are marked too.";
}
