//! Initial inputs of each corpus, which reach every part of a target.

use crate::datagram::EPOCH;
use crate::frames;
use crate::seeds_text;
use crate::tape::Tape;
use bytes::BytesMut;
use capture::pcapng;
use emulation::cable::shim::{SendingEnd, Shim};
use proto::events::Direction;
use proto::frame::FrameKind;
use proto::ids::{Priority, Psn, QueuePairNumber, VirtualLane, VlanId};
use proto::random::Random;
use proto::units::Instant;
use proto::wire::ethernet::{MacAddress, MacControl, Pause, Pfc, VlanTag};
use proto::wire::infiniband::{
    Bth, ExtendedHeaders, FlowControlOp, FlowControlPacket, Grh, Opcode, Packet,
};
use proto::wire::internet::{Ipv4, Ipv6, Udp};
use proto::wire::roce::{self, NetworkHeaders};

/// The initial inputs of a target's corpus; deterministic.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let mut random = Random::stream(1, target, "seeds");
    let mut tape =
        |length: u64| -> Vec<u8> { (0..length).map(|_| random.below(256) as u8).collect() };
    match target {
        "packet" => (0..40).map(|n| [&[n % 8], &packet(&tape(48), n)[..]].concat()).collect(),
        "link_packet" => (0..24).map(|n| link_packet(&tape(4), n)).collect(),
        "ethernet" => (0..40).map(|n| ethernet(&tape(64), n)).collect(),
        "congestion" => (0..24).map(|n| congestion(&tape(120), n)).collect(),
        "datagram" => (0..24).map(|n| datagrams(&tape(200), n)).collect(),
        "capture" => (0..24).map(|n| capture(&tape(160), n)).collect(),
        "text" => (0..24).map(|n| text(&tape(64), n)).collect(),
        "scenario" => scenarios(),
        "offload" => (0..36).map(|n| offload(&tape(300), n)).collect(),
        "trace" => seeds_text::traces(),
        "api" => seeds_text::json(),
        "http" => seeds_text::requests(),
        "join" => seeds_text::joining(),
        "switch" | "ethernet_switch" | "nic" | "roce_nic" => {
            (0..36).map(|n| operations(&tape(40 + u64::from(n) * 12), n)).collect()
        }
        other => panic!("no seeds for {other}"),
    }
}

/// A packet whose opcode depends on `n`.
fn packet(tape: &[u8], n: u8) -> BytesMut {
    let mut tape = tape.to_vec();
    tape[2] = n.wrapping_mul(2) % Opcode::ALL.len() as u8;
    // Payloads are short, because their contents have no effect.
    tape[3] = tape[3] & 0xcf | 0x20;
    let mut frame = frames::packet(&mut Tape::new(&tape), &[1, 2, 3], 2);
    if n % 5 == 4 {
        let at = usize::from(tape[40]) % frame.octets.len();
        frame.octets[at] ^= 0x10;
    }
    frame.octets.truncate(700);
    frame.octets
}

/// A message, a tag or a test frame; some are truncated.
fn congestion(tape: &[u8], n: u8) -> Vec<u8> {
    // By mode: a CNM with a sample of 8 octets; with a CN-TAG before it; a project frame by subtype; IPv4.
    let mut octets = tape.to_vec();
    let mode = (n % 4) | (n & 8);
    let body = 1 + 14 + if mode & 8 != 0 { 4 } else { 0 };
    octets[0] = mode;
    match mode & 3 {
        0 => octets[body] = 0,
        1 => octets[body + 2..body + 4].copy_from_slice(&[0x22, 0xe7]),
        2 => octets[body] = n / 4 % 4,
        _ => octets[body] = 0x45,
    }
    octets[body + 1] &= 0x3f;
    octets[body + 22..body + 24].copy_from_slice(&[0, 8]);
    octets[body + 19] = 8;
    octets.truncate(if n % 5 == 4 { usize::from(n) * 4 } else { tape.len() });
    octets
}

