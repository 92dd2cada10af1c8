//! Built RoCE, PAUSE and PFC frames, compared with the results of scapy, crcmod and tshark.

use super::crcs::answers;
use super::python::{hex, python, scapy};
use super::tshark::{fields, packet, write};
use bytes::BytesMut;
use proto::frame::FrameKind;
use proto::ids::{Dscp, Ecn, Priority, QueuePairNumber, VlanId};
use proto::random::Random;
use proto::wire::ethernet::{MacAddress, MacControl, Pause, Pfc, VlanTag};
use proto::wire::infiniband::{self, Grh, Opcode};
use proto::wire::internet::{Ipv4, Ipv6, Udp, mark_congestion};
use proto::wire::roce::{NetworkHeaders, Packet, PacketBuilder, notification};
use serde_json::Value;
use std::path::PathBuf;

fn network(which: usize, random: &mut Random) -> NetworkHeaders<'static> {
    let mut bits = |bits: u32| random.below(1 << bits);
    let (dscp, ecn) = (Dscp::truncate(bits(6) as u8), Ecn::from_bits(bits(2) as u8));
    // Above the ports that tshark assigns to other dissectors.
    let udp = Udp::roce(49_152 + bits(14) as u16);
    let address = |low: u64| u128::from(low) << 64 | u128::from(low);
    match which {
        0 => NetworkHeaders::Ipv4(
            Ipv4 {
                dscp,
                ecn,
                identification: bits(16) as u16,
                time_to_live: bits(8) as u8,
                source: (bits(31) as u32).into(),
                destination: (bits(31) as u32).into(),
                ..Ipv4::default()
            },
            &[],
            udp,
        ),
        1 => {
            let (source, destination) = (address(bits(60)).into(), address(bits(60)).into());
            let (flow_label, hop_limit) = (bits(20) as u32, bits(8) as u8);
            let ip =
                Ipv6 { dscp, ecn, flow_label, hop_limit, source, destination, ..Ipv6::default() };
            NetworkHeaders::Ipv6(ip, udp)
        }
        _ => NetworkHeaders::Global(Grh {
            traffic_class: bits(8) as u8,
            flow_label: bits(20) as u32,
            hop_limit: bits(8) as u8,
            sgid: address(bits(60)).into(),
            dgid: address(bits(60)).into(),
            ..Grh::default()
        }),
    }
}

/// Frames of every opcode of RC, UC and UD over IPv4, IPv6 and GRH, some tagged; then CNPs.
pub fn frames() -> Vec<BytesMut> {
    let mut random = Random::stream(7, "witnesses", "roce");
    let known = Opcode::ALL.iter().filter(|opcode| matches!(opcode.0 >> 5, 0b000 | 0b001 | 0b011));
    let mut frames = Vec::new();
    for (index, opcode) in known.enumerate() {
        let carries = opcode.row().is_some_and(|row| row.carries_payload());
        for which in 0..3 {
            let payload = if carries { 64 + (index + which) % 4 } else { 0 };
            let native = packet(*opcode, false, payload, &mut random);
            let native = infiniband::Packet::parse(&native).expect("a built packet parses");
            let network = network(which, &mut random);
            let tag = (index % 2 == 0).then(|| VlanTag {
                priority: Priority::truncate(index as u8),
                drop_eligible: which == 1,
                id: VlanId::truncate(100 + index as u16),
                ethertype: 0,
            });
            let bth = native.bth.expect("the packet is not raw");
            frames.push(frame(network, tag, bth, native.extended, native.payload));
        }
    }
    for which in 0..2 {
        let bth = notification::bth(QueuePairNumber::truncate(0x118), 0x8001);
        let none = infiniband::ExtendedHeaders::NONE;
        let body = [0; notification::BODY_LEN];
        frames.push(frame(network(which, &mut random), None, bth, none, &body));
    }
    frames
}

fn frame(
    network: NetworkHeaders<'_>,
    tag: Option<VlanTag>,
    bth: infiniband::Bth,
    extended: infiniband::ExtendedHeaders,
    payload: &[u8],
) -> BytesMut {
    let [destination, source] =
        [0x02_00_00_00_00_01, 0x02_00_00_00_00_02].map(MacAddress::from_number);
    let builder = PacketBuilder { destination, source, tag, network, bth, extended };
    let mut octets = BytesMut::new();
    let fill = |place: &mut [u8]| place.copy_from_slice(payload);
    builder.emit(&mut octets, payload.len(), fill).expect("the payload fits a packet");
    octets
}

fn parse(octets: &[u8]) -> Packet<'_> {
    Packet::parse(octets).expect("a built packet parses").expect("a RoCE frame")
}

