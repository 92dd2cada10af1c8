//! Messages and test frames that are right are clean, and each kind of damage is found at its frame.

use crate::verify::{Report, Settings, verify};
use proto::wire::ethernet::{CnTag, Cnm, CongestionTag, Envelope, MacAddress, Preface, ethertype};
use proto::wire::project::{Bcn, ProjectTypes, TestFrame};

const HOST: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 1]);
const PORT: MacAddress = MacAddress::new([2, 0, 1, 0, 0, 9]);

fn frame(to: MacAddress, kind: u16, tagged: bool, body: &[u8]) -> Vec<u8> {
    let plain = Preface::untagged(Envelope::untagged(to, PORT, kind));
    let tag = CongestionTag::Cn(CnTag { flow_id: 7, ethertype: 0 });
    let preface = if tagged { plain.tagged(tag, &ProjectTypes::DEFAULT) } else { plain };
    let mut octets = vec![0; preface.octets_len()];
    preface.emit(&mut octets);
    octets.extend(body);
    octets.resize(octets.len().max(60), 0);
    octets
}

fn cnm() -> Cnm {
    Cnm { quantized_feedback: 38, cpid: 0x0200_0100_0009_0003, msdu_length: 8, ..Cnm::default() }
}

fn cnm_frame(cnm: Cnm) -> Vec<u8> {
    frame(HOST, ethertype::CNM, true, &[&cnm.to_octets()[..], &[0xd0; 8]].concat())
}

fn bcn_frame(bcn: Bcn) -> Vec<u8> {
    frame(HOST, ethertype::PROJECT, false, &[&[2][..], &bcn.to_octets(), &[0xd0; 8]].concat())
}

fn bcn() -> Bcn {
    Bcn { version: Bcn::VERSION, cpid: 1, length: 8, ..Bcn::default() }
}

fn test_frame() -> Vec<u8> {
    let test = TestFrame { flow: 3, sequence: 0x1f0, ..TestFrame::default() };
    let mut pattern = [0; 300];
    test.fill(&mut pattern);
    let body = [&[1][..], &test.to_octets(), &pattern].concat();
    frame(HOST, ethertype::PROJECT, true, &body)
}

fn report(frames: &[Vec<u8>]) -> Report {
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let mut file = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1]);
    for frame in frames {
        file.extend(words(&[0, 0, frame.len() as u32, frame.len() as u32]));
        file.extend(frame);
    }
    verify(&file[..], "", &Settings::default(), 9).expect("a capture")
}

fn rules(frame: Vec<u8>) -> Vec<&'static str> {
    report(&[frame]).findings.iter().map(|finding| finding.rule).collect()
}

#[test]
fn what_is_right_is_clean_and_counted() {
    let report = report(&[cnm_frame(cnm()), bcn_frame(bcn()), test_frame(), test_frame()]);
    assert_eq!(report.findings, []);
    let checked = |what| report.tally.checked.get(what).copied();
    assert_eq!((checked("CNMs"), checked("BCN messages")), (Some(1), Some(1)));
    assert_eq!(checked("test frames"), Some(2));
    assert_eq!(report.tally.not_checked.get("Ethernet frames without RoCE"), None);
}

#[test]
fn a_cnm_that_a_sender_would_discard_is_found() {
    assert_eq!(rules(cnm_frame(Cnm { version: 1, ..cnm() })), ["cnm"]);
    assert_eq!(rules(cnm_frame(Cnm { msdu_length: 65, ..cnm() })), ["cnm"]);
    assert_eq!(rules(cnm_frame(Cnm { msdu_length: 60, ..cnm() })), ["cnm"]);
    assert_eq!(rules(cnm_frame(Cnm { quantized_feedback: 0, ..cnm() })), ["cnm-feedback"]);
    assert_eq!(rules(cnm_frame(Cnm { cpid: 0, ..cnm() })), ["cnm-feedback"]);
    assert_eq!(rules(cnm_frame(Cnm { reserved: 63, ..cnm() })), [""; 0]);
}

#[test]
fn messages_to_groups_are_found() {
    let mut octets = cnm_frame(cnm());
    octets[0] |= 1;
    assert_eq!(rules(octets), ["notification-address"]);
    let mut octets = bcn_frame(bcn());
    octets[6] |= 1;
    assert_eq!(rules(octets), ["notification-address"]);
}

#[test]
fn a_bcn_message_that_is_not_whole_is_found() {
    assert_eq!(rules(bcn_frame(Bcn { version: 2, ..bcn() })), ["bcn"]);
    assert_eq!(rules(bcn_frame(Bcn { length: 65, ..bcn() })), ["bcn"]);
    assert_eq!(rules(bcn_frame(Bcn { length: 50, ..bcn() })), ["bcn"]);
}

#[test]
fn one_bit_of_a_pattern_is_found() {
    let whole = test_frame();
    for at in [18 + 18, 18 + 18 + 150, whole.len() - 1] {
        let mut octets = whole.clone();
        octets[at] ^= 4;
        assert_eq!(rules(octets), ["test-frame"], "octet {at}");
    }
}
