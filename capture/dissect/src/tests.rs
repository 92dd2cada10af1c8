//! Decode then encode is the identity, on frames of every kind and on anything else.

use super::*;
use crate::json::JsonSink;
use bytes::BytesMut;
use emulation::cable::shim::{SendingEnd, Shim};
use emulation::exact::{Pledge, Promise, Secret};
use proptest::collection::vec;
use proptest::prelude::*;
use proto::frame::FrameKind;
use proto::ids::{Lid, Psn, QueuePairNumber, ServiceLevel, VirtualLane};
use proto::units::Instant;
use proto::wire::ethernet::crc as ethernet_crc;
use proto::wire::ethernet::{Pfc, VlanTag};
use proto::wire::infiniband::extended_headers::ExtendedHeaders;
use proto::wire::infiniband::{
    Bth, FlowControlOp, FlowControlPacket, Grh, Lrh, Opcode, PacketBuilder, crc,
};
use proto::wire::internet::{Ipv4, Ipv6, Udp};

mod congestion;
mod cut;

/// The line of JSON that a frame is.
fn line(technology: Technology, octets: &[u8], wire_length: usize, rules: Rules) -> String {
    let mut sink = JsonSink::default();
    let meta = Meta { wire_length, ..Meta::new(1, technology, octets.len()) };
    sink.begin(&meta);
    decode(&mut sink, technology, octets, wire_length, rules);
    String::from_utf8(sink.finish().to_vec()).expect("text")
}

