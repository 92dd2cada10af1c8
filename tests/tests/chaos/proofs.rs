//! Proofs by all cases: arithmetic modulo powers of two, against whole numbers that never wrap.

use super::laboratory::in_repository;
use super::{Campaign, rings};
use emulation::cable::datagram::Received;
use emulation::cable::inbox::Inbox;
use emulation::cable::lines::Lines;
use emulation::cable::shim::{SendingEnd, Shim};
use emulation::cable::udp;
use emulation::wiring::Wiring;
use proto::frame::{FrameKind, FramePool};
use proto::ids::{Psn, VirtualLane};
use proto::link::credit::{CreditFlow, LinkState, block_octets, blocks};
use proto::units::{BitRate, Bytes, Duration, Instant};
use proto::wire::infiniband::{FlowControlOp, FlowControlPacket};
use std::collections::BTreeSet;
use std::process::Command;

/// Checks all cases and returns their number.
type Proof = fn() -> u64;

/// The proofs by name, and what each shows.
pub const PROOFS: [(&str, &str, Proof); 9] = [
    (
        "credit sender",
        "for each count of blocks sent and each limit (12 bits both), the port has the credit that was granted and sends exactly the packets of 1, 2, 65 and 128 blocks, and those at the limit, that fit it",
        sender,
    ),
    (
        "credit receiver",
        "for each count of blocks received (12 bits) and each amount of free buffer, the limit announced is their sum",
        receiver,
    ),
    (
        "credit loss",
        "for each count of blocks received and each count that the peer states (12 bits both), the blocks lost are their difference",
        lost,
    ),
    (
        "packet numbers",
        "for each distance of two packet numbers (24 bits), at the ends and the middle of their range, which one is newer and by how much; the distance is one subtraction, so the place does not matter",
        packet_numbers,
    ),
    (
        "sequence window",
        "for each four of 13 steps (next, gaps, late frames and duplicates at the edges of the window and of half the range) and each place of the wrap in the window, the outcome that whole numbers give",
        windows,
    ),
    (
        "receive ring",
        "for each position of a ring of 4096 slots and each number of frames in it (empty and full too), the next slot is that of the oldest frame",
        rings::receive_ring,
    ),
    (
        "frames in slots",
        "for each offset that the kernel can name (16 bits) and each length around that of a slot and at the end of 32 bits, the frame is read exactly if it is within the slot",
        rings::frames_in_slots,
    ),
    (
        "send counts",
        "for a ring of 512 places at the wrap of its counts, for each number of frames that wait and each number that the kernel takes of them, the counts, entries and places are those of whole numbers; for each address, its place",
        rings::send_counts,
    ),
    (
        "send ring",
        "for each state that a ring of four places reaches with seven frames (full, partial batches, busy, refused and lost interfaces, forgotten frames, the wrap) and eight kinds of kernel, each frame is sent once and in order, no place and no entry is used twice",
        rings::send_ring,
    ),
];

/// The name of what Miri tries.
const UNSAFE: &str = "unsafe code";

/// What loom and Miri try, too slow for the quick tests.
pub const SLOW: [(&str, &str, Proof); 2] = [
    (
        "orders of steps",
        "in each order of steps that the memory model of C++ permits, between two threads that send orders to a worker (one or two each) and the worker: each order is found, in the order of its thread, a worker that sleeps is woken, and its alarm is silent at last (two of the six models with at most three switches of threads that could go on)",
        interleavings,
    ),
    (
        UNSAFE,
        "Miri interprets the tests that read and write memory shared with the kernel or a device, and plays the other side: the rings of packet sockets and of AF_XDP, control data, registered pages. There is no undefined behaviour. The other unsafe blocks call the system or libibverbs, which Miri cannot execute",
        undefined_behaviour,
    ),
];

