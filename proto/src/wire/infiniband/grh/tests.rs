//! Tests of the GRH: a captured header and every bit.

use super::*;
use crate::wire::error::ParseError;
use proptest::prelude::*;

/// From a captured IPoIB packet to a multicast group.
const CAPTURED: [u8; Grh::LEN] = [
    0x60, 0x00, 0x00, 0x00, 0x00, 0x54, 0x1b, 0x00, // version to hop limit
    0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x00, 0x02, 0xc9, 0x02, 0x00, 0x24, 0xf6, 0x36, // SGID
    0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, // DGID
];

#[test]
fn a_captured_grh_has_the_values_that_tshark_shows() {
    let expected = Grh {
        version: 6,
        traffic_class: 0,
        flow_label: 0,
        payload_length: 84,
        next_header: 0x1b,
        hop_limit: 0,
        sgid: "fe80::2:c902:24:f636".parse().expect("an address"),
        dgid: "ff12:401b:ffff::ffff:ffff".parse().expect("an address"),
    };
    assert_eq!(Grh::parse(&CAPTURED), Ok(expected));
    assert_eq!(expected.to_octets(), CAPTURED);
}

#[test]
fn traffic_class_and_flow_label_do_not_overlap() {
    let grh = Grh { traffic_class: 0xff, ..Grh::default() };
    assert_eq!(grh.to_octets()[..4], [0x6f, 0xf0, 0, 0]);
    let grh = Grh { flow_label: 0xffff_ffff, ..Grh::default() };
    assert_eq!(grh.to_octets()[..4], [0x60, 0x0f, 0xff, 0xff]);
}

#[test]
fn every_short_length_is_refused() {
    for present in 0..Grh::LEN {
        let refused = Err(ParseError::short("GRH", 0, 40, present));
        assert_eq!(Grh::parse(&CAPTURED[..present]), refused);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100_000))]

    #[test]
    fn any_forty_octets_round_trip(octets: [u8; Grh::LEN]) {
        prop_assert_eq!(Grh::parse(&octets)?.to_octets(), octets);
    }
}
