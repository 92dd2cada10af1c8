//! tshark with the project's dissector: every frame has a name, every CRC a verdict, and no valid frame is
//! reported as malformed.

use super::{roce, tshark};
use bytes::BytesMut;
use emulation::cable::shim::{SendingEnd, Shim};
use emulation::exact::{Pledge, Promise, Secret};
use proto::frame::FrameKind;
use proto::ids::{Priority, VirtualLane, VlanId};
use proto::random::Random;
use proto::units::Instant;
use proto::wire::ethernet::{
    CnTag, Cnm, CongestionTag, Envelope, MacAddress, MacControl, Pause, Pfc, Preface, VlanTag,
    ethertype, preface,
};
use proto::wire::infiniband::{FlowControlOp, FlowControlPacket, Opcode, crc};
use proto::wire::internet::{Ipv4, Udp};
use proto::wire::project::{Bcn, ProjectTypes, RateTag, TestFrame};
use proto::wire::roce::checks;
use serve::wireshark::{FILE, SCRIPT, usual_folder};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const TYPES: ProjectTypes = ProjectTypes::DEFAULT;
const HOST: MacAddress = MacAddress::new([2, 0, 0, 0, 0, 1]);
const PORT: MacAddress = MacAddress::new([2, 0, 1, 0, 0, 9]);

/// A home folder with the dissector installed, and a capture.
struct Home {
    folder: TempDir,
}

/// One row of values for each frame. Several values of one field are separated by commas.
type Rows = Vec<Vec<String>>;

impl Home {
    fn new() -> Home {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let plugins = usual_folder(folder.path());
        std::fs::create_dir_all(&plugins).expect("a folder");
        std::fs::write(plugins.join(FILE), SCRIPT).expect("a file");
        Home { folder }
    }

    fn capture(&self, frames: &[(FrameKind, BytesMut)]) -> PathBuf {
        let file = self.folder.path().join("capture.pcapng");
        tshark::write(&file, frames);
        file
    }

    /// tshark's values of these fields; says why and returns `None` without tshark.
    fn fields(&self, file: &Path, names: &[&str]) -> Option<Rows> {
        let mut tshark = Command::new("tshark");
        tshark.env("HOME", self.folder.path()).env_remove("XDG_CONFIG_HOME");
        tshark.args(["-n", "-T", "fields", "-E", "separator=;", "-E", "occurrence=a", "-r"]);
        tshark.arg(file).args(names.iter().flat_map(|name| ["-e", name]));
        let Ok(output) = tshark.output() else {
            skip::because!("tshark is not installed");
            return None;
        };
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && !complaint.contains("Lua"), "{complaint}");
        let text = String::from_utf8(output.stdout).expect("fields are text");
        Some(text.lines().map(|row| row.split(';').map(str::to_owned).collect()).collect())
    }
}

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Fields that must be empty for a valid frame.
const COMPLAINTS: [&str; 2] = ["_ws.malformed", "_ws.expert.message"];

/// tshark's values of these fields; fails if any frame has a finding.
fn clean(home: &Home, file: &Path, names: &[&str]) -> Option<Rows> {
    let rows = home.fields(file, &[&COMPLAINTS[..], names].concat())?;
    let values = rows.into_iter().map(|row| {
        assert_eq!(row[..2], ["", ""], "{row:?}");
        row[2..].to_vec()
    });
    Some(values.collect())
}

fn link_packets() -> Vec<BytesMut> {
    let packet = |vl: u8| FlowControlPacket {
        op: FlowControlOp::from_bits(vl & 1),
        fctbs: u16::from(vl) * 251,
        virtual_lane: VirtualLane::truncate(vl),
        fccl: u16::from(vl) * 113,
    };
    (0..15).map(|vl| BytesMut::from(&packet(vl).to_octets()[..])).collect()
}

