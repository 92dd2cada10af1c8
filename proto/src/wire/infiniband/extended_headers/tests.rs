//! Tests of extended headers: known octets, every bit, every short length, and all headers in sequence.

use super::*;
use crate::ids::QueuePairNumber;
use proptest::prelude::*;

#[test]
fn known_octets_have_the_values_of_their_sources() {
    // The standard's sample packet.
    let reth = [1, 0x71, 0x0a, 0x1c, 1, 0x5d, 0x40, 2, 0x38, 0xf2, 0x7a, 5, 0, 0, 0, 0x0e];
    let expected =
        Reth { virtual_address: 0x0171_0a1c_015d_4002, remote_key: 0x38f2_7a05, dma_length: 14 };
    assert_eq!(Reth::parse(&reth), Ok(expected));
    // A captured IPoIB packet.
    let expected =
        Deth { queue_key: 0xb1b, reserved8: 0, source: QueuePairNumber::truncate(0x404) };
    assert_eq!(Deth::parse(&[0, 0, 0x0b, 0x1b, 0, 0, 0x04, 0x04]), Ok(expected));
    // A captured RC acknowledgement.
    let expected = Aeth { syndrome: Syndrome::ACK, message_sequence_number: 1 };
    assert_eq!(Aeth::parse(&[0x1f, 0, 0, 1]), Ok(expected));
}

#[test]
fn every_syndrome_octet_keeps_its_bits() {
    for octet in 0..=255 {
        assert_eq!(Syndrome::from_octet(octet).octet(), octet);
    }
    assert_eq!(Syndrome::from_octet(0x1f), Syndrome::ACK);
    assert_eq!(Syndrome::from_octet(0x2e), Syndrome::Rnr { timer: 14 });
    assert_eq!(Syndrome::from_octet(0x60), Syndrome::Nak(NakCode::PsnSequence));
    assert_eq!(Syndrome::from_octet(0x64), Syndrome::Nak(NakCode::InvalidRdRequest));
    assert_eq!(Syndrome::from_octet(0x7f), Syndrome::Nak(NakCode::Unknown(31)));
    assert_eq!(Syndrome::from_octet(0x40), Syndrome::Unknown(0x40));
    assert_eq!(Syndrome::from_octet(0x9f), Syndrome::Unknown(0x9f));
}

macro_rules! each_header {
    ($($test:ident: $owned:ident;)*) => {
        #[test]
        fn every_short_length_of_every_header_is_refused() {
            $(
                for present in 0..$owned::LEN {
                    let refused = ParseError::short($owned::LAYER, 0, $owned::LEN, present);
                    assert_eq!($owned::parse(&vec![0; present]), Err(refused));
                }
            )*
        }

        proptest! {
            #![proptest_config(ProptestConfig::with_cases(100_000))]
            $(
                #[test]
                fn $test(octets: [u8; $owned::LEN]) {
                    prop_assert_eq!($owned::parse(&octets)?.to_octets(), octets);
                }
            )*
        }
    };
}

each_header! {
    any_rdeth_comes_back_as_it_was: Rdeth;
    any_xrceth_comes_back_as_it_was: XrcEth;
    any_deth_comes_back_as_it_was: Deth;
    any_reth_comes_back_as_it_was: Reth;
    any_atomic_eth_comes_back_as_it_was: AtomicEth;
    any_aeth_comes_back_as_it_was: Aeth;
    any_atomic_ack_eth_comes_back_as_it_was: AtomicAckEth;
    any_immdt_comes_back_as_it_was: ImmDt;
    any_ieth_comes_back_as_it_was: Ieth;
}

fn all() -> HeaderSet {
    ExtendedHeader::ALL.iter().fold(HeaderSet::EMPTY, |set, header| set.with(*header))
}

#[test]
fn a_truncation_names_the_header_and_its_offset() {
    let octets = vec![0xa5; all().octets()];
    let layers = [
        ("RDETH", 4),
        ("XRCETH", 4),
        ("DETH", 8),
        ("RETH", 16),
        ("AtomicETH", 28),
        ("AETH", 4),
        ("AtomicAckETH", 8),
        ("ImmDt", 4),
        ("IETH", 4),
    ];
    let mut begins = 0;
    for (layer, len) in layers {
        for present in 0..len {
            let cut = ExtendedHeaders::parse(all(), &octets[..begins + present], 20);
            assert_eq!(cut, Err(ParseError::short(layer, 20 + begins, len, present)));
        }
        begins += len;
    }
    assert_eq!(begins, all().octets());
}

proptest! {
    #[test]
    fn any_set_of_headers_round_trips(
        members in proptest::sample::subsequence(ExtendedHeader::ALL, 0..=9),
        noise in proptest::collection::vec(any::<u8>(), 80),
    ) {
        let set = members.iter().fold(HeaderSet::EMPTY, |set, header| set.with(*header));
        prop_assert_eq!(set.octets(), members.iter().map(|header| header.octets()).sum::<usize>());
        let headers = ExtendedHeaders::parse(set, &noise, 0)?;
        prop_assert_eq!(headers.set(), set);
        let mut written = vec![0; set.octets()];
        prop_assert_eq!(headers.emit(&mut written), set.octets());
        prop_assert_eq!(&written, &noise[..set.octets()]);
    }
}