/// The tests that Miri can execute, of each package with unsafe code.
const FOR_MIRI: [(&str, &[&str]); 2] = [
    ("emulation", &["packet_socket::auxiliary", "packet_socket::ring", "packet_socket::send_ring"]),
    ("agent", &["memory"]),
];

/// Miri, of the nightly toolchain.
fn miri(words: &[&str]) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args(["+nightly", "miri"]).args(words);
    cargo
}

/// Runs Miri. Returns the number of tests.
fn undefined_behaviour() -> u64 {
    let run = |(package, filters): &(&str, &[&str])| {
        let mut cargo = miri(&["test", "--locked", "--lib", "-p", package, "--"]);
        cargo.args(*filters).current_dir(in_repository(""));
        cargo.env("CARGO_TARGET_DIR", in_repository("target/miri"));
        // Maps memory; and libc finds the next control header by the number of its address.
        cargo.env("MIRIFLAGS", "-Zmiri-permissive-provenance -Zmiri-disable-isolation");
        let output = cargo.output().expect("cargo starts");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        text.lines().filter(|line| line.starts_with("test ") && line.ends_with(" ok")).count()
    };
    let counts = FOR_MIRI.each_ref().map(run);
    assert!(counts.iter().zip(FOR_MIRI).all(|(count, (_, filters))| *count >= filters.len()));
    counts.into_iter().sum::<usize>() as u64
}

