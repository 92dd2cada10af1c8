//! Tests of the CNM: field by field, against another implementation, and truncated at every length.

use super::*;
use proptest::prelude::*;

/// A random message of an independent encoder: quantized feedback 0x26, MSDU of 13 octets.
///
/// Source: sach/System-Verilog-Packet-Library, log/pktlib_test.log, "Pack Pkt 15", behind its tags.
const PACKED: [u8; 37] = [
    0x00, 0xa6, 0xbe, 0x8c, 0x33, 0x1d, 0xee, 0x1c, 0xdb, 0x3f, 0x84, 0xf6, 0x40, 0xc8, 0xae, 0x8d,
    0x75, 0x17, 0x80, 0x04, 0x35, 0x74, 0x00, 0x0d, 0xa7, 0xfd, 0x20, 0xf6, 0xab, 0xf1, 0x5b, 0xe8,
    0x63, 0xa7, 0x0d, 0xf9, 0x04,
];

fn packed() -> Cnm {
    Cnm {
        version: 0,
        reserved: 2,
        quantized_feedback: 0x26,
        cpid: 0xbe8c_331d_ee1c_db3f,
        q_offset: -0x7b0a,
        q_delta: 0x40c8,
        encapsulated_priority: Priority::truncate(5),
        encapsulated_reserved: 0x0e8d,
        encapsulated_destination: MacAddress::from_number(0x7517_8004_3574),
        msdu_length: 13,
    }
}

#[test]
fn a_message_of_an_independent_encoder_round_trips() {
    assert_eq!(Cnm::parse_message(&PACKED), Ok((packed(), &PACKED[24..])));
    assert_eq!(packed().to_octets(), PACKED[..24]);
}

#[test]
fn octets_after_the_message_are_padding() {
    let padded = [&PACKED[..], &[0; 9]].concat();
    assert_eq!(Cnm::parse_message(&padded), Ok((packed(), &PACKED[24..])));
}

#[test]
fn every_short_length_is_refused() {
    for present in 0..Cnm::LEN {
        let refused = Err(ParseError::short("CNM", 0, 24, present));
        assert_eq!(Cnm::parse_message(&PACKED[..present]), refused);
    }
    for present in Cnm::LEN..PACKED.len() {
        let refused = Err(ParseError::length("CNM", 0, 13, present - Cnm::LEN));
        assert_eq!(Cnm::parse_message(&PACKED[..present]), refused);
    }
}

#[test]
fn a_sample_holds_up_to_64_octets() {
    let message = |msdu_length| {
        let cnm = Cnm { msdu_length, ..packed() };
        [&cnm.to_octets()[..], &[0xa5; 100]].concat()
    };
    for length in 0..=64 {
        let octets = message(length);
        let (_, msdu) = Cnm::parse_message(&octets).expect("a complete message");
        assert_eq!(msdu.len(), usize::from(length));
    }
    for length in [65, 100, 101, u16::MAX] {
        let refused = Cnm::parse_message(&message(length)).expect_err("too much").reason;
        assert_eq!(refused, Reason::Illegal("the MSDU length is above 64"));
    }
}

#[test]
fn other_versions_are_refused_and_reserved_bits_are_not() {
    for version in 1..16 {
        let octets = Cnm { version, msdu_length: 0, ..packed() }.to_octets();
        let refused = Cnm::parse_message(&octets).expect_err("not known").reason;
        assert_eq!(refused, Reason::Version(version));
    }
    let octets = Cnm { reserved: 63, msdu_length: 0, ..packed() }.to_octets();
    assert!(Cnm::parse_message(&octets).is_ok());
}

#[test]
fn bits_beyond_a_field_do_not_change_its_neighbours() {
    let cnm = Cnm { quantized_feedback: 64, reserved: 64, ..Cnm::default() };
    assert_eq!(cnm.to_octets()[..2], [0, 0]);
    let cnm = Cnm { encapsulated_reserved: 0x2000, ..Cnm::default() };
    assert_eq!(cnm.to_octets()[14..16], [0, 0]);
}

proptest! {
    #[test]
    fn any_24_octets_round_trip(octets: [u8; Cnm::LEN]) {
        prop_assert_eq!(Cnm::parse(&octets)?.to_octets(), octets);
    }

    #[test]
    fn any_octets_parse_or_are_refused(octets in prop::collection::vec(any::<u8>(), 0..120)) {
        if let Ok((cnm, msdu)) = Cnm::parse_message(&octets) {
            prop_assert_eq!(usize::from(cnm.msdu_length), msdu.len());
            prop_assert_eq!(&cnm.to_octets()[..], &octets[..Cnm::LEN]);
        }
    }
}
