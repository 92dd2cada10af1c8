//! Tests of ECN marking: checksum and ICRC stay valid, and no other field changes.

use super::*;
use crate::ids::Dscp;
use crate::tests::infiniband::payloads;
use crate::tests::roce::{self as samples, build, builders, octets, with_class};
use crate::wire::roce::checks::{verify_checksums, verify_icrc};
use crate::wire::roce::{NetworkHeaders, PacketBuilder};
use proptest::prelude::*;

#[test]
fn a_marked_packet_equals_that_of_scapy() {
    let mut packet = octets(samples::SEND);
    assert!(mark_congestion(&mut packet));
    assert_eq!(packet, octets(samples::SEND_MARKED));
    assert!(mark_congestion(&mut packet));
    assert_eq!(packet, octets(samples::SEND_MARKED), "a second mark changes nothing");
}

#[test]
fn a_wrong_checksum_stays_wrong() {
    let mut packet = octets(samples::SEND);
    packet[28] ^= 4;
    assert!(mark_congestion(&mut packet));
    assert!(verify_checksums(&packet).is_err());
}

#[test]
fn frames_that_cannot_be_marked_stay_unchanged() {
    let mut not_capable = octets(samples::SEND);
    not_capable[19] &= !3;
    let v1 = octets(samples::WRITE_V1);
    let mut version = octets(samples::SEND);
    version[18] = 0x65;
    let arp = [&[0xff; 12][..], &[0x08, 0x06], &[3; 46]].concat();
    for frame in [not_capable, v1, version, arp, vec![]] {
        let mut after = frame.clone();
        assert!(!mark_congestion(&mut after));
        assert_eq!(after, frame);
    }
    let whole = octets(samples::SEND);
    for present in 0..38 {
        let mut cut = whole[..present].to_vec();
        assert!(!mark_congestion(&mut cut), "{present} octets");
        assert_eq!(cut, whole[..present]);
    }
}

proptest! {
    #[test]
    fn all_checks_are_valid_after_marking_and_one_field_has_changed(
        builder in builders(), payload in payloads(), dscp in 0u8..64, code in 0u8..4,
    ) {
        let ecn = Ecn::from_bits(code);
        let network = with_class(builder.network, Dscp::truncate(dscp), ecn);
        let before = build(&PacketBuilder { network, ..builder }, &payload);
        let mut after = before.clone();
        let marked = mark_congestion(&mut after);
        let is_ip = !matches!(network, NetworkHeaders::Global(_));
        prop_assert_eq!(marked, is_ip && ecn.is_capable());
        prop_assert_eq!((verify_icrc(&after), verify_checksums(&after)), (Ok(()), Ok(())));
        if marked {
            let network = with_class(network, Dscp::truncate(dscp), Ecn::CongestionExperienced);
            prop_assert_eq!(after, build(&PacketBuilder { network, ..builder }, &payload));
        } else {
            prop_assert_eq!(after, before);
        }
    }
}