/// ECN marking turns ECT into CE, and scapy computes the same ICRC and IP checksum.
#[test]
fn scapy_agrees_on_every_rocev2_frame_marked_or_not() {
    let mut frames: Vec<Vec<u8>> = frames().iter().map(|octets| octets.to_vec()).collect();
    let marked: Vec<Vec<u8>> = frames
        .iter()
        .cloned()
        .filter_map(|mut octets| mark_congestion(&mut octets).then_some(octets))
        .collect();
    assert!(marked.len() > 50, "{} frames are ECN-capable", marked.len());
    frames.extend(marked);
    let Some(told) = scapy(&frames) else { return };
    let mut computed = 0;
    for (octets, told) in frames.iter().zip(&told) {
        let packet = parse(octets);
        let bth = packet.transport.bth;
        let NetworkHeaders::Ipv4(ip, _, _) = packet.network else {
            // scapy computes no ICRC for RoCEv1, and for IPv6 only from version 2.6 on.
            continue;
        };
        let icrc = hex(&packet.icrc.to_le_bytes());
        assert_eq!((&told["icrc"], &told["computed_icrc"]), (&icrc.clone().into(), &icrc.into()));
        assert_eq!(told["ip_checksum"], ip.checksum, "{}", bth.opcode);
        assert_eq!(told["computed_ip_checksum"], ip.checksum, "{}", bth.opcode);
        assert_eq!((&told["opcode"], &told["psn"]), (&bth.opcode.0.into(), &bth.psn.get().into()));
        assert_eq!(told["dqpn"], bth.destination.get());
        assert_eq!(told["fecn"], u8::from(bth.fecn));
        assert_eq!(told["becn"], u8::from(bth.becn));
        computed += 1;
    }
    assert!(computed > 50, "{computed} over IPv4");
}

#[test]
fn scapy_builds_the_same_pause_and_pfc_frames() {
    let source = MacAddress::from_number(0x02_00_00_00_00_07);
    let mut controls =
        vec![MacControl::Pause(Pause { time: 0 }), MacControl::Pause(Pause { time: 0x1234 })];
    let mut random = Random::stream(7, "witnesses", "pfc");
    for _ in 0..50 {
        let mut pfc = Pfc::default();
        for priority in (0..8).map(Priority::truncate) {
            if random.below(2) == 1 {
                pfc = pfc.with(priority, random.below(3) as u16 * 0x7fff);
            }
        }
        controls.push(MacControl::Pfc(pfc));
    }
    let frames: Vec<Vec<u8>> =
        controls.iter().map(|control| control.to_octets(source).to_vec()).collect();
    let Some(told) = scapy(&frames) else { return };
    for ((control, octets), told) in controls.iter().zip(&frames).zip(&told) {
        assert_eq!(told["made"], hex(octets), "{control:?}");
        let said = |priority| match control {
            MacControl::Pfc(pfc) => pfc.time(Priority::truncate(priority)).map(u64::from),
            _ => None,
        };
        let heard = |priority: u8| told["times"].get(priority.to_string()).and_then(Value::as_u64);
        for priority in 0..8 {
            assert_eq!(said(priority), heard(priority), "{control:?}");
        }
    }
}

#[test]
fn crcmod_agrees_on_intact_and_damaged_icrcs() {
    let Some(python) = python("crcmod") else { return };
    let mut lines = String::new();
    let frames = frames();
    for octets in &frames {
        let mut damaged = octets.to_vec();
        let last = parse(octets).octets_len() - parse(octets).trailer.len() - 1;
        damaged[last] ^= 0x40;
        lines += &format!("ethernet {}\nethernet {}\n", hex(octets), hex(&damaged));
    }
    let told = answers(python, &["judge"], &lines);
    assert_eq!(told.len(), 2 * frames.len());
    for pair in told.chunks(2) {
        assert_eq!((&pair[0]["icrc"], &pair[1]["icrc"]), (&true.into(), &false.into()));
    }
}

fn scratch() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("frames.pcapng");
    (folder, file)
}

fn number(text: &str) -> Option<u64> {
    match text {
        "" => None,
        "True" => Some(1),
        "False" => Some(0),
        _ => text
            .strip_prefix("0x")
            .map_or_else(|| text.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok()),
    }
}

/// tshark's name of a field, and this project's value if the packet has the field.
type Field = (&'static str, fn(&Packet<'_>) -> Option<u64>);

fn ipv4(packet: &Packet<'_>) -> Option<Ipv4> {
    let NetworkHeaders::Ipv4(ip, _, _) = packet.network else { return None };
    Some(ip)
}

fn ipv6(packet: &Packet<'_>) -> Option<Ipv6> {
    let NetworkHeaders::Ipv6(ip, _) = packet.network else { return None };
    Some(ip)
}

fn udp(packet: &Packet<'_>) -> Option<Udp> {
    match packet.network {
        NetworkHeaders::Ipv4(_, _, udp) | NetworkHeaders::Ipv6(_, udp) => Some(udp),
        NetworkHeaders::Global(_) => None,
    }
}

fn grh(packet: &Packet<'_>) -> Option<Grh> {
    let NetworkHeaders::Global(grh) = packet.network else { return None };
    Some(grh)
}