/// Runs the models. Each prints how many orders of steps it has tried.
fn interleavings() -> u64 {
    let package = in_repository("proving/interleavings/Cargo.toml");
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--locked", "--manifest-path"]).arg(package);
    cargo.arg("--target-dir").arg(in_repository("target/interleavings"));
    let output = cargo.args(["--", "--nocapture", "--test-threads", "1"]).output();
    let output = output.expect("cargo starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let tried =
        |line: &str| line.split_once(" orders of steps")?.0.rsplit(' ').next()?.parse().ok();
    let tried: Vec<u64> = text.lines().filter_map(tried).collect();
    assert_eq!(tried.len(), 6, "{text}");
    tried.iter().sum()
}

pub fn proofs(campaign: &mut Campaign) {
    let version = miri(&["--version"]).output();
    let has_miri = version.is_ok_and(|output| output.status.success());
    for (name, _, proof) in PROOFS.into_iter().chain(SLOW) {
        if name == UNSAFE && !has_miri {
            skip::because!("no Miri: rustup +nightly component add miri rust-src");
            continue;
        }
        campaign.part(name, || format!("{} cases", proof()));
    }
}

const MODULUS: u16 = 4096;
/// The most that a limit may be ahead. Source: IBTA Vol 1, 7.9.4.4.
const AHEAD_MAX: u16 = 2048;
const LANE: VirtualLane = VirtualLane::ZERO;

fn word(op: FlowControlOp, fctbs: u16, fccl: u16) -> FlowControlPacket {
    FlowControlPacket { op, fctbs, virtual_lane: LANE, fccl }
}

/// A port that sends and receives data.
fn active(buffer: Bytes) -> CreditFlow {
    let (begin, rate) = (Instant::ZERO, BitRate::gbps(8));
    let mut flow = CreditFlow::new(1, buffer, Bytes::new(2_048), rate, 4, begin);
    flow.on_control(&word(FlowControlOp::Init, 0, 0), begin);
    flow.on_control(&word(FlowControlOp::Normal, 0, 0), begin);
    assert_eq!(flow.state(), LinkState::Active);
    flow
}

fn sender() -> u64 {
    let mut flow = active(block_octets(64));
    let mut cases = 0;
    for sent in 0..MODULUS {
        for granted in 0..MODULUS {
            let limit = (sent + granted) % MODULUS;
            flow.on_control(&word(FlowControlOp::Normal, 0, limit), Instant::ZERO);
            // A limit further ahead than permitted is one behind what was sent.
            let credit =
                if granted <= AHEAD_MAX { i32::from(granted) } else { i32::from(granted) - 4_096 };
            assert_eq!(i32::from(flow.credits(LANE)), credit.max(0), "{sent} sent, limit {limit}");
            for size in [1, 2, 65, 128, granted, granted + 1] {
                if !(1..=128).contains(&size) {
                    continue;
                }
                // A limit so far behind that the packet wraps it to the front cannot be told from one ahead.
                let left = credit - i32::from(size);
                let fits = left >= 0 || left < i32::from(AHEAD_MAX) - 4_095;
                let octets = block_octets(size.into());
                assert_eq!(
                    flow.may_transmit(LANE, octets),
                    fits,
                    "{sent} sent, limit {limit}, {size}"
                );
                cases += 1;
            }
        }
        assert_eq!(blocks(block_octets(1)), 1);
        flow.on_transmit(LANE, block_octets(1));
    }
    cases
}

fn receiver() -> u64 {
    let capacity = u32::from(AHEAD_MAX);
    let mut cases = 0;
    let mut flow = active(block_octets(capacity));
    let mut now = Instant::ZERO;
    for free in (0..=AHEAD_MAX).rev() {
        for received in 0..MODULUS {
            flow.on_control(&word(FlowControlOp::Normal, received, 0), now);
            // After the refresh a packet is due in any case.
            now = now + Duration::from_us(70);
            flow.handle_timeout(now);
            let sent = flow.poll_control(now).expect("a refresh is due");
            assert_eq!(sent.fccl, (received + free) % MODULUS, "{received} received, {free} free");
            cases += 1;
        }
        assert_eq!(flow.admit(LANE, block_octets(1), now), free > 0);
    }
    cases
}

fn lost() -> u64 {
    let mut flow = active(block_octets(64));
    let mut cases = 0;
    for received in 0..MODULUS {
        for missing in 0..MODULUS {
            flow.on_control(&word(FlowControlOp::Normal, received, 0), Instant::ZERO);
            let before = flow.blocks_lost();
            let stated = (received + missing) % MODULUS;
            flow.on_control(&word(FlowControlOp::Normal, stated, 0), Instant::ZERO);
            // More than the largest offer cannot be on the way: the packet is older than what was received.
            let due = if missing <= AHEAD_MAX { u64::from(missing) } else { 0 };
            assert_eq!(flow.blocks_lost() - before, due, "{received} received, {stated} stated");
            cases += 1;
        }
    }
    cases
}

fn packet_numbers() -> u64 {
    const HALF: i32 = 1 << 23;
    let mut cases = 0;
    for base in [0, 1, HALF - 1, HALF, 2 * HALF - 1, 0x5a_5a5a] {
        let base = Psn::truncate(base as u32);
        for ahead in 0..2 * HALF {
            let other = base.plus(ahead as u32);
            let distance = if ahead < HALF { ahead } else { ahead - 2 * HALF };
            assert_eq!(other.distance_from(base), distance, "{base:?} + {ahead}");
            if distance != -HALF {
                assert_eq!(base.distance_from(other), -distance, "{base:?} + {ahead}");
            }
            cases += 1;
        }
        assert_eq!(base.next(), base.plus(1));
    }
    cases
}

/// One line of two processes, and how its receiver counts.
struct Line {
    inbox: Inbox,
    lines: Lines,
    source: Vec<u8>,
    pool: FramePool,
    model: Model,
}

/// The same in whole numbers.
#[derive(Clone, Default)]
struct Model {
    /// The number after the newest, and all that have come.
    next: u64,
    seen: BTreeSet<u64>,
    received: u64,
    lost: u64,
    late: u64,
    duplicates: u64,
}

/// Numbers further back than this cannot be told from duplicates.
const WINDOW: u64 = 1_024;

impl Model {
    /// The frame `ahead` of the next one has come.
    fn observe(&mut self, ahead: i64) {
        let number = self.next.wrapping_add_signed(ahead);
        if ahead >= 0 {
            self.lost += ahead as u64;
            self.received += 1;
            self.next = number + 1;
            self.seen.insert(number);
            self.seen = self.seen.split_off(&self.next.saturating_sub(WINDOW));
        } else if ahead.unsigned_abs() > self.next.min(WINDOW) || !self.seen.insert(number) {
            self.duplicates += 1;
        } else {
            self.lost -= 1;
            self.late += 1;
            self.received += 1;
        }
    }
}

impl Line {
    fn new() -> Line {
        const PAIR: &str = r#"{
            "nodes": [{ "name": "a", "kind": "nic", "ports": 1, "level": 0 },
                      { "name": "b", "kind": "nic", "ports": 1, "level": 0 }],
            "links": [{ "a": { "node": 0, "port": 1 }, "b": { "node": 1, "port": 1 },
                        "delay": "1 us", "frame_time": "1 us" }]
        }"#;
        let wiring: Wiring = serde_json::from_str(PAIR).expect("a wiring");
        let lines = Lines::new(&wiring, &[0, 1], 1, false).expect("a good wiring");
        let peers = ["127.0.0.1:1", "127.0.0.1:2"];
        let peers = peers.map(|address| udp::peer(address).expect("an address"));
        let inbox = Inbox::new(1, &peers, lines.count());
        let source = peers[0].key().to_vec();
        Line { inbox, lines, source, pool: FramePool::default(), model: Model::default() }
    }

    /// A line on which the number `next` is the next.
    fn at(next: u64) -> Line {
        let mut line = Line::new();
        // The first steps are as long as they may be.
        while line.model.next < next {
            let left = next - line.model.next - 1;
            line.observe(left.min((1 << 31) - 1) as i64);
        }
        line
    }

    /// The frame `ahead` of the next one comes; both counts must agree.
    fn observe(&mut self, ahead: i64) {
        let sequence = self.model.next.wrapping_add_signed(ahead) as u32;
        self.model.observe(ahead);
        let (kind, end) = (FrameKind::Infiniband, SendingEnd::A);
        let (flags, link, epoch, length, stamp) = (0, 0, 1, 0, Instant::ZERO);
        let shim = Shim { kind, flags, end, link, epoch, sequence, length, stamp };
        let datagram = Received { source: &self.source, octets: &shim.emit(), cut: false };
        let Line { inbox, lines, pool, model, .. } = self;
        inbox.accept(datagram, lines, pool, |_| {});
        let counts = inbox.received(lines).next().expect("a line").counts;
        let found = (counts.received.total(), counts.lost, counts.reordered, counts.duplicates);
        let due = (model.received, model.lost, model.late, model.duplicates);
        assert_eq!(found, due, "received, lost, late, duplicates: {sequence:#x}, {ahead} ahead");
    }
}

fn windows() -> u64 {
    const HALF: i64 = 1 << 31;
    let edge = WINDOW as i64;
    let steps = [0, 1, 2, edge - 1, edge, edge + 1, HALF - 1, -1, -2, -3, -edge, -edge - 1, -HALF];
    let mut cases = 0;
    for begin in [4 * WINDOW, (1 << 32) - 2, (1 << 32) - 1, 1 << 32, (1 << 32) + WINDOW] {
        for four in 0..steps.len().pow(4) {
            let mut line = Line::at(begin);
            for place in 0..4 {
                line.observe(steps[four / steps.len().pow(place) % steps.len()]);
                cases += 1;
            }
        }
    }
    // The wrap at each place of the window: gaps, their late frames, and these again.
    for before in 0..2 * WINDOW {
        let mut line = Line::at((1 << 32) - before);
        for _ in 0..2 * WINDOW / 64 {
            for ahead in [0, 3, -2, -2, 61, -40, -1, 0, -WINDOW.cast_signed()] {
                line.observe(ahead);
                cases += 1;
            }
        }
    }
    cases
}