#[test]
fn packets_and_link_packets_are_named_and_their_crcs_verified() {
    let mut random = Random::stream(7, "witnesses", "dissector");
    let mut packets = tshark::frames();
    packets.push(tshark::packet(Opcode::CNP, false, 16, &mut random));
    packets.push(tshark::packet(Opcode::CNP, true, 0, &mut random));
    let links = link_packets();
    let frames = packets.iter().map(|octets| (FrameKind::Infiniband, octets.clone()));
    let links_of = links.iter().map(|octets| (FrameKind::InfinibandLink, octets.clone()));
    let home = Home::new();
    let file = home.capture(&frames.chain(links_of).collect::<Vec<_>>());
    let names = [
        "_ws.col.Protocol",
        "_ws.col.Info",
        "pausebed.check.icrc.status",
        "pausebed.check.vcrc.status",
        "pausebed.check.lpcrc.status",
        "pausebed.check.fecn",
        "pausebed.check.becn",
    ];
    let Some(rows) = clean(&home, &file, &names) else { return };
    let (of_packets, of_links) = rows.split_at(packets.len());
    for (row, octets) in of_packets.iter().zip(&packets) {
        assert_eq!(
            (&row[0][..], &row[2..5]),
            ("InfiniBand", &["1", "1", ""].map(String::from)[..])
        );
        let at = if octets[1] & 1 == 1 { 48 + 4 } else { 8 + 4 };
        let bits = [7, 6].map(|bit| (octets[at] >> bit & 1).to_string());
        assert_eq!(row[5..], bits);
        for (name, bit) in [(" FECN", &bits[0]), (" BECN", &bits[1])] {
            assert_eq!(row[1].contains(name), bit == "1", "{row:?}");
        }
    }
    assert!(of_packets[packets.len() - 2][1].starts_with("CNP (InfiniBand)"), "{of_packets:?}");
    assert_eq!(of_links.len(), links.len());
    for (row, vl) in of_links.iter().zip(0..) {
        let (op, fctbs, fccl) = (["Normal", "Init"][vl & 1], vl * 251, vl * 113);
        let info = format!("Flow control {op}, VL {vl}, FCTBS {fctbs}, FCCL {fccl}");
        let expected = ["IB link", &info, "", "", "1", "", ""];
        assert_eq!(row[..], expected);
    }
}

#[test]
fn the_dissector_reports_a_flipped_bit_as_a_crc_error() {
    let mut random = Random::stream(8, "witnesses", "dissector");
    let mut damaged = Vec::new();
    for octets in tshark::frames() {
        let mut octets = octets;
        // The LRH determines the layout, so no bit of it is flipped.
        let bit = 64 + random.below(octets.len() as u64 * 8 - 64) as usize;
        octets[bit / 8] ^= 0x80 >> (bit % 8);
        damaged.push(octets);
    }
    let mut links = link_packets();
    for (octets, bit) in links.iter_mut().zip((0..48).step_by(3)) {
        octets[bit / 8] ^= 0x80 >> (bit % 8);
    }
    let frames = damaged.iter().map(|octets| (FrameKind::Infiniband, octets.clone()));
    let links_of = links.iter().map(|octets| (FrameKind::InfinibandLink, octets.clone()));
    let home = Home::new();
    let file = home.capture(&frames.chain(links_of).collect::<Vec<_>>());
    let names = [
        "pausebed.check.icrc.status",
        "pausebed.check.vcrc.status",
        "pausebed.check.lpcrc.status",
        "_ws.expert.message",
    ];
    let Some(rows) = home.fields(&file, &names) else { return };
    let mut blind = 0;
    for (row, octets) in rows.iter().zip(&damaged) {
        let icrc_holds = crc::verify_icrc(octets).is_ok();
        blind += usize::from(icrc_holds);
        assert_eq!(row[..3], [u8::from(icrc_holds).to_string(), "0".into(), "".into()]);
        let vcrc = hex(&crc::vcrc(octets).to_le_bytes());
        assert!(row[3].contains(&format!("VCRC should be {vcrc}")), "{row:?}");
        let icrc =
            hex(&crc::icrc_by_link_header(octets).expect("the packet is not raw").to_le_bytes());
        assert_eq!(row[3].contains(&format!("ICRC should be {icrc}")), !icrc_holds, "{row:?}");
    }
    assert!(
        (1..damaged.len() / 2).contains(&blind),
        "the ICRC does not cover {blind} of the changes"
    );
    for row in &rows[damaged.len()..] {
        assert_eq!(row[2], "0", "{row:?}");
    }
}

