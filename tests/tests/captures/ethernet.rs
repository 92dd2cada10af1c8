//! RoCE, PAUSE, PFC and CNM from third parties: captured frames and published vectors.

use super::{captures, hex, pcap_records};
use bytes::BytesMut;
use dissect::verify::{Settings, verify};
use proto::frame::FrameKind;
use proto::ids::{Ecn, Priority};
use proto::wire::classify::classify;
use proto::wire::ethernet::{Cnm, Envelope, MacControl, Pause, crc, ethertype};
use proto::wire::internet::mark_congestion;
use proto::wire::roce::checks::{verify_checksums, verify_icrc};
use proto::wire::roce::{Layout, NetworkHeaders, Packet, PacketBuilder};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Checks that a RoCE frame round-trips and that its ICRC and checksums are valid.
fn assert_genuine(octets: &[u8], name: &str) {
    let packet = Packet::parse(octets)
        .unwrap_or_else(|error| panic!("{name}: {error}"))
        .unwrap_or_else(|| panic!("{name} is not RoCE"));
    assert_eq!(packet.to_octets(), octets, "{name}: emit reproduces the parsed octets");
    assert_eq!(verify_icrc(octets), Ok(()), "{name}");
    assert_eq!(verify_checksums(octets), Ok(()), "{name}");
    let headers = classify(FrameKind::Ethernet, octets).expect("a parsed frame can be classified");
    assert_eq!(headers.payload.get(), packet.transport.payload.len() as u64, "{name}");
    assert_eq!(headers.psn, packet.transport.bth.psn.get(), "{name}");
    assert_eq!(
        rebuild(&packet),
        octets,
        "{name}: a frame built from the fields has the same octets"
    );
}

fn rebuild(packet: &Packet<'_>) -> BytesMut {
    let builder = PacketBuilder {
        destination: packet.ethernet.header.destination,
        source: packet.ethernet.header.source,
        tag: packet.ethernet.tag,
        network: packet.network,
        bth: packet.transport.bth,
        extended: packet.transport.extended,
    };
    let payload = packet.transport.payload;
    let mut octets = BytesMut::new();
    let fill = |place: &mut [u8]| place.copy_from_slice(payload);
    builder.emit(&mut octets, payload.len(), fill).expect("a parsed packet can be emitted");
    // A capture taken before the adapter has no Ethernet padding.
    octets.truncate(packet.octets_len());
    octets
}

/// Every frame of the pcap files in a folder, each with its name.
fn frames(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut frames = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder of captures") {
        let path = entry.expect("a readable folder").path();
        // The original PAUSE capture is a Sniffer file; the folder has it as pcap too.
        if path.extension().is_none_or(|extension| extension != "pcap") {
            continue;
        }
        let octets = std::fs::read(&path).expect("a readable file");
        let (link_type, records) = pcap_records(&octets);
        assert_eq!(link_type, 1, "{} holds Ethernet", path.display());
        for (index, record) in records.into_iter().enumerate() {
            frames.push((format!("{} #{}", path.display(), index + 1), record.to_vec()));
        }
    }
    frames
}

/// `verify` reports no finding for frames that hardware and Linux sent.
#[test]
fn verify_finds_no_fault_in_any_captured_frame() {
    let Some(folder) = captures() else { return };
    let mut files = 0;
    for kind in ["rocev2", "pause"] {
        for entry in std::fs::read_dir(folder.join(kind)).expect("a folder of captures") {
            let path = entry.expect("a readable folder").path();
            if path.extension().is_none_or(|extension| extension != "pcap") {
                continue;
            }
            let octets = std::fs::read(&path).expect("a readable file");
            let report = verify(&octets[..], "", &Settings::default(), 9).expect("a capture");
            assert_eq!(report.findings, [], "{}", path.display());
            let checked = report.tally.checked.get(if kind == "pause" { "fcs" } else { "icrc" });
            assert_eq!(checked, Some(&report.frames), "{}: every frame", path.display());
            files += 1;
        }
    }
    assert!(files >= 9, "found {files}");
}

/// No captured frame has an FCS and none is truncated, so every ICRC is present and checked.
#[test]
fn every_captured_rocev2_frame_round_trips_with_valid_checks() {
    let Some(folder) = captures() else { return };
    let frames = frames(&folder.join("rocev2"));
    for (name, octets) in &frames {
        assert_genuine(octets, name);
    }
    assert!(frames.len() >= 337, "the public samples have 337 frames, found {}", frames.len());
    println!("{} captured RoCEv2 frames", frames.len());
}

