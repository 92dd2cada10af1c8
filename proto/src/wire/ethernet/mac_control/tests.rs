//! Tests of PAUSE and PFC: captured and published frames, and frames that a receiver must ignore.

use super::*;
use crate::counters::DropReason;
use crate::ids::Priority;
use crate::wire::ethernet::crc;
use proptest::prelude::*;

/// Octets of a captured PAUSE frame, and its FCS.
const SWITCH: MacAddress = MacAddress::new([0x00, 0x0f, 0x5d, 0x30, 0x41, 0x50]);
const SILENCE_FCS: [u8; 4] = [0x3f, 0xab, 0x2a, 0x6b];
const SPEAK_FCS: [u8; 4] = [0xbb, 0xc0, 0x25, 0x12];

fn xoff(priority: u8) -> Pfc {
    Pfc::default().with(Priority::truncate(priority), 0xffff)
}

#[test]
fn captured_pause_frames_are_rebuilt_octet_for_octet() {
    for (time, fcs) in [(0xffff, SILENCE_FCS), (0, SPEAK_FCS)] {
        let control = MacControl::Pause(Pause { time });
        let octets = control.to_octets(SWITCH);
        let [high, low] = time.to_be_bytes();
        assert_eq!(octets[..6], [0x01, 0x80, 0xc2, 0, 0, 1]);
        assert_eq!(octets[6..18], [0, 0x0f, 0x5d, 0x30, 0x41, 0x50, 0x88, 8, 0, 1, high, low]);
        assert_eq!(octets[18..], [0; 42]);
        assert_eq!(crc::fcs(&octets).to_le_bytes(), fcs);
        assert_eq!(MacControl::parse(&octets), Ok(control));
    }
}

#[test]
fn pfc_applies_only_to_priorities_whose_bits_are_set() {
    let pfc = Pfc::default().with(Priority::truncate(3), 0xffff).with(Priority::truncate(4), 0);
    let octets = MacControl::Pfc(pfc).to_octets(SWITCH);
    assert_eq!(octets[14..18], [0x01, 0x01, 0x00, 0x18]);
    assert_eq!(octets[18..34], [0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(octets[34..], [0; 26]);
    assert_eq!(MacControl::parse(&octets), Ok(MacControl::Pfc(pfc)));
    let times = (0..8).map(|n| pfc.time(Priority::truncate(n))).collect::<Vec<_>>();
    assert_eq!(times, [None, None, None, Some(0xffff), Some(0), None, None, None]);
}

#[test]
fn a_time_without_its_bit_is_ignored() {
    let pfc = Pfc { times: [7; 8], ..Pfc::default() };
    assert_eq!(pfc.time(Priority::truncate(0)), None);
}

#[test]
fn each_fault_names_its_layer() {
    let good = MacControl::Pfc(xoff(3)).to_octets(SWITCH);
    let refused = |octets: &[u8]| MacControl::parse(octets).expect_err("not to be acted on");

    let mut wrong = good;
    wrong[15] = 0x02;
    assert_eq!(MacControl::parse(&wrong), Ok(MacControl::Unknown(0x0102)));

    for bit in 0..8 {
        let mut wrong = good;
        wrong[16] = 1 << bit;
        let read = Pfc { reserved: 1 << bit, ..xoff(3) };
        assert_eq!(MacControl::parse(&wrong), Ok(MacControl::Pfc(read)), "it is ignored");
        assert_eq!(MacControl::Pfc(read).to_octets(SWITCH), wrong);
    }
    for present in 16..34 {
        let error = refused(&good[..present]);
        assert_eq!(error, ParseError::short("PFC", 16, 18, present - 16));
        assert_eq!(error.drop_reason(), DropReason::MacControlLength);
    }
    for present in 14..16 {
        let error = refused(&good[..present]);
        assert_eq!(error, ParseError::short("MAC control", 14, 2, present - 14));
        assert_eq!(error.drop_reason(), DropReason::MacControlLength);
    }
    let pause = MacControl::Pause(Pause { time: 1 }).to_octets(SWITCH);
    for present in 16..18 {
        let error = refused(&pause[..present]);
        assert_eq!(error, ParseError::short("PAUSE", 16, 2, present - 16));
        assert_eq!(error.drop_reason(), DropReason::MacControlLength);
    }
    for present in 0..14 {
        assert_eq!(refused(&good[..present]).layer, "MAC control");
    }
}

proptest! {
    #[test]
    fn any_parameters_round_trip(octets: [u8; Pfc::LEN]) {
        prop_assert_eq!(Pfc::parse(&octets)?.to_octets(), octets);
        prop_assert_eq!(&Pause::parse(&octets)?.to_octets()[..], &octets[..2]);
    }

    #[test]
    fn accepted_frames_round_trip(
        opcode in prop_oneof![Just(1u16), Just(0x0101), any::<u16>()],
        octets in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let frame = [&[1; 12][..], &[0x88, 0x08], &opcode.to_be_bytes(), &octets].concat();
        match MacControl::parse(&frame) {
            Ok(MacControl::Unknown(found)) => prop_assert_eq!(found, opcode),
            Ok(control) => {
                let length = if opcode == 1 { 18 } else { 34 };
                prop_assert_eq!(&control.to_octets(SWITCH)[14..length], &frame[14..length]);
            }
            Err(error) => {
                let is_short = matches!(error.reason, Reason::Short { .. });
                prop_assert!(is_short, "{}", error);
            }
        }
    }
}
