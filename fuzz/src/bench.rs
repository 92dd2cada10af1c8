//! A device on a bench: hostile peers at every port, time in jumps, and the books checked at the end.

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

/// A device wakes no more often than this at one instant, or it hangs.
const WAKES_MAX: u32 = 1_000;
/// Steps of one input: an input is small, and time is cheap to write.
const STEPS_MAX: u32 = 4_096;
/// And this much fabric time: a link that lost its peer trains anew 25 times in it.
const TIME_MAX: Instant = Instant::from_ps(40_000_000_000);

/// What stands at the other end of every cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peers {
    /// Devices of InfiniBand.
    Infiniband,
    /// Devices of Ethernet, which speak RoCEv2.
    Ethernet,
}

/// The device and what went in and out.
pub struct Bench<D> {
    device: D,
    peers: Peers,
    now: Instant,
    /// Packets that went in, link packets not counted.
    fed: u64,
    /// Packets that came out.
    sent: u64,
    /// Octets that the line of each port has sent, in blocks, for peers who keep the rules.
    blocks: Vec<u16>,
    steps: u32,
    lids: Vec<u16>,
    classes: u8,
    /// Octets of buffer a port has.
    buffer: u64,
}

impl<D: Device> Bench<D> {
    /// A bench for `device`, whose `peers` have these LIDs and use queue pairs of so many classes.
    pub fn new(device: D, peers: Peers, lids: Vec<u16>, classes: u8, buffer: u64) -> Bench<D> {
        let blocks = vec![0; device.ports()];
        let (now, fed, sent, steps) = (Instant::ZERO, 0, 0, 0);
        Bench { device, peers, now, fed, sent, blocks, steps, lids, classes, buffer }
    }

    /// Does what the tape says, to its end.
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

    /// Brings all links up, as good peers would.
    fn train(&mut self) {
        self.settle();
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
            _ => {
                // Nobody need ask for it to be woken.
                self.device.handle_timeout(self.now);
                self.settle();
            }
        }
    }

    fn packet(&self, tape: &mut Tape<'_>) -> Frame {
        match self.peers {
            Peers::Infiniband => frames::packet(tape, &self.lids, self.classes),
            Peers::Ethernet => roce_frames::packet(tape, &self.lids, self.classes),
        }
    }

    /// Whether a frame is of one link only, good or not.
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
        self.settle();
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

    /// Takes all that the device has to give at this instant.
    fn settle(&mut self) {
        let mut taken = 0;
        while let Some(departure) = self.device.poll_transmit(self.now) {
            taken += 1;
            assert!(taken <= WAKES_MAX, "it sends without end at one instant");
            if self.is_link_local(&departure.frame) {
                continue;
            }
            self.sent += 1;
            let blocks = &mut self.blocks[departure.port.index()];
            *blocks = (*blocks + departure.frame.octets.len().div_ceil(64) as u16) % 4096;
        }
        while self.device.poll_event().is_some() {}
    }

    /// Lets time pass, waking the device when it wants to be.
    fn pass(&mut self, length: Duration) {
        let end = self.now + length;
        let mut wakes = 0;
        while let Some(due) = self.device.poll_timeout().filter(|due| *due <= end) {
            wakes = if due > self.now { 0 } else { wakes + 1 };
            assert!(wakes <= WAKES_MAX, "it wants to be woken without end at one instant");
            self.now = self.now.max(due);
            self.device.handle_timeout(self.now);
            self.settle();
        }
        self.now = end;
        self.settle();
    }

    /// In = out + dropped + buffered + delivered, and no gauge beyond what there is room for.
    fn balance(&mut self) {
        let mut reading = DeviceReading::default();
        self.device.read(self.now, &mut reading);
        self.settle();
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