fn vlan(priority: u8) -> VlanTag {
    let id = VlanId::truncate(0);
    VlanTag { priority: Priority::truncate(priority), drop_eligible: false, id, ethertype: 0 }
}

fn cn() -> CongestionTag {
    CongestionTag::Cn(CnTag { flow_id: 7, ethertype: 0 })
}

fn rate_regulated() -> CongestionTag {
    let tag = RateTag { cpid: 0x0200_0100_0009_0003, timestamp: 77, ..RateTag::default() };
    CongestionTag::RateRegulated(tag)
}

/// A congestion point's frame: tags, then this EtherType and body.
fn message(kind: u16, tag: Option<CongestionTag>, body: &[&[u8]]) -> BytesMut {
    let plain = Preface::untagged(Envelope::untagged(HOST, PORT, kind).tagged(vlan(6)));
    let preface = tag.map_or(plain, |tag| plain.tagged(tag, &TYPES));
    let mut octets = BytesMut::zeroed(preface.octets_len());
    preface.emit(&mut octets);
    octets.extend_from_slice(&body.concat());
    octets.resize(octets.len().max(60), 0);
    octets
}

fn cnm() -> Cnm {
    Cnm {
        quantized_feedback: 38,
        cpid: 0x0200_0100_0009_0003,
        q_offset: -407,
        q_delta: 23,
        encapsulated_priority: Priority::truncate(3),
        encapsulated_destination: HOST,
        msdu_length: 64,
        ..Cnm::default()
    }
}

fn bcn() -> Bcn {
    let (version, cpid) = (Bcn::VERSION, 0x0200_0100_0009_0003);
    let (q_offset, q_delta, severe) = (-407, 23, true);
    Bcn { version, cpid, q_offset, q_delta, severe, timestamp: 77, length: 64, ..Bcn::default() }
}

fn test_frame(tag: Option<CongestionTag>) -> BytesMut {
    let test = TestFrame { flow: 3, sequence: 9, ..TestFrame::default() };
    let mut pattern = [0; 500];
    test.fill(&mut pattern);
    message(ethertype::PROJECT, tag, &[&[TestFrame::SUBTYPE], &test.to_octets(), &pattern])
}

/// Frames with the protocol and the beginning of the info column that tshark must show.
fn messages() -> Vec<(&'static str, &'static str, BytesMut)> {
    let sample = [0xd0; 64];
    let control = |control: MacControl| BytesMut::from(&control.to_octets(PORT)[..]);
    let pfc = Pfc::default().with(Priority::truncate(3), 0xffff);
    let bcn = [&[Bcn::SUBTYPE][..], &bcn().to_octets(), &sample].concat();
    let cnm = [&cnm().to_octets()[..], &sample].concat();
    vec![
        ("CNM", "CNM, feedback 38, CPID 0200010000090003", message(ethertype::CNM, None, &[&cnm])),
        ("CNM", "CNM, feedback 38", message(ethertype::CNM, Some(cn()), &[&cnm])),
        ("BCN", "BCN, Qoff -407, Qdelta 23", message(ethertype::PROJECT, None, &[&bcn])),
        ("TEST", "Test frame, flow 3, sequence 9", test_frame(None)),
        ("TEST", "Test frame, flow 3, sequence 9", test_frame(Some(cn()))),
        ("TEST", "Test frame, flow 3, sequence 9", test_frame(Some(rate_regulated()))),
        ("MAC CTRL", "", control(MacControl::Pause(Pause { time: 7 }))),
        ("MAC CTRL", "", control(MacControl::Pfc(pfc))),
    ]
}