/// A frame in one of the usual hexadecimal notations.
fn text(tape: &[u8], n: u8) -> Vec<u8> {
    let octets = if n.is_multiple_of(2) { ethernet(tape, n) } else { packet(tape, n).to_vec() };
    let words = |before: &str, between: &str| {
        let words = octets.iter().map(|octet| format!("{before}{octet:02x}"));
        words.collect::<Vec<_>>().join(between)
    };
    let rows = |begin: fn(usize) -> String, rest: fn(&[u8]) -> String| -> String {
        let rows = octets.chunks(16).enumerate();
        rows.map(|(row, octets)| format!("{}{}\n", begin(row * 16), rest(octets))).collect()
    };
    let pairs =
        |octets: &[u8]| octets.iter().map(|octet| format!(" {octet:02x}")).collect::<String>();
    let text = match n % 6 {
        0 => words("", "") + "\n",
        1 => words("", ":") + "\n",
        2 => format!("frame = {{ {} }};\n", words("0x", ", ")),
        3 => format!("\"{}\"\n", words("\\x", "")),
        4 => rows(|at| format!("\t0x{at:04x}: "), pairs),
        _ => rows(
            |at| format!("{at:08x} "),
            |octets| {
                let shown = octets.iter().map(|octet| char::from(octet & 0x3f | 0x20));
                let pairs = octets.iter().map(|octet| format!(" {octet:02x}")).collect::<String>();
                format!("{pairs}  |{}|", shown.collect::<String>())
            },
        ),
    };
    text.into_bytes()
}

fn link_packet(tape: &[u8], n: u8) -> Vec<u8> {
    let packet = FlowControlPacket {
        op: FlowControlOp::from_bits(n % 4),
        fctbs: u16::from_be_bytes([tape[0], tape[1]]) & 0xfff,
        virtual_lane: VirtualLane::truncate(n % 16),
        fccl: u16::from_be_bytes([tape[2], tape[3]]) & 0xfff,
    };
    let mut octets = packet.to_octets().to_vec();
    match n % 8 {
        6 => octets.truncate(5),
        7 => octets[4] ^= 1,
        _ => {}
    }
    octets
}

/// TCP and UDP over IPv4 and IPv6 whose checksum or segmentation is left to hardware.
fn offload(tape: &[u8], n: u8) -> Vec<u8> {
    let (is_ipv6, is_tcp) = (n % 2 == 1, n % 3 != 2);
    let mut frame = tape[..12].to_vec();
    let payload = &tape[60..60 + usize::from(n) * 6];
    let transport: Vec<u8> = match is_tcp {
        true => [&tape[20..32], &[0x50, 0x99], &tape[32..38]].concat(),
        false => [&tape[20..24], &(8 + payload.len() as u16).to_be_bytes(), &[0, 0]].concat(),
    };
    let length = (transport.len() + payload.len()) as u16;
    let protocol = if is_tcp { 6 } else { 17 };
    if is_ipv6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend(length.to_be_bytes());
        frame.extend([protocol, 64]);
        frame.extend(&tape[..32]);
    } else {
        frame.extend([0x08, 0x00, 0x45, 0]);
        frame.extend((20 + length).to_be_bytes());
        frame.extend([0, 1, 0x40, 0, 64, protocol, 0, 0]);
        frame.extend(&tape[..8]);
    }
    let start = frame.len() as u16;
    frame.extend(&transport);
    frame.extend(payload);
    let segmented = [0, if is_tcp { 1 } else { 5 }, if is_tcp { 4 } else { 5 }];
    let gso = if n % 4 == 0 { 0 } else { segmented[1 + usize::from(is_ipv6)] };
    let mut head = vec![u8::from(n % 5 != 4), gso, 0, 0];
    let size = u16::from(n % 7) * 9;
    for number in [size, start, if is_tcp { 16 } else { 6 }] {
        head.extend(number.to_ne_bytes());
    }
    head.extend(frame);
    head
}

