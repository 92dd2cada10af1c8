//! IBFC-10: flow-control packets that come twice or late, as the cable's sequence numbers see them.

use crate::bench::Bench;
use crate::bench::devices::{FRAME_TIME, FULL_FRAME_BLOCKS, MTU, burst, class, nic};
use crate::case::{Failure, Finding, ensure, same};
use emulation::cable::datagram::Received;
use emulation::cable::inbox::{Inbox, LineCounts};
use emulation::cable::lines::Lines;
use emulation::cable::shim::{SendingEnd, Shim};
use emulation::cable::udp;
use emulation::wiring::{End, LinkWiring, NodeKind, NodeWiring, Wiring};
use nicd::config::Transport;
use nicd::nic::Nic;
use proto::frame::{Frame, FrameKind, FramePool};
use proto::ids::{PortNumber, VirtualLane};
use proto::units::{Duration, Instant};
use proto::wire::infiniband::{FlowControlOp, FlowControlPacket};

/// Of the run, in every shim.
const EPOCH: u32 = 10;
/// The addresses of our process and of the far one; no socket is opened.
const ADDRESSES: [&str; 2] = ["127.0.0.1:4000", "127.0.0.1:4001"];

/// The receiving end of a cable, and the far end's records by number.
struct Cable {
    inbox: Inbox,
    lines: Lines,
    pool: FramePool,
    records: Vec<Vec<u8>>,
}

impl Cable {
    fn new() -> Result<Cable, Failure> {
        let port = PortNumber::from_index(0);
        let node = |name: &str| NodeWiring {
            name: name.to_owned(),
            kind: NodeKind::Nic,
            ports: 1,
            level: 0,
        };
        let link = LinkWiring {
            a: End { node: 0, port },
            b: End { node: 1, port },
            delay: Duration::ZERO,
            frame_time: FRAME_TIME,
        };
        let nodes = vec![node("far"), node("near")];
        let wiring = Wiring { nodes, links: vec![link], ..Wiring::default() };
        let lines = Lines::new(&wiring, &[1, 0], 0, false).map_err(|error| error.to_string())?;
        let peer = |address| udp::peer(address).map_err(|error| Failure::from(error.to_string()));
        let peers = [peer(ADDRESSES[0])?, peer(ADDRESSES[1])?];
        let inbox = Inbox::new(EPOCH, &peers, lines.count());
        Ok(Cable { inbox, lines, pool: FramePool::default(), records: Vec::new() })
    }

    /// The far end sends a limit; the record has the number returned.
    fn make(&mut self, fccl: u16, stamp: Instant) -> usize {
        let packet = FlowControlPacket {
            op: FlowControlOp::Normal,
            fctbs: 0,
            virtual_lane: VirtualLane::ZERO,
            fccl,
        };
        let shim = Shim {
            kind: FrameKind::InfinibandLink,
            flags: 0,
            end: SendingEnd::A,
            link: 0,
            epoch: EPOCH,
            sequence: self.records.len() as u32,
            length: FlowControlPacket::LEN as u32,
            stamp,
        };
        self.records.push([&shim.emit()[..], &packet.to_octets()].concat());
        self.records.len() - 1
    }

    /// Record `number` arrives, for the first time or again: what reaches the device.
    fn arrive(&mut self, number: usize) -> Result<Vec<Frame>, Failure> {
        let source = udp::peer(ADDRESSES[1]).map_err(|error| error.to_string())?;
        let octets = &self.records[number];
        let datagram = Received { source: source.key(), octets, cut: false };
        let mut frames = Vec::new();
        self.inbox.accept(datagram, &self.lines, &mut self.pool, |accepted| {
            frames.push(accepted.frame);
        });
        same("records refused outright", self.inbox.rejected().total(), 0)?;
        Ok(frames)
    }

    fn counts(&self) -> LineCounts {
        self.inbox.received(&self.lines).next().map(|line| line.counts).unwrap_or_default()
    }
}

/// IBFC-10: a limit that was lowered since must not come back, as a copy or as a latecomer.
pub fn repeated_and_late_flow_control() -> Finding {
    let start = Instant::ZERO + Duration::from_us(100);
    let mut config = nic(1, 1);
    config.classes = vec![class(Transport::Uc, 0)];
    config.traffic.push(burst(2, 0, MTU as u64, 0, start));
    let nic = Nic::new(config).map_err(|error| error.to_string())?;
    let mut bench = Bench::up(nic, 1)?;
    bench.neighbour(1).speaks = false;
    let mut cable = Cable::new()?;
    // Three frames may leave; then the limit stays where it is, told every 100 µs. The packets in
    // between with a higher limit are held back on the way and never come in time.
    let limit = (3 * FULL_FRAME_BLOCKS) as u16;
    let wide = cable.make(2048, bench.now());
    let (mut copies, mut late) = (Vec::new(), vec![wide]);
    for turn in 0..60u64 {
        let held = turn % 10 == 5;
        let fccl = if held { 2048 } else { limit };
        let number = cable.make(fccl, bench.now());
        if held {
            late.push(number);
        } else {
            copies.push(number);
            deliver(&mut bench, &mut cable, number)?;
        }
        bench.run_for(Duration::from_us(100));
    }
    same("frames out by the last limit", bench.packets(1).count(), 3)?;
    for number in late.iter().chain(&copies) {
        let reached = deliver(&mut bench, &mut cable, *number)?;
        same(format!("frames of old record {number} that reach the device"), reached, 0)?;
        bench.run_for(FRAME_TIME);
    }
    same("frames out after old packets came", bench.packets(1).count(), 3)?;
    let LineCounts { stale, duplicates, .. } = cable.counts();
    same("latecomers counted", stale, late.len() as u64)?;
    same("copies counted", duplicates, copies.len() as u64)?;
    let newer = cable.make(limit + FULL_FRAME_BLOCKS as u16, bench.now());
    deliver(&mut bench, &mut cable, newer)?;
    bench.run_for(FRAME_TIME * 3);
    ensure(bench.packets(1).count() == 4, || "a newer limit does not open the gate".to_owned())?;
    Ok(format!("{stale} late ones and {duplicates} copies up to 6 ms old rejected and counted"))
}

fn deliver(bench: &mut Bench<Nic>, cable: &mut Cable, number: usize) -> Result<usize, Failure> {
    let frames = cable.arrive(number)?;
    let reached = frames.len();
    frames.into_iter().for_each(|frame| bench.inject(1, frame));
    Ok(reached)
}
