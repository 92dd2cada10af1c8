//! Messages and tags of congestion control: emit reproduces every message that parses, inserting and removing a tag
//! restores the frame, and a tag does not change the headers behind it.

use bytes::BytesMut;
use proto::frame::{FrameHeaders, FrameKind, ethernet_size};
use proto::wire::classify::classify;
use proto::wire::ethernet::envelope::LEAST;
use proto::wire::ethernet::{CnTag, Cnm, CongestionTag, Preface, ethertype, preface};
use proto::wire::project::{Bcn, ProjectTypes, RateTag, SUBTYPE_LEN, Subtype, TestFrame};

const TYPES: ProjectTypes = ProjectTypes::DEFAULT;

/// The first octet selects the EtherType (low bits) and a VLAN tag before it (bit 3). The other octets are the
/// frame.
pub fn check(input: &[u8]) {
    let Some((mode, octets)) = input.split_first() else { return };
    let mut octets = octets.to_vec();
    let kinds = [ethertype::CNM, ethertype::CN_TAG, ethertype::PROJECT, ethertype::IPV4];
    let mut at = 12;
    if mode & 8 != 0 {
        put(&mut octets, at, ethertype::VLAN);
        at += 4;
    }
    put(&mut octets, at, kinds[usize::from(mode & 3)]);
    messages(&octets);
    tags(&octets);
    crate::ethernet::told_and_encoded(&octets);
}

fn put(octets: &mut [u8], at: usize, kind: u16) {
    if let Some(place) = octets.get_mut(at..at + 2) {
        place.copy_from_slice(&kind.to_be_bytes());
    }
}

fn messages(octets: &[u8]) {
    let Ok(preface) = Preface::parse(octets, &TYPES) else { return };
    let mut written = octets.to_vec();
    preface.emit(&mut written);
    assert_eq!(written, octets, "emit reproduces the parsed octets");
    let body = &octets[preface.octets_len()..];
    if let Ok((cnm, msdu)) = Cnm::parse_message(body) {
        assert_eq!([&cnm.to_octets()[..], msdu].concat(), body[..Cnm::LEN + msdu.len()]);
        assert!(msdu.len() <= Cnm::MSDU_MAX && usize::from(cnm.msdu_length) == msdu.len());
    }
    let behind = body.get(SUBTYPE_LEN..).unwrap_or_default();
    match TYPES.subtype(preface.ethertype(), body) {
        Some(Subtype::Bcn) => {
            if let Ok((bcn, sample)) = Bcn::parse_message(behind) {
                assert_eq!(
                    [&bcn.to_octets()[..], sample].concat(),
                    behind[..Bcn::LEN + sample.len()]
                );
            }
        }
        Some(Subtype::TestFrame) => {
            if let Ok(test) = TestFrame::parse(behind) {
                assert_eq!(test.to_octets(), behind[..TestFrame::LEN]);
                let mut pattern = behind[TestFrame::LEN..].to_vec();
                let held = test.holds(&pattern);
                test.fill(&mut pattern);
                assert_eq!(held, pattern == behind[TestFrame::LEN..]);
                assert!(test.holds(&pattern));
            }
        }
        Some(Subtype::RateTag) | None => {}
    }
}

fn tags(octets: &[u8]) {
    let before = classify(FrameKind::Ethernet, octets);
    let cn = CongestionTag::Cn(CnTag { flow_id: 7, ethertype: 0 });
    let regulated = RateTag { cpid: 9, ..RateTag::default() };
    for tag in [cn, CongestionTag::RateRegulated(regulated)] {
        let mut tagged = BytesMut::from(octets);
        if preface::insert_tag(&mut tagged, tag, &TYPES).is_err() {
            assert_eq!(tagged, octets, "a refusal changes nothing");
            return;
        }
        let has_one = Preface::parse(octets, &TYPES).is_ok_and(|preface| preface.tag.is_some());
        let after = classify(FrameKind::Ethernet, &tagged);
        if let (Ok(before), Ok(after), false) = (&before, &after, has_one) {
            let (size, regulated_by) = (ethernet_size(tagged.len()), after.regulated_by);
            assert_eq!(*after, FrameHeaders { size, regulated_by, ..*before });
        }
        preface::remove_tag(&mut tagged, &TYPES).expect("the frame has a tag");
        let mut filled = octets.to_vec();
        filled.resize(filled.len().max(LEAST), 0);
        assert_eq!(tagged, filled);
    }
    let mut without = BytesMut::from(octets);
    let _ = preface::remove_tag(&mut without, &TYPES);
}