#[test]
fn messages_tags_and_test_frames_are_named() {
    let messages = messages();
    let frames: Vec<_> =
        messages.iter().map(|(_, _, octets)| (FrameKind::Ethernet, octets.clone())).collect();
    let home = Home::new();
    let file = home.capture(&frames);
    let names = [
        "_ws.col.Protocol",
        "_ws.col.Info",
        "pausebed.cn_tag.flow_id",
        "pausebed.rrt.cpid",
        "pausebed.cnm.qfb",
        "pausebed.cnm.qoffset",
        "pausebed.bcn.severe",
        "pausebed.bcn.timestamp",
        "pausebed.test.sequence",
    ];
    let Some(rows) = clean(&home, &file, &names) else { return };
    for (row, (protocol, info, _)) in rows.iter().zip(&messages) {
        assert_eq!(row[0], *protocol, "{row:?}");
        assert!(row[1].starts_with(info), "{row:?}");
    }
    let cpid = "0x0200010000090003";
    let told: Vec<_> = rows.iter().map(|row| row[2..].join(" ")).collect();
    let expected = [
        "  38 -407   ".to_owned(),
        "7  38 -407   ".to_owned(),
        "    1 77 ".to_owned(),
        "      9".to_owned(),
        "7      9".to_owned(),
        format!(" {cpid}     9"),
        "      ".to_owned(),
        "      ".to_owned(),
    ];
    assert_eq!(told, expected);
}

#[test]
fn incomplete_messages_are_reported_by_name() {
    let sample = [0xd0; 64];
    let of_cnm = |cnm: Cnm| message(ethertype::CNM, None, &[&cnm.to_octets(), &sample]);
    let of_bcn = |bcn: Bcn| message(ethertype::PROJECT, None, &[&[2], &bcn.to_octets(), &sample]);
    let mut short = of_cnm(cnm());
    short.truncate(18 + 23);
    let frames = [
        (short, "CNM of fewer than 24 octets"),
        (of_cnm(Cnm { msdu_length: 65, ..cnm() }), "MSDU length beyond the frame or above 64"),
        (of_cnm(Cnm { version: 1, ..cnm() }), "Unknown version: to be discarded"),
        (of_bcn(Bcn { length: 65, ..bcn() }), "Sample length beyond the frame or above 64"),
        (of_bcn(Bcn { version: 2, ..bcn() }), "Unknown version"),
        (message(ethertype::PROJECT, None, &[&[9; 40]]), "Not a pausebed frame, or truncated"),
    ];
    let captured: Vec<_> =
        frames.iter().map(|(octets, _)| (FrameKind::Ethernet, octets.clone())).collect();
    let home = Home::new();
    let file = home.capture(&captured);
    let Some(rows) = home.fields(&file, &["_ws.expert.message"]) else { return };
    let told: Vec<_> = rows.iter().map(|row| &row[0][..]).collect();
    assert_eq!(told, frames.each_ref().map(|(_, complaint)| *complaint));
}

/// RoCE frames, each untagged, with a CN-TAG and with a rate-regulated tag.
fn roce_frames() -> Vec<BytesMut> {
    let tagged = |tag: Option<CongestionTag>| {
        roce::frames().into_iter().map(move |mut octets| {
            if let Some(tag) = tag {
                preface::insert_tag(&mut octets, tag, &TYPES).expect("a frame");
            }
            octets
        })
    };
    tagged(None).chain(tagged(Some(cn()))).chain(tagged(Some(rate_regulated()))).collect()
}

