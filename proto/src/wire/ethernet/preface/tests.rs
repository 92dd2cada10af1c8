//! Tests of congestion control tags: position, insertion, removal and truncation.

use super::*;
use crate::ids::{Priority, VlanId};
use crate::tests::infiniband::payloads;
use crate::tests::roce::{build, builders};
use crate::wire::ethernet::cn_tag::CnTag;
use crate::wire::ethernet::{MacAddress, VlanTag, ethertype};
use crate::wire::project::{RateTag, SUBTYPE_LEN};
use proptest::prelude::*;

const TYPES: ProjectTypes = ProjectTypes::DEFAULT;

fn cn(flow_id: u16) -> CongestionTag {
    CongestionTag::Cn(CnTag { flow_id, ethertype: 0 })
}

fn rate_regulated() -> CongestionTag {
    CongestionTag::RateRegulated(RateTag {
        reserved: 0,
        cpid: 0x0200_0100_0009_0003,
        timestamp: 77,
        ethertype: 0,
    })
}

fn vlan_tag() -> VlanTag {
    let (priority, id) = (Priority::truncate(3), VlanId::truncate(100));
    VlanTag { priority, drop_eligible: false, id, ethertype: 0 }
}

fn envelopes() -> [Envelope; 3] {
    let [to, from] = [1, 2].map(MacAddress::from_number);
    let plain = Envelope::untagged(to, from, ethertype::IPV4);
    [plain, plain.tagged(vlan_tag()), plain.tagged(vlan_tag()).tagged(vlan_tag())]
}

/// ENC-11: VLAN tag, 22E9, two octets of flow id, the original type.
#[test]
fn a_cn_tag_stands_behind_the_vlan_tag() {
    let [_, tagged, _] = envelopes();
    let preface = Preface::untagged(tagged).tagged(cn(7), &TYPES);
    let mut octets = [0; 22];
    preface.emit(&mut octets);
    let behind_addresses = [0x81, 0, 0x60, 100, 0x22, 0xe9, 0, 7, 0x08, 0x00];
    assert_eq!(octets[12..], behind_addresses);
    assert_eq!(Preface::parse(&octets, &TYPES), Ok(preface));
    assert_eq!((preface.flow_id(), preface.ethertype()), (7, ethertype::IPV4));
    assert_eq!(Preface::untagged(tagged).flow_id(), 0);
}

#[test]
fn a_rate_regulated_tag_stands_behind_the_vlan_tag() {
    let [_, tagged, _] = envelopes();
    let preface = Preface::untagged(tagged).tagged(rate_regulated(), &TYPES);
    let mut octets = [0; 34];
    preface.emit(&mut octets);
    let behind_addresses =
        [0x81, 0, 0x60, 100, 0x88, 0xb6, 3, 0, 2, 0, 1, 0, 0, 9, 0, 3, 0, 0, 0, 77, 0x08, 0x00];
    assert_eq!(octets[12..], behind_addresses);
    assert_eq!(Preface::parse(&octets, &TYPES), Ok(preface));
    assert_eq!((preface.flow_id(), preface.ethertype()), (0, ethertype::IPV4));
}

#[test]
fn a_truncated_tag_is_refused_with_its_offset() {
    for (envelope, begin) in envelopes().into_iter().zip([14, 18, 22]) {
        for (tag, layer) in [(cn(1), "CN-TAG"), (rate_regulated(), "RRT")] {
            let preface = Preface::untagged(envelope).tagged(tag, &TYPES);
            let mut octets = vec![0; preface.octets_len()];
            preface.emit(&mut octets);
            let subtype = if layer == "RRT" { SUBTYPE_LEN } else { 0 };
            for present in begin + subtype..octets.len() {
                let refused = Preface::parse(&octets[..present], &TYPES).expect_err("cut off");
                assert_eq!((refused.layer, refused.offset), (layer, begin + subtype));
            }
        }
    }
}