#[test]
fn a_congestion_mark_leaves_every_captured_frame_valid() {
    let Some(folder) = captures() else { return };
    let mut marked = 0;
    for (name, octets) in frames(&folder.join("rocev2")) {
        let before = classify(FrameKind::Ethernet, &octets).expect("a valid frame");
        let mut after = octets.clone();
        assert_eq!(mark_congestion(&mut after), before.ecn.is_capable(), "{name}");
        assert_eq!((verify_icrc(&after), verify_checksums(&after)), (Ok(()), Ok(())), "{name}");
        let headers = classify(FrameKind::Ethernet, &after).expect("a marked frame is still valid");
        let expected =
            if before.ecn.is_capable() { Ecn::CongestionExperienced } else { before.ecn };
        assert_eq!(headers, proto::frame::FrameHeaders { ecn: expected, ..before }, "{name}");
        marked += u32::from(before.ecn.is_capable());
    }
    assert!(marked >= 100, "one adapter sends ECT(0); {marked} frames were marked");
}

#[test]
fn captured_pause_frames_round_trip_with_valid_fcs() {
    let Some(folder) = captures() else { return };
    let mut times = Vec::new();
    for (name, octets) in frames(&folder.join("pause")) {
        let frame = crc::without_fcs(&octets).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(rewritten(frame), frame, "{name}");
        let control = MacControl::parse(frame).expect("MAC control");
        let MacControl::Pause(Pause { time }) = control else { panic!("{name}: {control:?}") };
        times.push(time);
    }
    times.sort_unstable();
    assert_eq!(times, [0, 65535]);
}

/// Parses a MAC control frame and emits it again.
fn rewritten(frame: &[u8]) -> [u8; 60] {
    let control = MacControl::parse(frame).expect("MAC control");
    let source = proto::wire::ethernet::EthernetHeader::parse(frame)
        .expect("the frame has an Ethernet header")
        .source;
    control.to_octets(source)
}

/// The vectors of `vectors.json` whose names begin with one of `prefixes`: octets and JSON object.
fn vectors(folder: &Path, prefixes: &[&str]) -> BTreeMap<String, (Vec<u8>, Value)> {
    let text = std::fs::read_to_string(folder.join("vectors.json")).expect("vectors.json");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    let mut found = BTreeMap::new();
    for vector in file["vectors"].as_array().expect("a list") {
        let name = vector["name"].as_str().expect("a name");
        if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            let octets = hex(vector["hex"].as_str().expect("hex"));
            found.insert(name.to_owned(), (octets, vector.clone()));
        }
    }
    found
}

/// The value of a packet's field, by its name in `vectors.json`.
fn decoded(packet: &Packet<'_>, field: &str) -> Value {
    let bth = packet.transport.bth;
    match field {
        "eth_dst" => packet.ethernet.header.destination.to_string().into(),
        "eth_src" => packet.ethernet.header.source.to_string().into(),
        "ethertype" => packet.ethernet.ethertype().into(),
        "vlan_pcp" => packet.ethernet.tag.expect("a tag").priority.get().into(),
        "vlan_id" => packet.ethernet.tag.expect("a tag").id.get().into(),
        "bth.opcode" => bth.opcode.0.into(),
        "bth.se" => u8::from(bth.solicited).into(),
        "bth.m" => u8::from(bth.migration_request).into(),
        "bth.padcnt" => bth.pad_count.into(),
        "bth.tver" => bth.version.into(),
        "bth.pkey" => bth.partition_key.into(),
        "bth.fecn" => u8::from(bth.fecn).into(),
        "bth.becn" => u8::from(bth.becn).into(),
        "bth.resv6" => bth.reserved6.into(),
        "bth.dest_qp" => bth.destination.get().into(),
        "bth.ackreq" => u8::from(bth.ack_request).into(),
        "bth.psn" => bth.psn.get().into(),
        "reth.va" => packet.transport.extended.reth.expect("a RETH").virtual_address.into(),
        "reth.rkey" => packet.transport.extended.reth.expect("a RETH").remote_key.into(),
        "reth.dma_length" => packet.transport.extended.reth.expect("a RETH").dma_length.into(),
        "payload_ascii" => String::from_utf8_lossy(packet.transport.payload).into_owned().into(),
        "payload_and_pad" => {
            text(&[packet.transport.payload, packet.transport.pad].concat()).into()
        }
        "reserved16" => text(packet.transport.payload).into(),
        "icrc_bytes_on_wire" => text(&packet.icrc.to_le_bytes()).into(),
        _ => match &packet.network {
            NetworkHeaders::Ipv4(..) => decoded_ipv4(packet, field),
            NetworkHeaders::Ipv6(..) => decoded_ipv6(packet, field),
            NetworkHeaders::Global(_) => decoded_global(packet, field),
        },
    }
}