/// The octet that selects repairs, and an Ethernet frame: RoCE over IPv4, IPv6 or GRH, PAUSE or PFC.
fn ethernet(tape: &[u8], n: u8) -> Vec<u8> {
    let port = MacAddress::from_number(u64::from(n) + 1);
    let mut frame = match n % 5 {
        3 => MacControl::Pause(Pause { time: u16::from(tape[0]) << 8 }).to_octets(port).to_vec(),
        4 => {
            let pfc = Pfc::default().with(Priority::truncate(tape[0]), u16::from(tape[1]));
            MacControl::Pfc(pfc).to_octets(port).to_vec()
        }
        network => roce(tape, n, network),
    };
    if n % 8 == 7 {
        let at = usize::from(tape[3]) % frame.len();
        frame[at] ^= 0x10;
    }
    if n % 11 == 10 {
        frame.truncate(frame.len() * 2 / 3);
    }
    [&[n % 16][..], &frame].concat()
}

fn roce(tape: &[u8], n: u8, network: u8) -> Vec<u8> {
    let native = packet(tape, n);
    let native = Packet::parse(&native).ok().and_then(|packet| {
        let payload = packet.payload[..packet.payload.len().min(40)].to_vec();
        Some((packet.bth?, packet.extended, payload))
    });
    // One in five packets is damaged.
    let plain =
        Bth::new(Opcode::UC_SEND_ONLY, QueuePairNumber::truncate(7), Psn::truncate(n.into()));
    let (bth, extended, payload) = native.unwrap_or((plain, ExtendedHeaders::NONE, vec![n; 9]));
    let udp = Udp::roce(0xc000 | u16::from(tape[4]));
    let network = match network {
        0 => {
            let source = [10, 0, 0, tape[5]].into();
            NetworkHeaders::Ipv4(
                Ipv4 { source, ..Ipv4::default() },
                &[1; 4][..usize::from(n % 2) * 4],
                udp,
            )
        }
        1 => NetworkHeaders::Ipv6(Ipv6 { flow_label: tape[5].into(), ..Ipv6::default() }, udp),
        _ => NetworkHeaders::Global(Grh { flow_label: tape[5].into(), ..Grh::default() }),
    };
    let tag = n.is_multiple_of(3).then(|| VlanTag {
        priority: Priority::truncate(n),
        drop_eligible: false,
        id: VlanId::truncate(n.into()),
        ethertype: 0,
    });
    let [destination, source] = [1, 2].map(MacAddress::from_number);
    let builder = roce::PacketBuilder { destination, source, tag, network, bth, extended };
    let mut octets = BytesMut::new();
    let fill = |place: &mut [u8]| place.copy_from_slice(&payload);
    builder.emit(&mut octets, payload.len(), fill).expect("the payload fits a packet");
    octets.to_vec()
}

fn datagrams(tape: &[u8], n: u8) -> Vec<u8> {
    let mut input = Vec::new();
    for index in 0..u32::from(n % 5) + 1 {
        let mut records = Vec::new();
        for record in 0..u32::from(n % 3) + 1 {
            let data = record % 2 == 0;
            let frame = if data { &packet(tape, n)[..] } else { &link_packet(tape, n)[..] };
            let shim = Shim {
                kind: if data { FrameKind::Infiniband } else { FrameKind::InfinibandLink },
                flags: 0,
                end: SendingEnd::B,
                link: u32::from(n % 7 == 6) * 5 + index % 2,
                epoch: EPOCH + u32::from(n % 11 == 10),
                // Some datagrams are lost, some duplicated, some late.
                sequence: [0, 2, 1, 1, 9][index as usize] * 4 + record,
                length: frame.len() as u32,
                stamp: Instant::from_ps(u64::from(index) * 1_000),
            };
            records.extend(shim.emit());
            records.extend_from_slice(frame);
        }
        if n % 6 == 5 {
            records.extend_from_slice(&tape[..9]);
        }
        input.extend((records.len() as u16).to_be_bytes());
        input.push(tape[usize::from(n)]);
        input.extend(records);
    }
    input
}

