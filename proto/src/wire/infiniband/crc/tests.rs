//! Tests of CRCs: the standard's sample packet, bit-by-bit references, and every bit flip.

use super::*;
use crate::ids::VirtualLane;
use crate::tests::infiniband::{self as samples, GLOBAL_BTH, LOCAL, LOCAL_BTH};
use crate::wire::error::Reason;
use proptest::prelude::*;

/// The definition, one bit at a time: reflected, initial value all ones, final complement.
fn bitwise(octets: &[u8], reflected_generator: u32) -> u32 {
    let width_mask = if reflected_generator > 0xffff { u32::MAX } else { 0xffff };
    let mut register = width_mask;
    for octet in octets {
        register ^= u32::from(*octet);
        for _ in 0..8 {
            let carry = register & 1;
            register = register >> 1 ^ if carry == 1 { reflected_generator } else { 0 };
        }
    }
    register ^ width_mask
}

/// ENC-01 and ENC-02.
#[test]
fn the_sample_packet_has_the_crcs_of_the_standard() {
    assert_eq!(icrc(&LOCAL).map(u32::to_le_bytes), Some([0x96, 0x25, 0xb7, 0x5a]));
    assert_eq!(vcrc(&LOCAL), 0xfa45);
    assert_eq!(verify_icrc(&LOCAL), Ok(()));
    assert_eq!(verify_vcrc(&LOCAL), Ok(()));
}

#[test]
fn crc16_has_its_check_value_and_residue() {
    assert_eq!(crc16(b"123456789"), CHECK);
    assert_eq!(!crc16(&LOCAL), 0x556f, "the register after a good packet, before the complement");
}

#[test]
fn table_and_vector_code_agree_with_the_definition_at_every_length() {
    let octets: Vec<u8> = (0..300u32).map(|n| ((n * n) >> 3) as u8).collect();
    for length in 0..octets.len() {
        let octets = &octets[..length];
        assert_eq!(u32::from(crc16(octets)), bitwise(octets, 0xd008), "{length} octets");
    }
}

/// ENC-05: the bits of `octets` that the ICRC does not cover.
fn blind_bits(octets: &[u8]) -> Vec<usize> {
    let covered = (octets.len() - ICRC_LEN - VCRC_LEN) * 8;
    let good = icrc(octets).expect("a packet with a BTH");
    let blind = |bit: &usize| {
        let mut flipped = octets.to_vec();
        flipped[bit / 8] ^= 0x80 >> (bit % 8);
        icrc(&flipped) == Some(good)
    };
    (0..covered).filter(blind).collect()
}

fn octet_bits(octets: std::ops::Range<usize>) -> std::ops::Range<usize> {
    octets.start * 8..octets.end * 8
}

#[test]
fn the_icrc_of_a_local_packet_excludes_only_lane_and_congestion_bits() {
    let lane = 0..4;
    let resv8a = octet_bits(LOCAL_BTH + 4..LOCAL_BTH + 5);
    assert_eq!(blind_bits(&LOCAL), lane.chain(resv8a).collect::<Vec<_>>());
}

/// The ICRC does not cover LNH, bits 14 and 15, either. LNH determines the offset of the BTH, so a flip of it is
/// detected.
#[test]
fn the_icrc_of_a_global_packet_excludes_the_lrh_and_variant_fields() {
    let lrh = octet_bits(0..8).filter(|bit| *bit != 14 && *bit != 15);
    let class_and_label = 8 * 8 + 4..12 * 8;
    let hop_limit = octet_bits(15..16);
    let resv8a = octet_bits(GLOBAL_BTH + 4..GLOBAL_BTH + 5);
    let expected: Vec<_> = lrh.chain(class_and_label).chain(hop_limit).chain(resv8a).collect();
    assert_eq!(blind_bits(&samples::global()), expected);
}

