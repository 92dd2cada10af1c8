//! Frames of which a capture has less than there was: what is missing is named, and nothing else.

use super::*;

/// Cuts a sound frame everywhere: it comes back, no CRC is judged, and only the cut is wrong with it.
fn assert_cut_is_all_that_is_wrong(technology: Technology, whole: &[u8]) {
    for end in 0..whole.len() {
        let line = line(technology, &whole[..end], whole.len(), Rules::default());
        let frame: Value = serde_json::from_str(&line).expect("JSON");
        let wrong = frame["wrong"].as_array().expect("a list");
        let missing = format!("{} were not captured", whole.len() - end);
        assert!(wrong.len() == 1 && wrong[0].as_str().unwrap().contains(&missing), "{line}");
        assert_eq!(frame["wire_length"], whole.len());
        for check in ["icrc", "vcrc", "lpcrc", "fcs"] {
            assert_eq!(frame.get(check), None, "{line}");
        }
        let encoded = encode(&line).unwrap_or_else(|fault| panic!("{fault}\n{line}"));
        assert_eq!(hex(&encoded.octets), hex(&whole[..end]), "{line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn of_packets(packet in packets()) {
        assert_cut_is_all_that_is_wrong(Technology::Infiniband, &packet);
    }

    #[test]
    fn of_roce_frames(packet in packets(), which in 0usize..3, tags: (bool, bool), fcs: bool) {
        let frame = roce(&packet, NETWORKS[which], tags.0, tags.1, fcs);
        assert_cut_is_all_that_is_wrong(Technology::Ethernet, &frame);
    }
}

#[test]
fn of_frames_that_control() {
    let addresses = r#""ethernet": {"dst": "01:80:c2:00:00:01", "src": "02:00:00:00:00:02"}"#;
    for control in [
        r#""mac_control": {"pause_time": 7}"#,
        r#""mac_control": {"enbv": 8, "pause_time_c3": 7}"#,
        r#""cnm": {"qfb": 3, "cpid": "0x0102030405060708", "qoffset": -1, "qdelta": 2,
            "encap_dst": "02:00:00:00:00:03"}, "payload": "0011223344556677""#,
        r#""bcn": {"cpid": "0x0102030405060708", "qoffset": -1, "qdelta": 2, "stop": 1},
            "payload": "0011223344556677""#,
        r#""cn_tag": {"flow_id": 7}, "test_frame": {"flow": 1}, "payload": "0102""#,
        r#""rate_tag": {"cpid": "0x0102030405060708"}, "test_frame": {"flow": 1},
            "payload": "0102""#,
    ] {
        let text = format!("{{{addresses}, {control}}}").replace('\n', " ");
        let frame = encode(&text).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
        assert_cut_is_all_that_is_wrong(Technology::Ethernet, &frame.octets);
    }
    let link_packet = encode(r#"{"flow_control": {"fctbs": 1, "vl": 2, "fccl": 3}}"#);
    assert_cut_is_all_that_is_wrong(
        Technology::Infiniband,
        &link_packet.expect("six octets").octets,
    );
}

#[test]
fn of_frames_within_a_shim() {
    let inner =
        r#""frame": {"lrh": {"dlid": 1, "slid": 2}, "bth": {"opcode": 4, "destqp": 5, "psn": 0}}"#;
    let text = format!(
        r#"{{"ethernet": {{"dst": "02:00:00:00:00:01", "src": "02:00:00:00:00:02"}},
        "shim": [{{"kind": 1, {inner}}}, {{"kind": 1, {inner}}}]}}"#
    );
    let frame = encode(&text.replace('\n', " ")).expect("a frame").octets;
    assert_cut_is_all_that_is_wrong(Technology::Ethernet, &frame);
}