/// Link packets and data packets of one port, as pcapng or as classic pcap in either byte order.
fn capture(tape: &[u8], n: u8) -> Vec<u8> {
    if n % 4 == 3 {
        return classic(tape, n);
    }
    let mut file = Vec::new();
    pcapng::section(&mut file, "a seed");
    let names = ["s0:1", "s0:1/link", "eth"];
    let types = [pcapng::LinkType::Erf, pcapng::LinkType::User0, pcapng::LinkType::Ethernet];
    for (name, link_type) in names.into_iter().zip(types) {
        let speed = 8_000_000_000;
        let interface = pcapng::Interface { link_type, snaplen: 0, name, description: "", speed };
        pcapng::interface(&mut file, &interface);
    }
    for index in 0..n % 6 + 1 {
        let interface = usize::from(index % 3);
        let mut part = tape.to_vec();
        part.rotate_left(usize::from(index) * 7);
        let octets = match interface {
            0 => packet(&part, n + index).to_vec(),
            1 => link_packet(&part, index),
            _ => part[..60].to_vec(),
        };
        let packet = pcapng::Packet {
            interface: interface as u32,
            link_type: types[interface],
            at_ns: u64::from(index) * 400,
            octets: &octets[..octets.len().min(if n % 5 == 4 { 30 } else { 1_000 })],
            wire_size: octets.len(),
            direction: Some(if index % 2 == 0 { Direction::Tx } else { Direction::Rx }),
            dropped_before: u64::from(index % 4),
        };
        pcapng::packet(&mut file, &packet);
    }
    pcapng::statistics(&mut file, 0, 99, (3, 1));
    file
}

fn classic(tape: &[u8], n: u8) -> Vec<u8> {
    let big = n % 8 == 7;
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let frame = packet(tape, n);
    let length = (frame.len() + 16) as u16;
    let mut record = [0; 16];
    (record[8], record[9]) = (21, 4);
    record[10..12].copy_from_slice(&length.to_be_bytes());
    record[14..16].copy_from_slice(&(frame.len() as u16).to_be_bytes());
    [
        &word(0xa1b2_c3d4)[..],
        &half(2)[..],
        &half(4)[..],
        &word(0)[..],
        &word(0)[..],
        &word(65_535)[..],
        &word(197)[..],
        &word(1)[..],
        &word(2)[..],
        &word(length.into())[..],
        &word(length.into())[..],
        &record[..],
        &frame[..],
    ]
    .concat()
}

/// A small scenario, also with an invalid line or an overridden key.
fn scenarios() -> Vec<Vec<u8>> {
    const GOOD: &str = include_str!("../seeds/star.toml");
    let sets = [
        "run.seed=8",
        "fabric.switch.buffer=300 KB",
        "fabric.hosts=254",
        "fabric.link.rate=10 Gbps",
        "traffic.cold.load=0.5",
        "run.duration=\"3 s\"",
        "nonsense",
        "scheme.kind=ib-cca",
        "fabric.shape=xgft",
        "fabric={shape=\"xgft\",m=[4,8],w=[1,4],technology=\"infiniband\"}",
        "a.b.c=[1,{x=2}]",
        "measure.0.from=-1 mtu",
    ];
    let overridden = sets.map(|set| format!("{GOOD}\0{set}").into_bytes());
    let lines: Vec<&str> = GOOD.lines().collect();
    let spoilt = (0..lines.len()).step_by(3).map(|spoil| {
        let line = |(index, line): (usize, &&str)| match (index == spoil, index % 2) {
            (false, _) => format!("{line}\n"),
            (true, 0) => format!("{}\n", line.replace(['1', '8'], "-99999999999")),
            (true, _) => String::new(),
        };
        lines.iter().enumerate().map(line).collect::<String>().into_bytes()
    });
    [GOOD.as_bytes().to_vec()].into_iter().chain(overridden).chain(spoilt).collect()
}

/// Operations, most of them valid.
fn operations(tape: &[u8], n: u8) -> Vec<u8> {
    let mut input = tape.to_vec();
    (input[0], input[1]) = (n, n / 3);
    input
}