const FIELDS: &[Field] = &[
    ("vlan.priority", |p| Some(p.ethernet.tag?.priority.get().into())),
    ("vlan.dei", |p| Some(p.ethernet.tag?.drop_eligible.into())),
    ("vlan.id", |p| Some(p.ethernet.tag?.id.get().into())),
    ("ip.dsfield.dscp", |p| Some(ipv4(p)?.dscp.get().into())),
    ("ip.dsfield.ecn", |p| Some(ipv4(p)?.ecn.bits().into())),
    ("ip.len", |p| Some(ipv4(p)?.total_length.into())),
    ("ip.id", |p| Some(ipv4(p)?.identification.into())),
    ("ip.ttl", |p| Some(ipv4(p)?.time_to_live.into())),
    // tshark's status 1 means "good".
    ("ip.checksum.status", |p| ipv4(p).map(|_| 1)),
    ("ipv6.tclass.dscp", |p| Some(ipv6(p)?.dscp.get().into())),
    ("ipv6.tclass.ecn", |p| Some(ipv6(p)?.ecn.bits().into())),
    ("ipv6.flow", |p| Some(ipv6(p)?.flow_label.into())),
    ("ipv6.plen", |p| Some(ipv6(p)?.payload_length.into())),
    ("ipv6.hlim", |p| Some(ipv6(p)?.hop_limit.into())),
    ("udp.srcport", |p| Some(udp(p)?.source_port.into())),
    ("udp.length", |p| Some(udp(p)?.length.into())),
    // tshark's status 3 means "none", which adapters send over IPv4.
    ("udp.checksum.status", |p| udp(p).map(|udp| if udp.checksum == 0 { 3 } else { 1 })),
    ("infiniband.grh.tclass", |p| Some(grh(p)?.traffic_class.into())),
    ("infiniband.grh.paylen", |p| Some(grh(p)?.payload_length.into())),
    ("infiniband.grh.hoplmt", |p| Some(grh(p)?.hop_limit.into())),
    ("infiniband.bth.opcode", |p| Some(p.transport.bth.opcode.0.into())),
    ("infiniband.bth.padcnt", |p| Some(p.transport.bth.pad_count.into())),
    ("infiniband.bth.p_key", |p| Some(p.transport.bth.partition_key.into())),
    ("infiniband.bth.destqp", |p| Some(p.transport.bth.destination.get().into())),
    ("infiniband.bth.a", |p| Some(p.transport.bth.ack_request.into())),
    ("infiniband.bth.psn", |p| Some(p.transport.bth.psn.get().into())),
    ("infiniband.invariant.crc", |p| {
        // tshark shows no ICRC for a RoCEv2 CNP.
        let is_known = p.transport.bth.opcode != Opcode::ROCEV2_CNP;
        is_known.then(|| p.icrc.swap_bytes().into())
    }),
];

#[test]
fn tshark_agrees_on_every_field() {
    let (_folder, file) = scratch();
    let frames = frames();
    let kinds: Vec<_> = frames.iter().map(|octets| (FrameKind::Ethernet, octets.clone())).collect();
    write(&file, &kinds);
    let names: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
    let checks = ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"];
    let Some(rows) = fields(&file, &names, &checks) else { return };
    assert_eq!(rows.len(), frames.len());
    let mut compared = 0;
    for (octets, row) in frames.iter().zip(&rows) {
        let packet = parse(octets);
        for ((name, ours), theirs) in FIELDS.iter().zip(row) {
            assert_eq!(number(theirs), ours(&packet), "{name} of {:?}", packet.transport.bth);
            compared += usize::from(!theirs.is_empty());
        }
    }
    assert!(compared > 12 * frames.len(), "{compared} fields of {} frames", frames.len());
    println!("{compared} fields of {} RoCE frames", frames.len());
}

#[test]
fn tshark_agrees_on_pause_and_pfc_fields() {
    let (_folder, file) = scratch();
    let source = MacAddress::from_number(0x02_00_00_00_00_07);
    let pfc = Pfc::default().with(Priority::truncate(3), 0xffff).with(Priority::truncate(4), 0);
    let controls = [MacControl::Pfc(pfc), MacControl::Pause(Pause { time: 0x1234 })];
    let frames = controls
        .map(|control| (FrameKind::Ethernet, BytesMut::from(&control.to_octets(source)[..])));
    write(&file, &frames);
    let names = [
        "eth.dst",
        "macc.opcode",
        "macc.pause_time",
        "macc.cbfc.enbv",
        "macc.cbfc.pause_time.c3",
        "macc.cbfc.pause_time.c4",
        "_ws.expert.message",
    ];
    let Some(rows) = fields(&file, &names, &[]) else { return };
    let group = "01:80:c2:00:00:01";
    let told: Vec<Vec<Option<u64>>> =
        rows.iter().map(|row| row[1..6].iter().map(|text| number(text)).collect()).collect();
    assert!(rows.iter().all(|row| row[0] == group && row[6].is_empty()), "{rows:?}");
    assert_eq!(told[0], [Some(0x0101), None, Some(0x0018), Some(0xffff), Some(0)]);
    assert_eq!(told[1], [Some(0x0001), Some(0x1234), None, None, None]);
}