#[test]
fn roce_is_named_and_verified_behind_every_tag() {
    let frames = roce_frames();
    let home = Home::new();
    let captured: Vec<_> =
        frames.iter().map(|octets| (FrameKind::Ethernet, octets.clone())).collect();
    let file = home.capture(&captured);
    let names = ["_ws.col.Protocol", "_ws.col.Info", "pausebed.check.icrc.status"];
    let Some(rows) = clean(&home, &file, &names) else { return };
    let third = frames.len() / 3;
    assert_eq!(rows.len(), frames.len());
    for (index, row) in rows.iter().enumerate() {
        assert!(["RRoCE", "RoCE"].contains(&&row[0][..]), "{row:?}");
        assert_eq!(row[2], "1", "{row:?}");
        let is_notification = index % third >= third - 2;
        assert_eq!(row[1].starts_with("CNP (RoCEv2) BECN"), is_notification, "{row:?}");
    }
}

#[test]
fn a_flipped_bit_is_an_icrc_error_behind_every_tag() {
    let mut random = Random::stream(9, "witnesses", "dissector");
    let mut frames = roce_frames();
    for octets in &mut frames {
        let layout = proto::wire::roce::Layout::find(octets)
            .expect("a complete frame")
            .expect("a RoCE frame");
        // The headers before the BTH determine the layout, so no bit of them is flipped.
        let covered = (layout.end - layout.bth_at) as u64 * 8;
        let bit = layout.bth_at * 8 + random.below(covered) as usize;
        octets[bit / 8] ^= 0x80 >> (bit % 8);
    }
    let home = Home::new();
    let captured: Vec<_> =
        frames.iter().map(|octets| (FrameKind::Ethernet, octets.clone())).collect();
    let file = home.capture(&captured);
    let Some(rows) = home.fields(&file, &["pausebed.check.icrc.status"]) else { return };
    let (mut bad, mut blind) = (0, 0);
    for (row, octets) in rows.iter().zip(&frames) {
        let holds = checks::verify_icrc(octets).is_ok();
        assert_eq!(row[0], u8::from(holds).to_string());
        *(if holds { &mut blind } else { &mut bad }) += 1;
    }
    assert!(bad > 100 && blind > 0, "{bad} detected, {blind} not covered");
}

/// A datagram of three records: a packet, a link packet, a RoCE frame.
fn records() -> Vec<u8> {
    let packet = tshark::frames().swap_remove(0);
    let frame = roce::frames().swap_remove(0);
    let link = link_packets().swap_remove(1);
    let kinds = [FrameKind::Infiniband, FrameKind::InfinibandLink, FrameKind::Ethernet];
    let mut octets = Vec::new();
    for (kind, frame) in kinds.into_iter().zip([packet, link, frame]) {
        let shim = Shim {
            kind,
            flags: 0,
            end: SendingEnd::B,
            link: 5,
            epoch: 6,
            sequence: kind as u32,
            length: frame.len() as u32,
            stamp: Instant::from_ps(1_000_000),
        };
        octets.extend(shim.emit());
        octets.extend_from_slice(&frame);
    }
    octets
}

/// The records as a UDP datagram between addresses of this project.
fn datagram(records: &[u8]) -> BytesMut {
    let mut octets = BytesMut::zeroed(14 + Ipv4::LEN + Udp::LEN);
    Envelope::untagged(HOST, PORT, ethertype::IPV4).emit(&mut octets);
    let total_length = (Ipv4::LEN + Udp::LEN + records.len()) as u16;
    let (source, destination) = ([127, 0, 0, 1].into(), [127, 0, 0, 1].into());
    Ipv4 { total_length, source, destination, ..Ipv4::default() }.emit(&mut octets[14..]);
    let length = (Udp::LEN + records.len()) as u16;
    let udp = Udp { destination_port: 40_001, length, ..Udp::roce(40_000) };
    udp.emit(&mut octets[14 + Ipv4::LEN..]);
    octets.extend_from_slice(records);
    octets
}