fn json(technology: Technology, octets: &[u8]) -> Value {
    let line = line(technology, octets, octets.len(), Rules::default());
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

fn hex(octets: &[u8]) -> String {
    let mut text = Vec::new();
    digits::hex(&mut text, octets);
    String::from_utf8(text).expect("digits")
}

/// Decodes and encodes, whole and cut, with every opinion on the FCS.
fn assert_identity(technology: Technology, octets: &[u8]) {
    for fcs in [Fcs::Auto, Fcs::Yes, Fcs::No] {
        for missing in [0, 3] {
            let rules = Rules { fcs, ..Rules::default() };
            let line = line(technology, octets, octets.len() + missing, rules);
            let encoded = encode(&line).unwrap_or_else(|fault| panic!("{fault}\n{line}"));
            assert_eq!(hex(&encoded.octets), hex(octets), "{line}");
            assert_eq!(encoded.is_ethernet, technology == Technology::Ethernet);
            assert_eq!(encoded.wire_length, (missing > 0).then_some(octets.len() + missing));
        }
    }
}

/// Takes out of an object, at any depth, what may be left out.
fn strip(value: &mut Value, keys: &[&str]) {
    match value {
        Value::Object(members) => {
            members.retain(|key, _| !keys.contains(&key.as_str()));
            members.values_mut().for_each(|member| strip(member, keys));
        }
        Value::Array(entries) => entries.iter_mut().for_each(|entry| strip(entry, keys)),
        _ => {}
    }
}

/// All that `encode` computes where it is left out.
const COMPUTED: [&str; 20] = [
    "icrc",
    "vcrc",
    "lpcrc",
    "pktlen",
    "paylen",
    "lnh",
    "padcnt",
    "pad",
    "type",
    "ihl",
    "total_length",
    "payload_length",
    "checksum",
    "length",
    "msdu_length",
    "number",
    "wrong",
    "name",
    "link",
    "padding",
];

prop_compose! {
    fn bths()(
        opcode in prop::sample::select(Opcode::ALL), octets: [u8; 12],
    ) -> Bth {
        let noise = Bth::parse(&octets).expect("twelve octets");
        Bth { opcode, pad_count: 0, version: 0, reserved6: 0, reserved7: 0, ..noise }
    }
}

prop_compose! {
    /// Packets that the standard allows, of every opcode, with and without GRH.
    fn packets()(
        bth in bths(),
        global: bool,
        noise in vec(any::<u8>(), 80),
        lane in 0u8..16,
        level in 0u8..16,
        lids: (u16, u16),
        payload in vec(any::<u8>(), 0..300),
    ) -> Vec<u8> {
        let row = bth.opcode.row().expect("of the table");
        let mut extended = ExtendedHeaders::parse(row.extended_headers, &noise, 0).expect("enough");
        extended.rdeth.iter_mut().for_each(|header| header.reserved8 = 0);
        extended.xrceth.iter_mut().for_each(|header| header.reserved8 = 0);
        extended.deth.iter_mut().for_each(|header| header.reserved8 = 0);
        let grh = Grh { version: 6, next_header: 0x1b, ..Grh::parse(&noise).expect("enough") };
        let builder = PacketBuilder {
            virtual_lane: VirtualLane::truncate(lane),
            service_level: ServiceLevel::truncate(level),
            slid: Lid::new(lids.0),
            dlid: Lid::new(lids.1),
            grh: global.then_some(grh),
            bth,
            extended,
        };
        let payload = if row.carries_payload() { payload } else { Vec::new() };
        let mut octets = BytesMut::new();
        let fill = |place: &mut [u8]| place.copy_from_slice(&payload);
        builder.emit(&mut octets, payload.len(), fill).expect("it fits");
        octets.to_vec()
    }
}

/// The transport part of a packet, BTH to pad.
fn transport_of(packet: &[u8]) -> &[u8] {
    let at = if packet[1] & 1 == 1 { 48 } else { 8 };
    &packet[at..packet.len() - 6]
}

/// A RoCE frame, made by `encode`, of a packet's transport part.
fn roce(packet: &[u8], network: &str, vlan: bool, cn_tag: bool, fcs: bool) -> Vec<u8> {
    let transport = json(Technology::Infiniband, packet);
    let mut frame = serde_json::Map::new();
    for (key, value) in transport.as_object().expect("an object") {
        if !["number", "link", "length", "lrh", "grh", "icrc", "vcrc", "wrong"]
            .contains(&key.as_str())
        {
            frame.insert(key.clone(), value.clone());
        }
    }
    let mut put = |text: &str| {
        let members: Value = serde_json::from_str(text).expect("JSON");
        frame.extend(members.as_object().expect("an object").clone());
    };
    put(r#"{"ethernet": {"dst": "02:00:00:00:00:01", "src": "02:00:00:00:00:02"}}"#);
    put(network);
    if vlan {
        put(r#"{"vlan": {"pcp": 3, "vid": 7}}"#);
    }
    if cn_tag {
        put(r#"{"cn_tag": {"flow_id": 9}}"#);
    }
    if fcs {
        put(r#"{"fcs": {"value": "auto"}}"#);
    }
    encode(&Value::Object(frame).to_string()).expect("a frame").octets
}

const NETWORKS: [&str; 3] = [
    r#"{"ipv4": {"src": "192.0.2.1", "dst": "192.0.2.2", "dscp": 26, "ecn": 2}, "udp": {}}"#,
    r#"{"ipv6": {"src": "2001:db8::1", "dst": "2001:db8::2", "flow_label": 5}, "udp": {}}"#,
    r#"{"grh": {"sgid": "fe80::1", "dgid": "fe80::2"}}"#,
];

fn verdict(frame: &Value, key: &str) -> Option<bool> {
    frame.get(key).map(|check| check["ok"].as_bool().expect("a verdict"))
}

proptest! {
    #[test]
    fn valid_packets_come_back_and_every_crc_holds(packet in packets()) {
        let frame = json(Technology::Infiniband, &packet);
        prop_assert_eq!(verdict(&frame, "icrc"), Some(true), "{}", frame);
        prop_assert_eq!(verdict(&frame, "vcrc"), Some(true), "{}", frame);
        prop_assert_eq!(frame.get("wrong"), None, "{}", frame);
        prop_assert_eq!(frame.get("error"), None, "{}", frame);
        assert_identity(Technology::Infiniband, &packet);
    }

    #[test]
    fn what_is_left_out_is_computed(packet in packets(), which in 0usize..4, tags: (bool, bool)) {
        let (link, octets) = match NETWORKS.get(which) {
            Some(network) => (Technology::Ethernet, roce(&packet, network, tags.0, tags.1, false)),
            None => (Technology::Infiniband, packet),
        };
        let mut frame = json(link, &octets);
        let padding = octets.len() <= 60;
        strip(&mut frame, &COMPUTED[..COMPUTED.len() - usize::from(padding)]);
        let encoded = encode(&frame.to_string()).expect("what is left is enough");
        prop_assert_eq!(hex(&encoded.octets), hex(&octets), "{}", frame);
    }

    #[test]
    fn damaged_packets_come_back_and_their_vcrc_is_called_wrong(
        packet in packets(), place: prop::sample::Index,
    ) {
        let mut packet = packet;
        let bit = place.index(packet.len() * 8);
        packet[bit / 8] ^= 0x80 >> (bit % 8);
        let frame = json(Technology::Infiniband, &packet);
        prop_assert_eq!(verdict(&frame, "vcrc"), Some(false), "{}", frame);
        if packet[1] & 0b10 != 0 {
            let right = crc::icrc_by_link_header(&packet).map(u32::to_le_bytes);
            let end = packet.len() - 2;
            let holds = right.is_some_and(|right| right == packet[end - 4..end]);
            prop_assert_eq!(verdict(&frame, "icrc"), Some(holds), "{}", frame);
        }
        assert_identity(Technology::Infiniband, &packet);
    }

    #[test]
    fn cut_packets_come_back(packet in packets(), place: prop::sample::Index) {
        assert_identity(Technology::Infiniband, &packet[..place.index(packet.len())]);
    }

    #[test]
    fn roce_frames_come_back_and_every_crc_holds(
        packet in packets(), which in 0usize..3, tags: (bool, bool), fcs: bool,
    ) {
        let octets = roce(&packet, NETWORKS[which], tags.0, tags.1, fcs);
        let frame = json(Technology::Ethernet, &octets);
        prop_assert_eq!(verdict(&frame, "icrc"), Some(true), "{}", frame);
        prop_assert_eq!(verdict(&frame, "fcs"), fcs.then_some(true), "{}", frame);
        prop_assert_eq!(frame.get("wrong"), None, "{}", frame);
        let payload = transport_of(&packet);
        prop_assert!(hex(&octets).contains(&hex(&payload[12..])));
        assert_identity(Technology::Ethernet, &octets);
    }

    #[test]
    fn damaged_roce_frames_come_back_and_their_fcs_is_called_wrong(
        packet in packets(), which in 0usize..2, place: prop::sample::Index,
    ) {
        let mut octets = roce(&packet, NETWORKS[which], false, false, true);
        // Past the EtherType and what says that this is UDP to the port of RoCEv2.
        let udp = 14 + [20, 40][which];
        let bit = place.index((octets.len() - udp - 4) * 8) + (udp + 4) * 8;
        // Padding and FCS follow the datagram.
        let end = udp + usize::from(u16::from_be_bytes([octets[udp + 4], octets[udp + 5]]));
        octets[bit / 8] ^= 0x80 >> (bit % 8);
        let frame = json(Technology::Ethernet, &octets);
        prop_assert_eq!(verdict(&frame, "fcs"), Some(false), "{}", frame);
        let free = [udp + 6, udp + 7, udp + 12].contains(&(bit / 8)) || bit / 8 >= end;
        prop_assert_eq!(verdict(&frame, "icrc"), Some(free), "octet {}: {}", bit / 8, frame);
        assert_identity(Technology::Ethernet, &octets);
    }

    #[test]
    fn cut_and_damaged_frames_of_ethernet_come_back(
        packet in packets(), which in 0usize..3, tags: (bool, bool, bool),
        places: (prop::sample::Index, prop::sample::Index), value: u8,
    ) {
        let mut octets = roce(&packet, NETWORKS[which], tags.0, tags.1, tags.2);
        let place = places.0.index(octets.len().min(80));
        octets[place] = value;
        assert_identity(Technology::Ethernet, &octets);
        assert_identity(Technology::Ethernet, &octets[..places.1.index(octets.len())]);
    }

    #[test]
    fn any_octets_come_back(octets in vec(any::<u8>(), 0..200), next in 0u8..4) {
        assert_identity(Technology::Ethernet, &octets);
        assert_identity(Technology::Infiniband, &octets);
        let mut octets = octets;
        if let Some(octet) = octets.get_mut(1) {
            *octet = *octet & !3 | next;
        }
        assert_identity(Technology::Infiniband, &octets);
    }

    #[test]
    fn any_octets_behind_a_known_ethertype_come_back(
        which in 0usize..11, tags in vec(prop::sample::select(&[0x8100u16, 0x88a8, 0x22e9]), 0..4),
        known in vec(any::<u8>(), 0..4), octets in vec(any::<u8>(), 0..120), zeros in 0usize..50,
    ) {
        let types =
            [0x0800u16, 0x86dd, 0x8808, 0x22e7, 0x8915, 0x88b5, 0x88b6, 0x88b6, 0x88b6, 0x8100, 46];
        let begins: [&[u8]; 11] = [
            &[0x45], &[0x60], &[1, 1], &[0], &[0x60], b"pbed\x01\x03", &[1], &[2, 1], &[3], &[0],
            &[0],
        ];
        let mut frame = vec![0x5a; 12];
        for tag in tags {
            frame.extend(tag.to_be_bytes());
            frame.extend([0x20, 7]);
        }
        frame.extend(types[which].to_be_bytes());
        frame.extend(begins[which]);
        frame.extend(known);
        frame.extend(octets);
        frame.resize(frame.len() + zeros, 0);
        assert_identity(Technology::Ethernet, &frame);
    }

    #[test]
    fn link_packets_come_back_right_and_damaged(code: u8, counts: (u16, u16), lane: u8, bit in 0usize..48) {
        let packet = FlowControlPacket {
            op: FlowControlOp::from_bits(code),
            fctbs: counts.0,
            virtual_lane: VirtualLane::truncate(lane),
            fccl: counts.1,
        };
        let mut octets = packet.to_octets();
        let frame = json(Technology::Infiniband, &octets);
        prop_assert_eq!(verdict(&frame, "lpcrc"), Some(true), "{}", frame);
        let told = &frame["flow_control"];
        prop_assert_eq!(&told["fctbs"], &Value::from(counts.0 & 0xfff));
        prop_assert_eq!(&told["fccl"], &Value::from(counts.1 & 0xfff));
        let mut frame = frame;
        strip(&mut frame, &COMPUTED);
        let encoded = encode(&frame.to_string()).expect("a link packet");
        prop_assert!(encoded.is_link_packet);
        prop_assert_eq!(&encoded.octets[..], &octets[..]);
        octets[bit / 8] ^= 0x80 >> (bit % 8);
        prop_assert_eq!(verdict(&json(Technology::Infiniband, &octets), "lpcrc"), Some(false));
        assert_identity(Technology::Infiniband, &octets);
    }

    #[test]
    fn frames_within_shims_come_back(packets in vec(packets(), 1..4), code in 1u8..=3, in_udp: bool) {
        let mut body = Vec::new();
        for (sequence, packet) in (0..).zip(&packets) {
            let shim = Shim {
                kind: FrameKind::from_code(code).expect("a code"),
                flags: 0,
                end: SendingEnd::B,
                link: 0x0102_0304,
                epoch: 5,
                sequence,
                length: packet.len() as u32,
                stamp: Instant::from_ps(1 << 60),
            };
            body.extend(shim.emit());
            body.extend(packet);
        }
        let frame = if in_udp {
            let payload = hex(&body);
            let network = r#""ipv4": {"src": "127.0.0.1", "dst": "127.0.0.1"}, "udp": {"dstport": 4000}"#;
            let addresses = r#""ethernet": {"dst": "00:00:00:00:00:00", "src": "00:00:00:00:00:00"}"#;
            encode(&format!("{{{addresses}, {network}, \"payload\": \"{payload}\"}}")).expect("a frame").octets
        } else {
            [&[2; 12], &[0x88, 0xb5][..], &body].concat()
        };
        let told = json(Technology::Ethernet, &frame);
        let records = told["shim"].as_array().expect("records");
        prop_assert_eq!(records.len(), packets.len());
        prop_assert_eq!(&records[0]["link"], &Value::from(0x0102_0304));
        if code == 1 {
            prop_assert_eq!(verdict(&records[0]["frame"], "vcrc"), Some(true), "{}", told);
        }
        assert_identity(Technology::Ethernet, &frame);
        let cut = &frame[..frame.len() - 5];
        assert_identity(Technology::Ethernet, cut);
    }

    #[test]
    fn promises_come_back(octets: [u8; 16], until: u64, idle: u64, number: u64, cut in 0usize..40) {
        let promise = Promise {
            flags: Promise::ASKS,
            sender: 7,
            epoch: 5,
            secret: Secret::new(octets),
            pledge: Pledge { until: Instant::from_ps(until), idle: Instant::from_ps(idle) },
            number,
            complete: 3,
            frames: 4,
        };
        let frame = [&[2; 12], &[0x88, 0xb5][..], &promise.emit()].concat();
        let told = json(Technology::Ethernet, &frame);
        let record = &told["shim"][0];
        prop_assert_eq!((&record["kind"], &record["link"]), (&Value::from(4), &Value::from(7)));
        prop_assert_eq!(&record["stamp"], &Value::from(until));
        let body = &record["frame"]["promise"];
        prop_assert_eq!((&body["number"], &body["idle"]), (&Value::from(number), &Value::from(idle)));
        prop_assert_eq!(told.get("wrong"), None);
        assert_identity(Technology::Ethernet, &frame);
        assert_identity(Technology::Ethernet, &frame[..frame.len() - cut]);
    }

    #[test]
    fn tables_of_ethernet_say_what_the_views_say(octets: [u8; 40]) {
        let get = |name| headers::IPV4.get(&octets, name);
        let ip = Ipv4::parse(&octets)?;
        prop_assert_eq!((get("dscp"), get("ecn")), (ip.dscp.get().into(), ip.ecn.bits().into()));
        prop_assert_eq!((get("ihl"), get("frag_offset")), (ip.header_words.into(), ip.fragment_offset.into()));
        prop_assert_eq!((get("id"), get("checksum")), (ip.identification.into(), ip.checksum.into()));
        prop_assert_eq!((get("ttl"), get("src")), (ip.time_to_live.into(), u64::from(ip.source.to_bits())));
        let get = |name| headers::IPV6.get(&octets, name);
        let ip = Ipv6::parse(&octets)?;
        prop_assert_eq!((get("dscp"), get("ecn")), (ip.dscp.get().into(), ip.ecn.bits().into()));
        prop_assert_eq!((get("flow_label"), get("hop_limit")), (ip.flow_label.into(), ip.hop_limit.into()));
        let get = |name| headers::UDP.get(&octets, name);
        let udp = Udp::parse(&octets)?;
        prop_assert_eq!((get("srcport"), get("length")), (udp.source_port.into(), udp.length.into()));
        let get = |name| headers::VLAN.get(&octets, name);
        let tag = VlanTag::parse(&octets)?;
        prop_assert_eq!((get("pcp"), get("dei") == 1), (tag.priority.get().into(), tag.drop_eligible));
        prop_assert_eq!((get("vid"), get("type")), (tag.id.get().into(), tag.ethertype.into()));
        let get = |name| headers::PFC.get(&octets, name);
        let pfc = Pfc::parse(&octets[2..])?;
        prop_assert_eq!(get("enbv"), u64::from(pfc.reserved) << 8 | u64::from(pfc.enabled));
        prop_assert_eq!((get("pause_time_c0"), get("pause_time_c7")), (pfc.times[0].into(), pfc.times[7].into()));
    }

    #[test]
    fn tables_say_what_the_views_say(octets: [u8; 12], lrh: [u8; 8]) {
        let get = |name| headers::BTH.get(&octets, name);
        let bth = Bth::parse(&octets)?;
        let psn = Psn::truncate(get("psn") as u32);
        let destination = QueuePairNumber::truncate(get("destqp") as u32);
        prop_assert_eq!((Opcode(get("opcode") as u8), psn, destination), (bth.opcode, bth.psn, bth.destination));
        prop_assert_eq!((get("f") == 1, get("b") == 1, get("a") == 1), (bth.fecn, bth.becn, bth.ack_request));
        prop_assert_eq!((get("padcnt"), get("tver")), (bth.pad_count.into(), bth.version.into()));
        prop_assert_eq!((get("p_key"), get("se") == 1), (bth.partition_key.into(), bth.solicited));
        let get = |name| headers::LRH.get(&lrh, name);
        let owned = Lrh::parse(&lrh)?;
        prop_assert_eq!((get("vl"), get("sl")), (owned.virtual_lane.get().into(), owned.service_level.get().into()));
        prop_assert_eq!((get("dlid"), get("slid")), (owned.dlid.get().into(), owned.slid.get().into()));
        prop_assert_eq!((get("pktlen"), get("lnh")), (owned.packet_length.into(), owned.next_header as u64));
    }
}

#[test]
fn an_fcs_is_told_by_what_the_frame_says_of_its_length() {
    let pause = [&[1; 12][..], &[0x88, 0x08, 0, 1, 0xff, 0xff], &[0; 42]].concat();
    let with = |fcs: u32| [&pause[..], &fcs.to_le_bytes()].concat();
    let right = ethernet_crc::fcs(&pause);
    assert_eq!(verdict(&json(Technology::Ethernet, &pause), "fcs"), None);
    assert_eq!(verdict(&json(Technology::Ethernet, &with(right)), "fcs"), Some(true));
    assert_eq!(verdict(&json(Technology::Ethernet, &with(right ^ 1)), "fcs"), Some(false));
    let mut unknown = pause.clone();
    unknown[13] = 0x99;
    unknown.extend([7; 100]);
    assert_eq!(verdict(&json(Technology::Ethernet, &unknown), "fcs"), None);
    unknown.extend(ethernet_crc::fcs(&unknown).to_le_bytes());
    assert_eq!(verdict(&json(Technology::Ethernet, &unknown), "fcs"), Some(true));
}

#[test]
fn faults_name_the_key_and_what_would_be_right() {
    let fault = |text: &str| encode(text).expect_err(text).to_string();
    let ack = r#""lrh": {"dlid": 1, "slid": 2}, "bth": {"opcode": 17, "destqp": 5, "psn": 0}"#;
    assert!(encode(&format!("{{{ack}, \"aeth\": {{\"syndrome\": 31, \"msn\": 0}}}}")).is_ok());
    let missing = fault(&format!("{{{ack}}}"));
    assert_eq!(missing, "aeth: is missing (the opcode calls for this header)");
    let unknown = fault(r#"{"lrh": {"dlid": 1, "slid": 2, "pktlem": 3}}"#);
    assert_eq!(unknown, "lrh.pktlem: nothing has this key here (did you mean \"pktlen\"?)");
    let large = fault(r#"{"lrh": {"dlid": 1, "slid": 2, "vl": 16}}"#);
    assert_eq!(large, "lrh.vl: 16 does not fit (4 bits: a number from 0 to 15, or \"0x…\")");
    let check = fault(&format!(
        "{{{ack}, \"aeth\": {{\"syndrome\": 31, \"msn\": 0}}, \"vcrc\": {{\"value\": \"0x12\"}}}}"
    ));
    assert!(check.starts_with("vcrc: \"0x12\" is not such a CRC (\"0x\" and 4 digits"), "{check}");
    assert!(fault("{").contains("column"), "{}", fault("{"));
    assert!(fault("{}").contains("\"lrh\" begins a packet"), "{}", fault("{}"));
    assert!(fault("[1]").contains("is not an object"));
}

#[test]
fn a_tree_ends_with_what_is_wrong_and_what_would_be_right() {
    let ack = r#"{"lrh": {"dlid": 1, "slid": 2, "pktlen": 9, "reserved2": 1},
        "bth": {"opcode": 17, "destqp": 5, "psn": 7, "reserved7": 3},
        "aeth": {"syndrome": 31, "msn": 0}, "vcrc": {"value": "0x1234"}}"#;
    let octets = encode(&ack.replace('\n', " ")).expect("a packet").octets;
    let mut sink = tree::TreeSink::default();
    let (link, length) = (Technology::Infiniband, octets.len());
    sink.begin(&Meta { at_ns: Some(1_000_000_001), ..Meta::new(3, link, length) });
    decode(&mut sink, link, &octets, length, Rules::default());
    let text = std::str::from_utf8(sink.finish()).expect("text").to_owned();
    let lines: Vec<_> = text.lines().collect();
    let right = json(link, &octets)["vcrc"]["expected"].as_str().expect("hex").to_owned();
    let summary = format!(
        "#3  1.000000001 s  RC Acknowledge  2 → 1  QP 0x000005  PSN 7  0 octets  icrc ok  vcrc BAD \
         0x1234, should be {right}"
    );
    assert_eq!(lines[0], summary);
    let wrongs: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("  ✕ ")).collect();
    let vcrc = format!("vcrc is 0x1234, should be {right}");
    assert_eq!(
        wrongs,
        [
            "lrh.reserved2 is 1, should be 0: these bits are reserved",
            "lrh.pktlen 9 says 38 octets with the VCRC, 30 are there: 8 missing",
            "bth.reserved7 is 3, should be 0: these bits are reserved",
            &vcrc,
        ]
    );
    assert!(lines[lines.len() - 1].ends_with(&vcrc), "{text}");
}