#[test]
fn other_frames_with_the_project_ethertype_are_not_tags() {
    for subtype in (0..=u8::MAX).filter(|subtype| *subtype != RateTag::SUBTYPE) {
        let found = CongestionTag::parse(ethertype::PROJECT, &[subtype], &TYPES);
        assert_eq!(found, Ok(None));
    }
    assert_eq!(CongestionTag::parse(ethertype::PROJECT, &[], &TYPES), Ok(None));
}

#[test]
fn another_ethertype_can_be_chosen() {
    let types = ProjectTypes::new(0x88b6, 0x88b6, 0x9003).expect("the EtherType is free");
    let [plain, ..] = envelopes();
    let mut octets = BytesMut::zeroed(60);
    plain.emit(&mut octets);
    insert_tag(&mut octets, rate_regulated(), &types).expect("a frame");
    assert_eq!(octets[12..15], [0x90, 0x03, 3]);
    assert_eq!(remove_tag(&mut octets, &TYPES), Ok(None));
    assert!(matches!(remove_tag(&mut octets, &types), Ok(Some(_))));
}

#[test]
fn a_short_frame_keeps_the_minimum_size() {
    let [plain, ..] = envelopes();
    for length in [60, 62] {
        let mut octets = BytesMut::zeroed(length);
        plain.emit(&mut octets);
        let before = octets.clone();
        insert_tag(&mut octets, cn(1), &TYPES).expect("a frame");
        assert_eq!(octets.len(), length + 4);
        assert!(matches!(remove_tag(&mut octets, &TYPES), Ok(Some(_))));
        assert_eq!(octets, before);
    }
    // The sender padded the tagged frame to 60 octets.
    let mut octets = BytesMut::zeroed(60);
    Preface::untagged(plain).tagged(cn(1), &TYPES).emit(&mut octets);
    assert!(matches!(remove_tag(&mut octets, &TYPES), Ok(Some(_))));
    assert_eq!(octets.len(), 60);
}

fn tags() -> impl Strategy<Value = CongestionTag> {
    let (flow, regulated) = (any::<u16>(), any::<(u8, u64, u32)>());
    (any::<bool>(), flow, regulated).prop_map(|(is_cn, flow_id, regulated)| {
        let (reserved, cpid, timestamp) = regulated;
        let regulated = RateTag { reserved, cpid, timestamp, ethertype: 0 };
        if is_cn { cn(flow_id) } else { CongestionTag::RateRegulated(regulated) }
    })
}

proptest! {
    #[test]
    fn inserting_and_removing_a_tag_restores_the_packet(
        builder in builders(), payload in payloads(), tag in tags(),
    ) {
        let before = build(&builder, &payload);
        let mut octets = before.clone();
        insert_tag(&mut octets, tag, &TYPES)?;
        let inner = Preface::parse(&before, &TYPES)?.ethertype();
        prop_assert_eq!(Preface::parse(&octets, &TYPES)?.tag, Some(tag.before(inner)));
        prop_assert_eq!(octets.len(), before.len() + tag.octets_len());
        prop_assert_eq!(remove_tag(&mut octets, &TYPES)?, Some(tag.before(inner)));
        prop_assert_eq!(octets, before);
    }

    #[test]
    fn any_octets_round_trip(
        octets in prop::collection::vec(any::<u8>(), 0..60), tags in 0..3usize, regulated: bool,
    ) {
        let mut octets = octets;
        let announced: &[u8] = if regulated { &[0x88, 0xb6, 3] } else { &[0x22, 0xe9] };
        for tag in 0..tags {
            if let Some(place) = octets.get_mut(12 + tag * 4..14 + tag * 4) {
                place.copy_from_slice(&[0x81, 0x00]);
            }
        }
        let at = 12 + tags * 4;
        if let Some(place) = octets.get_mut(at..at + announced.len()) {
            place.copy_from_slice(announced);
        }
        if let Ok(preface) = Preface::parse(&octets, &TYPES) {
            let mut written = vec![0; preface.octets_len()];
            preface.emit(&mut written);
            prop_assert_eq!(&written[..], &octets[..written.len()]);
        }
        let mut without = BytesMut::from(&octets[..]);
        let _ = remove_tag(&mut without, &TYPES);
    }
}