#[test]
fn the_global_icrc_counts_eight_octets_of_ones_for_the_lrh() {
    let octets = samples::global();
    let mut masked = octets[..octets.len() - 6].to_vec();
    masked[..8].fill(0xff);
    masked[8] |= 0x0f;
    masked[9..12].fill(0xff);
    masked[15] = 0xff;
    masked[GLOBAL_BTH + 4] = 0xff;
    assert_eq!(icrc(&octets), Some(bitwise(&masked, 0xedb8_8320)));
}

#[test]
fn the_vcrc_detects_every_flipped_bit() {
    for bit in 0..LOCAL.len() * 8 {
        let mut damaged = LOCAL;
        damaged[bit / 8] ^= 1 << (bit % 8);
        let refused = verify_vcrc(&damaged).expect_err("one bit differs");
        assert_eq!((refused.layer, refused.offset), ("VCRC", 56));
    }
}

#[test]
fn a_wrong_icrc_is_reported_with_both_values_and_its_offset() {
    let mut damaged = LOCAL;
    damaged[40] ^= 1;
    refresh_vcrc(&mut damaged);
    assert_eq!(verify_vcrc(&damaged), Ok(()));
    let refused = verify_icrc(&damaged).expect_err("the payload differs");
    assert_eq!((refused.layer, refused.offset), ("ICRC", 52));
    let present = 0x5ab7_2596;
    assert!(matches!(refused.reason, Reason::Check { present: p, .. } if p == present));
    refresh_both(&mut damaged);
    assert_eq!(verify_icrc(&damaged), Ok(()));
}

#[test]
fn raw_packets_have_no_icrc() {
    let mut raw = LOCAL;
    raw[1] &= !0b11;
    assert_eq!(icrc(&raw), None);
    assert_eq!(verify_icrc(&raw), Ok(()));
    let before = raw;
    refresh_both(&mut raw);
    assert_eq!(raw[..56], before[..56]);
    assert_eq!(verify_vcrc(&raw), Ok(()));
}

#[test]
fn the_vcrc_update_works_beyond_the_maximum_packet_length() {
    let mut octets = vec![0x5a; 9000];
    refresh_vcrc(&mut octets);
    octets[3] ^= 0x81;
    amend_vcrc(&mut octets, 3, 0x81);
    assert_eq!(verify_vcrc(&octets), Ok(()));
}

#[test]
fn a_change_at_or_after_the_vcrc_does_not_update_it() {
    let mut octets = LOCAL;
    for position in [56, 57, 58, 1000] {
        amend_vcrc(&mut octets, position, 0xff);
    }
    assert_eq!(octets, LOCAL);
}

proptest! {
    #[test]
    fn the_vcrc_update_equals_recomputation_after_any_change(
        mut octets in proptest::collection::vec(any::<u8>(), 3..600),
        place: prop::sample::Index,
        change: u8,
        flaw: u16,
    ) {
        refresh_vcrc(&mut octets);
        let covered = octets.len() - VCRC_LEN;
        let flawed = carried_vcrc(&octets) ^ flaw;
        octets[covered..].copy_from_slice(&flawed.to_le_bytes());

        let place = place.index(covered);
        octets[place] ^= change;
        amend_vcrc(&mut octets, place, change);
        prop_assert_eq!(vcrc(&octets) ^ flaw, carried_vcrc(&octets), "a flaw stays what it was");
    }

    #[test]
    fn no_octets_make_a_crc_panic(mut octets in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = (icrc(&octets), vcrc(&octets), lpcrc(&octets));
        if let Some(computed) = icrc(&octets) {
            prop_assert_eq!(icrc_by_link_header(&octets), Some(computed));
        }
        let _ = icrc_by_link_header(&octets);
        let _ = (verify_icrc(&octets), verify_vcrc(&octets), verify_lpcrc(&octets));
        let length = octets.len();
        crate::wire::infiniband::relabel::relabel(&mut octets, VirtualLane::MANAGEMENT, true);
        amend_vcrc(&mut octets, 5, 0xff);
        refresh_both(&mut octets);
        prop_assert_eq!(octets.len(), length);
        prop_assert_eq!(verify_vcrc(&octets).is_ok(), length >= VCRC_LEN);
    }
}