#[test]
fn shim_records_are_dissected_in_udp_and_behind_an_ethertype() {
    let mut records = records();
    let frames = |records: &[u8]| {
        let mut behind = BytesMut::zeroed(14);
        Envelope::untagged(HOST, PORT, ethertype::CABLE_SHIM).emit(&mut behind);
        behind.extend_from_slice(records);
        [datagram(records), behind].map(|octets| (FrameKind::Ethernet, octets))
    };
    let names = [
        "_ws.col.Info",
        "pausebed.shim.sequence",
        "pausebed.check.icrc.status",
        "pausebed.check.vcrc.status",
        "pausebed.check.lpcrc.status",
        "pausebed.link.vl",
    ];
    let home = Home::new();
    let file = home.capture(&frames(&records));
    let Some(rows) = clean(&home, &file, &names) else { return };
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert!(row[0].starts_with("3 frames on cables: "), "{row:?}");
        assert_eq!(row[1..], ["1,2,3", "1,1", "1", "1", "1"]);
    }
    // The last octet belongs to the ICRC of the RoCE frame; padding would follow it.
    let end = records.len();
    records[end - 1] ^= 1;
    let file = home.capture(&frames(&records));
    for row in home.fields(&file, &names).expect("the program started before") {
        assert_eq!(row[2..5], ["1,0", "1", "1"]);
    }
}

#[test]
fn a_promise_is_dissected_before_the_frames_behind_it() {
    let promise = Promise {
        flags: 0,
        sender: 3,
        epoch: 6,
        secret: Secret::new([0xab; 16]),
        pledge: Pledge { until: Instant::from_ps(2_000_000), idle: Instant::from_ps(3_000_000) },
        number: 70_000,
        complete: 69_998,
        frames: 9,
    };
    let records = [&promise.emit()[..], &records()].concat();
    let names = [
        "pausebed.shim.kind",
        "pausebed.shim.link",
        "pausebed.shim.stamp",
        "pausebed.promise.secret",
        "pausebed.promise.number",
        "pausebed.promise.complete",
        "pausebed.promise.frames",
        "pausebed.promise.idle",
    ];
    let home = Home::new();
    let file = home.capture(&[(FrameKind::Ethernet, datagram(&records))]);
    let Some(rows) = clean(&home, &file, &names) else { return };
    let secret = "ab".repeat(16);
    let stamps = "2000000,1000000,1000000,1000000";
    let promised = [&secret, "70000", "69998", "9", "3000000"];
    assert_eq!(rows[0], [&["4,1,2,3", "3,5,5,5", stamps][..], &promised].concat());
}

#[test]
fn third_party_captures_are_verified() {
    let named = std::env::var_os("PAUSEBED_CAPTURES").map(PathBuf::from);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/captures");
    let folder = named.unwrap_or_else(beside);
    let home = Home::new();
    let names = ["_ws.col.Protocol", "pausebed.check.icrc.status", "pausebed.check.vcrc.status"];
    let mut verified = [0; 2];
    for sub in ["ib", "rocev2"] {
        let Ok(files) = folder.join(sub).read_dir() else {
            return skip::because!("no captures at {}; set PAUSEBED_CAPTURES", folder.display());
        };
        for file in files.flatten() {
            // tshark takes some payloads for other protocols and reports them; the project's dissector reports nothing.
            let Some(rows) = home.fields(&file.path(), &names) else { return };
            for row in &rows {
                assert_eq!(row[1], "1", "{}: {row:?}", file.path().display());
                assert_eq!(row[2], if sub == "ib" { "1" } else { "" }, "{row:?}");
                verified[usize::from(sub == "rocev2")] += 1;
            }
        }
    }
    // Frame counts of the files that the folder's README lists.
    assert!(verified[0] >= 25 && verified[1] >= 337, "{verified:?}");
}
