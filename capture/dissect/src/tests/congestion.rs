//! Messages and tags of congestion control: tables here and types of `proto::wire` say the same.

use super::*;
use proto::wire::ethernet::{CnTag, Cnm};
use proto::wire::project::{Bcn, RateTag, TestFrame};

/// A frame of this EtherType around `body`, as JSON.
fn told(kind: u16, body: &[u8]) -> Value {
    let header = [&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 5][..], &kind.to_be_bytes()].concat();
    let octets = [&header[..], body, &[0; 64]].concat();
    assert_identity(Technology::Ethernet, &octets);
    json(Technology::Ethernet, &octets)
}

fn wide(number: u64) -> String {
    format!("0x{number:016x}")
}

proptest! {
    #[test]
    fn a_cnm(octets: [u8; Cnm::LEN]) {
        let cnm = Cnm::parse(&octets)?;
        let frame = told(0x22e7, &octets);
        let expected = serde_json::json!({
            "version": cnm.version, "reserved_v": cnm.reserved, "qfb": cnm.quantized_feedback,
            "cpid": wide(cnm.cpid), "qoffset": cnm.q_offset, "qdelta": cnm.q_delta,
            "encap_priority": cnm.encapsulated_priority.get(),
            "reserved13": cnm.encapsulated_reserved,
            "encap_dst": cnm.encapsulated_destination.to_string(), "msdu_length": cnm.msdu_length,
        });
        prop_assert_eq!(&frame["cnm"], &expected);
        // What a receiver refuses is called wrong, and more: reserved bits too.
        if Cnm::parse_message(&[&octets[..], &[0; 64]].concat()).is_err() {
            prop_assert!(frame.get("wrong").is_some(), "{}", frame);
        }
    }

    #[test]
    fn a_message_of_bcn(octets: [u8; Bcn::LEN]) {
        let bcn = Bcn::parse(&octets)?;
        let frame = told(0x88b6, &[&[2][..], &octets].concat());
        let expected = serde_json::json!({
            "subtype": 2, "version": bcn.version, "cpid": wide(bcn.cpid), "qoffset": bcn.q_offset,
            "qdelta": bcn.q_delta, "timestamp": bcn.timestamp, "mild": u8::from(bcn.mild),
            "severe": u8::from(bcn.severe), "stop": u8::from(bcn.stop), "reserved5": bcn.reserved,
            "length": bcn.length,
        });
        prop_assert_eq!(&frame["bcn"], &expected);
        if Bcn::parse_message(&[&octets[..], &[0; 64]].concat()).is_err() {
            prop_assert!(frame.get("wrong").is_some(), "{}", frame);
        }
    }

    #[test]
    fn a_test_frame_behind_a_rate_regulated_tag(
        test: [u8; TestFrame::LEN], tag: [u8; RateTag::LEN],
    ) {
        let tag = RateTag { ethertype: 0x88b6, ..RateTag::parse(&tag)? };
        let test = TestFrame::parse(&test)?;
        let body = [&[3][..], &tag.to_octets(), &[1], &test.to_octets()].concat();
        let frame = told(0x88b6, &body);
        let regulated = serde_json::json!({
            "subtype": 3, "reserved8": tag.reserved, "cpid": wide(tag.cpid),
            "timestamp": tag.timestamp, "type": 0x88b6,
        });
        prop_assert_eq!(&frame["rate_tag"], &regulated);
        let expected = serde_json::json!({
            "subtype": 1, "reserved8": test.reserved, "flow": test.flow,
            "sequence": test.sequence, "departure": test.departure.as_ps(),
        });
        prop_assert_eq!(&frame["test_frame"], &expected);
    }

    #[test]
    fn a_cn_tag(flow_id: u16) {
        let tag = CnTag { flow_id, ethertype: 0x22e7 };
        let frame = told(0x22e9, &tag.to_octets());
        let expected = serde_json::json!({"flow_id": flow_id, "type": 0x22e7});
        prop_assert_eq!(&frame["cn_tag"], &expected);
        prop_assert!(frame.get("cnm").is_some(), "{}", frame);
    }
}

#[test]
fn a_message_is_written_from_what_cannot_be_computed() {
    let line = r#"{"ethernet": {"dst": "02:00:00:00:00:05", "src": "02:00:03:00:00:09"},
        "vlan": {"pcp": 6, "vid": 0}, "cn_tag": {"flow_id": 7},
        "cnm": {"qfb": 63, "cpid": "0x0200030000090003", "qoffset": -1, "qdelta": 2,
            "encap_priority": 3, "encap_dst": "02:00:00:00:00:01"}, "payload": "d0d1"}"#;
    let octets = encode(&line.replace('\n', " ")).expect("a frame").octets;
    let expected = [
        2, 0, 0, 0, 0, 5, 2, 0, 3, 0, 0, 9, 0x81, 0, 0xc0, 0, 0x22, 0xe9, 0, 7, 0x22, 0xe7, 0, 63,
        2, 0, 3, 0, 0, 9, 0, 3, 0xff, 0xff, 0, 2, 0x60, 0, 2, 0, 0, 0, 0, 1, 0, 2, 0xd0, 0xd1,
    ];
    assert_eq!(octets[..expected.len()], expected);
    assert_eq!(octets.len(), 60);
}

#[test]
fn messages_cut_short_are_errors_of_their_layer() {
    for (kind, body, layer) in [
        (0x22e7u16, &[0u8; 23][..], "CNM"),
        (0x88b6, &[1; 17], "test frame"),
        (0x88b6, &[2; 19], "BCN"),
        (0x88b6, &[3; 15], "RRT"),
    ] {
        let mut octets = vec![2; 12];
        octets.extend(kind.to_be_bytes());
        octets.extend(body);
        assert_identity(Technology::Ethernet, &octets);
        let frame = json(Technology::Ethernet, &octets);
        assert_eq!(frame["error"]["layer"], layer, "{frame}");
        assert_eq!(frame["error"]["offset"], 14, "{frame}");
    }
}
