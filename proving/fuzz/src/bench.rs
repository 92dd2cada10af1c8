//! Drives a device with hostile peers at every port and time in jumps, and checks the frame balance at the end.
//!
//! It is not the bench of `check/testbed`: there neighbours keep to the standard, here no peer needs to, and a device
//! that wants to be woken without end has failed.

use crate::frames;
use crate::roce_frames;
use crate::tape::Tape;
use proto::counters::DeviceReading;
use proto::device::Device;
use proto::frame::{Frame, FrameKind};
use proto::ids::{PortNumber, VirtualLane};
use proto::units::{Duration, Instant};
use proto::wire::ethernet::MacControl;
use proto::wire::infiniband::{FlowControlOp, FlowControlPacket};

/// Maximum number of wake-ups at one instant. More means that the device hangs.
const WAKES_MAX: u32 = 1_000;
/// Maximum number of steps of one input, because a short input can request many steps.
const STEPS_MAX: u32 = 4_096;
/// Maximum fabric time of one input. A link without its peer retrains 25 times in it.
const TIME_MAX: Instant = Instant::from_ps(40_000_000_000);

/// The technology of the peers at all cables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peers {
    /// InfiniBand devices.
    Infiniband,
    /// Ethernet devices with RoCEv2.
    Ethernet,
}

/// The device, with counts of its input and output.
pub struct Bench<D> {
    device: D,
    peers: Peers,
    now: Instant,
    /// Packets fed to the device, without link packets.
    fed: u64,
    /// Packets that left the device.
    sent: u64,
    /// Blocks that each port has sent, for the credits of well-behaved peers.
    blocks: Vec<u16>,
    steps: u32,
    lids: Vec<u16>,
    classes: u8,
    /// Buffer of a port, in octets.
    buffer: u64,
}

impl<D: Device> Bench<D> {
    /// A bench for `device`, whose `peers` have these LIDs and use queue pairs of `classes` classes.
    pub fn new(device: D, peers: Peers, lids: Vec<u16>, classes: u8, buffer: u64) -> Bench<D> {
        let blocks = vec![0; device.ports()];
        let (now, fed, sent, steps) = (Instant::ZERO, 0, 0, 0);
        Bench { device, peers, now, fed, sent, blocks, steps, lids, classes, buffer }
    }

    /// Executes the operations of the tape.
    pub fn run(mut self, mut tape: Tape<'_>) {
        self.train();
        while let Some(step) = tape.pull() {
            self.steps += 1;
            if self.steps > STEPS_MAX || self.now > TIME_MAX {
                break;
            }
            self.step(step, &mut tape);
            if self.steps.is_multiple_of(64) {
                self.balance();
            }
        }
        self.balance();
        self.device.begin_bin(self.now);
        self.pass(Duration::from_us(50));
        self.balance();
    }

    /// Trains all links, like well-behaved peers.
    fn train(&mut self) {
        self.drain();
        if self.peers == Peers::Ethernet {
            return;
        }
        for _ in 0..2 {
            for port in 0..self.device.ports() {
                self.grant(port, FlowControlOp::Normal, 2048);
            }
            self.pass(Duration::from_ns(100));
        }
    }

    fn step(&mut self, step: u8, tape: &mut Tape<'_>) {
        let port = usize::from(step >> 4) % self.device.ports();
        match step & 15 {
            0..=4 => {
                let frame = self.packet(tape);
                self.feed(port, frame);
            }
            5 => {
                let frame = self.packet(tape);
                let frame = frames::damaged(tape, frame);
                self.feed(port, frame);
            }
            6 => {
                let frame = frames::garbage(tape);
                self.feed(port, frame);
            }
            7 => {
                let frame = match self.peers {
                    Peers::Infiniband => frames::link_packet(tape),
                    Peers::Ethernet => roce_frames::mac_control(tape),
                };
                self.feed(port, frame);
            }
            8..=10 if self.peers == Peers::Ethernet => {
                let frame = roce_frames::pfc(tape);
                self.feed(port, frame);
            }
            8 | 9 => self.grant(port, FlowControlOp::Normal, u16::from(tape.u8()) * 8),
            10 => self.grant(port, FlowControlOp::Init, 1024),
            11 => self.pass(Duration::from_ns(tape.u8().into())),
            12 | 13 => self.pass(Duration::from_ns(tape.u16().into())),
            14 => self.pass(Duration::from_us(u64::from(tape.u8()) * 8)),
            15 if step & 0x80 != 0 => {
                let frame = self.notification(tape);
                self.feed(port, frame);
            }
            _ => {
                // A wake-up is permitted at any time.
                self.device.handle_timeout(self.now);
                self.drain();
            }
        }
    }