fn text(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn decoded_ipv4(packet: &Packet<'_>, field: &str) -> Value {
    let NetworkHeaders::Ipv4(ip, _, udp) = packet.network else { panic!("no IPv4") };
    match field {
        "ip_src" => ip.source.to_string().into(),
        "ip_dst" => ip.destination.to_string().into(),
        "ip_tos" => (ip.dscp.get() << 2 | ip.ecn.bits()).into(),
        "dscp" => ip.dscp.get().into(),
        "ecn" => ip.ecn.bits().into(),
        "ip_id" => ip.identification.into(),
        "df" => u8::from(ip.dont_fragment).into(),
        "ttl" => ip.time_to_live.into(),
        "ip_total_length" => ip.total_length.into(),
        "ip_checksum" => ip.checksum.into(),
        "udp_sport" => udp.source_port.into(),
        "udp_dport" => udp.destination_port.into(),
        "udp_length" => udp.length.into(),
        "udp_checksum" => udp.checksum.into(),
        _ => panic!("no such field: {field}"),
    }
}

fn decoded_ipv6(packet: &Packet<'_>, field: &str) -> Value {
    let NetworkHeaders::Ipv6(ip, udp) = packet.network else { panic!("no IPv6") };
    match field {
        "ip6_src" => ip.source.to_string().into(),
        "ip6_dst" => ip.destination.to_string().into(),
        "traffic_class" => (ip.dscp.get() << 2 | ip.ecn.bits()).into(),
        "flow_label" => ip.flow_label.into(),
        "hop_limit" => ip.hop_limit.into(),
        "payload_length" => ip.payload_length.into(),
        "udp_sport" => udp.source_port.into(),
        "udp_length" => udp.length.into(),
        "udp_checksum" => udp.checksum.into(),
        _ => panic!("no such field: {field}"),
    }
}

fn decoded_global(packet: &Packet<'_>, field: &str) -> Value {
    let NetworkHeaders::Global(grh) = packet.network else { panic!("no GRH") };
    match field {
        "grh.ipver" => grh.version.into(),
        "grh.tclass" => grh.traffic_class.into(),
        "grh.flow_label" => grh.flow_label.into(),
        "grh.payload_length" => grh.payload_length.into(),
        "grh.next_header" => grh.next_header.into(),
        "grh.hop_limit" => grh.hop_limit.into(),
        "grh.sgid" => grh.sgid.to_string().into(),
        "grh.dgid" => grh.dgid.to_string().into(),
        _ => panic!("no such field: {field}"),
    }
}

/// A field's value as a number if possible: hexadecimal strings are numbers, "ECT(0)=2" is 2.
fn meant(value: &Value) -> Value {
    let Some(text) = value.as_str() else { return value.clone() };
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).expect("hexadecimal").into(),
        None if text == "ECT(0)=2" => 2.into(),
        None => value.clone(),
    }
}

#[test]
fn every_roce_vector_decodes_field_by_field() {
    let Some(folder) = captures() else { return };
    let vectors = vectors(&folder, &["rocev"]);
    let mut fields = 0;
    for (name, (octets, vector)) in &vectors {
        assert_genuine(octets, name);
        let packet = Packet::parse(octets).expect("a valid frame").expect("a RoCE frame");
        for (field, value) in vector["fields"].as_object().expect("fields") {
            let nested = value.as_object().into_iter().flatten();
            let mut leaves: Vec<_> =
                nested.map(|(inner, value)| (format!("{field}.{inner}"), value)).collect();
            if leaves.is_empty() {
                leaves.push((field.clone(), value));
            }
            for (field, value) in leaves {
                assert_eq!(decoded(&packet, &field), meant(value), "{name}: {field}");
                fields += 1;
            }
        }
    }
    assert!(vectors.len() >= 8 && fields >= 140, "{fields} fields of {}", vectors.len());
}

