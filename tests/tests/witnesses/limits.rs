//! Limits of tshark 4.0, each shown by a test. If a newer tshark lifts a limit, its test fails; then remove the
//! limit from `docs/reference/witnesses.md`.

use super::tshark::{fields, packet, tshark, write, write_packets};
use bytes::BytesMut;
use proto::frame::FrameKind;
use proto::random::Random;
use proto::wire::infiniband::{FlowControlOp, FlowControlPacket, Opcode, refresh_vcrc};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const NEWER: &str = "tshark has learnt something: mend docs/reference/witnesses.md and this test";

fn scratch() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("limits.pcapng");
    (folder, file)
}

fn random() -> Random {
    Random::stream(7, "witnesses", "limits")
}

/// A classic pcap with one record.
fn pcap(file: &Path, link_type: u32, record: &[u8]) {
    let length = (record.len() as u32).to_le_bytes();
    let words = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, link_type].map(u32::to_le_bytes).concat();
    let octets = [&words[..], &[0; 8], &length, &length, record].concat();
    std::fs::write(file, octets).expect("a file");
}

fn erf(kind: u8, frame: &[u8]) -> Vec<u8> {
    let mut record = vec![0, 0, 0, 0, 0, 0, 0, 0, kind, 4];
    record.extend((frame.len() as u16 + 16).to_be_bytes());
    record.extend([0, 0]);
    record.extend((frame.len() as u16).to_be_bytes());
    record.extend(frame);
    record
}

/// An Ethernet frame around a BTH in RoCEv2 over IPv4, no checksums.
fn rocev2(source_port: u16, bth_and_body: &[u8]) -> BytesMut {
    let udp = bth_and_body.len() as u16 + 4 + 8;
    let mut octets = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00, 0x45, 2];
    octets.extend((udp + 20).to_be_bytes());
    octets.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]);
    octets.extend([&source_port.to_be_bytes()[..], &4791u16.to_be_bytes()].concat());
    octets.extend(udp.to_be_bytes());
    octets.extend([0, 0]);
    octets.extend(bth_and_body);
    octets.extend([0xde, 0xad, 0xbe, 0xef]);
    octets[..].into()
}

#[test]
fn a_classic_pcap_of_type_247_is_refused_and_a_packet_of_it_stays_data() {
    let (_folder, file) = scratch();
    let octets = packet(Opcode::RC_SEND_ONLY, false, 16, &mut random());
    pcap(&file, 247, &octets);
    let Ok(output) = Command::new("tshark").arg("-r").arg(&file).output() else {
        return skip::because!("tshark is not installed");
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("network type 247 unknown") && !output.status.success(),
        "{NEWER}: {said}"
    );
    // tshark dissects the same octets in an ERF record.
    pcap(&file, 197, &erf(21, &octets));
    let rows = fields(&file, &["infiniband.bth.opcode"], &[]).expect("the program started before");
    assert_eq!(rows, [["4"]]);
}

#[test]
fn a_link_packet_is_malformed_in_an_erf_record_and_not_on_user0() {
    let (_folder, file) = scratch();
    let link = FlowControlPacket {
        op: FlowControlOp::Normal,
        fctbs: 0x123,
        virtual_lane: proto::ids::VirtualLane::ZERO,
        fccl: 0x456,
    };
    pcap(&file, 197, &erf(25, &link.to_octets()));
    let Some(rows) = tshark(&file, &["-Y", "_ws.malformed"]) else { return };
    assert_eq!(rows.len(), 1, "{NEWER}");
    write(&file, &[(FrameKind::InfinibandLink, link.to_octets()[..].into())]);
    let rows = fields(&file, &["frame.protocols", "frame.interface_name"], &[])
        .expect("the program started before");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0][1], "h0:1/link");
    assert!(!rows[0][0].contains("malformed"), "{rows:?}");
    assert_eq!(tshark(&file, &["-Y", "_ws.malformed"]).map(|rows| rows.len()), Some(0));
}

#[test]
fn a_native_cnp_is_named_and_its_body_and_crcs_are_not_split() {
    let (_folder, file) = scratch();
    write_packets(&file, &[packet(Opcode::CNP, false, 16, &mut random())]);
    let names = ["infiniband.bth.opcode", "infiniband.invariant.crc", "infiniband.vendor"];
    let Some(rows) = fields(&file, &names, &["-E", "occurrence=l"]) else { return };
    assert_eq!(rows[0][..2], ["128", ""], "{NEWER}");
    assert_eq!(rows[0][2].len(), 2 * (16 + 4 + 2), "{NEWER}: {rows:?}");
    let text = tshark(&file, &["-V"]).expect("the program started before");
    assert!(text.iter().any(|line| line.contains("CNP")), "tshark names opcode 0x80");
}