    fn packet(&self, tape: &mut Tape<'_>) -> Frame {
        match self.peers {
            Peers::Infiniband => frames::packet(tape, &self.lids, self.classes),
            Peers::Ethernet => roce_frames::packet(tape, &self.lids, self.classes),
        }
    }

    /// A message of a scheme of congestion control, or a frame with a tag of one.
    fn notification(&self, tape: &mut Tape<'_>) -> Frame {
        match self.peers {
            Peers::Infiniband => frames::notification(tape, &self.lids, self.classes),
            Peers::Ethernet => roce_frames::notification(tape, &self.lids, self.classes),
        }
    }

    /// True if the frame is link-local (flow control or MAC control), valid or not.
    fn is_link_local(&self, frame: &Frame) -> bool {
        match (frame.kind, self.peers) {
            (FrameKind::InfinibandLink, _) => true,
            (FrameKind::Ethernet, Peers::Ethernet) => MacControl::is_announced(&frame.octets),
            _ => false,
        }
    }

    fn feed(&mut self, port: usize, frame: Frame) {
        self.fed += u64::from(!self.is_link_local(&frame));
        self.device.handle_frame(PortNumber::from_index(port), frame, self.now, self.now);
        self.drain();
    }

    fn grant(&mut self, port: usize, op: FlowControlOp, offer: u16) {
        let initializing = op == FlowControlOp::Init;
        if initializing {
            self.blocks[port] = 0;
        }
        let packet = FlowControlPacket {
            op,
            fctbs: 0,
            virtual_lane: VirtualLane::ZERO,
            fccl: (self.blocks[port] + offer) % 4096,
        };
        self.feed(port, frames::link(&packet));
    }

    /// Takes all frames that the device sends at this instant.
    fn drain(&mut self) {
        let mut taken = 0;
        while let Some(departure) = self.device.poll_transmit(self.now) {
            taken += 1;
            assert!(taken <= WAKES_MAX, "the device sends without end at one instant");
            if self.is_link_local(&departure.frame) {
                continue;
            }
            self.sent += 1;
            let blocks = &mut self.blocks[departure.port.index()];
            *blocks = (*blocks + departure.frame.octets_len().div_ceil(64) as u16) % 4096;
        }
        while self.device.poll_event().is_some() {}
    }

    /// Advances the time and wakes the device at each instant that it requests.
    fn pass(&mut self, length: Duration) {
        let end = self.now + length;
        let mut wakes = 0;
        while let Some(due) = self.device.poll_timeout().filter(|due| *due <= end) {
            wakes = if due > self.now { 0 } else { wakes + 1 };
            assert!(wakes <= WAKES_MAX, "the device requests wake-ups without end at one instant");
            self.now = self.now.max(due);
            self.device.handle_timeout(self.now);
            self.drain();
        }
        self.now = end;
        self.drain();
    }

    /// Checks in = out + dropped + buffered + delivered, and that no gauge exceeds the buffer.
    fn balance(&mut self) {
        let mut reading = DeviceReading::default();
        self.device.read(self.now, &mut reading);
        self.drain();
        self.device.read(self.now, &mut reading);
        let drops = reading.ports.iter().flat_map(|port| port.drops.iter());
        let dropped: u64 =
            drops.filter(|(why, _)| why.is_end_to_end()).map(|(_, count)| count).sum();
        let balance = reading.balance;
        assert_eq!(
            self.fed + balance.injected,
            self.sent + dropped + balance.delivered + balance.buffered,
            "in = out + dropped + delivered + buffered"
        );
        let room = self.buffer * reading.ports.len() as u64;
        for lane in reading.ports.iter().flat_map(|port| &port.lanes) {
            let counters = &lane.counters;
            assert!(counters.in_queue.value <= self.buffer, "{:?}", counters.in_queue);
            assert!(counters.out_queue.value <= room, "{:?}", counters.out_queue);
            for gauge in [counters.in_queue, counters.out_queue, counters.source_queue] {
                assert!(gauge.min <= gauge.value && gauge.value <= gauge.max, "{gauge:?}");
            }
        }
    }
}
