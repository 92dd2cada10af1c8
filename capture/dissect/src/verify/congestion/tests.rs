//! CNPs and marks of a capture: what is noted, and what is judged once it is known what to ask.

use crate::verify::{Report, Settings, verify};
use proto::frame::Frame;
use proto::ids::{Dscp, Ecn};
use proto::units::Duration;
use proto::wire::infiniband::{Aeth, Bth, ExtendedHeaders, Opcode, Syndrome};
use proto::wire::roce::{PacketBuilder, notification};
use testbed::frames::ethernet::{cnp, data, frame, roce, with_dscp, with_ecn};

/// A pcap file of Ethernet with frames at so many microseconds.
fn pcap(frames: &[(u32, Frame)]) -> Vec<u8> {
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let mut file = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1]);
    for (at, frame) in frames {
        let length = frame.octets.len() as u32;
        file.extend(words(&[0, *at, length, length]));
        file.extend_from_slice(&frame.octets);
    }
    file
}

fn report(frames: &[(u32, Frame)], settings: Settings) -> Report {
    verify(&pcap(frames)[..], "a test", &settings, 100).expect("a capture")
}

fn found(frames: &[(u32, Frame)], settings: Settings) -> Vec<(u64, &'static str)> {
    let findings = report(frames, settings).findings;
    findings.iter().map(|finding| (finding.frame, finding.rule)).collect()
}

/// CNPs about two flows of adapter 2, and one of adapter 3.
fn notices() -> Vec<(u32, Frame)> {
    [(0, 1), (10, 3), (49, 1), (50, 3), (99, 1), (100, 3)]
        .map(|(at, from)| (at, cnp(from, 2)))
        .into()
}

#[test]
fn cnps_too_close_together_are_found_once_the_interval_is_known() {
    let silent = report(&notices(), Settings::default());
    assert_eq!((silent.findings.len(), silent.verdict), (0, "pass"));
    assert_eq!(silent.tally.noted["ns at least between two CNPs of a flow"], 40_000);
    assert_eq!(silent.tally.checked["CNPs"], 6);
    let asked = |us| Settings { cnp_interval: Some(Duration::from_us(us)), ..Settings::default() };
    assert_eq!(found(&notices(), asked(50)), [(3, "cnp-pace"), (4, "cnp-pace")]);
    assert_eq!(found(&notices(), asked(40)), []);
    assert_eq!(report(&notices(), asked(40)).tally.noted.len(), 0);
}

#[test]
fn cnps_of_another_class_are_found_once_it_is_known() {
    let bth = notification::bth(cnp_bth().destination, Bth::DEFAULT_PARTITION);
    let builder = PacketBuilder { bth, ..with_ecn(&roce(1, 2, 0, 0), Ecn::NotCapable) };
    let other = testbed::frames::ethernet::blank(&with_dscp(&builder, 26), 16);
    let frames = [(0, cnp(1, 2)), (60, other)];
    let asked = |dscp| Settings { cnp_dscp: Some(Dscp::truncate(dscp)), ..Settings::default() };
    assert_eq!(found(&frames, Settings::default()), []);
    assert_eq!(found(&frames, asked(48)), [(2, "cnp-dscp")]);
    assert_eq!(found(&frames, asked(26)), [(1, "cnp-dscp")]);
}

fn cnp_bth() -> Bth {
    roce(1, 2, 0, 0).bth
}

#[test]
fn marks_are_noted_by_what_they_are_on() {
    let ce = Ecn::CongestionExperienced;
    let marked = with_ecn(&roce(1, 2, 3, 1), ce);
    let aeth = Some(Aeth { syndrome: Syndrome::ACK, message_sequence_number: 1 });
    let ack = PacketBuilder {
        bth: Bth { opcode: Opcode::RC_ACKNOWLEDGE, ack_request: false, ..roce(2, 1, 3, 1).bth },
        extended: ExtendedHeaders { aeth, ..ExtendedHeaders::NONE },
        ..with_ecn(&roce(2, 1, 3, 1), ce)
    };
    let bth = notification::bth(cnp_bth().destination, Bth::DEFAULT_PARTITION);
    let notice = PacketBuilder { bth, ..with_ecn(&roce(1, 2, 6, 0), ce) };
    let blank = testbed::frames::ethernet::blank(&notice, 16);
    let mut wrong = frame(&with_ecn(&roce(1, 2, 3, 2), ce), 64);
    *wrong.octets.last_mut().expect("octets") ^= 1;
    let frames = [
        (0, data(1, 2, 3, 0)),
        (1, frame(&marked, 64)),
        (2, frame(&ack, 0)),
        (3, blank),
        (4, wrong),
    ];
    let report = report(&frames, Settings::default());
    let noted: Vec<_> = report.tally.noted.into_iter().collect();
    let expected =
        [("CNPs with CE", 1), ("acknowledgements with CE", 1), ("data packets with CE", 1)];
    assert_eq!(noted, expected, "a damaged packet is not believed");
    assert_eq!(report.counts.into_keys().collect::<Vec<_>>(), ["icrc"]);
}
