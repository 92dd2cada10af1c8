//! Tests of the LRH: the standard's sample packet, extreme values and every bit.

use super::*;
use crate::tests::infiniband as samples;
use crate::wire::error::ParseError;
use proptest::prelude::*;

#[test]
fn the_lrh_of_the_sample_packet_has_the_values_of_the_standard() {
    let lrh = Lrh::parse(&samples::LOCAL).expect("a whole packet");
    let expected = Lrh {
        virtual_lane: VirtualLane::truncate(7),
        version: 0,
        service_level: ServiceLevel::truncate(1),
        reserved2: 0,
        next_header: LinkNextHeader::Local,
        dlid: Lid::new(0x375c),
        reserved5: 0,
        packet_length: 0x00e,
        slid: Lid::new(0x17d2),
    };
    assert_eq!(lrh, expected);
    assert_eq!(lrh.to_octets(), samples::LOCAL[..8]);
}

/// ENC-12: extreme values, compared with an independent encoding by shifts.
#[test]
fn extreme_values_are_encoded_bit_for_bit() {
    let extremes = [0u16, 1, 0x7fff, 0x8000, 0xffff];
    for (vl, sl, lnh) in (0..1024u16).map(|n| (n >> 6 & 0xf, n >> 2 & 0xf, n & 3)) {
        for (dlid, slid, length) in extremes
            .iter()
            .flat_map(|d| extremes.map(|s| (*d, s)))
            .flat_map(|(d, s)| [5, 6, 0x3ff, 0x400, 0x7ff].map(|length| (d, s, length)))
        {
            let lrh = Lrh {
                virtual_lane: VirtualLane::truncate(vl as u8),
                service_level: ServiceLevel::truncate(sl as u8),
                next_header: LinkNextHeader::from_bits(lnh as u8),
                dlid: Lid::new(dlid),
                packet_length: length,
                slid: Lid::new(slid),
                ..Lrh::default()
            };
            let words = [vl << 12 | sl << 4 | lnh, dlid, length, slid];
            let octets: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            assert_eq!(lrh.to_octets(), octets[..]);
            assert_eq!(Lrh::parse(&octets), Ok(lrh));
        }
    }
}

#[test]
fn numbers_beyond_their_field_do_not_change_the_next_field() {
    let lrh = Lrh { version: 0xff, reserved2: 0xff, packet_length: 0xffff, ..Lrh::default() };
    assert_eq!(lrh.to_octets(), [0x0f, 0x0e, 0, 0, 0x07, 0xff, 0, 0]);
}

#[test]
fn every_short_length_is_refused() {
    for present in 0..Lrh::LEN {
        let refused = Err(ParseError::short("LRH", 0, 8, present));
        assert_eq!(Lrh::parse(&samples::LOCAL[..present]), refused);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100_000))]

    /// ENC-15: parsing and emitting keep every bit.
    #[test]
    fn any_eight_octets_round_trip(octets: [u8; Lrh::LEN]) {
        prop_assert_eq!(Lrh::parse(&octets)?.to_octets(), octets);
    }
}