#[test]
fn every_pause_and_pfc_vector_parses_and_emits() {
    let Some(folder) = captures() else { return };
    let vectors = vectors(&folder, &["pfc-", "pause-"]);
    assert!(vectors.len() >= 5, "found {}", vectors.len());
    for (name, (octets, vector)) in &vectors {
        let fields = &vector["fields"];
        let has_fcs = name.ends_with("with-fcs");
        let frame =
            if has_fcs { crc::without_fcs(octets).expect("the FCS is valid") } else { &octets[..] };
        assert_eq!(rewritten(frame), frame, "{name}");
        let said =
            if has_fcs { &fields["fcs_bytes_on_wire"] } else { &vector["fcs_bytes_on_wire"] };
        assert_eq!(text(&crc::fcs(frame).to_le_bytes()), said.as_str().expect("hex"), "{name}");
        match MacControl::parse(frame).expect("MAC control") {
            MacControl::Pause(pause) => assert_eq!(fields["pause_time"], pause.time, "{name}"),
            MacControl::Pfc(pfc) => {
                assert_eq!(meant(&fields["class_enable_vector"]), pfc.enabled, "{name}");
                assert_eq!(fields["times"], Value::from(&pfc.times[..]), "{name}");
                let speaks = |n| pfc.time(Priority::truncate(n)).is_some();
                let vector = (0..8).fold(0, |sum, n| sum | u8::from(speaks(n)) << n);
                assert_eq!(vector, pfc.enabled, "{name}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

/// Neither an ECN mark nor a decremented TTL changes the ICRC.
#[test]
fn marking_turns_the_ecn_capable_vector_into_the_marked_one() {
    let Some(folder) = captures() else { return };
    let vectors = vectors(&folder, &["rocev2-rc-send-only"]);
    let [capable, marked, routed] = ["ect0-vlan", "ce-vlan", "ce-vlan-ttl61"]
        .map(|end| &vectors[&format!("rocev2-rc-send-only-{end}")].0);
    let mut octets = capable.clone();
    assert!(mark_congestion(&mut octets));
    assert_eq!(&octets, marked);
    let icrc = |octets: &[u8]| {
        Packet::parse(octets).expect("a complete frame").expect("a RoCE frame").icrc
    };
    assert_eq!((icrc(capable), icrc(marked)), (icrc(marked), icrc(routed)));
    assert_ne!(Layout::find(routed), Ok(None));
}

/// The vector's tag has a placeholder EtherType, its reserved bits are set, and the frame is shorter than the
/// minimum, so only the message is compared.
#[test]
fn a_cnm_of_an_independent_encoder_decodes_field_by_field() {
    let Some(folder) = captures() else { return };
    let vectors = vectors(&folder, &["cnm-"]);
    let (octets, vector) = vectors.values().next().expect("vectors.json has a CNM");
    let frame = crc::without_fcs(octets).expect("the FCS is valid");
    let envelope = Envelope::parse(frame).expect("a tagged frame");
    // The VLAN tag is followed by two octets of flow ID and the EtherType of a CNM.
    let body = &frame[envelope.octets_len() + 4..];
    assert_eq!(frame[envelope.octets_len() + 2..][..2], ethertype::CNM.to_be_bytes());
    let (cnm, msdu) = Cnm::parse_message(body).expect("a complete frame");
    assert_eq!(cnm.to_octets(), body[..Cnm::LEN]);
    let said = &vector["fields"]["cnm"];
    let digits = |octet: &u8| format!("{octet:02x}");
    let priority = u16::from(cnm.encapsulated_priority.get()) << 13 | cnm.encapsulated_reserved;
    for (field, ours) in [
        ("version", Value::from(cnm.version)),
        ("reservedv", cnm.reserved.into()),
        ("quantized_feedback", format!("{:#04x}", cnm.quantized_feedback).into()),
        ("cpid", format!("{:016x}", cnm.cpid).into()),
        ("cnm_qoffset", format!("{:#06x}", cnm.q_offset.cast_unsigned()).into()),
        ("cnm_qdelta", format!("{:#06x}", cnm.q_delta.cast_unsigned()).into()),
        ("encapsulated_priority", format!("{priority:#06x}").into()),
        ("encapsulated_da", cnm.encapsulated_destination.to_string().into()),
        ("encapsulated_msdu_length", cnm.msdu_length.into()),
        ("encapsulated_msdu", msdu.iter().map(digits).collect::<String>().into()),
    ] {
        assert_eq!(said[field], ours, "{field}");
    }
}