#[test]
fn a_rocev2_cnp_has_no_name_and_no_icrc() {
    let (_folder, file) = scratch();
    let mut body = vec![0x81, 0, 0xff, 0xff, 0x40, 0x10, 0, 7, 0, 0, 0, 0];
    body.extend([0; 16]);
    write(&file, &[(FrameKind::Ethernet, rocev2(50_000, &body))]);
    let Some(rows) = fields(&file, &["infiniband.bth.opcode", "infiniband.invariant.crc"], &[])
    else {
        return;
    };
    assert_eq!(rows, [["129", ""]], "{NEWER}");
    let text = tshark(&file, &["-V"]).expect("the program started before");
    assert!(text.iter().any(|line| line.contains("Unknown (129)")), "{NEWER}");
}

#[test]
fn fecn_and_becn_have_no_fields_and_are_found_by_octet() {
    let (_folder, file) = scratch();
    let mut random = random();
    let packets: Vec<BytesMut> =
        (0..16).map(|_| packet(Opcode::RC_SEND_ONLY, false, 16, &mut random)).collect();
    write_packets(&file, &packets);
    for (bit, mask) in [(0x80, "80"), (0x40, "40")] {
        let ours = packets.iter().filter(|octets| octets[12] & bit != 0).count();
        let filter = format!("infiniband.bth[4] & {mask}");
        let Some(rows) = tshark(&file, &["-Y", &filter]) else { return };
        assert_eq!(rows.len(), ours, "{filter}");
        assert!((1..16).contains(&ours), "some bits are set and some are not");
    }
    for name in ["infiniband.bth.fecn", "infiniband.bth.f", "infiniband.bth.becn"] {
        let output = Command::new("tshark").arg("-r").arg(&file).args(["-Y", name]).output();
        assert!(!output.expect("the program started before").status.success(), "{NEWER}: {name}");
    }
}

#[test]
fn wrong_crcs_are_shown_but_not_flagged() {
    let (_folder, file) = scratch();
    let mut octets = packet(Opcode::RC_SEND_ONLY, false, 16, &mut random());
    let end = octets.len();
    octets[end - 4] ^= 0xff;
    refresh_vcrc(&mut octets);
    octets[end - 1] ^= 0xff;
    write_packets(&file, &[octets.clone()]);
    let Some(rows) = tshark(&file, &["-Y", "_ws.expert || _ws.malformed"]) else { return };
    assert_eq!(rows.len(), 0, "{NEWER}");
    let settings = dissect::verify::Settings::default();
    let written = std::fs::read(&file).expect("a file");
    let report = dissect::verify::verify(&written[..], "", &settings, 9).expect("a capture");
    let rules: Vec<&str> = report.findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, ["icrc", "vcrc"], "`verify` reports both CRCs");
}

#[test]
fn pad_octets_are_shown_as_payload() {
    let (_folder, file) = scratch();
    write_packets(&file, &[packet(Opcode::RC_SEND_ONLY, false, 17, &mut random())]);
    let Some(rows) = fields(&file, &["infiniband.payload", "data.len", "data.data"], &[]) else {
        return;
    };
    let shown = rows[0].iter().any(|field| field == "20" || field.len() == 40);
    assert!(shown, "{NEWER}: {rows:?}");
}

#[test]
fn a_low_udp_source_port_selects_another_dissector() {
    let (_folder, file) = scratch();
    let bth = packet(Opcode::RC_ACKNOWLEDGE, false, 0, &mut random())[8..24].to_vec();
    let frames = [69, 50_000].map(|port| (FrameKind::Ethernet, rocev2(port, &bth)));
    write(&file, &frames);
    let Some(rows) = fields(&file, &["infiniband.bth.opcode"], &[]) else { return };
    assert_eq!(rows, [[""], ["17"]], "{NEWER}");
}

#[test]
fn qcn_tags_messages_and_project_ethertypes_are_not_dissected() {
    let (_folder, file) = scratch();
    let frame = |kind: u16| {
        let mut octets = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        octets.extend(kind.to_be_bytes());
        octets.extend([0; 46]);
        (FrameKind::Ethernet, octets[..].into())
    };
    write(&file, &[0x22e7, 0x22e9, 0x88b5, 0x88b6].map(frame));
    let Some(rows) = fields(&file, &["frame.protocols"], &[]) else { return };
    for row in rows {
        assert_eq!(row[0], "eth:ethertype:data", "{NEWER}");
    }
}
