//! Tests of the BTH: the standard's sample packet and every bit.

use super::*;
use crate::tests::infiniband::{LOCAL, LOCAL_BTH};
use crate::wire::error::ParseError;
use proptest::prelude::*;

#[test]
fn the_bth_of_the_sample_packet_has_the_values_of_the_standard() {
    let expected = Bth {
        pad_count: 2,
        partition_key: 0x2487,
        ..Bth::new(
            Opcode::RC_WRITE_ONLY,
            QueuePairNumber::truncate(0x87_b1b3),
            Psn::truncate(0x0d_ec2a),
        )
    };
    assert_eq!(Bth::parse(&LOCAL[LOCAL_BTH..]), Ok(expected));
    assert_eq!(expected.to_octets(), LOCAL[LOCAL_BTH..LOCAL_BTH + Bth::LEN]);
}

#[test]
fn each_flag_is_one_bit() {
    let plain = Bth::parse(&[0; Bth::LEN]).expect("twelve octets");
    let cases = [
        (Bth { solicited: true, ..plain }, 1, 0x80),
        (Bth { migration_request: true, ..plain }, 1, 0x40),
        (Bth { pad_count: 3, ..plain }, 1, 0x30),
        (Bth { version: 15, ..plain }, 1, 0x0f),
        (Bth { fecn: true, ..plain }, 4, 0x80),
        (Bth { becn: true, ..plain }, 4, 0x40),
        (Bth { reserved6: 0x3f, ..plain }, 4, 0x3f),
        (Bth { ack_request: true, ..plain }, 8, 0x80),
        (Bth { reserved7: 0x7f, ..plain }, 8, 0x7f),
    ];
    for (bth, place, bits) in cases {
        let mut octets = [0; Bth::LEN];
        octets[place] = bits;
        assert_eq!(bth.to_octets(), octets);
        assert_eq!(Bth::parse(&octets), Ok(bth));
    }
}

#[test]
fn every_short_length_is_refused() {
    for present in 0..Bth::LEN {
        let refused = Err(ParseError::short("BTH", 0, 12, present));
        assert_eq!(Bth::parse(&LOCAL[..present]), refused);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100_000))]

    #[test]
    fn any_twelve_octets_round_trip(octets: [u8; Bth::LEN]) {
        prop_assert_eq!(Bth::parse(&octets)?.to_octets(), octets);
    }
}
