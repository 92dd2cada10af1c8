//! Runs tshark for the values of fields, and builds frames for it.

use bytes::BytesMut;
use capture::{Capture, CapturePlan, CapturedPort, WhenFull};
use emulation::frame_tap::FrameTap;
use emulation::observer::Passage;
use emulation::wiring::{End, NodeKind, NodeWiring, Wiring};
use proto::events::Direction;
use proto::frame::{Frame, FrameKind};
use proto::ids::{Lid, PortNumber, Psn, QueuePairNumber, ServiceLevel, VirtualLane};
use proto::random::Random;
use proto::technology::Technology;
use proto::units::{BitRate, Instant};
use proto::wire::infiniband::{Bth, ExtendedHeaders, Grh, Opcode, PacketBuilder};
use std::path::Path;
use std::process::Command;

/// tshark's output for a file, one line for each packet; says why and returns `None` without tshark.
///
/// Its home is a missing folder, so that it loads no plugins of the user.
pub fn tshark(file: &Path, more: &[&str]) -> Option<Vec<String>> {
    let mut tshark = Command::new("tshark");
    tshark.env("HOME", file.with_extension("home")).env_remove("XDG_CONFIG_HOME");
    let Ok(output) = tshark.arg("-n").arg("-r").arg(file).args(more).output() else {
        skip::because!("tshark is not installed");
        return None;
    };
    let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{complaint}");
    let text = String::from_utf8(output.stdout).expect("fields are text");
    Some(text.lines().map(str::to_owned).collect())
}

/// The first occurrence of each field, one row for each packet.
pub fn fields(file: &Path, names: &[&str], more: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut arguments = vec!["-T", "fields", "-E", "separator=;", "-E", "occurrence=f"];
    arguments.extend(names.iter().flat_map(|name| ["-e", name]));
    arguments.extend(more);
    let rows = tshark(file, &arguments)?;
    Some(rows.iter().map(|row| row.split(';').map(str::to_owned).collect()).collect())
}

/// Writes packets with the project's recorder, as sent by port 1 of a NIC `h0`.
pub fn write(file: &Path, frames: &[(FrameKind, BytesMut)]) {
    let node = NodeWiring { name: "h0".to_owned(), kind: NodeKind::Nic, ports: 2, level: 0 };
    let wiring = Wiring { nodes: vec![node], ..Wiring::default() };
    let port = |index, technology| CapturedPort {
        at: End { node: 0, port: PortNumber::from_index(index) },
        technology,
        rate: BitRate::gbps(8),
        fed: false,
    };
    let plan = CapturePlan {
        file: file.to_owned(),
        scenario: "witnesses".to_owned(),
        seed: 7,
        dilation: None,
        snaplen: None,
        when_full: WhenFull::Wait,
        ports: vec![port(0, Technology::Infiniband), port(1, Technology::Ethernet)],
    };
    let mut capture = Capture::create(&plan, &wiring, &[0]).expect("a file");
    for (index, (kind, octets)) in frames.iter().enumerate() {
        let at = Instant::from_ps(index as u64 * 2_000_000);
        let port = PortNumber::from_index(usize::from(*kind == FrameKind::Ethernet));
        let frame = Frame::unchecked(*kind, octets.clone());
        capture.frame(&frame, &Passage::at_once(0, port, Direction::Tx, at));
    }
    assert_eq!(capture.finish(Instant::from_ps(u64::MAX >> 1)).error, None);
}

/// Writes a file of InfiniBand packets.
pub fn write_packets(file: &Path, packets: &[BytesMut]) {
    let frames: Vec<_> =
        packets.iter().map(|octets| (FrameKind::Infiniband, octets.clone())).collect();
    write(file, &frames);
}

/// One packet with random fields, except those that select other tshark dissectors: management queue pairs,
/// and payloads that resemble other protocols.
pub fn packet(opcode: Opcode, global: bool, payload: usize, random: &mut Random) -> BytesMut {
    let mut bits = |bits: u32| random.below(1 << bits);
    let queue_pair = QueuePairNumber::truncate(0x10_0000 | bits(19) as u32);
    let bth = Bth {
        solicited: bits(1) == 1,
        migration_request: bits(1) == 1,
        partition_key: bits(16) as u16,
        fecn: bits(1) == 1,
        becn: bits(1) == 1,
        ack_request: bits(1) == 1,
        ..Bth::new(opcode, queue_pair, Psn::truncate(bits(24) as u32))
    };
    let mut rest = [0u8; 64];
    rest.fill_with(|| bits(8) as u8);
    let set = opcode.extended_headers();
    let mut extended =
        ExtendedHeaders::parse(set, &rest, 0).expect("the octets suffice for any opcode");
    if let Some(deth) = &mut extended.deth {
        deth.source = QueuePairNumber::truncate(0x20_0000 | deth.source.get());
    }
    let grh = Grh {
        traffic_class: bits(8) as u8,
        flow_label: bits(20) as u32,
        hop_limit: bits(8) as u8,
        sgid: (bits(63) as u128).into(),
        dgid: ((bits(63) as u128) << 64 | 1).into(),
        ..Grh::default()
    };
    let builder = PacketBuilder {
        virtual_lane: VirtualLane::truncate(bits(3) as u8),
        service_level: ServiceLevel::truncate(bits(4) as u8),
        dlid: Lid::new(bits(15) as u16 | 1),
        slid: Lid::new(bits(15) as u16 | 1),
        grh: global.then_some(grh),
        bth,
        extended,
    };
    let mut octets = BytesMut::new();
    builder
        .emit(&mut octets, payload, |place| place.fill(0xa5))
        .expect("the payload fits a packet");
    octets
}

/// Packets of every opcode of RC, UC and UD, with and without GRH and with every PadCnt.
pub fn frames() -> Vec<BytesMut> {
    let mut random = Random::stream(7, "witnesses", "frames");
    let known = Opcode::ALL.iter().filter(|opcode| matches!(opcode.0 >> 5, 0b000 | 0b001 | 0b011));
    let mut frames = Vec::new();
    for opcode in known {
        let carries = opcode.row().is_some_and(|row| row.carries_payload());
        for (index, global) in [(0, false), (1, true), (2, false), (3, true)] {
            let payload = if carries { 64 + index } else { 0 };
            frames.push(packet(*opcode, global, payload, &mut random));
        }
    }
    frames
}
