//! Tests of relabelling: only lane, FECN and VCRC change.

use super::*;
use crate::tests::infiniband::{self as samples, LOCAL, LOCAL_BTH, builders, payloads};
use crate::wire::infiniband::{Packet, crc};
use proptest::prelude::*;

const LANE: VirtualLane = VirtualLane::truncate(3);

#[test]
fn the_setters_invalidate_only_the_vcrc() {
    let mut octets = LOCAL;
    set_virtual_lane(&mut octets, LANE);
    assert!(set_fecn(&mut octets));
    assert_eq!(crc::verify_icrc(&octets), Ok(()));
    assert!(crc::verify_vcrc(&octets).is_err());
    crc::refresh_vcrc(&mut octets);
    assert_eq!(crc::verify_vcrc(&octets), Ok(()));

    let mut expected = LOCAL;
    expected[0] = 0x30;
    expected[LOCAL_BTH + 4] = 0x80;
    assert_eq!(octets[..56], expected[..56]);
}

#[test]
fn a_packet_without_bth_cannot_be_marked() {
    let mut raw = LOCAL;
    raw[1] &= !0b11;
    let before = raw;
    assert!(!set_fecn(&mut raw));
    assert_eq!(raw, before);
    assert!(!relabel(&mut raw, LANE, true));
    assert_eq!(raw[0], 0x30);
}

#[test]
fn a_packet_with_a_grh_but_no_bth_is_not_marked() {
    let mut octets = samples::global();
    octets[8 + 6] = 6;
    let before = octets.clone();
    assert!(!set_fecn(&mut octets));
    assert_eq!(octets, before);
}

#[test]
fn too_few_octets_stay_unchanged() {
    for length in 0..8 {
        let mut octets = vec![0x55; length];
        set_virtual_lane(&mut octets, LANE);
        assert!(!set_fecn(&mut octets));
        assert!(!relabel(&mut octets, LANE, true));
        assert_eq!(octets, vec![0x55; length]);
    }
}

/// IBRX-09.
#[test]
fn fecn_of_an_earlier_switch_stays_set() {
    let mut octets = LOCAL;
    assert!(relabel(&mut octets, LANE, true));
    assert!(relabel(&mut octets, VirtualLane::ZERO, false));
    assert_eq!(octets[LOCAL_BTH + 4], 0x80);
    assert_eq!(crc::verify_vcrc(&octets), Ok(()));
    assert_eq!(crc::verify_icrc(&octets), Ok(()));
}

proptest! {
    #[test]
    fn relabelling_equals_setting_the_fields_and_recomputing_the_vcrc(
        builder in builders(),
        payload in payloads(),
        lane in 0..16u8,
        fecn: bool,
    ) {
        let lane = VirtualLane::truncate(lane);
        let mut quick = samples::build(&builder, &payload);
        let mut slow = quick.clone();
        let marked = relabel(&mut quick, lane, fecn);
        set_virtual_lane(&mut slow, lane);
        if fecn {
            prop_assert!(set_fecn(&mut slow));
        }
        crc::refresh_vcrc(&mut slow);
        prop_assert_eq!(&quick, &slow);
        let packet = Packet::parse(&quick)?;
        prop_assert_eq!(packet.lrh.virtual_lane, lane);
        prop_assert_eq!(packet.bth.map(|bth| bth.fecn), Some(marked));
        prop_assert_eq!(crc::verify_icrc(&quick), Ok(()));
    }
}
